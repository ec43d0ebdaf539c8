//! What user space tells the programs about the running kernel, once, before they are loaded.

/// A member that this kernel does not have.
pub const ABSENT: u32 = u32::MAX;

/// Byte offsets and bit positions of the running kernel, from its BTF. Constant to the verifier, so that branches on
/// them cost nothing. [`ABSENT`] marks what an older or newer kernel lacks; the loader refuses when a *required* one is.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `folio.mapping`.
    pub folio_mapping: u32,
    /// `folio.index`.
    pub folio_index: u32,
    /// `folio.memcg_data`.
    pub folio_memcg_data: u32,
    /// `folio._nr_pages` (or `_folio_nr_pages`), of large folios.
    pub folio_nr_pages: u32,
    /// `folio._refcount`.
    pub folio_refcount: u32,
    /// `folio.swap` (`folio.private` where that does not exist).
    pub folio_swap: u32,
    /// PG_head's bit number.
    pub head_bit: u32,
    /// PG_lru's bit number.
    pub lru_bit: u32,
    /// PG_swapbacked's bit number.
    pub swapbacked_bit: u32,
    /// PG_swapcache's bit number.
    pub swapcache_bit: u32,
    /// 1 when `memcg_data` of user folios holds an `obj_cgroup`.
    pub memcg_data_is_objcg: u32,
    /// `obj_cgroup.memcg`.
    pub objcg_memcg: u32,
    /// `mem_cgroup.css.cgroup`.
    pub memcg_cgroup: u32,
    /// `mem_cgroup.id.id`, the private id of shadow entries.
    pub memcg_id: u32,
    /// `mem_cgroup.css.serial_nr`.
    pub memcg_serial: u32,
    /// `mem_cgroup.nodeinfo`.
    pub memcg_nodeinfo: u32,
    /// `cgroup.kn`.
    pub cgroup_kn: u32,
    /// `cgroup.level`.
    pub cgroup_level: u32,
    /// `cgroup.ancestors`.
    pub cgroup_ancestors: u32,
    /// `kernfs_node.id`.
    pub kn_id: u32,
    /// `mem_cgroup_per_node.lruvec`.
    pub pn_lruvec: u32,
    /// `mem_cgroup_per_node.memcg`.
    pub pn_memcg: u32,
    /// `lruvec.lrugen.max_seq`; `min_seq` follows it (checked by the loader).
    pub lruvec_seq: u32,
    /// `lruvec.lrugen.enabled`.
    pub lruvec_enabled: u32,
    /// `lruvec.lrugen.nr_pages`.
    pub lruvec_nr_pages: u32,
    /// Zones per `nr_pages[gen][type]`.
    pub nr_zones: u32,
    /// `lruvec.lrugen.avg_refaulted`.
    pub lruvec_avg_refaulted: u32,
    /// `lruvec.lrugen.avg_total`.
    pub lruvec_avg_total: u32,
    /// `lruvec.lrugen.protected`.
    pub lruvec_protected: u32,
    /// Tiers of `protected` (3 before 6.14: tier 0 has no slot).
    pub protected_tiers: u32,
    /// `lruvec.lrugen.evicted`.
    pub lruvec_evicted: u32,
    /// `lruvec.lrugen.refaulted`.
    pub lruvec_refaulted: u32,
    /// NR_HIST_GENS.
    pub nr_hist: u32,
    /// `lruvec.pgdat`.
    pub lruvec_pgdat: u32,
    /// `pglist_data.node_id`.
    pub pgdat_node_id: u32,
    /// `scan_control.priority`.
    pub sc_priority: u32,
    /// `scan_control.nr_reclaimed`.
    pub sc_nr_reclaimed: u32,
    /// `address_space.host`.
    pub mapping_host: u32,
    /// `inode.i_ino`.
    pub inode_ino: u32,
    /// `inode.i_sb`.
    pub inode_sb: u32,
    /// `inode.i_dentry`.
    pub inode_dentry: u32,
    /// `super_block.s_dev`.
    pub sb_dev: u32,
    /// `dentry.d_alias` (in `d_u` before 7.x).
    pub dentry_alias: u32,
    /// `dentry.d_name.name`.
    pub dentry_name: u32,
    /// `dentry.d_parent`.
    pub dentry_parent: u32,
    /// Byte of `task_struct` that holds `in_lru_fault`.
    pub task_in_lru_fault: u32,
    /// Its bit in that byte.
    pub task_in_lru_fault_bit: u32,
    /// `task_struct.flags`.
    pub task_flags: u32,
    /// `page_vma_mapped_walk.pfn`.
    pub pvmw_pfn: u32,
    /// Shift of the node id in a folio's flags word.
    pub node_shift: u32,
    /// Mask of the node id after the shift; 0 on one-node kernels.
    pub node_mask: u32,
}

impl Layout {
    /// Nothing known.
    pub const UNKNOWN: Self = Self {
        folio_mapping: ABSENT,
        folio_index: ABSENT,
        folio_memcg_data: ABSENT,
        folio_nr_pages: ABSENT,
        folio_refcount: ABSENT,
        folio_swap: ABSENT,
        head_bit: 0,
        lru_bit: 0,
        swapbacked_bit: 0,
        swapcache_bit: 0,
        memcg_data_is_objcg: 0,
        objcg_memcg: ABSENT,
        memcg_cgroup: ABSENT,
        memcg_id: ABSENT,
        memcg_serial: ABSENT,
        memcg_nodeinfo: ABSENT,
        cgroup_kn: ABSENT,
        cgroup_level: ABSENT,
        cgroup_ancestors: ABSENT,
        kn_id: ABSENT,
        pn_lruvec: ABSENT,
        pn_memcg: ABSENT,
        lruvec_seq: ABSENT,
        lruvec_enabled: ABSENT,
        lruvec_nr_pages: ABSENT,
        nr_zones: 0,
        lruvec_avg_refaulted: ABSENT,
        lruvec_avg_total: ABSENT,
        lruvec_protected: ABSENT,
        protected_tiers: 4,
        lruvec_evicted: ABSENT,
        lruvec_refaulted: ABSENT,
        nr_hist: 1,
        lruvec_pgdat: ABSENT,
        pgdat_node_id: ABSENT,
        sc_priority: ABSENT,
        sc_nr_reclaimed: ABSENT,
        mapping_host: ABSENT,
        inode_ino: ABSENT,
        inode_sb: ABSENT,
        inode_dentry: ABSENT,
        sb_dev: ABSENT,
        dentry_alias: ABSENT,
        dentry_name: ABSENT,
        dentry_parent: ABSENT,
        task_in_lru_fault: ABSENT,
        task_in_lru_fault_bit: 0,
        task_flags: ABSENT,
        pvmw_pfn: ABSENT,
        node_shift: 0,
        node_mask: 0,
    };
}

/// What is observed and what is not.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// kernfs id of the cgroup whose subtree is observed; 0 for all.
    pub cgroup: u64,
    /// Its level in the hierarchy.
    pub level: u32,
    /// The observer's own process, which is never traced; 0 for none.
    pub self_tgid: u32,
}
