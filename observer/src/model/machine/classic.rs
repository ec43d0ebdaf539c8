//! The classical LRU, free running: active and inactive lists with refault distance (spec 11; scan targets from memory of that reclaim).

use super::core::{Core, ScanControl};
use super::folios::{Attr, Slot};
use super::pages::{Shadow, TOKEN_BITS};
use super::{Entering, GenerationPages, Policy, SWAP_CLUSTER_MAX};
use crate::model::access::Outcome;
use crate::model::classical::{ClassicalSizes, ClassicalState, NonresidentAge};
use crate::model::flags::FolioFlags;
use crate::model::tiers::MAX_SWAPPINESS;

/// One lruvec's active and inactive lists.
#[derive(Debug, Default)]
pub(crate) struct Classic {
    /// Pages, `[anon, file]`.
    inactive: [u64; 2],
    active: [u64; 2],
    age: NonresidentAge,
    /// Reclaim cost of each type, decaying.
    cost: [u64; 2],
    /// WORKINGSET_ACTIVATE at the end of the last reclaim.
    activates_seen: [u64; 2],
    candidates: Vec<Slot>,
}

/// List of a type.
const fn head(file: bool, active: bool) -> Slot {
    (file as u32) * 2 + active as u32
}

fn state(core: &Core, slot: Slot) -> ClassicalState {
    let word = core.folios.word(slot);
    let flags = word.flags;
    ClassicalState { on_list: word.gen_field != 0, active: flags.active(), referenced: flags.referenced(), workingset: flags.workingset() }
}

/// Pages left to scan of each list, `[anon, file] × [inactive, active]`.
type Targets = [[u64; 2]; 2];

impl Classic {
    fn sizes(&self, core: &Core) -> ClassicalSizes {
        ClassicalSizes { inactive: self.inactive, active: self.active, free_swap: core.swap_left() }
    }

    /// Writes a state back; list sizes follow the flags of a folio on a list.
    fn store(&mut self, core: &mut Core, slot: Slot, new: ClassicalState) {
        let old = state(core, slot);
        let attr = core.folios.attr(slot);
        let (t, pages) = (usize::from(attr.file()), u64::from(attr.pages()));
        if old.on_list {
            *self.size(old.active, t) -= pages;
        }
        if new.on_list {
            *self.size(new.active, t) += pages;
        }
        let word = core.folios.word_mut(slot);
        word.gen_field = u8::from(new.on_list);
        word.flags = FolioFlags::new(0, new.referenced, new.workingset, new.active);
    }

    fn size(&mut self, active: bool, t: usize) -> &mut u64 {
        if active { &mut self.active[t] } else { &mut self.inactive[t] }
    }

    /// Off its list with flags kept.
    fn isolate(&mut self, core: &mut Core, slot: Slot) -> ClassicalState {
        let mut now = state(core, slot);
        core.folios.unlink(slot);
        now.on_delete();
        self.store(core, slot, now);
        now
    }

    /// Onto the list that its flags name, at the young end.
    fn put_back(&mut self, core: &mut Core, slot: Slot, mut now: ClassicalState) {
        let attr = core.folios.attr(slot);
        now.on_insert(&attr.traits());
        self.store(core, slot, now);
        if now.on_list {
            core.folios.push_head(head(attr.file(), now.active), slot);
        }
    }

    fn note_cost(&mut self, t: usize, pages: u64) {
        self.cost[t] += pages;
        let lists: u64 = self.inactive.iter().chain(&self.active).sum();
        if self.cost[0] + self.cost[1] > lists / 4 {
            self.cost[0] /= 2;
            self.cost[1] /= 2;
        }
    }

    /// Whether reclaim may take from a type's active list: it outgrew the inactive one, or refaults were activated since the last time.
    fn may_deactivate(&self, core: &Core, file: bool) -> bool {
        let t = usize::from(file);
        core.counters.activates[t] != self.activates_seen[t] || self.sizes(core).inactive_is_low(file)
    }

    /// Each list's share of one pass.
    fn targets(&self, core: &Core, priority: u8) -> Targets {
        let swappiness = u64::from(core.swappiness().min(MAX_SWAPPINESS));
        let (total, max) = (self.cost[0] + self.cost[1], u64::from(MAX_SWAPPINESS));
        let trim_cache = self.inactive[1] >> priority > 0 && !self.may_deactivate(core, true);
        let share = |t: usize, size: u64| {
            let scan = size >> priority;
            if swappiness == 0 || priority > 0 && trim_cache {
                return if t == 1 { scan } else { 0 };
            }
            if priority == 0 {
                return scan;
            }
            // Each type by swappiness, and against its own cost; no type gets less than a third for cost alone.
            let weight = |t: usize, gain: u64| gain * (3 * total + 1) / (total + self.cost[t] + 1);
            let weights = [weight(0, swappiness), weight(1, max - swappiness)];
            scan * weights[t] / (weights[0] + weights[1]).max(1)
        };
        [0, 1].map(|t| [share(t, self.inactive[t]), share(t, self.active[t])])
    }

    /// Up to `pages` from the tail of an inactive list (spec 11).
    fn shrink_inactive(&mut self, core: &mut Core, file: bool, pages: u64) -> u64 {
        self.candidates.clear();
        let (list, mut taken) = (head(file, false), 0);
        while taken < pages
            && let Some(slot) = core.folios.tail(list)
        {
            taken += u64::from(core.folios.attr(slot).pages());
            self.isolate(core, slot);
            self.candidates.push(slot);
        }
        core.counters.scanned += taken;
        let candidates = std::mem::take(&mut self.candidates);
        let reclaimed = candidates.iter().map(|&slot| self.shrink_folio(core, slot)).sum();
        self.candidates = candidates;
        reclaimed
    }

    /// One candidate; pages reclaimed.
    fn shrink_folio(&mut self, core: &mut Core, slot: Slot) -> u64 {
        let young = core.take_young(slot);
        let attr = core.folios.attr(slot);
        let traits = attr.traits();
        let mut now = state(core, slot);
        let pages = u64::from(traits.pages);
        let outcome = now.on_candidate(&traits, u32::from(young));
        if matches!(outcome, Outcome::Reclaim | Outcome::ReclaimClean) {
            let room = traits.file || core.swap_left() >= pages;
            let unfit = traits.unevictable || traits.writeback || traits.file && traits.dirty;
            if !unfit && room {
                let shadow = Shadow::new(self.age.token(0), now.workingset);
                self.age.0 += pages;
                core.evict(slot, shadow);
                return pages;
            }
            core.folios.attr_mut(slot).set(if traits.unevictable { 0 } else { Attr::RECLAIM });
            now.active = true;
        }
        if now.active {
            self.age.0 += pages;
        }
        core.counters.rejected += 1;
        self.put_back(core, slot, now);
        0
    }

    /// Up to `pages` from the tail of an active list (spec 11).
    fn shrink_active(&mut self, core: &mut Core, file: bool, pages: u64) {
        let (list, mut taken) = (head(file, true), 0);
        while taken < pages
            && let Some(slot) = core.folios.tail(list)
        {
            let young = core.take_young(slot);
            let traits = core.folios.attr(slot).traits();
            taken += u64::from(traits.pages);
            let mut now = self.isolate(core, slot);
            now.on_shrink_active(&traits, u32::from(young));
            self.put_back(core, slot, now);
        }
    }
}

impl Policy for Classic {
    fn added(&mut self, _core: &mut Core, _slot: Slot, _how: &Entering) {}

    fn refault(&mut self, core: &mut Core, slot: Slot, shadow: Shadow, _in_fault: bool) {
        let token = shadow.token();
        let distance = self.age.distance(token.value, TOKEN_BITS, 0);
        let attr = core.folios.attr(slot);
        let (t, pages) = (usize::from(attr.file()), u64::from(attr.pages()));
        let mut now = state(core, slot);
        let effect = now.on_refault(attr.file(), distance, token.workingset, &self.sizes(core));
        self.store(core, slot, now);
        if effect.activate {
            self.age.0 += pages;
            core.counters.activates[t] += pages;
        }
        if effect.restore {
            core.counters.restores[t] += pages;
            self.note_cost(t, pages);
        }
    }

    fn stale_shadow(&self) -> Shadow {
        Shadow::new(self.age.token(0).wrapping_add(1 << (TOKEN_BITS - 1)), false)
    }

    fn insert(&mut self, core: &mut Core, slot: Slot) {
        let now = state(core, slot);
        self.put_back(core, slot, now);
    }

    fn activate(&mut self, core: &mut Core, slot: Slot) {
        if state(core, slot).on_list && !state(core, slot).active {
            let mut now = self.isolate(core, slot);
            now.active = true;
            self.put_back(core, slot, now);
            core.counters.promotions += 1;
        }
    }

    fn mark(&mut self, core: &mut Core, slot: Slot) {
        let traits = core.folios.attr(slot).traits();
        let mut now = state(core, slot);
        if !now.on_mark(&traits) {
            // Only PG_referenced can have changed.
            core.folios.word_mut(slot).flags.set_referenced(now.referenced);
            return;
        }
        self.age.0 += u64::from(traits.pages);
        if !now.on_list {
            // In an add batch: active once placed. The kernel looks in this CPU's batch only.
            if core.this_cpu().add.as_slice().contains(&slot) {
                self.store(core, slot, now);
            } else {
                core.folios.word_mut(slot).flags.set_referenced(false);
            }
            return;
        }
        core.folios.word_mut(slot).flags.set_referenced(false);
        if !core.folios.attr(slot).has(Attr::ACTIVATING) {
            core.folios.attr_mut(slot).set(Attr::ACTIVATING);
            if core.this_cpu().activate.push(slot) {
                super::drain_activate(self, core, core.cpu);
            }
        }
    }

    fn unlink(&mut self, core: &mut Core, slot: Slot) {
        self.isolate(core, slot);
    }

    fn rotate(&mut self, core: &mut Core, slot: Slot) {
        if state(core, slot).on_list {
            let mut now = self.isolate(core, slot);
            now.active = false;
            now.on_insert(&core.folios.attr(slot).traits());
            self.store(core, slot, now);
            core.folios.push_tail(head(core.folios.attr(slot).file(), false), slot);
        }
    }

    fn before_reclaim(&mut self, _core: &mut Core) {}

    fn shrink(&mut self, core: &mut Core, sc: &mut ScanControl) {
        let may_deactivate = [false, true].map(|file| self.may_deactivate(core, file));
        let targets = self.targets(core, sc.priority);
        let mut left = targets;
        let mut satisfied = false;
        while left[0][0] > 0 || left[1][0] > 0 || left[1][1] > 0 {
            for file in [false, true] {
                let t = usize::from(file);
                let inactive = left[t][0].min(SWAP_CLUSTER_MAX);
                left[t][0] -= inactive;
                if inactive > 0 {
                    sc.reclaimed += self.shrink_inactive(core, file, inactive);
                }
                let active = left[t][1].min(SWAP_CLUSTER_MAX);
                left[t][1] -= active;
                if active > 0 && may_deactivate[t] {
                    self.shrink_active(core, file, active);
                }
            }
            if sc.reclaimed < sc.goal || satisfied {
                continue;
            }
            // Enough: what is left of the type with more is scanned to the same part as the other, then the pass ends.
            let rest = left.map(|lists| lists[0] + lists[1]);
            if rest[0] == 0 || rest[1] == 0 {
                break;
            }
            let less = usize::from(rest[1] <= rest[0]);
            let more = 1 - less;
            let part = |t: usize| targets[t][0] + targets[t][1] + 1;
            let percent = rest[less] * 100 / part(less);
            left[less] = [0, 0];
            for (left, target) in left[more].iter_mut().zip(targets[more]) {
                let done = target - *left;
                *left = (target * (100 - percent) / 100).saturating_sub(done);
            }
            satisfied = true;
        }
        if core.swappiness() > 0 && self.sizes(core).inactive_is_low(false) {
            self.shrink_active(core, false, SWAP_CLUSTER_MAX);
        }
    }

    fn after_reclaim(&mut self, core: &mut Core) {
        self.activates_seen = core.counters.activates;
    }

    fn age(&mut self, _core: &mut Core) {}

    fn generations(&self) -> Option<GenerationPages> {
        None
    }
}
