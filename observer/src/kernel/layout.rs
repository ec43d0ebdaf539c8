//! Offsets and bit positions of one kernel, out of its BTF (spec 1.2, 8.5).

use anyhow::{Result, ensure};
use observer_common::layout::{ABSENT, Layout};

use super::btf::Btf;
use crate::stream::header::FlagLayout;

/// Offsets for the programs. Node bits come later, from [`super::flag_fields`].
///
/// # Errors
/// Names a member without which nothing can be observed.
pub fn offsets(btf: &Btf) -> Result<Layout> {
    let optional = |structure: &str, path: &str| btf.offset(structure, path).unwrap_or(ABSENT);
    let first_of = |candidates: &[(&str, &str)]| {
        candidates.iter().map(|(structure, path)| optional(structure, path)).find(|offset| *offset != ABSENT).unwrap_or(ABSENT)
    };
    ensure!(btf.offset("folio", "flags")? == 0, "folio.flags is not where every known kernel has it: this kernel is not supported");

    let mut layout = Layout {
        folio_mapping: btf.offset("folio", "mapping")?,
        folio_index: btf.offset("folio", "index")?,
        folio_memcg_data: optional("folio", "memcg_data"),
        folio_nr_pages: first_of(&[("folio", "_nr_pages"), ("folio", "_folio_nr_pages")]),
        folio_refcount: optional("folio", "_refcount"),
        folio_swap: first_of(&[("folio", "swap.val"), ("folio", "private")]),
        head_bit: btf.enumerator("PG_head").unwrap_or(0),
        lru_bit: u32::from(flag_bits(btf)?.lru),
        swapbacked_bit: u32::from(flag_bits(btf)?.swapbacked),
        swapcache_bit: u32::from(flag_bits(btf)?.swapcache),
        memcg_data_is_objcg: u32::from(btf.has_member("mem_cgroup_per_node", "objcg")),
        objcg_memcg: optional("obj_cgroup", "memcg"),
        memcg_cgroup: optional("mem_cgroup", "css.cgroup"),
        memcg_id: optional("mem_cgroup", "id.id"),
        memcg_serial: optional("mem_cgroup", "css.serial_nr"),
        memcg_nodeinfo: optional("mem_cgroup", "nodeinfo"),
        cgroup_kn: optional("cgroup", "kn"),
        cgroup_level: optional("cgroup", "level"),
        cgroup_ancestors: optional("cgroup", "ancestors"),
        kn_id: optional("kernfs_node", "id"),
        pn_lruvec: optional("mem_cgroup_per_node", "lruvec"),
        pn_memcg: optional("mem_cgroup_per_node", "memcg"),
        lruvec_pgdat: optional("lruvec", "pgdat"),
        pgdat_node_id: optional("pglist_data", "node_id"),
        sc_priority: optional("scan_control", "priority"),
        sc_nr_reclaimed: optional("scan_control", "nr_reclaimed"),
        mapping_host: btf.offset("address_space", "host")?,
        inode_ino: btf.offset("inode", "i_ino")?,
        inode_sb: btf.offset("inode", "i_sb")?,
        inode_dentry: optional("inode", "i_dentry"),
        sb_dev: btf.offset("super_block", "s_dev")?,
        dentry_alias: first_of(&[("dentry", "d_alias"), ("dentry", "d_u.d_alias")]),
        dentry_name: optional("dentry", "d_name.name"),
        dentry_parent: optional("dentry", "d_parent"),
        task_flags: optional("task_struct", "flags"),
        pvmw_pfn: optional("page_vma_mapped_walk", "pfn"),
        ..Layout::UNKNOWN
    };
    if let Ok(bit) = btf.bit_offset("task_struct", "in_lru_fault") {
        layout.task_in_lru_fault = bit / 8;
        layout.task_in_lru_fault_bit = bit % 8;
    }
    if layout.dentry_alias == ABSENT {
        layout.inode_dentry = ABSENT;
    }
    lru_gen(btf, &mut layout)?;
    Ok(layout)
}

/// The lruvec's multi-gen part; a kernel without it keeps [`ABSENT`].
fn lru_gen(btf: &Btf, layout: &mut Layout) -> Result<()> {
    if !btf.has_member("lruvec", "lrugen.max_seq") {
        return Ok(());
    }
    let max_seq = btf.offset("lruvec", "lrugen.max_seq")?;
    ensure!(
        btf.offset("lruvec", "lrugen.min_seq")? == max_seq + 8,
        "lrugen.min_seq does not follow lrugen.max_seq: this kernel is not supported"
    );
    layout.lruvec_seq = max_seq;
    layout.lruvec_enabled = btf.offset("lruvec", "lrugen.enabled").unwrap_or(ABSENT);
    layout.lruvec_nr_pages = btf.offset("lruvec", "lrugen.nr_pages")?;
    // 4 generations × 2 types × zones, of 8 bytes.
    layout.nr_zones = btf.member_size("lruvec", "lrugen.nr_pages")? / 64;
    ensure!((1..=8).contains(&layout.nr_zones), "lrugen.nr_pages has an unknown shape: this kernel is not supported");
    let tiers = |member: &str| btf.offset("lruvec", &format!("lrugen.{member}"));
    layout.lruvec_avg_refaulted = tiers("avg_refaulted")?;
    layout.lruvec_avg_total = tiers("avg_total")?;
    layout.lruvec_protected = tiers("protected")?;
    layout.lruvec_evicted = tiers("evicted")?;
    layout.lruvec_refaulted = tiers("refaulted")?;
    // `evicted` is [hist][2 types][4 tiers]; `protected` had a tier less before 6.14.
    let evicted = btf.member_size("lruvec", "lrugen.evicted")?;
    let protected = btf.member_size("lruvec", "lrugen.protected")?;
    layout.nr_hist = evicted / 64;
    layout.protected_tiers = if protected == evicted { 4 } else { 3 };
    Ok(())
}

/// Flag bits by name (spec 1.2). The positions of generation and references are not in BTF: [`super::flag_fields`].
///
/// # Errors
/// Names the flag that this kernel lacks.
pub fn flag_bits(btf: &Btf) -> Result<FlagLayout> {
    let bit = |name: &str| -> Result<u8> {
        let value = btf.enumerator(name).ok_or_else(|| anyhow::anyhow!("this kernel has no page flag {name}"))?;
        Ok(u8::try_from(value)?)
    };
    let one_of = |names: &[&str]| names.iter().find_map(|name| bit(name).ok());
    Ok(FlagLayout {
        referenced: bit("PG_referenced")?,
        uptodate: bit("PG_uptodate").ok(),
        active: bit("PG_active")?,
        workingset: bit("PG_workingset")?,
        swapbacked: bit("PG_swapbacked")?,
        swapcache: one_of(&["PG_swapcache", "PG_owner_priv_1"])
            .ok_or_else(|| anyhow::anyhow!("this kernel has no page flag PG_swapcache"))?,
        unevictable: bit("PG_unevictable")?,
        reclaim: bit("PG_reclaim")?,
        dirty: bit("PG_dirty")?,
        writeback: bit("PG_writeback")?,
        lru: bit("PG_lru")?,
        head: bit("PG_head")?,
        dropbehind: bit("PG_dropbehind").ok(),
        nr_pageflags: bit("__NR_PAGEFLAGS")?,
        gen_pgoff: None,
        refs_pgoff: None,
        refs_width: None,
        derived_from: String::new(),
        nodes_shift: None,
    })
}
