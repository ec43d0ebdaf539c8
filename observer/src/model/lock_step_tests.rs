//! Properties of the rules in lock step: one folio under a moving clock, whatever happens to it.

use proptest::prelude::*;

use super::access::Outcome;
use super::flags::{FolioFlags, FolioState, Traits, Window};
use super::placement::{Add, Reset};
use super::rules::{PRESETS, Rules};

#[derive(Clone, Debug)]
enum Op {
    Add(Add),
    Insert(bool),
    Mark,
    Walk,
    LookAround,
    SetRefs,
    Candidate(u32),
    Isolate,
    Reject(bool),
    IncGen,
    Delete,
    Activate,
    Deactivate,
    Lazyfree,
    Reset(bool),
    EvictRefault(bool),
    Age,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(in_fault, memalloc, credited)| Op::Add(Add {
            in_fault,
            memalloc,
            credited
        })),
        any::<bool>().prop_map(Op::Insert),
        Just(Op::Mark),
        Just(Op::Mark),
        Just(Op::Walk),
        Just(Op::LookAround),
        Just(Op::SetRefs),
        (0..3u32).prop_map(Op::Candidate),
        Just(Op::Isolate),
        any::<bool>().prop_map(Op::Reject),
        Just(Op::IncGen),
        Just(Op::Delete),
        Just(Op::Activate),
        Just(Op::Deactivate),
        Just(Op::Lazyfree),
        any::<bool>().prop_map(Op::Reset),
        any::<bool>().prop_map(Op::EvictRefault),
        Just(Op::Age),
    ]
}

fn traits() -> impl Strategy<Value = Traits> {
    (0..512u32).prop_map(|bits| {
        let bit = |n: u32| bits >> n & 1 != 0;
        Traits {
            file: bit(0),
            swapcache: bit(1) && !bit(0),
            reclaim: bit(2),
            dirty: bit(3),
            writeback: bit(4),
            unevictable: bit(5) && bit(6),
            dropbehind: bit(6) && bit(7),
            exec: bit(7),
            mapped: bit(8),
            pages: 1,
        }
    })
}

fn step(rules: &Rules, state: &mut FolioState, traits: &mut Traits, window: &mut Window, op: &Op) {
    match *op {
        Op::Add(add) if !state.on_list => rules.on_add(state, traits, add),
        Op::Insert(reclaiming) if !state.on_list => rules.on_insert(state, traits, window, reclaiming),
        Op::Mark => drop(rules.on_mark(state, traits, window)),
        Op::Walk => drop(rules.on_walk(state, traits, window)),
        Op::LookAround => drop(rules.on_look_around(state, traits, window)),
        Op::SetRefs => drop(rules.on_set_refs(&mut state.flags, state.on_list, traits)),
        Op::Candidate(young) if !state.on_list => {
            let activated = rules.on_candidate(state, traits, young) == Outcome::Activate;
            assert!(!activated || state.flags.active());
        }
        Op::Isolate if state.on_list => rules.on_isolate(state),
        Op::Reject(first) if !state.on_list => drop(rules.on_reject(state, traits, window, first)),
        Op::IncGen => drop(rules.on_inc_gen(state, traits.file, window)),
        Op::Delete => rules.on_delete(state, window),
        Op::Activate => drop(rules.on_activate(state, traits, window)),
        Op::Deactivate => drop(rules.on_deactivate(state, traits, window)),
        Op::Lazyfree if !traits.file => drop(rules.on_lazyfree(state, traits, window)),
        Op::Reset(pageout) => rules.on_reset_refs(&mut state.flags, if pageout { Reset::Pageout } else { Reset::ClearRefs }),
        Op::EvictRefault(in_fault) if !state.on_list => {
            let token = rules.evict(state, window, traits.file);
            assert!(rules.is_recent(token, window, traits.file), "evicted now, recent now");
            *state = FolioState::default();
            let effect = rules.on_refault(state, token, in_fault);
            assert!(effect.tier <= 3);
        }
        Op::Age => {
            window.max_seq += 1;
            for min_seq in &mut window.min_seq {
                *min_seq = (*min_seq).max(window.max_seq - 3);
            }
            rules.catch_up(state, traits.file, window);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_folio_stays_within_its_encoding_and_window(
        which in 0..PRESETS.len(),
        width in 0..=2u8,
        start in prop::sample::select(vec![3u64, 1000, (1 << 32) - 2]),
        mut traits in traits(),
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let rules = Rules { width, ..*PRESETS[which] };
        let mut state = FolioState::default();
        let mut window = Window { max_seq: start, min_seq: [start - 3; 2] };
        for op in &ops {
            let before = state;
            step(&rules, &mut state, &mut traits, &mut window, op);
            prop_assert!(rules.refs(state.flags) <= rules.max_refs() && state.flags.mask() <= rules.mask_max());
            prop_assert!(rules.tier(state.flags) <= 3 && state.gen_field() <= 4);
            prop_assert_eq!(state.gen_field() == 0, !state.on_list);
            if state.on_list {
                prop_assert!(window.age(state.seq) <= window.oldest_age(traits.file), "{:?}: {:?} to {:?} in {:?}", op, before, state, window);
                prop_assert!(!state.flags.active(), "spec 9.2");
            }
        }
    }

    #[test]
    fn every_state_survives_the_shadow_as_far_as_its_encoding_says(which in 0..PRESETS.len(), bits in 0..16u8) {
        let rules = PRESETS[which];
        let mask = bits & 3 & rules.mask_max();
        let state = FolioState { flags: FolioFlags::new(mask, bits & 4 != 0, bits & 8 != 0, false), ..Default::default() };
        let window = Window::INITIAL;
        let (refs, workingset) = rules.token_refs(rules.evict(&state, &window, true));
        match rules.encoding {
            super::rules::Encoding::Count | super::rules::Encoding::MaskWorkingset => prop_assert_eq!(refs, rules.refs(state.flags)),
            super::rules::Encoding::ReferencedMask => {
                prop_assert_eq!((refs, workingset), (rules.refs(state.flags).max(1), state.flags.workingset()));
            }
        }
    }
}
