//! Page tables, anonymous memory, limits, and what the proposals and the classical LRU do with them.

use super::classic::Classic;
use super::generations::head;
use super::tests::*;
use super::*;
use crate::model::flags::FolioFlags;
use crate::model::rules::*;

#[test]
fn page_tables_promote_at_aging() {
    // The walk comes before the new generation opens, so the youngest it knows is the second youngest afterwards.
    for (rules, start, first, second) in [(V6_12, 1, 3, 4), (V6_18, 1, 1, 4), (V7_3, 1, 1, 4), (FG_V3, 0, 1, 4), (FG_V2, 1, 2, 4)] {
        let mut m = machine(rules, with_swap(1 << 20));
        put(&mut m, 1, start, FolioFlags::default(), Entering::READ);
        for expected in [first, second] {
            m.touch(1, Entering::FAULT);
            m.age(1);
            assert_eq!(seq(&m, 1), Some(expected), "{}", rules.name);
        }
        check_generations(&m);
    }
}

#[test]
fn folding_forgets_a_first_observation_in_7_3() {
    let mut m = small(V7_3);
    put(&mut m, 1, 0, FolioFlags::default(), Entering::READ);
    for expected in [1, 2, 3] {
        m.touch(1, Entering::FAULT);
        m.age(1);
        assert_eq!(seq(&m, 1), Some(expected), "with four generations the oldest is folded every time");
    }
}

#[test]
fn a_young_candidate_takes_its_neighbours_along() {
    for (rules, expected) in [(V6_12, 3), (V6_18, 3), (V7_3, 2), (FG_V3, 3)] {
        let mut m = small(rules);
        for key in 560..656 {
            put(&mut m, key, 0, FolioFlags::new(0, true, false, false), Entering::READ);
            m.map(key, key != 610);
        }
        let candidate = m.core.pages.folio(608).expect("resident");
        m.lru.look_around(&mut m.core, candidate);
        m.drain();
        for key in (560..656).filter(|&key| key != 608) {
            let near = (576..640).contains(&key) && key != 610;
            assert_eq!(seq(&m, key), Some(if near { expected } else { 0 }), "{} {key}", rules.name);
        }
        check_generations(&m);
    }
}

#[test]
fn look_around_stays_within_the_page_table() {
    let mut m = small(V7_3);
    for key in [511, 512, 513] {
        put(&mut m, key, 1, FolioFlags::default(), Entering::READ);
        m.map(key, true);
    }
    let candidate = m.core.pages.folio(512).expect("resident");
    m.lru.look_around(&mut m.core, candidate);
    assert_eq!([511, 512, 513].map(|key| flags(&m, key).referenced()), [false, false, true]);
}

#[test]
fn anon_goes_to_swap_and_comes_back_as_a_refault() {
    let mut m = machine(V7_3, with_swap(256));
    for key in 0..1024 {
        m.touch(key, Entering::ANON);
    }
    m.touch(0, Entering::ANON);
    assert!(m.counters().evictions[0] > 700);
    assert_eq!(m.counters().refaults, [1, 0]);
    for key in 0..1024 {
        m.remove(key, true);
    }
    assert_eq!((m.core.swap_left(), m.resident()), (1 << 20, 0));
    check_generations(&m);
}

#[test]
fn a_full_swap_keeps_anon_and_the_limit_gives_way_in_the_end() {
    let mut m = machine(V7_3, Config { swap_pages: 0, ..Config::pages(64) });
    for key in 0..80 {
        m.touch(key, Entering::ANON);
    }
    assert_eq!((m.counters().evictions[0], m.counters().over_limit), (0, 16));
    check_generations(&m);
}

#[test]
fn a_large_folio_that_swap_cannot_take_comes_back_active() {
    let mut m = machine(V7_3, Config { swap_pages: 100, ..Config::pages(1 << 20) });
    m.add(512, 7, Entering { in_fault: false, ..Entering::ANON });
    let slot = m.core.pages.folio(512).expect("resident");
    m.core.folios.unlink(slot);
    m.lru.store(&mut m.core, slot, &crate::model::flags::FolioState::on_list(0, FolioFlags::new(0, false, true, false)));
    m.core.folios.push_head(head(0, false), slot);
    let mut sc = ScanControl { goal: 32, reclaimed: 0, priority: 0 };
    m.lru.shrink(&mut m.core, &mut sc);
    assert_eq!((sc.reclaimed, seq(&m, 512)), (0, Some(3)));
    check_generations(&m);
}

#[test]
fn a_lower_limit_is_reached() {
    for lru in every_lru() {
        let mut cache = lru.cache(Config::pages(4096));
        for key in 0..8192 {
            cache.read(key);
        }
        cache.set_limit(1024);
        assert!(cache.resident() <= 1024, "{}", lru.label());
    }
}

#[test]
fn d1_aging_brings_anon_to_the_oldest_generation_before_reclaim() {
    let oldest_anon = |agings| {
        let mut m = machine(V7_3, with_swap(1 << 20));
        for key in 0..1000 {
            m.touch(key, Entering::ANON);
        }
        m.drain();
        // Referenced when they were touched, not since.
        for key in 0..1000 {
            m.map(key, false);
            let slot = m.core.pages.folio(key).expect("resident");
            m.core.take_young(slot);
        }
        m.age(agings);
        check_generations(&m);
        m.lru.oldest_pages(false)
    };
    assert_eq!([oldest_anon(0), oldest_anon(1), oldest_anon(2)], [0, 0, 1000], "M-1, M-2, M-3 = min_seq");
}

#[test]
fn d1_proactive_policy_ages_on_the_reclaim_path() {
    let agings = |text: &str| {
        let mut cache = Lru::parse(text).expect("parses").cache(with_swap(4096));
        for key in 0..2048 {
            cache.touch(1 << 16 | key, Entering::ANON);
        }
        for key in 0..3000 {
            cache.read(key);
        }
        cache.counters().agings
    };
    assert!(agings("7.3,proactive=10") > agings("7.3"));
}

#[test]
fn classical_second_access_activates_and_refaults_within_distance_come_back_active() {
    let mut m = Machine::new(Classic::default(), Config::pages(1 << 20));
    for key in 0..4 {
        m.read(key);
    }
    m.drain();
    m.mark(2);
    m.drain();
    let active = |m: &Machine<Classic>, key| m.core.folios.word(m.core.pages.folio(key).expect("resident")).flags.active();
    assert_eq!([active(&m, 1), active(&m, 2)], [false, true]);
    m.read(9);
    m.mark(9);
    assert!(active(&m, 9), "set in place while it waits in the add batch");
    check(&m);
    let evicted = m.reclaim(3);
    assert_eq!(evicted, 3);
    m.read(0);
    assert_eq!((m.counters().refaults[1], m.counters().activates[1]), (1, 0), "further than the active list is long");
    check(&m);
}
