//! Memory that swaps: which eviction a refault is of, and what can be said about it.

use proptest::prelude::*;

use super::{
    tests::{BLANK, CGROUP, Stream, shadow, word},
    *,
};
use crate::{
    model::{Add, FolioFlags, Traits},
    stream::event::{Clock, FolioEvent, Home, Identity, Kind},
};

/// A page of a process, and where it was swapped to.
const MAPPED: Identity = Identity { dev: 0, ino: 0xffff_8000_0000_0001, index: 5 };
const ENTRY: Identity = Identity { dev: observer_common::SWAP_DEV, ino: 0, index: 99 };
/// What is not mapped yet has an index at most.
const BARE: Identity = Identity { dev: 0, ino: 0, index: 5 };

fn anon(stream: &mut Stream, kind: Kind, folio: u64, identity: Identity, flags: u64) {
    stream.now += 1000;
    let body = Body::Folio(FolioEvent {
        kind,
        folio,
        flags: flags | 1 << 17,
        clock: Some(Clock { max_seq: stream.max_seq, window: [stream.window; 2] }),
        aux: 0,
        identity: Some(identity),
        home: Some(Home { cgroup: CGROUP, memcg_id: 77, node: 0, order: 0 }),
        shadow: if kind == Kind::Refault { shadow(77) } else { 0 },
    });
    stream.session.apply(&Event { ts: stream.now, cpu: 0, body });
}

/// The flags word of a folio that was put into a generation.
fn placed(seq: u32) -> u64 {
    word(u64::from(seq % 4 + 1), BLANK)
}

/// A folio of new memory comes, is put where its kernel puts it, and is swapped out.
fn swapped_out(stream: &mut Stream, folio: u64, seq: u32) {
    anon(stream, Kind::Add, folio, MAPPED, 0);
    anon(stream, Kind::Insert, folio, MAPPED, placed(seq));
    anon(stream, Kind::Evict, folio, ENTRY, 0);
}

#[test]
fn memory_that_comes_back_from_swap_is_known_by_its_swap_entry() {
    let mut stream = Stream::new(OwnRules::V7_3);
    let second = stream.max_seq - 1;
    // In M-1, where both rule sets put new memory.
    swapped_out(&mut stream, 64, second);
    assert_eq!(stream.fg().evictions.would_keep, 1);
    anon(&mut stream, Kind::Refault, 640, ENTRY, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 1, avoidable: 1 });
    // Another eviction, known only when its entry is read (the swap cache was bypassed).
    swapped_out(&mut stream, 128, second);
    anon(&mut stream, Kind::Refault, 704, Identity { index: 0, ..BARE }, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 2, judged: 1, avoidable: 1 });
    anon(&mut stream, Kind::SwapRead, 704, ENTRY, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 2, judged: 2, avoidable: 2 });
}

#[test]
fn an_entry_that_is_read_before_the_refault_keeps_its_verdict_for_it() {
    let mut stream = Stream::new(OwnRules::V7_3);
    let second = stream.max_seq - 1;
    swapped_out(&mut stream, 64, second);
    anon(&mut stream, Kind::Add, 640, BARE, 0);
    anon(&mut stream, Kind::SwapRead, 640, ENTRY, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 0, judged: 0, avoidable: 0 });
    anon(&mut stream, Kind::Refault, 640, ENTRY, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 1, avoidable: 1 });
}

/// Compressed swap on 6.12, as recorded there: the folio bypasses the swap cache, is refaulted and requested before
/// anything says which entry fills it, and may even be on a list by then.
#[test]
fn a_swap_entry_told_after_the_request_or_the_insertion_is_in_time() {
    for inserted_first in [false, true] {
        let mut stream = Stream::new(OwnRules::V6_12);
        let youngest = stream.max_seq;
        swapped_out(&mut stream, 64, youngest);
        anon(&mut stream, Kind::Refault, 640, BARE, 0);
        anon(&mut stream, Kind::Add, 640, BARE, 0);
        if inserted_first {
            anon(&mut stream, Kind::Insert, 640, BARE, placed(youngest - 1));
        }
        assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 0, avoidable: 0 });
        anon(&mut stream, Kind::SwapRead, 640, ENTRY, 0);
        if !inserted_first {
            anon(&mut stream, Kind::Insert, 640, MAPPED, placed(youngest - 1));
        }
        assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 1, avoidable: 1 });
        assert_eq!(stream.own().refaults.judged, 1);
        // Read once more (the first read failed, say): it is the same refault.
        anon(&mut stream, Kind::SwapRead, 640, ENTRY, 0);
        assert_eq!(stream.fg().refaults.judged, 1);
    }
}

#[test]
fn what_was_swapped_out_before_observer_came_is_not_judged() {
    let mut stream = Stream::new(OwnRules::V6_12);
    anon(&mut stream, Kind::Refault, 640, BARE, 0);
    anon(&mut stream, Kind::Add, 640, BARE, 0);
    anon(&mut stream, Kind::SwapRead, 640, ENTRY, 0);
    assert_eq!(stream.fg().refaults, frame::Refaults { actual: 1, judged: 0, avoidable: 0 });
}

proptest! {
    /// Why no rule set keeps anonymous memory that 6.12 evicts: there each fault, each young page-table entry and each rejection by
    /// reclaim leads to the youngest generation at once, so no rule set ever has such a folio in a younger one than the kernel.
    #[test]
    fn no_rule_set_has_swapped_memory_younger_than_6_12(steps in proptest::collection::vec(0_u8..7, 1..100)) {
        let sets: Vec<RuleSet> = ["6.12", "fg-v4", "fg-v3", "fg-v2", "7.3", "6.18"]
            .into_iter()
            .map(|name| RuleSet::new(name.to_owned(), Engine::Generations(Rules::by_name(name).unwrap())))
            .collect();
        let traits = Traits { mapped: true, pages: 1, ..Traits::default() };
        let mut window = Window { max_seq: 7, min_seq: [4; 2] };
        let mut states = vec![FolioState { seq: 7, on_list: true, flags: FolioFlags::default() }; sets.len()];
        for what in steps {
            match what {
                0 if window.min_seq[0] + 3 > window.max_seq => window.max_seq += 1,
                // The scan empties a generation; it never passes over the kernel's folio.
                1 if window.min_seq[0] + 1 < window.max_seq && states[0].seq > window.min_seq[0] as u32 => window.min_seq = [window.min_seq[0] + 1; 2],
                _ => {}
            }
            let tokens: Vec<_> = sets.iter().zip(&states).map(|(set, state)| set.token(state, false, Some(&window))).collect();
            for ((set, state), token) in sets.iter().zip(&mut states).zip(tokens) {
                set.catch_up(state, false, &window);
                match what {
                    2 => _ = set.walk(state, &traits, Some(&window), true),
                    3 => _ = set.walk(state, &traits, Some(&window), false),
                    4 => _ = set.protected(state, &traits, Some(&window), None),
                    5 => {
                        set.isolate(state);
                        set.put_back(state, &traits, Some(&window));
                        set.insert(state, &traits, Some(&window));
                    }
                    6 => {
                        *state = FolioState::default();
                        set.refault(state, token, false, Some(&window), true);
                        set.add(state, &traits, Add { in_fault: true, memalloc: false, credited: false });
                        set.insert(state, &traits, Some(&window));
                    }
                    _ => {}
                }
            }
            for (set, state) in sets.iter().zip(&states).skip(1) {
                prop_assert!(state.seq <= states[0].seq, "{} has it in {}, the kernel in {}", set.name, state.seq, states[0].seq);
            }
        }
    }
}
