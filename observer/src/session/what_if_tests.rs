//! Caches on hand-made accesses: which cgroup, which size, and what is fed.

use super::*;

const CGROUP: u64 = 77;

fn page(index: u64) -> Identity {
    Identity { dev: 8, ino: 4, index }
}

fn free_run(percents: &[u32]) -> FreeRun {
    let rules = ["7.3", "classical"].map(|name| (name.to_owned(), Lru::parse(name).expect("parses")));
    FreeRun::new(rules.to_vec(), percents, 1, 4096, 1)
}

fn rows(run: &FreeRun) -> Vec<WhatIfFrame> {
    run.rows(|id| format!("/{id}"), true)
}

/// A kernel with room for `room` pages that reads `reads` in order and evicts the page read longest ago.
fn kernel(run: &mut FreeRun, room: usize, reads: impl Iterator<Item = u64>) {
    let (mut resident, mut seen) = (std::collections::VecDeque::new(), std::collections::BTreeSet::new());
    for index in reads {
        if let Some(at) = resident.iter().position(|&there| there == index) {
            resident.remove(at);
        } else {
            if resident.len() == room {
                resident.pop_front();
                run.evicted(CGROUP);
                run.left(CGROUP, 1);
            }
            run.arrived(CGROUP, 1);
            if !seen.insert(index) {
                run.refaulted(CGROUP, &page(index), 0);
            }
            run.tell(CGROUP, &page(index), 0, Told::Came { in_fault: false, dropbehind: false });
        }
        resident.push_back(index);
        run.tell(CGROUP, &page(index), 0, Told::Mark);
    }
}

#[test]
fn the_size_is_what_was_held_and_larger_ones_refault_less() {
    let mut run = free_run(&[50, 100, 200]);
    kernel(&mut run, 400, (0..20_000).map(|n| n * n % 1021));
    assert!(rows(&run).is_empty(), "not started yet");
    run.start();
    let rows = rows(&run);
    assert_eq!(rows.iter().map(|row| (row.percent, row.pages)).collect::<Vec<_>>()[..3], [(50, 200), (100, 400), (200, 800)]);
    for rows in rows.chunks(3) {
        assert!(rows[0].refaults > rows[1].refaults && rows[1].refaults > rows[2].refaults, "{rows:?}");
        assert!(rows.iter().all(|row| row.accesses == 20_000 && row.cgroup == "/77"));
        assert_eq!(rows.iter().map(|row| row.observed.is_some()).collect::<Vec<_>>(), [false, true, false]);
    }
    assert_eq!(rows.iter().map(|row| (row.rules.as_str(), row.own)).collect::<Vec<_>>()[2..4], [("7.3", true), ("classical", false)]);
}

#[test]
fn a_loop_that_does_not_fit_refaults_as_often_as_the_kernel() {
    let mut run = free_run(&[100]);
    // Least recently used first: every access misses, in the kernel above as in the classical LRU.
    kernel(&mut run, 300, (0..10_000).map(|n| n % 600));
    run.start();
    let rows = rows(&run);
    assert_eq!(rows[0].observed, Some(9_400));
    assert!(rows.iter().all(|row| row.refaults > 0 && row.refaults <= 9_400), "{rows:?}");
}

#[test]
fn what_is_fed_before_and_after_the_start_is_one_stream() {
    let accesses = |from: u64, to: u64| (from..to).map(|n| n * n % 499);
    let mut once = free_run(&[100]);
    kernel(&mut once, 200, accesses(0, 5000));
    let mut twice = free_run(&[100]);
    kernel(&mut twice, 200, accesses(0, 5000));
    for run in [&mut once, &mut twice] {
        run.start();
    }
    once.start();
    for index in accesses(5000, 6000) {
        once.tell(CGROUP, &page(index), 0, Told::Mark);
        twice.tell(CGROUP, &page(index), 0, Told::Mark);
    }
    assert_eq!(rows(&once), rows(&twice));
    assert_eq!(rows(&once)[0].accesses, 6000);
}

#[test]
fn the_busiest_cgroup_counts_and_no_other() {
    let mut run = free_run(&[100]);
    for n in 0..100 {
        run.arrived(0, 1);
        run.arrived(5, 1);
        run.tell(5, &page(n), 0, Told::Mark);
        (0..3).for_each(|_| run.tell(0, &page(n), 0, Told::Mark));
    }
    kernel(&mut run, 50, 0..200);
    run.start();
    run.tell(5, &page(0), 0, Told::Mark);
    let rows = rows(&run);
    assert_eq!((rows[0].cgroup.as_str(), rows[0].pages, rows[0].accesses), ("/77", 50, 200));
}

#[test]
fn a_limit_that_is_told_holds_unless_the_cgroup_was_full_with_less() {
    let size = |reads: u64, limit: u64| {
        let mut run = free_run(&[100]);
        run.limit(CGROUP, limit);
        kernel(&mut run, 100, 0..reads);
        run.start();
        rows(&run)[0].pages
    };
    assert_eq!(size(60, 400 * 4096), 400, "never full: the limit");
    assert_eq!(size(60, u64::MAX), 60, "no limit: what was held");
    assert_eq!(size(150, 400 * 4096), 100, "full: something else has the rest");
    assert_eq!(size(150, 90 * 4096), 90, "books that hold more than the limit missed departures");
}

#[test]
fn sizes_follow_the_observed_one() {
    let mut run = free_run(&[50, 100, 200]);
    kernel(&mut run, 100, 0..100);
    run.start();
    run.arrived(CGROUP, 100);
    assert_eq!(rows(&run).iter().map(|row| row.pages).collect::<Vec<_>>(), [100, 200, 400, 100, 200, 400]);
    run.limit(CGROUP, 50 * 4096);
    assert_eq!(rows(&run).iter().map(|row| row.pages).collect::<Vec<_>>()[..3], [25, 50, 100]);
}

#[test]
fn truncation_is_no_eviction_and_a_large_folio_goes_as_a_whole() {
    let mut run = free_run(&[100]);
    run.arrived(CGROUP, 64);
    run.tell(CGROUP, &page(16), 4, Told::Came { in_fault: false, dropbehind: false });
    run.tell(CGROUP, &page(16), 4, Told::Mark);
    run.tell(CGROUP, &page(16), 4, Told::Gone);
    (16..32).for_each(|index| run.tell(CGROUP, &page(index), 0, Told::Mark));
    run.start();
    let row = &rows(&run)[0];
    assert_eq!((row.accesses, row.refaults), (17, 0));
}

#[test]
fn what_was_evicted_before_the_stream_is_a_refault_when_the_kernel_says_so() {
    let mut run = free_run(&[100]);
    run.arrived(CGROUP, 64);
    for index in 0..10 {
        run.refaulted(CGROUP, &page(index), 0);
        run.tell(CGROUP, &page(index), 0, Told::Came { in_fault: false, dropbehind: false });
        run.tell(CGROUP, &page(index), 0, Told::Mark);
    }
    run.start();
    assert_eq!((rows(&run)[0].refaults, rows(&run)[0].observed), (10, Some(10)));
}

#[test]
fn a_sampled_stream_has_a_sampled_size() {
    let rules = vec![("7.3".to_owned(), Lru::parse("7.3").expect("parses"))];
    let mut run = FreeRun::new(rules, &[100], 64, 4096, 16);
    run.limit(CGROUP, 6400 * 4096);
    run.run_on(15);
    run.tell(CGROUP, &page(0), 0, Told::Mark);
    run.start();
    assert_eq!(rows(&run)[0].pages, 100);
}

#[test]
fn memory_is_bounded_and_what_finds_no_room_is_counted() {
    let mut run = free_run(&[100, 800, 100, 0]);
    assert_eq!(run.percents, [100, 800]);
    // Two rule sets: the observed size of 2^22 pages fits, eight times as much does not.
    assert_eq!(run.affordable(MAX_PAGES), [100]);
    assert_eq!(run.refused, 1);
    for id in 0..=MAX_CGROUPS as u64 {
        run.arrived(id, 1);
    }
    assert_eq!((run.cgroups.len(), run.refused), (MAX_CGROUPS, 2));
    run.tell(1, &page(1 << 40), 0, Told::Mark);
    assert_eq!(run.refused, 3);
}

/// The recording inside the binary: a real 7.3 kernel under zipf reads beside scan-and-hot. From its accesses alone, the kernel's own rules
/// must refault as often as it did.
#[test]
fn a_real_kernel_refaulted_as_often_as_its_rules_do_alone() {
    use crate::replay::{Input, Recorded, Source, offscreen};
    let mut source = Recorded::open(Input::Embedded(include_bytes!("../../recordings/default.arrows"))).expect("a recording");
    let mut session = crate::session::Session::new(source.header(), source.kind(), source.name(), Vec::new());
    session.what_if(&[100]);
    let frame = offscreen::run_to_end(&mut source, &mut session, "", |_| {}, || false).expect("readable");
    let own = &frame.what_if[0];
    let observed = own.observed.expect("refaults were seen");
    assert!(own.own && observed > 10_000, "{own:?}");
    assert!(own.refaults.abs_diff(observed) * 20 <= observed, "{own:?} is more than 5 % off");
}
