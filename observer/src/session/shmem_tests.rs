//! First writes to shared memory: what the kernel marks without a call, and what it does not.

use super::{
    tests::{BLANK, CGROUP, Stream, refs, word},
    *,
};
use crate::{
    model::FolioFlags,
    stream::{
        event::{Clock, FolioEvent, Home, Identity, Kind},
        header::FlagLayout,
    },
};

const SWAPBACKED: u64 = 1 << 17;
const UPTODATE: u64 = 1 << 3;
const DIRTY: u64 = 1 << 4;
/// A page of a file on tmpfs: an anonymous device.
const SHARED: Identity = Identity { dev: 34, ino: 4, index: 1 };

/// The same page once it was removed from its file.
const REMOVED: Identity = Identity { dev: 0, ino: 0, index: 1 };

/// An event of the page, on a list of M-1 where shared memory goes (spec 2.2) or off.
fn page(stream: &mut Stream, kind: Kind, on_list: bool, flags: FolioFlags, holds: u64, aux: u8) {
    named(stream, kind, on_list, flags, holds, aux, SHARED);
}

fn named(stream: &mut Stream, kind: Kind, on_list: bool, flags: FolioFlags, holds: u64, aux: u8, identity: Identity) {
    stream.now += 1000;
    let gen_field = u64::from(on_list) * u64::from((stream.max_seq - 1) % 4 + 1);
    let cold = !matches!(kind, Kind::Mark | Kind::IncGen);
    let body = Body::Folio(FolioEvent {
        kind,
        folio: 64,
        flags: word(gen_field, flags) | SWAPBACKED | holds,
        clock: Some(Clock { max_seq: stream.max_seq, window: [stream.window; 2] }),
        aux,
        identity: cold.then_some(identity),
        home: cold.then_some(Home { cgroup: CGROUP, memcg_id: 77, node: 0, order: 0 }),
        shadow: 0,
    });
    stream.session.apply(&Event { ts: stream.now, cpu: 0, body });
}

fn all_agree(stream: &Stream, scored: u64) {
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored, agree: scored, unknown: 0 });
}

/// References by FG v4, folio by folio: none, one, two …
fn by_fg(stream: &Stream) -> Vec<u64> {
    stream.session.frame().lruvecs[0].predicted[1].by_refs.map(|by_type| by_type[0]).to_vec()
}

#[test]
fn a_write_marks_its_new_page_between_request_and_insertion() {
    for own in [OwnRules::V7_3, OwnRules::V6_18, OwnRules::V6_12] {
        let mut stream = Stream::new(own);
        page(&mut stream, Kind::Add, false, BLANK, 0, 0);
        page(&mut stream, Kind::Insert, true, refs(1), UPTODATE | DIRTY, 0);
        all_agree(&stream, 2);
        assert_eq!(by_fg(&stream)[..2], [0, 1], "every rule set counts it");
        // Once: the next write is a mark, which finds the one reference.
        page(&mut stream, Kind::Mark, true, refs(1), UPTODATE | DIRTY, 0);
        all_agree(&stream, 3);
        assert_eq!(by_fg(&stream)[..3], [0, 0, 1]);
        assert_eq!(stream.session.frame().files[0].accesses, 2);
    }
}

#[test]
fn a_second_write_before_the_insertion_finds_the_reference_of_the_first() {
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, 0, 0);
    page(&mut stream, Kind::Mark, false, refs(1), UPTODATE | DIRTY, 0);
    page(&mut stream, Kind::Insert, true, refs(2), UPTODATE | DIRTY, 0);
    all_agree(&stream, 3);
}

#[test]
fn a_request_that_fills_the_batch_inserts_its_page_before_the_write_marks_it() {
    for (next, holds) in [(Kind::Mark, UPTODATE | DIRTY), (Kind::Evict, UPTODATE), (Kind::Delete, UPTODATE)] {
        let mut stream = Stream::new(OwnRules::V7_3);
        page(&mut stream, Kind::Add, false, BLANK, 0, 0);
        page(&mut stream, Kind::Insert, true, BLANK, 0, 0);
        page(&mut stream, next, next != Kind::Evict, refs(1), holds, 0);
        all_agree(&stream, 3);
    }
}

#[test]
fn a_file_removed_before_its_insertion_leaves_nothing_behind_to_the_next_at_its_address() {
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, 0, 0);
    page(&mut stream, Kind::Delete, false, refs(1), UPTODATE, 0);
    all_agree(&stream, 2);
    named(&mut stream, Kind::Insert, true, refs(1), UPTODATE, 0, REMOVED);
    let before = stream.own().fidelity;
    named(&mut stream, Kind::Add, false, BLANK, 0, 0, Identity { ino: 5, ..SHARED });
    named(&mut stream, Kind::Insert, true, refs(1), UPTODATE | DIRTY, 0, Identity { ino: 5, ..SHARED });
    let scored = before.scored + 2;
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored, agree: before.agree + 2, ..before });
}

#[test]
fn fallocate_marks_nothing_and_the_write_after_it_is_a_call() {
    for inserted in [DIRTY, 0] {
        let mut stream = Stream::new(OwnRules::V7_3);
        page(&mut stream, Kind::Add, false, BLANK, 0, 0);
        page(&mut stream, Kind::Insert, true, BLANK, inserted, 0);
        page(&mut stream, Kind::Mark, true, BLANK, DIRTY, 0);
        page(&mut stream, Kind::Delete, true, refs(1), UPTODATE, 0);
        all_agree(&stream, 4);
    }
    // Allocated, then mapped: it holds data, and nobody marked it.
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, 0, 0);
    page(&mut stream, Kind::Insert, true, BLANK, DIRTY, 0);
    page(&mut stream, Kind::Delete, true, BLANK, UPTODATE | DIRTY, 0);
    all_agree(&stream, 3);
}

#[test]
fn a_fault_is_marked_by_its_own_rule_only() {
    // 7.3 marks in the request what a fault brings (spec 2.1); the write through the mapping makes it dirty.
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, 0, observer_common::task::IN_LRU_FAULT);
    page(&mut stream, Kind::Insert, true, refs(1), UPTODATE | DIRTY, 0);
    all_agree(&stream, 2);
    assert_eq!(by_fg(&stream)[..2], [1, 0]);
    // A fault in a mapping without recency (spec 2.1) reads a hole.
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, 0, 0);
    page(&mut stream, Kind::Insert, true, BLANK, UPTODATE, 0);
    page(&mut stream, Kind::Delete, true, BLANK, UPTODATE, 0);
    all_agree(&stream, 3);
}

#[test]
fn what_is_requested_with_its_data_was_written_before() {
    // Collapse and migration: the folio is full when it is requested.
    let mut stream = Stream::new(OwnRules::V7_3);
    page(&mut stream, Kind::Add, false, BLANK, UPTODATE, 0);
    page(&mut stream, Kind::Insert, true, BLANK, UPTODATE | DIRTY, 0);
    all_agree(&stream, 2);
}

#[test]
fn without_the_position_of_uptodate_nothing_is_added() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.session.decoder = Decoder::new(&FlagLayout { uptodate: None, ..stream.session.header.layout.clone() });
    page(&mut stream, Kind::Add, false, BLANK, 0, 0);
    page(&mut stream, Kind::Insert, true, BLANK, UPTODATE | DIRTY, 0);
    all_agree(&stream, 2);
}
