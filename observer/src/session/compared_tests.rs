//! Rule sets beside the kernel on hand-made streams: evictions, refaults, promotions, and what-if caches.

use std::sync::Arc;

use super::{
    tests::{BLANK, CGROUP, OLDEST, Stream, header, refs, shadow, word},
    *,
};
use crate::stream::{
    event::{Clock, FolioEvent, Home, Identity, Kind},
    header::Hook,
};

/// Read twice in the oldest generation: FG defers it to M-2 (spec T2), 7.3 leaves it and evicts it.
fn evicted_by_7_3_kept_by_fg(stream: &mut Stream) {
    stream.born(64, 1);
    stream.mark(64, OLDEST, refs(0));
    stream.mark(64, OLDEST, refs(1));
    stream.event(Kind::Evict, 64, 1, word(0, refs(2)), 0);
}

#[test]
fn what_fg_would_have_kept_and_came_back_is_avoidable() {
    let mut stream = Stream::new(OwnRules::V7_3);
    evicted_by_7_3_kept_by_fg(&mut stream);
    assert_eq!(stream.own().evictions, frame::Evictions { scored: 1, agree: 1, would_keep: 0 });
    assert_eq!(stream.fg().evictions, frame::Evictions { scored: 1, agree: 0, would_keep: 1 });
    stream.event(Kind::Refault, 128, 1, word(0, BLANK), shadow(77));
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 1, avoidable: 1 });
    assert_eq!(stream.own().refaults, frame::Refaults { actual: 1, judged: 1, avoidable: 0 });
    let file = &stream.session.frame().files[0];
    assert_eq!((file.evictions, file.refaults, file.by_rules[1].would_keep, file.by_rules[1].avoidable), (1, 1, 1, 1));
}

#[test]
fn a_refault_into_another_cgroup_is_no_refault_to_the_kernel() {
    let mut stream = Stream::new(OwnRules::V7_3);
    evicted_by_7_3_kept_by_fg(&mut stream);
    stream.in_cgroup(Kind::Refault, 128, 1, word(0, BLANK), shadow(77), 78);
    assert_eq!(stream.fg().refaults, frame::Refaults::default());
}

#[test]
fn an_eviction_after_a_loss_gets_no_verdict() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.session.apply(&Event { ts: stream.now, cpu: 0, body: Body::Lost { cpu: 0, count: 1 } });
    stream.event(Kind::Evict, 64, 1, word(0, refs(2)), 0);
    assert_eq!(stream.fg().evictions.scored, 0);
    stream.event(Kind::Refault, 128, 1, word(0, BLANK), shadow(77));
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 0, avoidable: 0 });
}

#[test]
fn promotions_fall_into_one_cell_per_folio_and_window() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.mark(64, OLDEST, refs(0));
    stream.mark(64, OLDEST, refs(1));
    stream.end_window();
    assert_eq!(stream.fg().promotions, frame::Promotions { predicted: 1, actual: 0, both: 0, only_predicted: 1, only_actual: 0 });
    // The scan protects it: flags after the move. FG has it out of the oldest generation already.
    stream.event(Kind::IncGen, 64, 0, word(OLDEST + 1, BLANK), 0);
    stream.end_window();
    assert_eq!(stream.fg().promotions, frame::Promotions { predicted: 1, actual: 1, both: 0, only_predicted: 1, only_actual: 1 });
    assert_eq!(stream.own().promotions, frame::Promotions { predicted: 1, actual: 1, both: 1, only_predicted: 0, only_actual: 0 });
}

#[test]
fn an_insertion_is_no_promotion() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.event(Kind::Add, 64, 1, word(0, BLANK), 0);
    stream.event(Kind::Insert, 64, 1, word(4, BLANK), 0);
    stream.end_window();
    assert_eq!(stream.own().promotions.actual, 0);
}

#[test]
fn without_a_clock_of_generations_only_the_classical_lru_is_asked_about_evictions() {
    let header = Arc::new(Header { lru: Lru::Classical, ..Header::clone(&header(OwnRules::Classical)) });
    let rules = Rules::by_name("fg-v4").into_iter().collect();
    let session = Session::new(header, SourceKind::Recording, "test".into(), rules);
    let mut stream = Stream { session, now: 1, max_seq: 7, window: 3, order: 0 };
    stream.event(Kind::Add, 64, 1, word(0, BLANK), 0);
    stream.event(Kind::Insert, 64, 1, word(0, BLANK), 0);
    stream.event(Kind::Evict, 64, 1, word(0, BLANK), 0);
    assert_eq!((stream.own().evictions.scored, stream.fg().evictions.scored), (1, 0));
}

#[test]
fn accesses_reach_the_what_if_caches_only_where_they_are_on() {
    let run = |sizes: &[u32]| {
        let mut stream = Stream::new(OwnRules::V7_3);
        stream.session.what_if(sizes);
        // Eight pages of memory, read twice in turn by sixteen pages: a folio's address is where it was put.
        for n in 0..64_u64 {
            let (index, folio) = (n % 16, 64 * (n % 8 + 1));
            if n >= 8 {
                stream.event(Kind::Evict, folio, (n - 8) % 16, word(0, refs(2)), 0);
            }
            if n >= 16 {
                stream.event(Kind::Refault, folio, index, word(0, BLANK), shadow(77));
            }
            stream.born(folio, index);
            stream.mark(folio, OLDEST, refs(0));
            stream.mark(folio, OLDEST, refs(1));
        }
        stream.session.finish();
        stream.session.frame().what_if
    };
    assert!(run(&[]).is_empty());
    let rows = run(&[100, 200]);
    let shown: Vec<_> = rows.iter().map(|row| (row.rules.as_str(), row.own, row.percent, row.pages)).collect();
    assert_eq!(shown[..3], [("7.3", true, 100, 8), ("7.3", true, 200, 16), ("fg-v4", false, 100, 8)]);
    assert_eq!((rows.len(), rows[0].cgroup.as_str()), (6, "cgroup 77"));
    assert!(rows.iter().all(|row| row.accesses == 128), "{rows:?}");
    assert!(rows.iter().all(|row| (row.refaults > 0) == (row.percent == 100)), "{rows:?}");
    assert_eq!(rows[0].observed, None, "the hook that tells is missing from this header");
}

#[test]
fn a_read_that_goes_on_in_its_folio_is_one_access() {
    let mut session = Session::new(header_with_reads(), SourceKind::Recording, "test".into(), Vec::new());
    session.what_if(&[100]);
    let mut stream = Stream { session, now: 1, max_seq: 7, window: 3, order: 0 };
    stream.born(64, 1);
    stream.born(128, 2);
    for kind in [Kind::Add, Kind::Insert] {
        let body = Body::Folio(FolioEvent {
            kind,
            folio: 256,
            flags: word(u64::from(kind == Kind::Insert) * OLDEST, BLANK),
            clock: Some(Clock { max_seq: 7, window: [3; 2] }),
            aux: 0,
            identity: Some(Identity { dev: 8, ino: 4, index: 8 }),
            home: Some(Home { cgroup: CGROUP, memcg_id: 77, node: 0, order: 3 }),
            shadow: 0,
        });
        stream.session.apply(&Event { ts: stream.now, cpu: 0, body });
    }
    // Page 1 twice and then not again in a row; of the large folio's three reads the first; page 2, and the large folio once more.
    for (first, last) in [(1, 1), (1, 1), (2, 2), (1, 1), (8, 9), (10, 13), (14, 15), (2, 2), (15, 15)] {
        let body = Body::Range { kind: Kind::ReadRange, dev: 8, ino: 4, first, last };
        stream.session.apply(&Event { ts: stream.now, cpu: 0, body });
    }
    stream.session.finish();
    assert_eq!(stream.session.frame().what_if[0].accesses, 6);
}

/// Accesses known by file and page only.
fn header_with_reads() -> Arc<Header> {
    let mut header = header(OwnRules::V7_3);
    let first = header.hooks[0].clone();
    Arc::make_mut(&mut header).hooks.push(Hook { name: "reads".into(), ..first });
    header
}

#[test]
fn a_departure_that_may_be_an_eviction_is_none_to_the_what_if_caches() {
    let refaults = |evictions_hooked: bool| {
        let mut stream = Stream::new(OwnRules::V7_3);
        stream.session.evictions_hooked = evictions_hooked;
        stream.session.what_if(&[100]);
        for n in 0..256_u64 {
            let folio = 64 * (n % 64 + 1);
            if n >= 64 {
                stream.event(Kind::Delete, folio, (n - 64) % 128, word(0, refs(1)), 0);
            }
            stream.born(folio, n % 128);
            stream.mark(folio, OLDEST, refs(0));
        }
        stream.session.finish();
        stream.session.frame().what_if[0].refaults
    };
    assert_eq!(refaults(true), 0, "truncated");
    assert!(refaults(false) > 0);
}
