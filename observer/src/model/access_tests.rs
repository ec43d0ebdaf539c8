//! Vectors T1 to T3 of spec 13, section 16, and the rest of spec 3.

use super::super::rules::*;
use super::*;

/// Four generations, 10..=13.
const FOUR: Window = Window { max_seq: 13, min_seq: [10, 10] };

fn fg(refs: u32) -> FolioFlags {
    let mut flags = FolioFlags::default();
    Rules::set_count(&mut flags, refs);
    flags
}

/// (seq, refs) after each of `n` fd accesses.
fn marks(rules: &Rules, start: FolioState, window: &Window, n: usize) -> Vec<(u32, u32)> {
    let mut state = start;
    (0..n)
        .map(|_| {
            let before = state.seq;
            let moved = rules.on_mark(&mut state, &Traits::FILE, window);
            assert_eq!((moved.from, moved.to), (before, state.seq));
            (state.seq, rules.refs(state.flags))
        })
        .collect()
}

#[test]
fn t1_fd_accesses_7_3_and_6_18() {
    for rules in [V6_18, V7_3] {
        let mut state = FolioState::on_list(12, FolioFlags::default());
        let table =
            [(1, 0, false, 1, 0), (1, 1, false, 2, 1), (1, 2, false, 3, 2), (1, 3, false, 4, 2), (1, 3, true, 4, 3), (1, 3, true, 4, 3)];
        for (referenced, mask, workingset, refs, tier) in table {
            assert!(!rules.on_mark(&mut state, &Traits::FILE, &FOUR).promoted());
            assert_eq!(state.flags, FolioFlags::new(mask, referenced == 1, workingset, false));
            assert_eq!((rules.refs(state.flags), rules.tier(state.flags), state.seq), (refs, tier, 12));
        }
        assert!(rules.saturated(state.flags));
    }
}

#[test]
fn t1_fd_accesses_6_12() {
    let mut state = FolioState::on_list(12, FolioFlags::default());
    for expected in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (4, 3)] {
        V6_12.on_mark(&mut state, &Traits::FILE, &FOUR);
        assert_eq!((V6_12.refs(state.flags), V6_12.tier(state.flags), state.seq), (expected.0, expected.1, 12));
    }
    assert!(V6_12.saturated(state.flags));
}

#[test]
fn t1_fd_accesses_fg() {
    for rules in [FG_V2, FG_V3, FG_V4] {
        let start = FolioState::on_list(12, FolioFlags::default());
        let steps = marks(&rules, start, &FOUR, 14);
        let expected: Vec<_> = (1..=7).map(|n| (12, n)).chain([(13, 3), (13, 4), (13, 5), (13, 6), (13, 7), (13, 7), (13, 7)]).collect();
        assert_eq!(steps, expected, "{}", rules.name);
        let tiers: Vec<_> = (1..=7).map(|n| rules.tier_of(n, false)).collect();
        assert_eq!(tiers, [0, 1, 2, 2, 3, 3, 3]);
    }
}

#[test]
fn t2_from_the_oldest_fg_v3() {
    for rules in [FG_V2, FG_V3] {
        let steps = marks(&rules, FolioState::on_list(10, FolioFlags::default()), &FOUR, 13);
        let expected =
            [(10, 1), (11, 2), (11, 3), (11, 4), (11, 5), (11, 6), (11, 7), (12, 3), (12, 4), (12, 5), (12, 6), (12, 7), (13, 3)];
        assert_eq!(steps, expected, "{}", rules.name);
    }
}

#[test]
fn t2_from_the_oldest_fg_v4() {
    let steps = marks(&FG_V4, FolioState::on_list(10, FolioFlags::default()), &FOUR, 8);
    assert_eq!(steps, [(10, 1), (11, 2), (12, 3), (12, 4), (12, 5), (12, 6), (12, 7), (13, 3)]);
}

#[test]
fn section_16_reads_that_move() {
    let moves = |rules: &Rules| {
        let steps = marks(rules, FolioState::on_list(10, FolioFlags::default()), &FOUR, 16);
        let mut previous = 10;
        steps
            .iter()
            .enumerate()
            .filter_map(|(i, &(seq, _))| (std::mem::replace(&mut previous, seq) != seq).then_some(i + 1))
            .collect::<Vec<_>>()
    };
    assert_eq!(moves(&FG_V3), [2, 8, 13]);
    assert_eq!(moves(&FG_V4), [2, 3, 8]);
    assert!(moves(&V7_3).is_empty());
}

#[test]
fn tail_deferral_differs_from_oldest_with_four_and_two_generations_only() {
    let second = |rules: &Rules, seq, window: &Window| marks(rules, FolioState::on_list(seq, fg(1)), window, 1)[0].0;
    let three = Window { max_seq: 13, min_seq: [11, 11] };
    let two = Window { max_seq: 13, min_seq: [12, 12] };
    for (window, seq, v3, v4) in [(&FOUR, 11, 11, 12), (&three, 11, 12, 12), (&three, 12, 12, 12), (&two, 12, 13, 12)] {
        assert_eq!((second(&FG_V3, seq, window), second(&FG_V4, seq, window)), (v3, v4));
    }
}

#[test]
fn sinking_folio_is_cut_to_three_when_touched_in_the_oldest() {
    assert_eq!(marks(&FG_V3, FolioState::on_list(10, fg(6)), &FOUR, 1), [(11, 3)]);
}

#[test]
fn off_list_accesses_only_count() {
    let mut state = FolioState::default();
    for n in 1..=9 {
        assert!(!FG_V3.on_mark(&mut state, &Traits::FILE, &FOUR).promoted());
        assert_eq!(FG_V3.refs(state.flags), n.min(7));
    }
    assert!(!state.on_list);
}

/// (seq, flags) after each of `n` observations by the walk.
fn walks(rules: &Rules, start: FolioState, traits: &Traits, n: usize) -> Vec<(u32, FolioFlags)> {
    let mut state = start;
    (0..n)
        .map(|_| {
            rules.on_walk(&mut state, traits, &FOUR);
            (state.seq, state.flags)
        })
        .collect()
}

const MAPPED: Traits = Traits { mapped: true, ..Traits::FILE };
const EXEC: Traits = Traits { exec: true, ..MAPPED };

#[test]
fn t3_walk_6_12() {
    let start = FolioState::on_list(10, FolioFlags::new(2, true, true, false));
    assert_eq!(walks(&V6_12, start, &MAPPED, 1), [(13, FolioFlags::default())]);
}

#[test]
fn t3_walk_6_18() {
    let steps = walks(&V6_18, FolioState::on_list(10, FolioFlags::default()), &MAPPED, 2);
    assert_eq!(steps, [(10, FolioFlags::new(0, true, false, false)), (13, FolioFlags::new(0, false, true, false))]);
    assert_eq!(walks(&V6_18, FolioState::on_list(10, FolioFlags::default()), &EXEC, 1)[0].0, 10);
}

#[test]
fn t3_walk_7_3() {
    let steps = walks(&V7_3, FolioState::on_list(10, FolioFlags::default()), &MAPPED, 2);
    assert_eq!(steps.iter().map(|s| s.0).collect::<Vec<_>>(), [10, 13]);
    let faulted = FolioState::on_list(10, FolioFlags::new(0, true, false, false));
    assert_eq!(walks(&V7_3, faulted, &MAPPED, 1)[0].0, 13);
    let exec = walks(&V7_3, FolioState::on_list(10, FolioFlags::default()), &EXEC, 1);
    assert_eq!(exec, [(13, FolioFlags::new(0, false, true, false))]);
}

#[test]
fn t3_walk_fg_v3() {
    let steps = walks(&FG_V3, FolioState::on_list(10, FolioFlags::default()), &MAPPED, 3);
    assert_eq!(steps, [(11, fg(1)), (13, fg(2)), (13, fg(3))]);
    let aged = Window { max_seq: 14, min_seq: [11, 11] };
    let mut state = FolioState::on_list(13, fg(3));
    FG_V3.on_walk(&mut state, &MAPPED, &aged);
    assert_eq!((state.seq, state.flags), (14, fg(3)));
    assert_eq!(walks(&FG_V3, FolioState::on_list(12, fg(6)), &MAPPED, 1), [(13, fg(3))]);
}

#[test]
fn t3_first_walk_hit_by_fg_version() {
    let first = |rules: &Rules, seq| walks(rules, FolioState::on_list(seq, FolioFlags::default()), &MAPPED, 1)[0].0;
    assert_eq!([first(&FG_V2, 10), first(&FG_V2, 11), first(&FG_V2, 12)], [11, 12, 13]);
    assert_eq!([first(&FG_V3, 10), first(&FG_V3, 11), first(&FG_V3, 12)], [11, 11, 12]);
    assert_eq!([first(&FG_V4, 10), first(&FG_V4, 11), first(&FG_V4, 12)], [11, 12, 12]);
}

#[test]
fn exec_goes_to_the_youngest_on_first_sight_in_fg() {
    assert_eq!(walks(&FG_V3, FolioState::on_list(12, FolioFlags::default()), &EXEC, 1), [(13, fg(1))]);
    let anon = Traits { exec: true, ..Traits::ANON };
    assert_eq!(walks(&FG_V3, FolioState::on_list(12, FolioFlags::default()), &anon, 1)[0].0, 12, "type file only");
}

#[test]
fn look_around_7_3_activates_one_down_until_workingset() {
    let window = &FOUR;
    let mut state = FolioState::on_list(10, FolioFlags::default());
    assert!(!V7_3.on_look_around(&mut state, &MAPPED, window).promoted());
    assert_eq!(state.flags, FolioFlags::new(0, true, false, false));
    assert!(V7_3.on_look_around(&mut state, &MAPPED, window).promoted());
    assert_eq!((state.seq, state.flags), (12, FolioFlags::new(1, true, false, false)));
    assert!(V7_3.on_look_around(&mut state, &MAPPED, window).promoted());
    assert_eq!((state.seq, state.flags), (13, FolioFlags::new(0, false, true, false)));
    assert!(!V7_3.on_look_around(&mut state, &MAPPED, window).promoted(), "already the youngest");
}

#[test]
fn look_around_6_18_and_6_12_activate_to_the_youngest() {
    let mut state = FolioState::on_list(10, FolioFlags::new(0, true, false, false));
    V6_18.on_look_around(&mut state, &MAPPED, &FOUR);
    assert_eq!((state.seq, state.flags), (13, FolioFlags::new(0, false, true, false)));
    let mut state = FolioState::on_list(10, FolioFlags::new(1, true, true, false));
    V6_12.on_look_around(&mut state, &MAPPED, &FOUR);
    assert_eq!((state.seq, state.flags), (13, FolioFlags::default()));
}

#[test]
fn set_refs_7_3_exec_is_a_second_access() {
    let mut flags = FolioFlags::default();
    assert!(V7_3.on_set_refs(&mut flags, true, &EXEC));
    assert_eq!(flags, FolioFlags::new(0, false, true, false));
    let mut flags = FolioFlags::default();
    assert!(!V6_18.on_set_refs(&mut flags, true, &EXEC));
}

#[test]
fn candidate_by_variant() {
    let check = |rules: &Rules, flags, traits: &Traits, young| {
        let mut state = FolioState { flags, ..Default::default() };
        (rules.on_candidate(&mut state, traits, young), state.flags)
    };
    let none = FolioFlags::default();
    let referenced = FolioFlags::new(0, true, false, false);
    for rules in PRESETS {
        assert_eq!(check(rules, none, &MAPPED, 0).0, Outcome::Reclaim, "{}", rules.name);
        assert_eq!(check(rules, none, &MAPPED, 1).0, Outcome::Keep, "{}", rules.name);
        assert_eq!(check(rules, none, &EXEC, 1).0 == Outcome::Activate, rules.name != "6.18", "{}", rules.name);
    }
    assert_eq!(check(&V6_12, referenced, &Traits::FILE, 0).0, Outcome::ReclaimClean);
    assert_eq!(check(&V6_12, referenced, &MAPPED, 1).0, Outcome::Keep, "kept without a look at the PTEs");
    assert_eq!(check(&V6_12, none, &MAPPED, 2).0, Outcome::Activate);
    assert_eq!(check(&V6_18, referenced, &MAPPED, 1), (Outcome::Activate, FolioFlags::new(0, false, true, true)));
    assert_eq!(check(&V7_3, referenced, &MAPPED, 1), (Outcome::Activate, FolioFlags::new(1, true, false, true)));
    assert_eq!(check(&FG_V3, fg(1), &MAPPED, 1), (Outcome::Activate, FolioFlags::new(0, false, true, true)));
    assert_eq!(check(&FG_V3, fg(6), &MAPPED, 1).1.without_active(), fg(3));
}

#[test]
fn dropbehind_and_unevictable_accesses_do_not_count() {
    for rules in PRESETS {
        for traits in [Traits { dropbehind: true, ..Traits::FILE }, Traits { unevictable: true, ..Traits::FILE }] {
            for seq in 10..=13 {
                let mut state = FolioState::on_list(seq, fg(1));
                assert!(!rules.on_mark(&mut state, &traits, &FOUR).promoted());
                assert_eq!(state, FolioState::on_list(seq, fg(1)));
            }
        }
    }
}

#[test]
fn edge_9_10_restored_mask_is_wiped_by_the_first_access() {
    let mut state = FolioState::on_list(12, FolioFlags::new(2, false, false, false));
    assert_eq!(V7_3.refs(state.flags), 0);
    V7_3.on_mark(&mut state, &Traits::FILE, &FOUR);
    assert_eq!(state.flags, FolioFlags::new(0, true, false, false));
}

#[test]
fn edge_9_13_no_rule_leaves_a_count_beyond_the_encoding() {
    for rules in [FG_V2, FG_V3, FG_V4, Rules { width: 0, ..FG_V3 }] {
        for refs in 0..=rules.max_refs() {
            for seq in 10..=13 {
                let mut state = FolioState::on_list(seq, fg(refs));
                rules.on_mark(&mut state, &Traits::FILE, &FOUR);
                assert!(rules.refs(state.flags) <= rules.max_refs());
                rules.on_walk(&mut state, &MAPPED, &FOUR);
                assert!(rules.refs(state.flags) <= rules.max_refs() && state.seq <= 13);
            }
        }
    }
}
