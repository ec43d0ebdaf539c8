//! MGLRU reclaim: the outer loop of each variant, the scan, and what becomes of its candidates (spec 6).

use super::core::{Core, ScanControl};
use super::folios::{Attr, Slot};
use super::generations::{Generations, head};
use super::pages::Shadow;
use crate::model::access::Outcome;
use crate::model::aging::Sizes;
use crate::model::flags::FolioState;
use crate::model::rules::{DirtyScan, End, ReclaimStop, ScanBatch, Walk};
use crate::model::scan::Rejected;
use crate::model::tiers::evictable;

/// `MIN_LRU_BATCH`, pages per isolation.
const MIN_LRU_BATCH: u64 = 64;
/// `MAX_LRU_BATCH`, folios per scan.
const MAX_LRU_BATCH: u64 = 4096;

impl Generations {
    /// `try_to_shrink_lruvec` (spec 6.1).
    pub(crate) fn shrink_lruvec(&mut self, core: &mut Core, sc: &mut ScanControl) {
        match self.rules.reclaim_stop {
            ReclaimStop::Goal => self.shrink_to_goal(core, sc),
            ReclaimStop::Budget => self.shrink_by_budget(core, sc),
        }
    }

    fn should_age(&self, swappiness: u8, priority: u8) -> bool {
        self.rules.should_age(&self.window, swappiness, priority, || {
            let pages = |seq: u64| (0..2).filter(|&t| evictable(t == 1, swappiness)).map(|t| self.nr_pages[(seq % 4) as usize][t]).sum();
            let max_seq = self.window.max_seq;
            Sizes { young: pages(max_seq), old: pages(max_seq - 2), total: self.evictable_pages(swappiness) }
        })
    }

    /// 7.2 and later: ends with the batch that reaches the goal.
    fn shrink_to_goal(&mut self, core: &mut Core, sc: &mut ScanControl) {
        let mut budget = self.evictable_pages(core.swappiness()) >> sc.priority;
        while budget > 0 {
            let swappiness = core.swappiness();
            if self.should_age(swappiness, sc.priority) {
                self.inc_max_seq(core, swappiness);
            }
            let scanned = self.evict_folios(core, sc, budget.min(MIN_LRU_BATCH));
            if scanned == 0 || sc.reclaimed >= sc.goal {
                break;
            }
            budget = budget.saturating_sub(scanned);
        }
    }

    /// Up to 7.1: scans its share whatever it gets; a pass that aged does nothing else.
    fn shrink_by_budget(&mut self, core: &mut Core, sc: &mut ScanControl) {
        let mut total = 0;
        loop {
            let swappiness = core.swappiness();
            if self.should_age(swappiness, sc.priority) {
                self.inc_max_seq(core, swappiness);
                break;
            }
            let two_left = self.rules.evictable_min_seq(&self.window, swappiness) + 2 > self.window.max_seq;
            let budget = if two_left { 0 } else { self.evictable_pages(swappiness) >> sc.priority };
            if budget == 0 {
                break;
            }
            let scanned = self.evict_folios(core, sc, budget);
            total += scanned;
            if scanned == 0 || total >= budget {
                break;
            }
        }
    }

    /// `evict_folios`: one isolation and what becomes of it; pages scanned as the caller counts them.
    fn evict_folios(&mut self, core: &mut Core, sc: &mut ScanControl, nr_to_scan: u64) -> u64 {
        let swappiness = core.swappiness();
        if self.rules.min_seq_first {
            self.try_to_inc_min_seq(core, swappiness);
        }
        let mut scanned = self.isolate_folios(core, swappiness, nr_to_scan);
        if !self.rules.min_seq_first {
            scanned += u64::from(self.try_to_inc_min_seq(core, swappiness));
            if self.rules.evictable_min_seq(&self.window, swappiness) + 2 > self.window.max_seq {
                scanned = 0;
            }
        } else if scanned > 0 {
            self.try_to_inc_min_seq(core, swappiness);
        }
        if !self.isolated.is_empty() {
            sc.reclaimed += self.shrink_isolated(core);
        }
        scanned
    }

    /// `isolate_folios`: the chosen type, then the other (spec 4.4).
    fn isolate_folios(&mut self, core: &mut Core, swappiness: u8, nr_to_scan: u64) -> u64 {
        self.isolated.clear();
        let (first, limit) = self.rules.type_to_scan(&self.controller, &self.window, swappiness, true);
        let scan = self.scan_folios(core, first, limit, nr_to_scan);
        if scan > 0 || !evictable(!first, swappiness) {
            return scan;
        }
        let limit = self.rules.tier_limit(&self.controller, !first);
        self.scan_folios(core, !first, limit, nr_to_scan)
    }

    /// `scan_folios` over the one zone's oldest list (spec 6.2).
    fn scan_folios(&mut self, core: &mut Core, file: bool, tier_limit: usize, nr_to_scan: u64) -> u64 {
        if self.window.nr_gens(file) == 2 {
            return 0;
        }
        let mut remaining = match self.rules.scan_batch {
            ScanBatch::Fixed => MAX_LRU_BATCH,
            ScanBatch::Remaining => nr_to_scan.min(MAX_LRU_BATCH),
            ScanBatch::Small => nr_to_scan.min(MIN_LRU_BATCH),
        };
        let list = head(self.window.min_seq[usize::from(file)] as u32, file);
        let (mut scanned, mut isolated) = (0, 0);
        while remaining > 0 && isolated < MIN_LRU_BATCH {
            let Some(slot) = core.folios.tail(list) else { break };
            let pages = u64::from(core.folios.attr(slot).pages());
            scanned += pages;
            remaining -= 1;
            if !self.sort_folio(core, slot, tier_limit) {
                self.isolate(core, slot);
                isolated += pages;
            }
        }
        core.counters.scanned += isolated;
        // Up to 7.1, a list that ran out with nothing to show for it counts as not scanned.
        let counts = self.rules.min_seq_first || isolated > 0 || remaining == 0;
        if counts { scanned } else { 0 }
    }

    /// `sort_folio`: true if the folio went elsewhere (spec 6.3; one zone, so never its step 4).
    fn sort_folio(&mut self, core: &mut Core, slot: Slot, tier_limit: usize) -> bool {
        let attr = core.folios.attr(slot);
        let file = attr.file();
        if attr.has(Attr::UNEVICTABLE) {
            return false;
        }
        let mut state = self.state(core.folios.word(slot));
        if !self.window.is_oldest(state.seq, file) {
            core.folios.unlink(slot);
            core.folios.push_head(head(state.seq, file), slot);
            return true;
        }
        let end = if let Some(protection) = self.rules.protects(state.flags, tier_limit) {
            let pages = u64::from(attr.pages());
            core.counters.protected += pages;
            if let Some(tier) = self.rules.counts_protection(protection) {
                self.controller.protected[usize::from(file)][tier] += pages;
            }
            self.rules.protect_insert
        } else if self.rules.dirty_scan == DirtyScan::NextGeneration && (attr.has(Attr::WRITEBACK) || file && attr.has(Attr::DIRTY)) {
            core.folios.attr_mut(slot).set(Attr::RECLAIM);
            End::Head
        } else {
            return false;
        };
        self.rules.on_inc_gen(&mut state, file, &self.window);
        self.store(core, slot, &state);
        core.folios.unlink(slot);
        match end {
            End::Head => core.folios.push_head(head(state.seq, file), slot),
            End::Tail => core.folios.push_tail(head(state.seq, file), slot),
        }
        true
    }

    fn isolate(&mut self, core: &mut Core, slot: Slot) {
        let mut state = self.state(core.folios.word(slot));
        core.folios.unlink(slot);
        self.rules.on_isolate(&mut state);
        self.store(core, slot, &state);
        self.isolated.push(slot);
    }

    /// `shrink_folio_list`, twice for those that get another try, and the way back for the rest (spec 6.5, 6.6).
    fn shrink_isolated(&mut self, core: &mut Core) -> u64 {
        let mut reclaimed = 0;
        let mut candidates = std::mem::take(&mut self.isolated);
        let mut again = std::mem::take(&mut self.retry);
        for first_pass in [true, false] {
            for &slot in &candidates {
                let pages = u64::from(core.folios.attr(slot).pages());
                if self.shrink_folio(core, slot) {
                    reclaimed += pages;
                    continue;
                }
                core.counters.rejected += u64::from(first_pass);
                let mut state = self.state(core.folios.word(slot));
                match self.rules.on_reject(&mut state, &core.folios.attr(slot).traits(), &self.window, first_pass) {
                    Rejected::Retry => again.push(slot),
                    Rejected::PutBack => self.place(core, slot, state, false),
                }
            }
            candidates.clear();
            std::mem::swap(&mut candidates, &mut again);
        }
        (self.isolated, self.retry) = (candidates, again);
        reclaimed
    }

    /// One candidate: true if it was reclaimed (spec 6.5).
    fn shrink_folio(&mut self, core: &mut Core, slot: Slot) -> bool {
        let young = core.take_young(slot);
        if young {
            self.look_around(core, slot);
        }
        let attr = core.folios.attr(slot);
        let traits = attr.traits();
        let mut state = self.state(core.folios.word(slot));
        let outcome = self.rules.on_candidate(&mut state, &traits, u32::from(young));
        let unfit = traits.unevictable || traits.writeback || traits.file && traits.dirty;
        let taken = match outcome {
            Outcome::Keep | Outcome::Activate => false,
            Outcome::Reclaim | Outcome::ReclaimClean if unfit => {
                core.folios.attr_mut(slot).set(if traits.unevictable { 0 } else { Attr::RECLAIM });
                state.flags.set_active(true);
                false
            }
            Outcome::Reclaim | Outcome::ReclaimClean => {
                let room = traits.file || core.swap_left() >= u64::from(traits.pages);
                state.flags.set_active(!room);
                room
            }
        };
        self.store(core, slot, &state);
        if taken {
            self.remove_evicted(core, slot, state);
        }
        taken
    }

    /// Leaves a shadow in place of the folio (spec 7.1).
    fn remove_evicted(&mut self, core: &mut Core, slot: Slot, state: FolioState) {
        let attr = core.folios.attr(slot);
        let file = attr.file();
        let token = self.rules.evict(&state, &self.window, file);
        self.controller.evicted[usize::from(file)][self.rules.tier(state.flags)] += u64::from(attr.pages());
        core.evict(slot, Shadow::new(token.value, token.workingset));
    }

    /// Look-around of a candidate that was young (spec 3.2, L).
    pub(super) fn look_around(&mut self, core: &mut Core, slot: Slot) {
        let mut neighbours = std::mem::take(&mut self.neighbours);
        core.young_neighbours(slot, &mut neighbours);
        for &other in &neighbours {
            let traits = core.folios.attr(other).traits();
            let mut state = self.state(core.folios.word(other));
            // Later versions look only at folios on a list.
            if !state.on_list && self.rules.walk != Walk::Youngest {
                continue;
            }
            core.folios.attr_mut(other).clear(Attr::YOUNG);
            if self.walking || self.rules.walk == Walk::Count {
                let moved = self.rules.on_walk(&mut state, &traits, &self.window);
                core.counters.promotions += u64::from(moved.promoted());
                self.store(core, other, &state);
            } else {
                let activates = self.rules.on_set_refs(&mut state.flags, state.on_list, &traits);
                self.store(core, other, &state);
                if activates && state.on_list && self.window.age(state.seq) != 0 {
                    self.queue_activation(core, other);
                }
            }
        }
        self.neighbours = neighbours;
    }

    fn queue_activation(&mut self, core: &mut Core, slot: Slot) {
        if core.folios.attr(slot).has(Attr::ACTIVATING) {
            return;
        }
        core.folios.attr_mut(slot).set(Attr::ACTIVATING);
        if core.this_cpu().activate.push(slot) {
            super::drain_activate(self, core, core.cpu);
        }
    }
}
