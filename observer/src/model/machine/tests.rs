//! Edge cases of spec 9, vector T12, and proactive aging.

use super::folios::HEADS;
use super::generations::{Generations, head};
use super::*;
use crate::model::flags::{FolioFlags, Window};
use crate::model::rules::*;

pub(super) type Mglru = Machine<Generations>;

pub(super) fn machine(rules: Rules, config: Config) -> Mglru {
    Machine::new(Generations::new(rules), config)
}

pub(super) fn small(rules: Rules) -> Mglru {
    machine(rules, Config::pages(1 << 20))
}

pub(super) fn with_swap(pages: u64) -> Config {
    Config { swap_pages: 1 << 20, ..Config::pages(pages) }
}

/// Generation of a page's folio, as the flags say; none off the lists.
pub(super) fn seq(m: &Mglru, key: u32) -> Option<u32> {
    let slot = m.core.pages.folio(key).expect("resident");
    let state = m.lru.state(m.core.folios.word(slot));
    state.on_list.then_some(state.seq)
}

pub(super) fn flags(m: &Mglru, key: u32) -> FolioFlags {
    m.core.folios.word(m.core.pages.folio(key).expect("resident")).flags
}

/// Puts a page on a list of a generation with flags, whatever rules say.
pub(super) fn put(m: &mut Mglru, key: u32, seq: u64, flags: FolioFlags, how: Entering) {
    m.add(key, 0, how);
    m.drain();
    let slot = m.core.pages.folio(key).expect("resident");
    m.core.folios.unlink(slot);
    let state = crate::model::flags::FolioState::on_list(seq, flags);
    m.lru.store(&mut m.core, slot, &state);
    m.core.folios.push_head(head(seq as u32, !how.anon), slot);
}

/// Keys of a list, from its tail.
pub(super) fn list(m: &Mglru, seq: u32, file: bool) -> Vec<u32> {
    m.core.folios.iter_from_tail(head(seq, file)).map(|slot| m.core.folios.key(slot)).collect()
}

/// Everything that must hold between events.
pub(super) fn check<P: Policy>(m: &Machine<P>) {
    let core = &m.core;
    let mut listed = std::collections::HashMap::new();
    for list in 0..HEADS {
        for slot in core.folios.iter_from_tail(list) {
            assert_eq!(listed.insert(slot, list), None, "on two lists");
            assert_ne!(core.folios.word(slot).gen_field, 0, "listed but off the lists");
        }
    }
    let (mut pages, mut live) = (0, 0);
    for slot in core.folios.slots() {
        let attr = core.folios.attr(slot);
        let first = core.folios.key(slot);
        if core.pages.folio(first) != Some(slot) {
            assert!(!listed.contains_key(&slot), "a free folio on a list");
            continue;
        }
        live += 1;
        pages += u64::from(attr.pages());
        for key in first..first + attr.pages() {
            assert_eq!(core.pages.folio(key), Some(slot));
        }
        assert_eq!(core.folios.word(slot).gen_field != 0, listed.contains_key(&slot), "spec 9.2");
    }
    assert_eq!(live, core.folios.len(), "lost or duplicated");
    assert_eq!(pages, m.resident());
}

/// The same, for generations.
pub(super) fn check_generations(m: &Mglru) {
    check(m);
    let window = m.lru.window;
    for file in [false, true] {
        assert!((2..=4).contains(&window.nr_gens(file)), "spec 9.1");
    }
    let mut pages = [[0u64; 2]; 4];
    for list in 0..HEADS {
        for slot in m.core.folios.iter_from_tail(list) {
            let (word, attr) = (m.core.folios.word(slot), m.core.folios.attr(slot));
            assert!((1..=4).contains(&word.gen_field) && !word.flags.active(), "spec 9.2");
            assert!(m.lru.rules.refs(word.flags) <= m.lru.rules.max_refs());
            assert_eq!(list % 2 == 1, attr.file());
            pages[usize::from(word.gen_field) - 1][usize::from(attr.file())] += u64::from(attr.pages());
        }
    }
    assert_eq!(pages, m.lru.nr_pages, "spec 9.3");
}

#[test]
fn t12_folding_reverses_or_keeps_the_order() {
    for rules in [V6_12, V6_18, V7_3, FG_V3] {
        let mut m = machine(rules, with_swap(1 << 20));
        for key in [0, 1, 2] {
            put(&mut m, key, 0, FolioFlags::default(), Entering::READ);
        }
        for key in [10, 11] {
            put(&mut m, key, 1, FolioFlags::default(), Entering::READ);
        }
        assert_eq!((list(&m, 0, true), list(&m, 1, true)), (vec![0, 1, 2], vec![10, 11]));
        m.age(1);
        let expected = if rules.fold == Fold::Kept { [0, 1, 2, 10, 11] } else { [2, 1, 0, 10, 11] };
        assert_eq!(list(&m, 1, true), expected, "{}", rules.name);
        assert_eq!(m.lru.window, Window { max_seq: 4, min_seq: [1, 1] });
        check_generations(&m);
    }
}

#[test]
fn folding_sends_promoted_folios_home_and_counts_protection() {
    for (rules, expected) in [(V7_3, [5, 20]), (FG_V3, [20, 5])] {
        let mut m = small(rules);
        put(&mut m, 20, 2, FolioFlags::default(), Entering::READ);
        put(&mut m, 5, 0, FolioFlags::default(), Entering::READ);
        // Promoted by its flags only, still on the list of generation 0.
        let slot = m.core.pages.folio(5).expect("resident");
        m.lru.store(&mut m.core, slot, &crate::model::flags::FolioState::on_list(2, FolioFlags::default()));
        put(&mut m, 6, 0, FolioFlags::new(0, false, true, false), Entering::READ);
        m.age(1);
        assert_eq!(list(&m, 2, true), expected, "{}", rules.name);
        let tier = rules.tier(FolioFlags::new(0, false, true, false));
        // Carried over once: (0 + 1 protected) / 2, and the counter starts again.
        assert_eq!((m.lru.controller.avg_total[1][tier], m.lru.controller.protected[1][tier]), (0, 0));
        check_generations(&m);
    }
}

#[test]
fn edge_9_1_windows_at_the_start() {
    let m = small(V7_3);
    assert_eq!(m.lru.window, Window::INITIAL);
    check_generations(&m);
}

#[test]
fn edge_9_4_lazy_promotion_moves_the_size_at_once_and_the_list_later() {
    let mut m = machine(FG_V3, Config::pages(64));
    put(&mut m, 1, 0, FolioFlags::new(0, true, false, false), Entering::READ);
    assert!(m.mark(1));
    assert_eq!((seq(&m, 1), list(&m, 0, true)), (Some(1), vec![1]));
    assert_eq!([m.lru.nr_pages[0][1], m.lru.nr_pages[1][1]], [0, 1]);
    m.reclaim(32);
    assert_eq!(list(&m, 1, true), [1], "the scan put it where it belongs");
    check_generations(&m);
}

#[test]
fn edge_9_5_a_type_that_is_not_evictable_is_relabelled_youngest() {
    let mut m = machine(V7_3, Config { swappiness: 0, ..with_swap(1 << 20) });
    put(&mut m, 1, 0, FolioFlags::default(), Entering::ANON);
    put(&mut m, 2, 0, FolioFlags::default(), Entering::READ);
    m.age(1);
    assert_eq!((seq(&m, 1), seq(&m, 2)), (Some(4), Some(1)), "anon inverted, file folded");
    let mut m = machine(V7_3, Config { swappiness: 201, ..with_swap(1 << 20) });
    put(&mut m, 1, 0, FolioFlags::default(), Entering::ANON);
    put(&mut m, 2, 0, FolioFlags::default(), Entering::READ);
    m.age(1);
    assert_eq!((seq(&m, 1), seq(&m, 2)), (Some(1), Some(4)));
    check_generations(&m);
}

#[test]
fn edge_9_9_a_reference_in_the_batch_lifts_in_7_3_and_not_in_fg() {
    for (rules, expected) in [(V6_12, 1), (V6_18, 0), (V7_3, 1), (FG_V3, 0)] {
        let mut m = small(rules);
        m.read(7);
        assert_eq!(seq(&m, 7), None, "still in the batch");
        m.drain();
        assert_eq!(seq(&m, 7), Some(expected), "{}", rules.name);
    }
}

#[test]
fn edge_9_14_large_folios_count_in_pages() {
    let mut m = machine(V7_3, Config::pages(256));
    m.add(64, 5, Entering::READ);
    assert_eq!((m.resident(), m.folios()), (32, 1));
    m.drain();
    assert_eq!(m.lru.nr_pages[0][1], 32);
    m.add(128, 5, Entering::READ);
    m.add(192, 6, Entering::READ);
    check_generations(&m);
    assert_eq!(m.reclaim(64), 64);
    assert_eq!(m.counters().evictions[1], 64);
    for key in [64, 95, 128, 159] {
        assert!(matches!(m.core.pages.get(key), Entry::Shadow(_)), "the shadow fills every slot");
    }
    m.read(70);
    assert_eq!(m.counters().refaults[1], 1, "the new folio is one page");
    m.add(128, 2, Entering::READ);
    assert_eq!(m.counters().refaults[1], 5);
    check_generations(&m);
}

#[test]
fn edge_9_14_isolation_may_overshoot_by_a_folio() {
    let mut m = machine(V6_12, Config::pages(1 << 13));
    put(&mut m, 0, 0, FolioFlags::default(), Entering::READ);
    for n in 1..8 {
        m.add(n * 64, 6, Entering::READ);
    }
    m.drain();
    for key in (1..8).map(|n| n * 64) {
        let slot = m.core.pages.folio(key).expect("resident");
        m.core.folios.unlink(slot);
        m.lru.store(&mut m.core, slot, &crate::model::flags::FolioState::on_list(0, FolioFlags::default()));
        m.core.folios.push_head(head(0, true), slot);
    }
    m.reclaim(1);
    assert_eq!(m.counters().evictions[1], 65, "one page and then a whole folio");
}

#[test]
fn edge_9_20_allocations_for_writing_do_not_refault() {
    let mut m = small(V7_3);
    put(&mut m, 1, 0, FolioFlags::default(), Entering::READ);
    m.reclaim(1);
    assert!(matches!(m.core.pages.get(1), Entry::Shadow(_)));
    m.add(1, 0, Entering { write: true, accessed: true, ..Entering::READ });
    assert_eq!(m.counters().refaults, [0, 0]);
    assert!(flags(&m, 1).referenced());
    m.remove(1, false);
    assert_eq!(m.core.pages.get(1), Entry::Empty, "and the shadow is gone");
}

#[test]
fn edge_9_22_first_touches_are_misses_but_no_refaults() {
    for lru in every_lru() {
        let mut cache = lru.cache(Config::pages(128));
        for key in 0..1000 {
            assert!(!cache.read(key));
        }
        assert_eq!((cache.counters().misses, cache.counters().refaults), (1000, [0, 0]));
        cache.read(0);
        assert_eq!(cache.counters().refaults, [0, 1], "{}", lru.label());
    }
}

#[test]
fn edge_9_21_truncation_removes_shadows() {
    let mut m = small(V7_3);
    put(&mut m, 1, 0, FolioFlags::default(), Entering::READ);
    m.reclaim(1);
    m.remove(1, false);
    m.read(1);
    assert_eq!(m.counters().refaults, [0, 0]);
}

#[test]
fn pages_evicted_before_the_first_event_refault_without_being_recent() {
    for lru in every_lru() {
        let mut cache = lru.cache(Config::pages(1024));
        cache.evicted_before(5);
        cache.read(5);
        let counters = cache.counters();
        assert_eq!((counters.refaults[1], counters.restores[1]), (1, 0), "{}", lru.label());
        cache.evicted_before(5);
        assert!(cache.is_resident(5), "resident pages stay");
    }
}

#[test]
fn edge_9_24_rotation_after_writeback_is_scanned_next() {
    let mut m = small(V7_3);
    for key in 0..3 {
        put(&mut m, key, 0, FolioFlags::default(), Entering::READ);
    }
    put(&mut m, 9, 2, FolioFlags::default(), Entering::READ);
    m.dirty(9);
    let slot = m.core.pages.folio(9).expect("resident");
    m.core.folios.attr_mut(slot).set(Attr::RECLAIM);
    m.cleaned(9);
    assert_eq!(list(&m, 0, true), [9, 0, 1, 2]);
    check_generations(&m);
}

#[test]
fn spec_6_5_dirty_file_folios_come_back_active_and_leave_once_clean() {
    for (rules, expected) in [(V6_12, 3), (V7_3, 2), (FG_V3, 2)] {
        let mut m = small(rules);
        put(&mut m, 1, 0, FolioFlags::default(), Entering::READ);
        m.dirty(1);
        assert_eq!(m.reclaim(1), 0);
        assert_eq!(seq(&m, 1), Some(expected), "{}", rules.name);
        m.cleaned(1);
        assert_eq!(m.reclaim(1), 1);
    }
}

#[test]
fn spec_6_3_a_dirty_scan_moves_on_in_6_18() {
    let mut m = small(V6_18);
    put(&mut m, 1, 0, FolioFlags::default(), Entering::READ);
    m.dirty(1);
    m.reclaim(1);
    assert_eq!(m.counters().rejected, 0, "never isolated");
    check_generations(&m);
}

#[test]
fn edge_9_25_a_type_with_two_generations_is_skipped() {
    let mut m = machine(V7_3, with_swap(1 << 20));
    for key in 0..64 {
        put(&mut m, key, 0, FolioFlags::default(), Entering::ANON);
    }
    put(&mut m, 1000, 2, FolioFlags::default(), Entering::READ);
    m.lru.window = Window { max_seq: 3, min_seq: [0, 2] };
    let before = m.lru.window.max_seq;
    assert!(m.reclaim(32) >= 32);
    assert_eq!(m.lru.window.max_seq, before, "no aging while anon has more");
    assert!(m.counters().evictions[0] > 0 && m.counters().evictions[1] == 0);
}

#[test]
fn edge_9_28_up_to_31_folios_wait_unplaced() {
    let mut m = small(V7_3);
    for key in 0..30 {
        m.read(key);
    }
    assert_eq!(m.core.folios.iter_from_tail(head(1, true)).count(), 0);
    m.read(30);
    assert_eq!(list(&m, 1, true).len(), 30);
    assert_eq!(list(&m, 0, true), [30], "the one that fills the batch is placed before it is marked");
    m.read(31);
    m.add(64, 2, Entering::READ);
    assert_eq!(seq(&m, 31), Some(1), "a large folio drains at once");
    check_generations(&m);
}

#[test]
fn batches_are_per_cpu() {
    let mut m = machine(V7_3, Config { cpus: 2, ..Config::pages(1 << 20) });
    for key in 0..60 {
        m.run_on(key as usize % 2);
        m.read(key);
    }
    assert!((0..60).all(|key| seq(&m, key).is_none()));
    m.remove(3, false);
    m.drain();
    assert!((0..60).filter(|&key| key != 3).all(|key| seq(&m, key) == Some(1)));
    check_generations(&m);
}

#[test]
fn spec_6_1_7_3_stops_at_the_goal_and_6_12_overshoots() {
    let taken = |rules: Rules| {
        let mut m = machine(rules, Config::pages(1 << 21));
        for key in 0..1u32 << 20 {
            m.add(key, 0, Entering::READ);
        }
        m.drain();
        m.reclaim(1)
    };
    assert_eq!(taken(V7_3), 64);
    assert_eq!(taken(V6_12), 256, "the whole budget of 2^20 >> 12");
}

#[test]
fn spec_5_6_equilibrium_of_large_7_3_cgroups_is_two_to_three_generations() {
    let mut m = machine(V7_3, with_swap(1 << 18));
    let mut seen = [0; 5];
    for key in 0..1u32 << 20 {
        m.touch(key, Entering::ANON);
        m.core.folios.attr_mut(m.core.pages.folio(key).expect("resident")).clear(Attr::YOUNG);
        if key > 1 << 19 {
            seen[m.lru.window.nr_gens(false) as usize] += 1;
        }
    }
    assert!(seen[2] + seen[3] > 0 && seen[4] == 0, "priority never rises: {seen:?}");
    assert!(m.counters().agings > 0);
    check_generations(&m);
}

pub(super) fn every_lru() -> Vec<Lru> {
    PRESETS.iter().map(|rules| Lru::Generations(**rules)).chain([Lru::Classical]).collect()
}
