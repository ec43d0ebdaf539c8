//! More than any table may hold: what it holds stays within its bound, and what finds no room is counted.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::stream::{
    event::{Clock, FolioEvent, Home, Identity, Kind},
    header::{Hook, Via},
    tests::header,
};

fn session(reads: bool) -> Session {
    let mut header = header();
    header.lru = Lru::Classical;
    header.start_boottime = 0;
    if reads {
        let name = "reads".to_owned();
        header.hooks.push(Hook { name, via: Via::TpBtf, target: "x".into(), why: String::new(), without: String::new() });
    }
    Session::new(Arc::new(header), SourceKind::Live, "test".into(), Session::default_rules())
}

/// About page `index` of a file, in a folio at `folio`.
fn event(ts: u64, kind: Kind, folio: u64, ino: u64, index: u64) -> Event {
    let identity = Some(Identity { dev: 8, ino, index });
    let home = Some(Home { cgroup: 7, memcg_id: 1, node: 0, order: 0 });
    let clock = Some(Clock { max_seq: 7, window: [3; 2] });
    Event { ts, cpu: 0, body: Body::Folio(FolioEvent { kind, folio, flags: 1 << 5, clock, aux: 0, identity, home, shadow: 0 }) }
}

fn pages(session: &Session) -> u64 {
    session.world.files.all().iter().map(|file| file.pages).sum()
}

#[test]
fn folios_beyond_the_bound_are_refused_whole_and_counted() {
    let mut session = session(true);
    session.track_at_most(1000);
    for folio in 0..3000 {
        session.apply(&event(folio, Kind::CacheAdd, folio * 64, 4, folio));
    }
    assert_eq!((session.world.tracked(), pages(&session), session.frame().source.table_evictions), (1000, 1000, 2000));
    // Who goes makes room for who comes; what is kept for each does not grow with that.
    for folio in 0..3000 {
        session.apply(&event(3000 + folio, Kind::Delete, folio * 64, 4, folio));
        session.apply(&event(3000 + folio, Kind::CacheAdd, (10_000 + folio) * 64, 5, folio));
    }
    assert_eq!((session.world.tracked(), pages(&session)), (1000, 1000));
    assert_eq!((session.world.slots(), session.actual.len()), (1000, 1000));
    assert_eq!(session.frame().source.table_evictions, 4000);
}

#[test]
fn evictions_beyond_the_bound_are_forgotten_and_counted() {
    let mut session = session(false);
    session.track_at_most(100);
    for folio in 0..1000 {
        session.apply(&event(folio, Kind::CacheAdd, 64, 4, folio));
        session.apply(&event(folio, Kind::Evict, 64, 4, folio));
    }
    assert_eq!(session.ghosts.len(), 100);
    assert_eq!(session.frame().source.table_evictions, 900);
}

#[test]
fn a_page_that_changes_its_identity_is_found_by_the_new_one_only() {
    let mut session = session(true);
    for round in 0..1000 {
        // Not mapped yet, and then it is: anonymous mappings are told by an odd address.
        session.apply(&event(round, Kind::CacheAdd, 64, 0, round));
        let mut mapped = event(round, Kind::Insert, 64, (round + 1) * 8 + 1, round);
        if let Body::Folio(FolioEvent { identity: Some(identity), .. }) = &mut mapped.body {
            identity.dev = 0;
        }
        session.apply(&mapped);
        assert_eq!((session.world.tracked(), session.world.identities()), (1, 1));
        assert_eq!(session.world.slot_of(8, 0, round), None);
        assert!(session.world.slot_of(0, (round + 1) * 8 + 1, round).is_some());
        session.apply(&event(round, Kind::Delete, 64, 0, round));
    }
    assert_eq!((session.world.tracked(), session.world.identities(), session.world.slots()), (0, 0, 1));
}

#[test]
fn a_file_that_takes_another_s_place_begins_with_nothing() {
    let mut session = session(false);
    let most = files::MAX_FILES as u64;
    for ino in 1..most {
        session.apply(&event(ino, Kind::CacheAdd, 64, ino, 0));
        session.apply(&event(ino, Kind::Delete, 64, ino, 0));
    }
    session.rules[1].files[0].only_predicted = 9;
    session.apply(&event(most, Kind::CacheAdd, 64, most, 0));
    let frame = session.frame();
    let file = frame.files.iter().find(|file| file.pages == 1).unwrap();
    assert_eq!((file.key, file.by_rules[1].only_predicted), (most, 0));
    assert_eq!((session.rules[1].files.len(), frame.source.table_evictions), (files::MAX_FILES - 1, 1));
}

#[test]
fn counters_and_addresses_beyond_their_bounds_are_counted() {
    let mut counters = Counters::default();
    for number in 0..5000 {
        counters.read(number, "pgscan", number);
        counters.lruvec_is(number, 0);
    }
    assert_eq!((counters.readings.len(), counters.refused), (4096, 2 * (5000 - 4096)));
}

proptest! {
    /// Whatever comes and goes, tables agree with each other and stay within the bound.
    #[test]
    fn tables_agree_with_each_other(steps in proptest::collection::vec((0_u64..60, 1_u64..5, 0_u64..30, 0_u8..5), 1..600), reads: bool) {
        let mut session = session(reads);
        session.track_at_most(20);
        for (folio, ino, index, what) in steps {
            let kind = [Kind::CacheAdd, Kind::Insert, Kind::Evict, Kind::Delete, Kind::Mark][usize::from(what)];
            session.apply(&event(1, kind, folio * 64, ino, index));
            let tracked = session.world.tracked();
            prop_assert!(tracked <= 20 && session.world.slots() <= 20 && session.ghosts.len() <= 20);
            prop_assert!(session.world.identities() <= tracked);
            let folios: u64 = session.world.files.all().iter().map(|file| u64::from(file.folios)).sum();
            prop_assert_eq!((folios, pages(&session)), (tracked as u64, tracked as u64));
        }
    }
}
