//! Layout and choice of hooks on the kernels whose types are stored in `stored/` (`cargo xtask kernel-types` brings them).

use super::{
    btf::Btf,
    hooks::{self, Tier},
    layout, own_rules,
    symbols::Symbols,
};
use crate::stream::header::{Lru, OwnRules, Via};

/// One kernel.
struct Stored {
    btf: Btf,
    symbols: Symbols,
}

macro_rules! stored {
    ($name:literal) => {
        Stored {
            btf: Btf::parse(include_bytes!(concat!("stored/", $name, "/btf"))).unwrap(),
            symbols: Symbols::parse(include_str!(concat!("stored/", $name, "/kallsyms")), &hooks::symbols_wanted()),
        }
    };
}

impl Stored {
    /// Every member of the layout, every flag, every hook.
    fn facts(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let (rules, because) = own_rules::find(&self.btf, Lru::Mglru);
        writeln!(text, "rules {} ({because})", rules.name()).unwrap();
        for plan in hooks::plan(&self.btf, &self.symbols, Tier::All).iter().chain(&hooks::plan_tracepoints(&self.btf, &self.symbols)) {
            let why = if plan.why.is_empty() { String::new() } else { format!(" ({})", plan.why) };
            writeln!(text, "{}: {} {} {}{why}", plan.name, plan.via.name(), plan.program, plan.target).unwrap();
        }
        let layout = layout::offsets(&self.btf).unwrap();
        let flags = layout::flag_bits(&self.btf).unwrap();
        writeln!(text, "{layout:#?}\n{flags:#?}").unwrap();
        text.replace(&u32::MAX.to_string(), "absent")
    }

    fn via(&self, name: &str) -> (Via, String) {
        let plan = hooks::plan(&self.btf, &self.symbols, Tier::All).into_iter().find(|plan| plan.name == name).unwrap();
        (plan.via, plan.target)
    }
}

#[test]
fn without_functions_every_plan_is_a_tracepoint() {
    let kernel = stored!("7.3");
    let plans = hooks::plan(&kernel.btf, &kernel.symbols, Tier::Tracepoints);
    assert!(plans.iter().all(|plan| matches!(plan.via, Via::TpBtf | Via::None)), "{plans:?}");
    let hooked = |name: &str| plans.iter().find(|plan| plan.name == name).unwrap();
    assert_eq!(hooked("mm_lru_insertion").via, Via::TpBtf);
    assert_eq!(hooked("folio_add_lru").why, "functions are not to be hooked");
}

#[test]
fn a_function_that_takes_something_else_is_not_hooked() {
    let fits = |function, arguments: &[&str]| hooks::fits(function, arguments);
    assert!(fits("folio_inc_gen", &["lruvec", "folio", ""]) && !fits("folio_inc_gen", &["folio", "lruvec"]));
    assert!(!fits("folio_add_lru", &["page"]) && !fits("folio_add_lru", &[]));
    assert!(fits("workingset_eviction", &["folio", "mem_cgroup"]) && !fits("workingset_eviction", &["folio", "mem_cgroup", ""]));
    assert!(fits("swap_read_folio", &["folio", ""]) && !fits("swap_read_folio", &["swap_io_ctx", "folio"]));
    assert!(fits("swap_read_folio_second", &["swap_io_ctx", "folio"]) && !fits("swap_read_folio_second", &["folio", ""]));
    assert!(fits("walk_update_folio", &["lru_gen_mm_walk", "folio", ""]) && !fits("walk_update_folio", &["lru_gen_mm_walk", ""]));
    assert!(fits("walk_update_folio_third", &["lru_gen_mm_walk", "vm_area_struct", "folio"]));
    let program = |kernel: &Stored, name: &str| {
        hooks::plan(&kernel.btf, &kernel.symbols, Tier::All).into_iter().find(|plan| plan.name == name).unwrap().program
    };
    let (older, newest) = (stored!("6.18"), stored!("7.3"));
    for (name, of_older, of_newest) in [
        ("swap_read_folio", "swap_read_folio", "swap_read_folio_second"),
        ("walk_update_folio", "walk_update_folio", "walk_update_folio_third"),
    ] {
        assert_eq!((program(&older, name), program(&newest, name)), (of_older, of_newest));
    }
}

#[test]
fn debian_s_6_1() {
    let kernel = stored!("6.1");
    assert_eq!(own_rules::find(&kernel.btf, Lru::Mglru).0, OwnRules::V6_12);
    assert_eq!(kernel.via("aging"), (Via::Fexit, "try_to_inc_max_seq".to_owned()));
    insta::assert_snapshot!(kernel.facts());
}

#[test]
fn debian_s_6_12() {
    let kernel = stored!("6.12");
    assert_eq!(own_rules::find(&kernel.btf, Lru::Mglru).0, OwnRules::V6_12);
    assert_eq!(kernel.via("folio_inc_gen"), (Via::Kprobe, "folio_inc_gen.constprop.0".to_owned()));
    assert_eq!(kernel.via("aging"), (Via::Fexit, "try_to_inc_max_seq".to_owned()));
    assert_eq!(kernel.via("walk_update_folio"), (Via::Fentry, "folio_update_gen".to_owned()));
    assert_eq!(kernel.via("lru_gen_set_refs").0, Via::None);
    assert_eq!(layout::offsets(&kernel.btf).unwrap().protected_tiers, 3);
    insta::assert_snapshot!(kernel.facts());
}

#[test]
fn debian_s_6_18() {
    let kernel = stored!("6.18");
    assert_eq!(own_rules::find(&kernel.btf, Lru::Mglru).0, OwnRules::V6_18);
    assert_eq!(kernel.via("folio_inc_gen"), (Via::Fexit, "folio_inc_gen".to_owned()));
    assert_eq!(kernel.via("aging"), (Via::Fexit, "inc_max_seq".to_owned()));
    assert_eq!(kernel.via("lru_gen_set_refs"), (Via::Fentry, "lru_gen_set_refs".to_owned()));
    assert_eq!(layout::offsets(&kernel.btf).unwrap().protected_tiers, 4);
    insta::assert_snapshot!(kernel.facts());
}

#[test]
fn debian_s_7_3() {
    let kernel = stored!("7.3");
    assert_eq!(own_rules::find(&kernel.btf, Lru::Mglru).0, OwnRules::V7_3);
    assert_eq!(kernel.via("lru_gen_refault"), (Via::Fentry, "workingset_refault".to_owned()));
    assert_eq!(kernel.via("folio_inc_gen"), (Via::Fexit, "folio_inc_gen".to_owned()));
    insta::assert_snapshot!(kernel.facts());
}
