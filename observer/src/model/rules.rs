//! A rule set is data: what one kernel version or posted series does, as a difference from another (spec 14 and section 10).

pub use super::knobs::*;

/// Readahead credit of spec D2, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreditRules {
    /// Credit that one refaulted page earns (`VM_READAHEAD_PAGES`).
    pub per_refault: u32,
    /// Most that one CPU takes at once.
    pub batch: u32,
}

/// One rule set. Every field is a knob of spec 14 or a point that the spec leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Name of the preset it is, or started from.
    pub name: &'static str,
    /// `LRU_REFS_WIDTH`, bits of the mask field (0..=3; spec 1.3).
    pub width: u8,
    /// Reference count.
    pub encoding: Encoding,
    /// Fault-added folios.
    pub fault_add: FaultAdd,
    /// Placement on insertion.
    pub placement: Placement,
    /// Whether `PG_referenced` alone lifts an insertion by one generation (spec 2.2 row 5).
    pub referenced_lifts: bool,
    /// Page-table walk.
    pub walk: Walk,
    /// Whether an executable mapping counts as a second access at once (spec 3.2).
    pub exec_promotes: bool,
    /// Reverse-map observations.
    pub set_refs: SetRefs,
    /// Whether an fd access beyond the maximum count promotes by one generation (spec 3.1).
    pub overflow_promotes: bool,
    /// Deferral by file-descriptor accesses.
    pub defer: Defer,
    /// Deferral by the first page-table access.
    pub defer_mapped: Defer,
    /// Folios moved on at scan time.
    pub saturation: Saturation,
    /// Where a protected folio is put in its next generation.
    pub protect_insert: End,
    /// Its references afterwards.
    pub after_protect: AfterProtect,
    /// Controller.
    pub tier_limit: TierLimit,
    /// Choice of type.
    pub type_choice: TypeChoice,
    /// Recency of shadows.
    pub recent: Recent,
    /// Refault.
    pub refault: Refault,
    /// Isolation.
    pub isolate: Isolate,
    /// Rejection.
    pub reject: Reject,
    /// Aging trigger.
    pub aging: Aging,
    /// End of memcg reclaim.
    pub reclaim_stop: ReclaimStop,
    /// Scan budget.
    pub scan_batch: ScanBatch,
    /// Whether `min_seq` is also advanced before isolation (spec 5.6).
    pub min_seq_first: bool,
    /// Coupling of the types' `min_seq`.
    pub min_seq_tie: MinSeqTie,
    /// Order of folding.
    pub fold: Fold,
    /// Whether folding counts as protection (spec 4.1).
    pub fold_counts: bool,
    /// Dirty folios at scan.
    pub dirty_scan: DirtyScan,
    /// Credit (only with [`FaultAdd::Credit`]).
    pub credit: CreditRules,
    /// Age before reclaim while the oldest generation holds less than this percentage of anon; 0 never (spec D1).
    pub proactive_percent: u8,
}

/// 6.12, and 6.1 with its Dec-2023 backport as far as known.
pub const V6_12: Rules = Rules {
    name: "6.12",
    width: 2,
    encoding: Encoding::MaskWorkingset,
    fault_add: FaultAdd::Activate,
    placement: Placement::Window,
    referenced_lifts: false,
    walk: Walk::Youngest,
    exec_promotes: false,
    set_refs: SetRefs::Workingset,
    overflow_promotes: false,
    defer: Defer::Never,
    defer_mapped: Defer::Never,
    saturation: Saturation::Refs,
    protect_insert: End::Tail,
    after_protect: AfterProtect::Clear,
    tier_limit: TierLimit::OneTwo,
    type_choice: TypeChoice::BehindThenTierZero,
    recent: Recent::SameMinSeq,
    refault: Refault::WorkingsetIfHot,
    isolate: Isolate::DropReferenced,
    reject: Reject::Youngest,
    aging: Aging::Sizes,
    reclaim_stop: ReclaimStop::Budget,
    scan_batch: ScanBatch::Fixed,
    min_seq_first: false,
    min_seq_tie: MinSeqTie::AnonBehindFile,
    fold: Fold::Reversed,
    fold_counts: false,
    dirty_scan: DirtyScan::Isolate,
    credit: CreditRules { per_refault: 32, batch: 64 },
    proactive_percent: 0,
};

/// 6.1 before "fix underprotected page cache".
pub const V6_1: Rules = Rules { name: "6.1", placement: Placement::Early, ..V6_12 };

/// 6.14 to 7.1: the reworked workingset protection.
pub const V6_18: Rules = Rules {
    name: "6.18",
    encoding: Encoding::ReferencedMask,
    placement: Placement::Distance,
    walk: Walk::Second,
    saturation: Saturation::RefsWorkingset,
    protect_insert: End::Head,
    after_protect: AfterProtect::KeepWorkingset,
    tier_limit: TierLimit::TwoThree,
    type_choice: TypeChoice::AllTiers,
    recent: Recent::WithinWindow,
    refault: Refault::MaskActivateFault,
    isolate: Isolate::DropStaleMask,
    reject: Reject::LiftOldest,
    aging: Aging::RaisedPriority,
    scan_batch: ScanBatch::Remaining,
    min_seq_tie: MinSeqTie::Diverge,
    fold_counts: true,
    dirty_scan: DirtyScan::NextGeneration,
    ..V6_12
};

/// 7.2 and 7.3.
pub const V7_3: Rules = Rules {
    name: "7.3",
    fault_add: FaultAdd::Touch,
    referenced_lifts: true,
    exec_promotes: true,
    set_refs: SetRefs::CountFirst,
    refault: Refault::MaskActivateWorkingset,
    aging: Aging::Priority,
    reclaim_stop: ReclaimStop::Goal,
    scan_batch: ScanBatch::Small,
    min_seq_first: true,
    dirty_scan: DirtyScan::Isolate,
    ..V6_18
};

/// MGLRU-FG v3.
pub const FG_V3: Rules = Rules {
    name: "fg-v3",
    width: 1,
    encoding: Encoding::Count,
    fault_add: FaultAdd::Nothing,
    referenced_lifts: false,
    walk: Walk::Count,
    overflow_promotes: true,
    defer: Defer::Oldest,
    defer_mapped: Defer::Oldest,
    saturation: Saturation::Never,
    after_protect: AfterProtect::CapTwo,
    tier_limit: TierLimit::Cumulative,
    refault: Refault::Count,
    isolate: Isolate::Nothing,
    reject: Reject::CapAndLift,
    fold: Fold::Kept,
    ..V7_3
};

/// MGLRU-FG v2 as in its branch snapshot: page tables advance from any generation.
pub const FG_V2: Rules = Rules { name: "fg-v2", defer_mapped: Defer::Any, ..FG_V3 };

/// MGLRU-FG v4 as its letter describes it.
pub const FG_V4: Rules = Rules { name: "fg-v4", defer: Defer::Tail, defer_mapped: Defer::Tail, ..FG_V3 };

/// Ehab Ababneh's readahead and refault credit on 7.3 (spec D2).
pub const READAHEAD_CREDIT: Rules = Rules { name: "readahead-credit", fault_add: FaultAdd::Credit, ..V7_3 };

/// Barry Song's quick fix on 7.3 (spec D3).
pub const BARRY_QUICK_FIX: Rules = Rules {
    name: "quick-fix",
    fault_add: FaultAdd::Activate,
    placement: Placement::DistanceFileOlder,
    referenced_lifts: false,
    set_refs: SetRefs::Workingset,
    refault: Refault::MaskActivateFault,
    ..V7_3
};

/// Kairui Song's short-term idea: 7.3 with its fault rule reverted, for swap-backed folios only (spec D4).
pub const REVERT_SWAPBACKED: Rules = Rules {
    name: "revert-swapbacked",
    fault_add: FaultAdd::ActivateSwapbacked,
    referenced_lifts: false,
    set_refs: SetRefs::Workingset,
    refault: Refault::MaskActivateFault,
    ..V7_3
};

/// All presets, oldest first.
pub const PRESETS: [&Rules; 10] =
    [&V6_1, &V6_12, &V6_18, &V7_3, &FG_V2, &FG_V3, &FG_V4, &READAHEAD_CREDIT, &BARRY_QUICK_FIX, &REVERT_SWAPBACKED];

impl Rules {
    /// The preset of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        PRESETS.into_iter().find(|preset| preset.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_distinct_names_and_are_found_by_them() {
        for (i, preset) in PRESETS.iter().enumerate() {
            assert_eq!(Rules::by_name(preset.name).as_ref(), Some(*preset));
            assert!(PRESETS[..i].iter().all(|earlier| earlier.name != preset.name));
        }
        assert_eq!(Rules::by_name("7.4"), None);
    }

    #[test]
    fn a_preset_reads_as_its_changelog() {
        assert_eq!(Rules { name: "fg-v3", defer: Defer::Oldest, defer_mapped: Defer::Oldest, ..FG_V4 }, FG_V3);
        assert_eq!(Rules { name: "7.3", fault_add: FaultAdd::Touch, ..READAHEAD_CREDIT }, V7_3);
    }
}
