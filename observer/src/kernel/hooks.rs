//! Which programs to attach where: decided from what the kernel has, before anything is loaded.

use super::{btf::Btf, symbols::Symbols};
use crate::stream::header::Via;

/// Which hooks are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Tier {
    /// Functions, and tracepoints in their place where the kernel lets no function be hooked
    #[default]
    All,
    /// Tracepoints only: reads are told as ranges of a file, and no eviction, refault or generation is seen
    Tracepoints,
}

/// A place a program can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is for, as in [`crate::stream::header::Hook::name`].
    pub name: &'static str,
    /// Program in the object.
    pub program: &'static str,
    /// How.
    pub via: Via,
    /// Kernel symbol or tracepoint.
    pub target: String,
    /// Why it is not where it was wanted, or not at all.
    pub why: String,
    /// What is unknown without it.
    pub without: &'static str,
}

/// One way to reach a hook, in order of preference.
struct Way {
    program: &'static str,
    via: Via,
    target: &'static str,
}

/// A hook that is wanted.
struct Wanted {
    name: &'static str,
    ways: &'static [Way],
    without: &'static str,
}

const fn way(program: &'static str, via: Via, target: &'static str) -> Way {
    Way { program, via, target }
}

/// What programs take the first arguments of their function for: pointers to these structs. Others do not care.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("folio_add_lru", &["folio"]),
    ("folio_mark_accessed", &["folio"]),
    ("workingset_refault", &["folio"]),
    ("workingset_eviction", &["folio", "mem_cgroup"]),
    ("try_to_shrink_lruvec_enter", &["lruvec", "scan_control"]),
    ("try_to_shrink_lruvec_exit", &["lruvec", "scan_control"]),
    ("inc_max_seq", &["lruvec"]),
    ("try_to_inc_max_seq", &["lruvec"]),
    ("folio_inc_gen", &["lruvec", "folio"]),
    ("folio_inc_gen_clone", &["lruvec", "folio"]),
    ("walk_update_folio", &["lru_gen_mm_walk", "folio"]),
    ("walk_update_folio_third", &["lru_gen_mm_walk", "vm_area_struct", "folio"]),
    ("folio_update_gen", &["folio"]),
    ("lru_gen_set_refs", &["folio"]),
    ("lru_gen_look_around", &["page_vma_mapped_walk"]),
    ("swap_read_folio", &["folio"]),
    ("swap_read_folio_second", &["swap_io_ctx", "folio"]),
];

/// Hooks of the full tier.
const WANTED: &[Wanted] = &[
    Wanted {
        name: "folio_add_lru",
        ways: &[way("folio_add_lru", Via::Fentry, "folio_add_lru")],
        without: "flags and fault state of a folio before it is placed",
    },
    Wanted {
        name: "mm_lru_insertion",
        ways: &[way("mm_lru_insertion", Via::TpBtf, "mm_lru_insertion")],
        without: "the generation (or list) a folio was put on",
    },
    Wanted {
        name: "folio_mark_accessed",
        ways: &[way("folio_mark_accessed", Via::Fentry, "folio_mark_accessed")],
        without: "accesses through file descriptors",
    },
    Wanted {
        name: "lru_gen_refault",
        ways: &[way("workingset_refault", Via::Fentry, "lru_gen_refault"), way("workingset_refault", Via::Fentry, "workingset_refault")],
        without: "refaults, and what they restore",
    },
    Wanted {
        name: "workingset_eviction",
        ways: &[way("workingset_eviction", Via::Fexit, "workingset_eviction")],
        without: "evictions and their shadow entries",
    },
    Wanted {
        name: "try_to_shrink_lruvec",
        ways: &[way("try_to_shrink_lruvec_enter", Via::Fentry, "try_to_shrink_lruvec")],
        without: "beginning of reclaim, sizes of generations, controller state",
    },
    Wanted {
        name: "try_to_shrink_lruvec exit",
        ways: &[way("try_to_shrink_lruvec_exit", Via::Fexit, "try_to_shrink_lruvec")],
        without: "end of reclaim and what it reclaimed",
    },
    Wanted {
        name: "aging",
        ways: &[way("inc_max_seq", Via::Fexit, "inc_max_seq"), way("try_to_inc_max_seq", Via::Fexit, "try_to_inc_max_seq")],
        without: "the moment max_seq moves",
    },
    Wanted {
        name: "folio_inc_gen",
        ways: &[way("folio_inc_gen", Via::Fexit, "folio_inc_gen"), way("folio_inc_gen_clone", Via::Kprobe, "folio_inc_gen")],
        without: "protection at scan: seen late, when min_seq moves past a folio",
    },
    Wanted {
        name: "walk_update_folio",
        ways: &[
            way("walk_update_folio", Via::Fentry, "walk_update_folio"),
            way("walk_update_folio_third", Via::Fentry, "walk_update_folio"),
            way("folio_update_gen", Via::Fentry, "folio_update_gen"),
        ],
        without: "page-table accesses found by aging",
    },
    Wanted {
        name: "lru_gen_set_refs",
        ways: &[way("lru_gen_set_refs", Via::Fentry, "lru_gen_set_refs")],
        without: "page-table accesses found around reclaim candidates",
    },
    Wanted {
        name: "lru_gen_look_around",
        ways: &[way("lru_gen_look_around", Via::Fentry, "lru_gen_look_around")],
        without: "how often reclaim looks around",
    },
    Wanted {
        name: "swap_read_folio",
        ways: &[way("swap_read_folio", Via::Fentry, "swap_read_folio"), way("swap_read_folio_second", Via::Fentry, "swap_read_folio")],
        without: "which swap entry fills a folio that bypasses the swap cache: such refaults get no verdict",
    },
    Wanted { name: "mm_lru_activate", ways: &[way("mm_lru_activate", Via::TpBtf, "mm_lru_activate")], without: "activations" },
    Wanted {
        name: "page_cache_delete",
        ways: &[way("mm_filemap_delete_from_page_cache", Via::TpBtf, "mm_filemap_delete_from_page_cache")],
        without: "folios that leave without reclaim",
    },
];

/// What stands in where functions cannot be hooked.
const TRACEPOINTS: &[Wanted] = &[
    Wanted {
        name: "page_cache_add",
        ways: &[way("mm_filemap_add_to_page_cache", Via::TpBtf, "mm_filemap_add_to_page_cache")],
        without: "folios that enter the page cache",
    },
    Wanted { name: "reads", ways: &[way("mm_filemap_get_pages", Via::TpBtf, "mm_filemap_get_pages")], without: "accesses by read()" },
    Wanted { name: "faults", ways: &[way("mm_filemap_fault", Via::TpBtf, "mm_filemap_fault")], without: "accesses by page faults" },
    Wanted {
        name: "fault-around",
        ways: &[way("mm_filemap_map_pages", Via::TpBtf, "mm_filemap_map_pages")],
        without: "pages mapped around a fault",
    },
];

/// Functions whose symbols matter.
pub fn symbols_wanted() -> Vec<&'static str> {
    let mut names: Vec<&str> = WANTED.iter().flat_map(|wanted| wanted.ways.iter().map(|way| way.target)).collect();
    names.extend(["pff", "vmemmap_base"]);
    names
}

/// Plans for the full tier.
pub fn plan(btf: &Btf, symbols: &Symbols, tier: Tier) -> Vec<Plan> {
    WANTED.iter().map(|wanted| choose(wanted, btf, symbols, tier)).collect()
}

/// Plans that replace function hooks where the kernel refuses those.
pub fn plan_tracepoints(btf: &Btf, symbols: &Symbols) -> Vec<Plan> {
    TRACEPOINTS.iter().map(|wanted| choose(wanted, btf, symbols, Tier::Tracepoints)).collect()
}

fn choose(wanted: &Wanted, btf: &Btf, symbols: &Symbols, tier: Tier) -> Plan {
    let mut reasons: Vec<(&str, String)> = Vec::new();
    let all = |reasons: Vec<(&str, String)>| reasons.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>().join("; ");
    for way in wanted.ways {
        match reach(way, btf, symbols, tier) {
            Ok(target) => {
                // That another program is for other arguments of this very function is no flaw of this one.
                reasons.retain(|(of, _)| *of != target);
                let why = all(reasons);
                return Plan { name: wanted.name, program: way.program, via: way.via, target, why, without: wanted.without };
            }
            Err(reason) if reasons.iter().any(|(_, told)| *told == reason) => {}
            Err(reason) => reasons.push((way.target, reason)),
        }
    }
    Plan { name: wanted.name, program: "", via: Via::None, target: String::new(), why: all(reasons), without: wanted.without }
}

/// Whether a function's arguments, as [`Btf::arguments`] tells them, are what a program takes them for. Another kernel's function
/// of that name may take something else, and the program would read it as what it is not.
pub(super) fn fits(program: &str, arguments: &[&str]) -> bool {
    let expected = ARGUMENTS.iter().find(|(name, _)| *name == program).map_or(&[] as &[_], |(_, expected)| expected);
    // What it returns is behind its arguments.
    let all = program == "workingset_eviction";
    arguments.starts_with(expected) && (!all || arguments.len() == expected.len())
}

/// The symbol to use, or why this way is closed.
fn reach(way: &Way, btf: &Btf, symbols: &Symbols, tier: Tier) -> Result<String, String> {
    if tier == Tier::Tracepoints && matches!(way.via, Via::Fentry | Via::Fexit | Via::Kprobe) {
        return Err("functions are not to be hooked".to_owned());
    }
    let symbol = find(way, btf, symbols)?;
    match btf.arguments(way.target) {
        Some(arguments) if !fits(way.program, &arguments.iter().map(String::as_str).collect::<Vec<_>>()) => {
            Err(format!("{} takes other arguments here than those known: ({})", way.target, arguments.join(", ")))
        }
        _ => Ok(symbol),
    }
}

/// The symbol itself, whatever it takes.
fn find(way: &Way, btf: &Btf, symbols: &Symbols) -> Result<String, String> {
    let name = way.target;
    match way.via {
        Via::TpBtf if btf.has_tracepoint(name) => Ok(name.to_owned()),
        Via::TpBtf => Err(format!("this kernel has no tracepoint {name}")),
        Via::Kprobe => match symbols.clone_of(name) {
            Some(clone) => Ok(clone.to_owned()),
            None => Err(format!("{name} is inlined or absent")),
        },
        Via::Fentry | Via::Fexit => match symbols.count(name) {
            1 if btf.has_function(name) => Ok(name.to_owned()),
            1 => Err(format!("{name} has no BTF")),
            0 => match symbols.clone_of(name) {
                Some(clone) => Err(format!("{name} is only there as {clone}")),
                None => Err(format!("{name} is inlined or absent")),
            },
            copies => Err(format!("{name} stands {copies} times in the kernel")),
        },
        Via::Run | Via::None => Err("no way".to_owned()),
    }
}
