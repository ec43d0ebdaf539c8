//! Recordings written, read back, damaged and attacked.

mod damage;
mod hostile;
mod roundtrip;

use std::io;

use observer_common::Kind;
use proptest::prelude::*;

use super::event::{Body, Clock, ControllerState, Event, FolioEvent, Home, Identity, LruvecState};
use super::header::{FORMAT, FlagLayout, Header, Hook, Lru, OwnRules, Via, tests::layout};
use super::{BatchInfo, Damage, OpenError, Reader, Writer};

/// A header with every field set.
pub(crate) fn header() -> Header {
    Header {
        format: FORMAT,
        tool: "0.1.0".into(),
        kernel: "7.3.1-amd64".into(),
        machine: "x86_64".into(),
        host: "box".into(),
        page_size: 4096,
        cpus: 2,
        lru: Lru::Mglru,
        own_rules: OwnRules::V7_3,
        own_rules_because: "folio_inc_refs".into(),
        layout: FlagLayout { active: 5, lru: 3, dropbehind: Some(20), nr_pageflags: 24, gen_pgoff: Some(57), refs_pgoff: None, ..layout() },
        hooks: vec![Hook {
            name: "lru_gen_refault".into(),
            via: Via::Fentry,
            target: "workingset_refault".into(),
            why: "inlined".into(),
            without: "refaults".into(),
        }],
        sample: 1,
        filter: "/work".into(),
        start_boottime: 1_000_000_000,
        start_realtime: 1_790_000_000_000_000_000,
        command: "dd if=/dev/zero".into(),
        part: None,
    }
}

/// A folio event as `folio_mark_accessed` makes them.
pub(crate) fn mark(ts: u64, folio: u64) -> Event {
    let clock = Some(Clock { max_seq: 7, window: [3, 2] });
    let body = FolioEvent { kind: Kind::Mark, folio, flags: 0x29, clock, aux: 0, identity: None, home: None, shadow: 0 };
    Event { ts, cpu: 1, body: Body::Folio(body) }
}

/// A recording of `batches` batches with three rows each.
fn recording(batches: u64) -> (Vec<Event>, Vec<u8>) {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    let mut events = Vec::new();
    for batch in 0..batches {
        for row in 0..3 {
            let ts = 1_000_000_000 * (batch + 2) + row;
            let event = match row {
                2 => Event { ts, cpu: 0, body: Body::FileName { dev: 8 << 20 | 1, ino: 12 + batch, name: format!("/srv/data/{batch}") } },
                _ => mark(ts, 0xffff_ea00_0400_0000 + 64 * (3 * batch + row)),
            };
            writer.push(&event).unwrap();
            events.push(event);
        }
        writer.flush().unwrap();
    }
    (events, writer.finish().unwrap())
}

/// Everything a reader makes of some bytes.
struct Outcome {
    header: Header,
    events: Vec<Event>,
    batches: Vec<BatchInfo>,
    damage: Vec<Damage>,
}

fn read(input: impl io::Read) -> Result<Outcome, OpenError> {
    let mut reader = Reader::new(input)?;
    let (mut events, mut batches) = (Vec::new(), Vec::new());
    while let Some(info) = reader.next_batch(&mut events)? {
        batches.push(info);
    }
    Ok(Outcome { header: (*reader.header()).clone(), events, batches, damage: reader.damage().to_vec() })
}

/// Where each message begins: schema, batches, end marker.
fn boundaries(recording: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(recording).unwrap();
    let mut starts = vec![0, reader.position() as usize];
    while reader.next_batch(&mut Vec::new()).unwrap().is_some() {
        starts.push(reader.position() as usize);
    }
    starts
}

prop_compose! {
    fn a_folio_event()(
        kind in prop::sample::select(vec![
            Kind::Add, Kind::Insert, Kind::Mark, Kind::Refault, Kind::Evict, Kind::Delete, Kind::IncGen, Kind::Activate, Kind::Walk,
            Kind::SetRefs, Kind::LookAround, Kind::CacheAdd,
        ]),
        folio in any::<u64>(),
        flags in any::<u64>(),
        clock in prop::option::of((any::<u32>(), any::<[u8; 2]>())),
        aux in any::<u8>(),
        identity in prop::option::of((0..3u32, any::<u64>(), any::<u64>())),
        home in prop::option::of((0..3u64, 0..3u16, any::<u8>(), any::<u8>())),
        shadow in prop_oneof![Just(0), any::<u64>()],
    ) -> FolioEvent {
        FolioEvent {
            kind, folio, flags, aux, shadow,
            clock: clock.map(|(max_seq, window)| Clock { max_seq, window }),
            identity: identity.map(|(dev, ino, index)| Identity { dev, ino, index }),
            home: home.map(|(cgroup, memcg_id, node, order)| Home { cgroup, memcg_id, node, order }),
        }
    }
}

prop_compose! {
    fn a_lruvec_state()(
        cgroup in 0..3u64, node in any::<u8>(), enabled in any::<bool>(), priority in any::<u8>(), max_seq in any::<u64>(),
        min_seq in any::<[u64; 2]>(), nr_reclaimed in any::<u64>(), pages in any::<[[u32; 2]; 4]>(),
    ) -> LruvecState {
        LruvecState { cgroup, node, enabled, priority, max_seq, min_seq, nr_reclaimed, pages }
    }
}

fn a_body() -> impl Strategy<Value = Body> {
    let counters = any::<[[[u64; 4]; 2]; 5]>();
    prop_oneof![
        10 => a_folio_event().prop_map(Body::Folio),
        1 => (prop::sample::select(vec![Kind::ShrinkEnter, Kind::ShrinkExit, Kind::Age]), any::<u64>(), a_lruvec_state())
            .prop_map(|(kind, lruvec, state)| Body::Lruvec { kind, lruvec, state }),
        1 => (any::<u64>(), counters).prop_map(|(lruvec, [avg_refaulted, avg_total, refaulted, evicted, protected])| {
            Body::Controller { lruvec, state: Box::new(ControllerState { avg_refaulted, avg_total, refaulted, evicted, protected }) }
        }),
        1 => (
            prop::sample::select(vec![Kind::ReadRange, Kind::FaultRange, Kind::MapRange]),
            0..3u32, any::<u64>(), any::<u64>(), any::<u64>(),
        ).prop_map(|(kind, dev, ino, first, last)| Body::Range { kind, dev, ino, first, last }),
        1 => (0..3u32, any::<u64>(), any::<String>()).prop_map(|(dev, ino, name)| Body::FileName { dev, ino, name }),
        1 => (0..3u64, any::<String>()).prop_map(|(cgroup, name)| Body::CgroupName { cgroup, name }),
        1 => (any::<u16>(), any::<u64>()).prop_map(|(cpu, count)| Body::Lost { cpu, count }),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(boottime, realtime)| Body::ClockSnapshot { boottime, realtime }),
        1 => (0..3u64, any::<String>(), any::<u64>()).prop_map(|(cgroup, name, value)| Body::Counter { cgroup, name, value }),
    ]
}

prop_compose! {
    pub(crate) fn an_event()(ts in any::<u64>(), cpu in any::<u16>(), body in a_body()) -> Event {
        Event { ts, cpu, body }
    }
}
