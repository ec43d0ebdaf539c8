//! What reclaim does to one folio: protect, isolate, give back; and the step into the next generation (spec 5.7, 6.3 to 6.6).

use super::access::Moved;
use super::flags::{FolioFlags, FolioState, Traits, Window};
use super::rules::{AfterProtect, Isolate, Reject, Rules, Saturation};

/// Why the scan moves a folio of the oldest generation on instead of isolating it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Its tier is above the controller's limit.
    Tier(usize),
    /// It reached the end of its encoding, in this tier.
    Saturated(usize),
}

/// Where a folio goes that reclaim gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Tried again in a second pass.
    Retry,
    /// Back to the lists, by its flags.
    PutBack,
}

impl Rules {
    /// Whether the scan protects a folio, given the highest unprotected tier (spec 6.3 step 3).
    pub const fn protects(&self, flags: FolioFlags, tier_limit: usize) -> Option<Protection> {
        let tier = self.tier(flags);
        if self.saturated(flags) {
            Some(Protection::Saturated(tier))
        } else if tier > tier_limit {
            Some(Protection::Tier(tier))
        } else {
            None
        }
    }

    /// Whether a protection enters the `protected` counters (spec 4.1).
    pub const fn counts_protection(&self, protection: Protection) -> Option<usize> {
        match protection {
            Protection::Saturated(_) if matches!(self.saturation, Saturation::RefsWorkingset) => None,
            Protection::Tier(tier) | Protection::Saturated(tier) => Some(tier),
        }
    }

    /// `folio_inc_gen`: out of the oldest generation into the next; elsewhere nothing (spec 5.7).
    pub fn on_inc_gen(&self, state: &mut FolioState, file: bool, window: &Window) -> Moved {
        let from = state.seq;
        if !state.on_list || !window.is_oldest(from, file) || window.age(from) == 0 {
            return Moved::stays(from);
        }
        state.seq = from.wrapping_add(1);
        self.after_protect(&mut state.flags);
        Moved { from, to: state.seq }
    }

    /// What a protected folio keeps of its references.
    pub(crate) const fn after_protect(&self, flags: &mut FolioFlags) {
        match self.after_protect {
            AfterProtect::Clear => flags.clear_refs(),
            AfterProtect::KeepWorkingset => flags.clear_referenced_and_mask(),
            AfterProtect::CapTwo => self.cap_count(flags, 2),
        }
    }

    /// Lock step: `min_seq` was seen to have passed a folio that is still resident, so a scan or a fold moved it up. Idempotent.
    pub fn catch_up(&self, state: &mut FolioState, file: bool, window: &Window) -> Moved {
        let from = state.seq;
        // Aging moves a folio by at most as many generations as exist; a larger gap says that the folio's history is not known.
        while state.on_list && window.age(state.seq) as i32 > window.oldest_age(file) as i32 {
            let behind = window.age(state.seq) - window.oldest_age(file);
            state.seq = state.seq.wrapping_add(behind.saturating_sub(3).max(1));
            self.after_protect(&mut state.flags);
        }
        Moved { from, to: state.seq }
    }

    /// Isolation of a reclaim candidate (spec 6.4).
    pub const fn on_isolate(&self, state: &mut FolioState) {
        let flags = &mut state.flags;
        match self.isolate {
            Isolate::DropReferenced if !flags.referenced() => flags.clear_refs(),
            Isolate::DropReferenced => flags.set_referenced(false),
            Isolate::DropStaleMask if !flags.referenced() => flags.set_mask(0),
            Isolate::DropStaleMask | Isolate::Nothing => {}
        }
        state.on_list = false;
    }

    /// What happens to the flags of an isolated folio that reclaim did not take, before its placement (spec 6.6).
    pub fn on_reject(&self, state: &mut FolioState, traits: &Traits, window: &Window, first_pass: bool) -> Rejected {
        let clean = !traits.dirty && !traits.writeback;
        let lifts = |state: &FolioState| self.place(state, traits, window, false) == window.min_seq[traits.file as usize];
        match self.reject {
            Reject::Youngest => {
                if traits.reclaim && !clean {
                    if state.flags.workingset() {
                        state.flags.set_referenced(true);
                    }
                    return Rejected::PutBack;
                }
                let flags = state.flags;
                if first_pass && clean && !traits.mapped && !flags.active() && !flags.referenced() && flags.mask() == 0 {
                    return Rejected::Retry;
                }
                state.flags = FolioFlags::new(0, false, false, true);
            }
            Reject::LiftOldest | Reject::CapAndLift => {
                if first_pass && clean && !traits.mapped && !state.flags.active() {
                    return Rejected::Retry;
                }
                if self.reject == Reject::CapAndLift {
                    self.cap_count(&mut state.flags, 2);
                }
                if lifts(state) {
                    if self.reject == Reject::LiftOldest {
                        state.flags.clear_referenced_and_mask();
                    }
                    state.flags.set_active(true);
                }
            }
        }
        Rejected::PutBack
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::Outcome;
    use super::super::rules::*;
    use super::*;

    const FOUR: Window = Window { max_seq: 3, min_seq: [0, 0] };
    const THREE: Window = Window { max_seq: 3, min_seq: [1, 1] };

    fn fg(refs: u32) -> FolioFlags {
        let mut flags = FolioFlags::default();
        Rules::set_count(&mut flags, refs);
        flags
    }

    /// Protection with tier limit 0 of a folio in the oldest generation: counted tier, and the state after.
    fn protect(rules: &Rules, flags: FolioFlags, limit: usize) -> Option<(Option<usize>, FolioState)> {
        let protection = rules.protects(flags, limit)?;
        let mut state = FolioState::on_list(0, flags);
        rules.on_inc_gen(&mut state, true, &FOUR);
        Some((rules.counts_protection(protection), state))
    }

    #[test]
    fn t4_protection_7_3() {
        let after = |flags| FolioState::on_list(1, flags);
        let clean = FolioFlags::default();
        let workingset = FolioFlags::new(0, false, true, false);
        assert_eq!(protect(&V7_3, FolioFlags::new(1, true, false, false), 0), Some((Some(1), after(clean))));
        for limit in 0..=3 {
            let saturated = FolioFlags::new(3, true, true, false);
            assert_eq!(protect(&V7_3, saturated, limit), Some((None, after(workingset))), "whatever the limit");
        }
        assert_eq!(protect(&V7_3, workingset, 0), Some((Some(3), after(workingset))));
        assert_eq!(protect(&V7_3, workingset, 3), None);
        assert_eq!(protect(&V7_3, FolioFlags::new(0, true, false, false), 0), None);
    }

    #[test]
    fn t4_protection_6_12() {
        let cleared = FolioState::on_list(1, FolioFlags::default());
        assert_eq!(protect(&V6_12, FolioFlags::new(3, true, true, false), 3), Some((Some(3), cleared)), "saturated is counted");
        assert_eq!(protect(&V6_12, FolioFlags::new(0, true, true, false), 0), Some((Some(1), cleared)), "edge 9.12");
    }

    #[test]
    fn t4_protection_fg() {
        for rules in [FG_V2, FG_V3, FG_V4] {
            let after = FolioState::on_list(1, fg(2));
            assert_eq!(protect(&rules, fg(7), 0), Some((Some(3), after)));
            assert_eq!(protect(&rules, fg(2), 0), Some((Some(1), after)));
            assert_eq!(protect(&rules, fg(1), 0), None);
            assert_eq!(protect(&rules, fg(7), 3), None, "no saturation rule");
        }
    }

    #[test]
    fn edge_9_11_workingset_is_protected_again_in_7_3() {
        let mut state = FolioState::on_list(0, FolioFlags::new(0, false, true, false));
        V7_3.on_inc_gen(&mut state, true, &FOUR);
        assert_eq!(V7_3.protects(state.flags, 2), Some(Protection::Tier(3)));
        assert_eq!(V7_3.protects(state.flags, 3), None);
        let mut saturated = FolioState::on_list(0, FolioFlags::new(3, true, true, false));
        V7_3.on_inc_gen(&mut saturated, true, &FOUR);
        assert_eq!(V7_3.refs(saturated.flags), 0);
    }

    #[test]
    fn edge_9_13_counts_of_two_and_more_never_fall_below_two_by_protection() {
        for refs in 2..=7 {
            let mut state = FolioState::on_list(0, fg(refs));
            FG_V3.on_inc_gen(&mut state, true, &FOUR);
            assert_eq!(FG_V3.refs(state.flags), 2);
        }
    }

    #[test]
    fn inc_gen_leaves_younger_generations_alone() {
        for rules in PRESETS {
            let mut state = FolioState::on_list(2, FolioFlags::new(1, true, true, false));
            assert!(!rules.on_inc_gen(&mut state, true, &FOUR).promoted());
            assert_eq!(state, FolioState::on_list(2, FolioFlags::new(1, true, true, false)));
        }
    }

    #[test]
    fn catch_up_is_idempotent_and_bounded() {
        for rules in PRESETS {
            let mut state = FolioState::on_list(0, FolioFlags::new(1, true, true, false));
            let window = Window { max_seq: 5, min_seq: [2, 3] };
            assert_eq!(rules.catch_up(&mut state, true, &window).to, 3);
            let once = state;
            rules.catch_up(&mut state, true, &window);
            assert_eq!(state, once);
            let far = Window { max_seq: 1 << 30, min_seq: [(1 << 30) - 2; 2] };
            assert_eq!(u64::from(rules.catch_up(&mut state, true, &far).to), far.min_seq[1]);
        }
    }

    #[test]
    fn isolation_by_variant() {
        let isolate = |rules: &Rules, flags| {
            let mut state = FolioState::on_list(0, flags);
            rules.on_isolate(&mut state);
            assert_eq!(state.gen_field(), 0);
            state.flags
        };
        assert_eq!(isolate(&V6_12, FolioFlags::new(2, false, true, false)), FolioFlags::default());
        assert_eq!(isolate(&V6_12, FolioFlags::new(2, true, true, false)), FolioFlags::new(2, false, true, false));
        assert_eq!(isolate(&V7_3, FolioFlags::new(2, false, true, false)), FolioFlags::new(0, false, true, false));
        assert_eq!(isolate(&V7_3, FolioFlags::new(2, true, false, false)), FolioFlags::new(2, true, false, false));
        assert_eq!(isolate(&FG_V3, fg(7)), fg(7));
    }

    const MAPPED: Traits = Traits { mapped: true, ..Traits::FILE };

    /// Generation and flags after rejection and insertion.
    fn reject(rules: &Rules, flags: FolioFlags, traits: &Traits, window: &Window) -> (u32, FolioFlags) {
        let mut state = FolioState { flags, ..Default::default() };
        assert_eq!(rules.on_reject(&mut state, traits, window, true), Rejected::PutBack);
        rules.on_insert(&mut state, traits, window, false);
        (state.seq, state.flags)
    }

    #[test]
    fn t11_rejection_7_3() {
        let referenced = FolioFlags::new(0, true, false, false);
        assert_eq!(reject(&V7_3, referenced, &MAPPED, &THREE), (2, FolioFlags::default()));
        assert_eq!(reject(&V7_3, referenced, &MAPPED, &FOUR), (1, referenced));
        assert_eq!(reject(&V6_18, referenced, &MAPPED, &FOUR), (2, FolioFlags::default()), "row 5 tests workingset only");
    }

    #[test]
    fn t11_rejection_fg() {
        for rules in [FG_V2, FG_V3, FG_V4] {
            assert_eq!(reject(&rules, fg(1), &MAPPED, &FOUR), (2, fg(1)));
            assert_eq!(reject(&rules, fg(7), &MAPPED, &FOUR), (1, fg(2)), "capped");
            assert_eq!(reject(&rules, fg(2), &MAPPED, &THREE), (3, fg(2)));
        }
    }

    #[test]
    fn t11_rejection_6_12() {
        assert_eq!(reject(&V6_12, FolioFlags::new(0, true, false, false), &MAPPED, &FOUR), (3, FolioFlags::default()));
        let dirty = Traits { reclaim: true, dirty: true, ..Traits::FILE };
        assert_eq!(reject(&V6_12, FolioFlags::new(0, false, true, false), &dirty, &FOUR), (2, FolioFlags::new(0, true, true, false)));
    }

    #[test]
    fn spec_6_6_a_cold_fg_folio_seen_twice_at_eviction() {
        let mut state = FolioState::default();
        assert_eq!(FG_V3.on_candidate(&mut state, &MAPPED, 1), Outcome::Keep);
        assert_eq!(reject(&FG_V3, state.flags, &MAPPED, &FOUR), (2, fg(1)));
        let mut state = FolioState { flags: fg(1), ..Default::default() };
        assert_eq!(FG_V3.on_candidate(&mut state, &MAPPED, 1), Outcome::Activate);
        assert_eq!(reject(&FG_V3, state.flags, &MAPPED, &FOUR), (3, fg(2)));
        let exec = Traits { exec: true, ..MAPPED };
        let mut state = FolioState::default();
        assert_eq!(FG_V3.on_candidate(&mut state, &exec, 1), Outcome::Activate);
        assert_eq!(reject(&FG_V3, state.flags, &exec, &FOUR), (2, fg(1)));
    }

    #[test]
    fn section_16_what_reclaim_puts_back_never_lands_in_the_oldest() {
        for window in [FOUR, THREE] {
            for refs in 0..=7 {
                for traits in [MAPPED, Traits { dirty: true, ..Traits::FILE }, Traits { swapcache: true, ..Traits::ANON }] {
                    let (seq, flags) = reject(&FG_V3, fg(refs), &traits, &window);
                    assert!(u64::from(seq) > window.min_seq[1] && FG_V3.refs(flags) <= 2);
                }
            }
        }
    }

    #[test]
    fn clean_unmapped_folios_get_a_second_pass_only_once() {
        for rules in PRESETS {
            let mut state = FolioState::default();
            assert_eq!(rules.on_reject(&mut state, &Traits::FILE, &FOUR, true), Rejected::Retry);
            assert_eq!(rules.on_reject(&mut state, &Traits::FILE, &FOUR, false), Rejected::PutBack);
            assert!(state.flags.active());
        }
    }
}
