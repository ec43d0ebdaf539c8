//! Properties over random event sequences: spec 9's invariants, and determinism.

use proptest::prelude::*;

use super::classic::Classic;
use super::tests::{check, check_generations, every_lru, machine};
use super::*;
use crate::model::rules::*;

/// Random events.
#[derive(Clone, Debug)]
enum Op {
    Read(u32),
    Touch(u32, bool, bool),
    Anon(u32),
    Add(u32, u8, bool),
    Map(u32),
    Dirty(u32),
    Cleaned(u32),
    Remove(u32),
    Age,
    Reclaim(u64),
    Cpu(usize),
    Drain,
    Limit(u64),
}

const FILE_KEYS: u32 = 900;

fn op() -> impl Strategy<Value = Op> {
    let file = 0..FILE_KEYS;
    prop_oneof![
        8 => file.clone().prop_map(Op::Read),
        6 => (0..60u32).prop_map(Op::Read),
        4 => (file.clone(), any::<bool>(), any::<bool>()).prop_map(|(key, fault, exec)| Op::Touch(key, fault, exec)),
        4 => (0..300u32).prop_map(|key| Op::Anon(1024 + key)),
        3 => (0..FILE_KEYS / 64, 0..6u8, any::<bool>()).prop_map(|(n, order, fault)| Op::Add(n * 64, order, fault)),
        2 => file.clone().prop_map(Op::Map),
        1 => file.clone().prop_map(Op::Dirty),
        2 => file.clone().prop_map(Op::Cleaned),
        1 => (0..1400u32).prop_map(Op::Remove),
        1 => Just(Op::Age),
        1 => (1..100u64).prop_map(Op::Reclaim),
        1 => (0..3usize).prop_map(Op::Cpu),
        1 => Just(Op::Drain),
        1 => (64..400u64).prop_map(Op::Limit),
    ]
}

fn apply(cache: &mut dyn Cache, op: &Op) {
    match *op {
        Op::Read(key) => {
            cache.read(key);
        }
        Op::Touch(key, in_fault, exec) => {
            cache.touch(key, Entering { in_fault, exec, ..Entering::READ });
        }
        Op::Anon(key) => {
            cache.touch(key, Entering::ANON);
        }
        Op::Add(key, order, in_fault) => cache.add(key, order, Entering { in_fault, ..Entering::READ }),
        Op::Map(key) => cache.map(key, true),
        Op::Dirty(key) => cache.dirty(key),
        Op::Cleaned(key) => cache.cleaned(key),
        Op::Remove(key) => cache.remove(key, key >= 1024),
        Op::Age => cache.age(1),
        Op::Reclaim(pages) => {
            cache.reclaim(pages);
        }
        Op::Cpu(cpu) => cache.run_on(cpu),
        Op::Drain => cache.drain(),
        Op::Limit(pages) => cache.set_limit(pages),
    }
}

fn config() -> impl Strategy<Value = Config> {
    (100..400u64, 1..4usize, prop::sample::select(vec![0u8, 1, 60, 200, 201]), prop::sample::select(vec![0u64, 80, 1 << 20]))
        .prop_map(|(limit, cpus, swappiness, swap_pages)| Config { limit, cpus, swappiness, swap_pages })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_after_every_event(
        which in 0..PRESETS.len(),
        width in 0..=2u8,
        config in config(),
        ops in prop::collection::vec(op(), 1..400),
    ) {
        let mut m = machine(Rules { width, ..*PRESETS[which] }, config);
        for op in &ops {
            apply(&mut m, op);
            check_generations(&m);
        }
        m.drain();
        check_generations(&m);
    }

    #[test]
    fn the_limit_holds(which in 0..=PRESETS.len(), keys in prop::collection::vec(0..FILE_KEYS, 200..1500)) {
        let mut cache = every_lru()[which].cache(Config::pages(150));
        for key in keys {
            cache.read(key);
            prop_assert!(cache.resident() <= 150);
        }
        prop_assert_eq!(cache.counters().over_limit, 0);
    }

    #[test]
    fn classical_invariants_hold_after_every_event(config in config(), ops in prop::collection::vec(op(), 1..400)) {
        let mut m = Machine::new(Classic::default(), config);
        for op in &ops {
            apply(&mut m, op);
            check(&m);
        }
    }

    #[test]
    fn the_same_events_give_the_same_result(which in 0..=PRESETS.len(), config in config(), ops in prop::collection::vec(op(), 1..300)) {
        let lru = every_lru()[which];
        let run = || {
            let mut cache = lru.cache(config);
            ops.iter().for_each(|op| apply(&mut *cache, op));
            (*cache.counters(), cache.generations(), (0..1400).map(|key| cache.is_resident(key)).collect::<Vec<_>>())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn generations_never_go_back_and_anon_stays_behind_file_in_6_12(config in config(), ops in prop::collection::vec(op(), 1..300)) {
        let mut m = machine(V6_12, Config { swappiness: 60, swap_pages: 1 << 20, ..config });
        let mut before = m.lru.window;
        for op in &ops {
            apply(&mut m, op);
            let now = m.lru.window;
            prop_assert!(now.max_seq >= before.max_seq && now.min_seq[0] >= before.min_seq[0] && now.min_seq[1] >= before.min_seq[1]);
            prop_assert!(now.min_seq[0] <= now.min_seq[1], "spec 9.1");
            before = now;
        }
    }
}
