//! Table 2.3 row by row, and the rest of spec 2 and 3.3.

use super::super::rules::*;
use super::*;

const FAULT: Add = Add { in_fault: true, memalloc: false, credited: false };
const READ: Add = Add { in_fault: false, memalloc: false, credited: false };
const COLUMNS: [Rules; 4] = [V6_12, V6_18, V7_3, FG_V3];

/// Both numbers of a cell: min_seq 0 and min_seq 1, max_seq 3.
fn cell(rules: &Rules, flags: FolioFlags, traits: &Traits, add: Add, reclaiming: bool) -> (u32, u32) {
    let seq = |min| {
        let mut state = FolioState { flags, ..Default::default() };
        let window = Window { max_seq: 3, min_seq: [min, min] };
        rules.on_add(&mut state, traits, add);
        rules.on_insert(&mut state, traits, &window, reclaiming);
        assert!(state.on_list && !state.flags.active(), "spec 9.2");
        state.seq
    };
    (seq(0), seq(1))
}

/// Flags after a recent refault in a new folio.
fn refaulted(rules: &Rules, refs: u32, workingset: bool, add: Add) -> FolioFlags {
    let mut flags = FolioFlags::default();
    rules.restore(&mut flags, refs, workingset, add.in_fault);
    flags
}

fn row(flags: impl Fn(&Rules) -> FolioFlags, traits: Traits, add: Add, reclaiming: bool) -> [(u32, u32); 4] {
    COLUMNS.map(|rules| cell(&rules, flags(&rules), &traits, add, reclaiming))
}

fn untouched(_: &Rules) -> FolioFlags {
    FolioFlags::default()
}

fn workingset(rules: &Rules) -> FolioFlags {
    let mut flags = FolioFlags::new(0, false, true, false);
    if rules.encoding == Encoding::Count {
        Rules::set_count(&mut flags, 2);
    }
    flags
}

#[test]
fn table_2_3_file_not_in_fault_untouched() {
    assert_eq!(row(untouched, Traits::FILE, READ, false), [(1, 1), (0, 1), (0, 1), (0, 1)]);
}

#[test]
fn table_2_3_file_not_in_fault_touched_once() {
    let touched = |_: &Rules| FolioFlags::new(0, true, false, false);
    assert_eq!(row(touched, Traits::FILE, READ, false), [(1, 1), (0, 1), (1, 1), (0, 1)]);
}

#[test]
fn table_2_3_file_not_in_fault_workingset() {
    assert_eq!(row(workingset, Traits::FILE, READ, false), [(1, 1), (1, 1), (1, 1), (1, 1)]);
}

#[test]
fn table_2_3_file_in_fault_no_shadow() {
    assert_eq!(row(untouched, Traits::FILE, FAULT, false), [(3, 3), (2, 2), (1, 1), (0, 1)]);
}

#[test]
fn table_2_3_file_in_fault_recent_not_workingset() {
    let once = |rules: &Rules| refaulted(rules, 1, false, FAULT);
    assert_eq!(row(once, Traits::FILE, FAULT, false), [(3, 3), (2, 2), (1, 1), (2, 2)]);
    let never = |rules: &Rules| refaulted(rules, 0, false, FAULT);
    assert_eq!(row(never, Traits::FILE, FAULT, false)[3], (0, 1));
}

#[test]
fn table_2_3_file_in_fault_recent_workingset() {
    let hot = |rules: &Rules| refaulted(rules, 2, true, FAULT);
    assert_eq!(row(hot, Traits::FILE, FAULT, false), [(3, 3); 4]);
}

#[test]
fn table_2_3_file_not_in_fault_recent_workingset() {
    let hot = |rules: &Rules| refaulted(rules, 2, true, READ);
    assert_eq!(row(hot, Traits::FILE, READ, false), [(1, 1); 4]);
    assert_eq!(cell(&FG_V3, refaulted(&FG_V3, 1, false, READ), &Traits::FILE, READ, false), (0, 1));
}

#[test]
fn table_2_3_anon_in_fault() {
    assert_eq!(row(untouched, Traits::ANON, FAULT, false), [(3, 3), (2, 2), (2, 2), (2, 2)]);
}

#[test]
fn table_2_3_anon_not_in_fault() {
    assert_eq!(row(untouched, Traits::ANON, READ, false), [(2, 2); 4]);
}

const SWAPIN: Traits = Traits { swapcache: true, ..Traits::ANON };

#[test]
fn table_2_3_swapin_in_fault() {
    assert_eq!(row(untouched, SWAPIN, FAULT, false), [(3, 3), (2, 2), (1, 1), (0, 1)]);
    assert_eq!(cell(&FG_V3, refaulted(&FG_V3, 1, false, FAULT), &SWAPIN, FAULT, false), (2, 2));
}

#[test]
fn table_2_3_swapin_in_fault_workingset() {
    let hot = |rules: &Rules| refaulted(rules, 2, true, FAULT);
    assert_eq!(row(hot, SWAPIN, FAULT, false), [(3, 3); 4]);
}

#[test]
fn table_2_3_dirty_with_reclaim() {
    let dirty = Traits { reclaim: true, dirty: true, ..Traits::FILE };
    assert_eq!(row(untouched, dirty, READ, false), [(2, 2); 4]);
    let writeback = Traits { reclaim: true, writeback: true, ..Traits::FILE };
    assert_eq!(row(untouched, writeback, READ, false), [(2, 2); 4]);
    let readahead_marker = Traits { reclaim: true, ..Traits::FILE };
    assert_eq!(row(untouched, readahead_marker, READ, false), row(untouched, Traits::FILE, READ, false), "spec 1.2");
}

#[test]
fn table_2_3_clean_rotate() {
    assert_eq!(row(untouched, Traits::FILE, READ, true), [(0, 1); 4]);
}

#[test]
fn section_16_fresh_file_fault_enters_three_down() {
    for rules in [FG_V2, FG_V3, FG_V4] {
        assert_eq!(cell(&rules, FolioFlags::default(), &Traits::FILE, FAULT, false), (0, 1));
    }
}

#[test]
fn section_16_refault_by_read_counts_the_read_before_the_drain() {
    let mut state = FolioState { flags: refaulted(&FG_V3, 1, true, READ), ..Default::default() };
    FG_V3.on_add(&mut state, &Traits::FILE, READ);
    FG_V3.on_mark(&mut state, &Traits::FILE, &Window::INITIAL);
    FG_V3.on_insert(&mut state, &Traits::FILE, &Window::INITIAL, false);
    assert_eq!((FG_V3.refs(state.flags), state.seq), (2, 1));
}

#[test]
fn early_6_1_placement() {
    let window = Window { max_seq: 3, min_seq: [0, 0] };
    let place = |flags, traits: &Traits| V6_1.place(&FolioState { flags, ..Default::default() }, traits, &window, false);
    assert_eq!(place(FolioFlags::new(0, false, false, true), &Traits::FILE), 3);
    assert_eq!(place(FolioFlags::default(), &Traits::ANON), 1);
    assert_eq!(place(FolioFlags::default(), &Traits::FILE), 0);
}

#[test]
fn insertion_of_active_clears_references_in_6_12_only() {
    let active = FolioFlags::new(2, true, true, true);
    let after = |rules: &Rules| {
        let mut state = FolioState { flags: active, ..Default::default() };
        rules.on_insert(&mut state, &Traits::FILE, &Window::INITIAL, false);
        state.flags
    };
    assert_eq!(after(&V6_12), FolioFlags::new(0, false, true, false));
    assert_eq!(after(&V7_3), FolioFlags::new(2, true, true, false));
}

#[test]
fn memalloc_and_unevictable_are_not_touched() {
    for rules in PRESETS {
        for (traits, add) in [(Traits::FILE, Add { memalloc: true, ..FAULT }), (Traits { unevictable: true, ..Traits::FILE }, FAULT)] {
            let mut state = FolioState::default();
            rules.on_add(&mut state, &traits, add);
            assert_eq!(state, FolioState::default());
        }
    }
}

#[test]
fn dropbehind_is_not_touched() {
    let mut state = FolioState::default();
    V7_3.on_add(&mut state, &Traits { dropbehind: true, ..Traits::FILE }, FAULT);
    assert_eq!(state.flags, FolioFlags::default());
}

#[test]
fn edge_9_8_deletion_remembers_the_two_youngest_generations() {
    for rules in PRESETS {
        for (seq, active) in [(3, true), (2, true), (1, false), (0, false)] {
            let mut state = FolioState::on_list(seq, FolioFlags::default());
            rules.on_delete(&mut state, &Window::INITIAL);
            assert_eq!((state.on_list, state.gen_field(), state.flags.active()), (false, 0, active));
        }
    }
}

#[test]
fn edge_9_17_unevictable_has_no_generation() {
    let mut state = FolioState::default();
    V7_3.on_insert(&mut state, &Traits { unevictable: true, ..Traits::FILE }, &Window::INITIAL, false);
    assert_eq!(state.gen_field(), 0);
}

#[test]
fn edge_9_18_swapcache_is_placed_like_file_and_anon_never_lands_low() {
    for rules in [V6_12, V6_18, V7_3, FG_V3] {
        let mut anon = FolioState::on_list(3, FolioFlags::default());
        rules.on_deactivate(&mut anon, &Traits::ANON, &Window::INITIAL);
        assert_eq!(anon.seq, 2, "{}", rules.name);
        let state = FolioState::default();
        assert_eq!(rules.place(&state, &SWAPIN, &Window::INITIAL, false), rules.place(&state, &Traits::FILE, &Window::INITIAL, false));
    }
}

#[test]
fn edge_9_23_deactivation_of_the_oldest_only_cleans() {
    for rules in [V6_18, V7_3, FG_V3] {
        let mut state = FolioState::on_list(0, FolioFlags::new(1, true, true, false));
        assert_eq!(rules.on_deactivate(&mut state, &Traits::FILE, &Window::INITIAL), Moved::stays(0));
        assert_eq!(state.flags, FolioFlags::default());
        let mut state = FolioState::on_list(3, FolioFlags::new(1, true, true, false));
        rules.on_deactivate(&mut state, &Traits::FILE, &Window::INITIAL);
        assert_eq!((state.seq, state.flags), (0, FolioFlags::default()));
    }
    let mut state = FolioState::on_list(3, FolioFlags::new(1, true, true, false));
    V6_12.on_deactivate(&mut state, &Traits::FILE, &Window::INITIAL);
    assert_eq!((state.seq, state.flags), (1, FolioFlags::new(1, false, true, false)), "6.12 keeps mask and workingset");
}

#[test]
fn lazyfree_turns_anon_into_file() {
    let free = |rules: &Rules| {
        let mut state = FolioState::on_list(3, FolioFlags::new(1, true, false, false));
        let mut traits = Traits::ANON;
        rules.on_lazyfree(&mut state, &mut traits, &Window::INITIAL);
        assert!(traits.file);
        (state.seq, state.flags)
    };
    assert_eq!(free(&V7_3), (1, FolioFlags::new(1, true, false, false)));
    assert_eq!(free(&FG_V3), (0, FolioFlags::default()));
    assert_eq!(free(&V6_12), (1, FolioFlags::new(1, false, false, false)));
}

#[test]
fn pageout_keeps_workingset_in_fg() {
    for (before, after) in [(0, 0), (1, 0), (2, 2), (7, 2)] {
        let mut flags = FolioFlags::default();
        Rules::set_count(&mut flags, before);
        FG_V3.on_reset_refs(&mut flags, Reset::Pageout);
        assert_eq!(FG_V3.refs(flags), after);
    }
}

#[test]
fn d2_credit_is_earned_capped_spent_and_expires() {
    let (rules, mut credit, mut share) = (READAHEAD_CREDIT, Credit::default(), 0);
    assert!(!credit.spend(&rules, &mut share, 1));
    credit.on_refault(&rules, 2, 1000);
    assert_eq!(credit.shared, 64);
    credit.on_refault(&rules, 100, 100);
    assert_eq!(credit.shared, 100, "capped by the lruvec's file pages");
    assert!(credit.spend(&rules, &mut share, 16));
    assert_eq!((credit.shared, share), (36, 48));
    credit.on_age();
    assert_eq!(credit.shared, 27);
    assert!(credit.spend(&rules, &mut share, 50));
    assert_eq!((credit.shared, share), (0, 25));
}

#[test]
fn d2_credit_activates_file_one_down() {
    let credited = Add { credited: true, ..FAULT };
    assert_eq!(cell(&READAHEAD_CREDIT, FolioFlags::default(), &Traits::FILE, credited, false), (2, 2));
    assert_eq!(cell(&READAHEAD_CREDIT, FolioFlags::default(), &Traits::FILE, FAULT, false), (1, 1), "as 7.3");
}

#[test]
fn d3_quick_fix_places_faulted_file_two_down() {
    assert_eq!(cell(&BARRY_QUICK_FIX, FolioFlags::default(), &Traits::FILE, FAULT, false), (1, 1));
    assert_eq!(cell(&BARRY_QUICK_FIX, FolioFlags::default(), &Traits::ANON, FAULT, false), (2, 2));
    assert_eq!(cell(&BARRY_QUICK_FIX, workingset(&V7_3), &Traits::FILE, FAULT, false), (3, 3));
    assert_eq!(cell(&BARRY_QUICK_FIX, FolioFlags::new(0, true, false, false), &Traits::FILE, READ, false), (0, 1));
}

#[test]
fn d4_swapbacked_only() {
    assert_eq!(cell(&REVERT_SWAPBACKED, FolioFlags::default(), &Traits::FILE, FAULT, false), (0, 1));
    assert_eq!(cell(&REVERT_SWAPBACKED, workingset(&V7_3), &Traits::FILE, FAULT, false), (1, 1));
    assert_eq!(cell(&REVERT_SWAPBACKED, FolioFlags::default(), &Traits::ANON, FAULT, false), (2, 2));
}
