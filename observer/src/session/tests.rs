//! The session on hand-made streams: what is scored, what stays unknown.

use std::sync::Arc;

use observer_common::sample;
use proptest::prelude::*;

use super::*;
use crate::{
    model::{FolioFlags, ShadowEntry, ShadowLayout, Token},
    session::frame::Calibration,
    stream::{
        event::{Clock, FolioEvent, Home, Identity, Kind},
        header::{FORMAT, Hook, Via, tests::layout},
    },
};

pub(super) const CGROUP: u64 = 77;

pub(super) fn header(own: OwnRules) -> Arc<Header> {
    let hook = |name: &str| Hook { name: name.into(), via: Via::Fentry, target: name.into(), why: String::new(), without: String::new() };
    Arc::new(Header {
        format: FORMAT,
        tool: "test".into(),
        kernel: "7.3".into(),
        machine: "x86_64".into(),
        host: "box".into(),
        page_size: 4096,
        cpus: 2,
        lru: Lru::Mglru,
        own_rules: own,
        own_rules_because: String::new(),
        layout: layout(),
        hooks: ["folio_add_lru", "folio_mark_accessed", "workingset_eviction"].map(hook).to_vec(),
        sample: 1,
        filter: String::new(),
        start_boottime: 0,
        start_realtime: 0,
        command: String::new(),
        part: None,
    })
}

/// A stream under construction: a clock, and a time that runs.
pub(super) struct Stream {
    pub(super) session: Session,
    pub(super) now: u64,
    pub(super) max_seq: u32,
    pub(super) window: u8,
    /// Size of the folios that cold events tell of.
    pub(super) order: u8,
}

/// LRU bits and generation value as a flags word of the test layout.
pub(super) fn word(gen_field: u64, flags: FolioFlags) -> u64 {
    let bit = |on: bool, number: u32| u64::from(on) << number;
    gen_field << 27 | u64::from(flags.mask()) << 25 | bit(flags.referenced(), 2) | bit(flags.workingset(), 9) | bit(flags.active(), 8)
}

pub(super) const BLANK: FolioFlags = FolioFlags::new(0, false, false, false);

pub(super) fn refs(n: u8) -> FolioFlags {
    // 7.3: the first access sets PG_referenced, the next ones count in the mask (spec 3.1).
    if n == 0 { BLANK } else { FolioFlags::new(n - 1, true, false, false) }
}

impl Stream {
    pub(super) fn new(own: OwnRules) -> Self {
        let rules = ["fg-v4", "fg-v3"].iter().filter_map(|name| Rules::by_name(name)).collect();
        let session = Session::new(header(own), SourceKind::Recording, "test".into(), rules);
        let mut stream = Self { session, now: 1, max_seq: 7, window: 3, order: 0 };
        stream.calibrate();
        stream
    }

    /// Enough insertions in two generations, of folios that play no part later.
    fn calibrate(&mut self) {
        for n in 0..65 {
            let folio = 0x9000_0000 + n * 64;
            self.event(Kind::Add, folio, 1000 + n, word(0, BLANK), 0);
            self.event(Kind::Insert, folio, 1000 + n, word(1, BLANK), 0);
            self.event(Kind::Delete, folio, 1000 + n, word(1, BLANK), 0);
        }
        self.event(Kind::Add, 0x9000_0000, 1000, word(0, BLANK), 0);
        self.event(Kind::Insert, 0x9000_0000, 1000, word(2, BLANK), 0);
        self.event(Kind::Delete, 0x9000_0000, 1000, word(2, BLANK), 0);
        assert!(matches!(self.session.frame().calibration, Calibration::Confirmed { .. }));
        self.session.tally = Tally::default();
    }

    pub(super) fn event(&mut self, kind: Kind, folio: u64, index: u64, flags: u64, shadow: u64) {
        self.in_cgroup(kind, folio, index, flags, shadow, CGROUP);
    }

    pub(super) fn in_cgroup(&mut self, kind: Kind, folio: u64, index: u64, flags: u64, shadow: u64, cgroup: u64) {
        self.now += 1000;
        let cold = !matches!(kind, Kind::Mark | Kind::IncGen);
        let body = Body::Folio(FolioEvent {
            kind,
            folio,
            flags,
            clock: Some(Clock { max_seq: self.max_seq, window: [self.window; 2] }),
            aux: u8::from(kind == Kind::IncGen),
            identity: cold.then_some(Identity { dev: 8, ino: 4, index }),
            home: cold.then_some(Home { cgroup, memcg_id: u16::try_from(cgroup).unwrap(), node: 0, order: self.order }),
            shadow,
        });
        self.session.apply(&Event { ts: self.now, cpu: 0, body });
    }

    /// A folio read for the first time: requested, inserted in the oldest generation.
    pub(super) fn born(&mut self, folio: u64, index: u64) {
        self.event(Kind::Add, folio, index, word(0, BLANK), 0);
        let oldest = u64::from((self.max_seq - u32::from(self.window)) % 4 + 1);
        self.event(Kind::Insert, folio, index, word(oldest, BLANK), 0);
    }

    /// The folio is gone.
    fn swept_free(&mut self, folio: u64) {
        let body = Body::Folio(FolioEvent {
            kind: Kind::Sweep,
            folio,
            flags: 0,
            clock: None,
            aux: observer_common::sweep::FREE,
            identity: Some(Identity { dev: 0, ino: 0, index: 0 }),
            home: None,
            shadow: 0,
        });
        self.session.apply(&Event { ts: self.now, cpu: 0, body });
    }

    pub(super) fn mark(&mut self, folio: u64, gen_field: u64, before: FolioFlags) {
        self.event(Kind::Mark, folio, 0, word(gen_field, before), 0);
    }

    pub(super) fn own(&self) -> frame::RuleFrame {
        self.session.frame().rules[0].clone()
    }

    pub(super) fn fg(&self) -> frame::RuleFrame {
        self.session.frame().rules[1].clone()
    }

    pub(super) fn end_window(&mut self) {
        self.now += 2_000_000_000;
        let snapshot = Body::ClockSnapshot { boottime: self.now, realtime: 0 };
        self.session.apply(&Event { ts: self.now, cpu: 0, body: snapshot });
    }
}

#[test]
fn nothing_is_scored_while_the_multi_gen_lru_is_off() {
    let mut stream = Stream::new(OwnRules::V7_3);
    let (early, late) = (0x1000, 0x2000);
    stream.born(early, 1);
    stream.mark(early, OLDEST, BLANK);
    assert_eq!(stream.session.frame().lru, Lru::Mglru);

    // Off: the kernel has taken the generation out of every folio's flags, and inserts new ones without.
    stream.event(Kind::Add, late, 2, word(0, BLANK), 0);
    stream.event(Kind::Insert, late, 2, word(0, BLANK), 0);
    let off = stream.own().fidelity;
    stream.mark(early, 0, BLANK);
    stream.mark(late, 0, BLANK);
    let frame = stream.session.frame();
    assert_eq!((frame.lru, off.agree), (Lru::Classical, off.scored));
    assert_eq!(frame.rules[0].fidelity, frame::Fidelity { unknown: off.unknown + 2, ..off }, "no false disagreement");
    assert!(frame.source.note.contains("switched off while observed"), "{}", frame.source.note);

    // On again: what was known of the first folio is of another time; it is scored once it was seen again.
    stream.born(0x3000, 3);
    let on = stream.own().fidelity;
    stream.mark(early, OLDEST, BLANK);
    assert_eq!(stream.own().fidelity, frame::Fidelity { unknown: on.unknown + 1, ..on });
    stream.mark(early, OLDEST, refs(1));
    let frame = stream.session.frame();
    assert_eq!(frame.lru, Lru::Mglru);
    assert_eq!(frame.rules[0].fidelity, frame::Fidelity { scored: on.scored + 1, agree: on.agree + 1, unknown: on.unknown + 1 });
    assert!(frame.source.note.contains("off and on while observed"), "{}", frame.source.note);
}

/// The test clock: max_seq 7, min_seq 4, so the oldest generation's field value is 4 % 4 + 1.
pub(super) const OLDEST: u64 = 1;

#[test]
fn accesses_that_follow_the_rules_are_all_scored_and_all_agree() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    for n in 0..5 {
        stream.mark(64, OLDEST, refs(n));
    }
    // The fifth access of 7.3 saturates: workingset (spec 3.1).
    stream.mark(64, OLDEST, FolioFlags::new(3, true, true, false));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 8, agree: 8, unknown: 0 });
}

#[test]
fn a_flag_that_does_not_follow_is_one_disagreement_and_then_the_truth() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.mark(64, OLDEST, refs(0));
    stream.mark(64, OLDEST, refs(4));
    stream.mark(64, OLDEST, FolioFlags::new(3, true, true, false));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 5, agree: 4, unknown: 0 });
}

/// As `event`, with bits of `aux` and the CPU that reports.
fn told(stream: &mut Stream, kind: Kind, flags: u64, aux: u8, cpu: u16) {
    stream.now += 1000;
    let cold = kind == Kind::Add || kind == Kind::Insert;
    let body = Body::Folio(FolioEvent {
        kind,
        folio: 64,
        flags,
        clock: Some(Clock { max_seq: stream.max_seq, window: [stream.window; 2] }),
        aux,
        identity: cold.then_some(Identity { dev: 8, ino: 4, index: 1 }),
        home: cold.then_some(Home { cgroup: CGROUP, memcg_id: 77, node: 0, order: 0 }),
        shadow: 0,
    });
    stream.session.apply(&Event { ts: stream.now, cpu, body });
}

#[test]
fn a_mark_inside_an_insertion_request_is_no_access_of_its_own() {
    let mut stream = Stream::new(OwnRules::V7_3);
    told(&mut stream, Kind::Add, word(0, BLANK), observer_common::task::IN_LRU_FAULT, 1);
    // 7.3 marks what is faulted in (spec 2.1), by a call that is hooked too.
    told(&mut stream, Kind::Mark, word(0, BLANK), 0, 1);
    told(&mut stream, Kind::Insert, word(2, refs(1)), 0, 0);
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 3, agree: 3, unknown: 0 });
    assert_eq!(stream.session.frame().files[0].accesses, 0);
    // The next one is an access.
    told(&mut stream, Kind::Mark, word(2, refs(1)), 0, 1);
    told(&mut stream, Kind::Mark, word(2, refs(2)), 0, 1);
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 5, agree: 5, unknown: 0 });
    assert_eq!(stream.session.frame().files[0].accesses, 2);
}

#[test]
fn a_mark_of_another_cpu_is_an_access_and_an_inlined_one_still_happened() {
    for marks in [0_u8, 1] {
        let mut stream = Stream::new(OwnRules::V7_3);
        told(&mut stream, Kind::Add, word(0, BLANK), observer_common::task::IN_LRU_FAULT, 1);
        if marks == 1 {
            told(&mut stream, Kind::Mark, word(0, refs(1)), 0, 0);
        }
        told(&mut stream, Kind::Insert, word(2, refs(1 + marks)), 0, 0);
        let scored = 2 + u64::from(marks);
        assert_eq!(stream.own().fidelity, frame::Fidelity { scored, agree: scored, unknown: 0 });
        assert_eq!(stream.session.frame().files[0].accesses, u64::from(marks));
    }
}

#[test]
fn what_reclaim_took_off_and_gave_back_is_followed() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    // A candidate with a young entry is kept with PG_referenced, which lifts it to M-2 (spec 3.2 R, 6.6, 2.2 row 5).
    told(&mut stream, Kind::SetRefs, word(0, BLANK), 0, 0);
    stream.mark(64, u64::from((stream.max_seq - 2) % 4 + 1), refs(1));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 4, agree: 4, unknown: 0 });
    stream.end_window();
    assert_eq!(stream.own().promotions.actual, 0, "a putback is none");
}

#[test]
fn the_census_is_no_prediction_and_what_follows_is() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.event(Kind::Census, 64, 1, word(OLDEST + 1, refs(2)), 0);
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 0, agree: 0, unknown: 1 });
    stream.mark(64, OLDEST + 1, refs(2));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 1, agree: 1, unknown: 1 });
    stream.event(Kind::Evict, 64, 1, word(0, refs(3)), 0);
    assert_eq!(stream.own().evictions.scored, 1);
    stream.end_window();
    assert_eq!(stream.own().promotions.actual, 0, "to be there is none");
}

#[test]
fn a_sweep_shows_what_no_event_told_and_blames_nobody() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.mark(64, OLDEST, refs(0));
    // A young entry found by an aging walk that called nothing: the second access goes to the top (spec 3.2).
    let youngest = u64::from(stream.max_seq % 4 + 1);
    stream.event(Kind::Sweep, 64, 1, word(youngest, FolioFlags::new(0, false, true, false)), 0);
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 3, agree: 3, unknown: 1 });
    // Seen once more, it is no news.
    stream.event(Kind::Sweep, 64, 1, word(youngest, FolioFlags::new(0, false, true, false)), 0);
    stream.end_window();
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 3, agree: 3, unknown: 1 });
    assert_eq!((stream.own().promotions.actual, stream.fg().promotions.predicted), (1, 1), "the access reaches every rule set");
    // Free: what comes to its address is somebody else.
    stream.swept_free(64);
    assert!(stream.session.frame().files.is_empty());
}

#[test]
fn a_followed_folio_of_a_lowered_sample_is_gone_whatever_came_in_its_place() {
    let mut stream = Stream::new(OwnRules::V7_3);
    let kept = (0..).find(|index| sample::keeps(sample::of_file(4, *index), 8)).unwrap();
    stream.born(64, kept);
    let rate = Body::Counter { cgroup: 0, name: SAMPLE.into(), value: 8 };
    stream.session.apply(&Event { ts: stream.now, cpu: 0, body: rate });
    assert_eq!(stream.session.frame().files.len(), 1);
    stream.swept_free(64);
    assert!(stream.session.frame().files.is_empty());
}

#[test]
fn a_folio_of_another_size_counts_its_own_pages() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.order = 3;
    stream.event(Kind::Census, 64, 8, word(OLDEST, BLANK), 0);
    let pages = |stream: &Stream| {
        let frame = stream.session.frame();
        let sum = |side: &frame::Side| side.by_age.iter().flatten().sum::<u64>();
        (frame.files[0].pages, sum(&frame.lruvecs[0].actual), sum(&frame.lruvecs[0].predicted[1]))
    };
    assert_eq!(pages(&stream), (8, 8, 8));
    stream.order = 0;
    stream.event(Kind::Sweep, 64, 8, word(OLDEST, BLANK), 0);
    assert_eq!(pages(&stream), (1, 1, 1));
    // What the split made is met like in a census.
    stream.event(Kind::Sweep, 128, 9, word(OLDEST, BLANK) | 1 << 5, 0);
    assert_eq!(pages(&stream), (2, 2, 2));
}

#[test]
fn the_generation_counts_as_much_as_the_references() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.mark(64, OLDEST + 1, refs(0));
    assert_eq!(stream.own().fidelity.agree, stream.own().fidelity.scored - 1);
}

#[test]
fn after_a_loss_a_folio_is_unknown_until_it_is_seen_again() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.session.apply(&Event { ts: stream.now, cpu: 1, body: Body::Lost { cpu: 1, count: 3 } });
    stream.mark(64, OLDEST, refs(2));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 2, agree: 2, unknown: 1 });
    stream.mark(64, OLDEST, refs(3));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 3, agree: 3, unknown: 1 });
    let source = stream.session.frame().source;
    assert_eq!((source.lost, source.lost_per_cpu), (3, vec![0, 3]));
}

#[test]
fn a_folio_whose_beginning_was_not_seen_is_unknown() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.mark(640, OLDEST, refs(1));
    assert_eq!(stream.own().fidelity, frame::Fidelity { scored: 0, agree: 0, unknown: 1 });
}

pub(super) fn shadow(cgroup: u16) -> u64 {
    let token = Token { value: 4 << 2, workingset: false, bits: 64 };
    ShadowLayout { nodes_shift: 10, anon_cut: 0 }.encode(&ShadowEntry { token, memcg_id: cgroup, node: 0 }, true)
}

#[test]
fn an_address_that_holds_something_else_is_another_folio() {
    let mut stream = Stream::new(OwnRules::V7_3);
    stream.born(64, 1);
    stream.mark(64, OLDEST, refs(0));
    stream.born(64, 2);
    assert_eq!(stream.own().fidelity.agree, stream.own().fidelity.scored);
    assert_eq!(stream.session.frame().files[0].pages, 1);
}

#[test]
fn a_preset_and_its_variant_stand_side_by_side() {
    let rules = ["fg-v4", "fg-v4,defer=oldest", "fg-v4"].map(|text| Rules::parse(text).unwrap()).to_vec();
    let session = Session::new(header(OwnRules::V7_3), SourceKind::Recording, "test".into(), rules);
    let names: Vec<String> = session.frame().rules.into_iter().map(|rule| rule.name).collect();
    assert_eq!(names, ["7.3", "fg-v4", "fg-v4,defer=oldest"]);
}

#[test]
fn nothing_is_predicted_before_the_flag_positions_are_proven() {
    let mut session = Session::new(header(OwnRules::V7_3), SourceKind::Recording, "test".into(), Session::default_rules());
    let body = Body::Folio(FolioEvent {
        kind: Kind::Mark,
        folio: 64,
        flags: word(1, refs(1)),
        clock: Some(Clock { max_seq: 7, window: [3, 3] }),
        aux: 0,
        identity: None,
        home: None,
        shadow: 0,
    });
    session.apply(&Event { ts: 5, cpu: 0, body });
    let frame = session.frame();
    assert!(matches!(frame.calibration, Calibration::Pending { .. }));
    assert!(frame.rules.iter().all(|rule| rule.fidelity.scored == 0 && rule.promotions == frame::Promotions::default()));
}

proptest! {
    /// Whatever happens, in whatever order: each side counts every folio on a list exactly once, and nothing panics.
    #[test]
    fn every_side_counts_every_folio_once(steps in proptest::collection::vec((0_u8..9, 0_u64..12, 0_u64..5, 0_u8..5, any::<bool>()), 1..200)) {
        let mut stream = Stream::new(OwnRules::V7_3);
        for (what, n, gen_field, count, age) in steps {
            let folio = 64 * (n + 1);
            let kind = [Kind::Add, Kind::Insert, Kind::Mark, Kind::Refault, Kind::Evict, Kind::Delete, Kind::IncGen, Kind::Activate, Kind::CacheAdd][usize::from(what)];
            if age && stream.window > 1 {
                stream.window -= 1;
            } else if age {
                stream.max_seq += 1;
                stream.window += 1;
            }
            stream.event(kind, folio, n % 7, word(gen_field, refs(count)), shadow(77));
            let session = &stream.session;
            let tracked: u64 = session.frame().files.iter().map(|file| file.pages).sum();
            for side in session.frame().lruvecs.iter().flat_map(|lruvec| std::iter::once(&lruvec.actual).chain(&lruvec.predicted)) {
                let by_tier: u64 = side.by_tier.iter().flatten().sum();
                let by_refs: u64 = side.by_refs.iter().flatten().sum();
                let by_age: u64 = side.by_age.iter().flatten().sum();
                prop_assert_eq!(by_tier, by_refs);
                prop_assert_eq!(by_age, by_tier, "each folio on a list is in one of the four generations");
                prop_assert!(by_age <= tracked);
            }
        }
    }
}
