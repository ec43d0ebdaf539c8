//! MGLRU under given rules: insertion, references, refaults and aging of one lruvec.

use super::core::{Core, ScanControl};
use super::folios::{Attr, Slot, Word};
use super::pages::Shadow;
use super::{Entering, GenerationPages, Policy};
use crate::model::flags::{FolioState, Window};
use crate::model::placement::{Add, Credit};
use crate::model::rules::{Encoding, FaultAdd, Fold, Rules, Walk};
use crate::model::shadow_entry::Token;
use crate::model::tiers::{Controller, evictable};

/// One lruvec's generations.
#[derive(Debug)]
pub(crate) struct Generations {
    pub(crate) rules: Rules,
    pub(crate) window: Window,
    /// Pages by generation index and type, as the flags say (spec 9.3).
    pub(crate) nr_pages: [[u64; 2]; 4],
    pub(crate) controller: Controller,
    credit: Credit,
    /// A walk object exists in this shrink call (spec 3.2).
    pub(crate) walking: bool,
    /// Scratch, kept to allocate nothing per event.
    pub(crate) isolated: Vec<Slot>,
    pub(crate) retry: Vec<Slot>,
    pub(crate) neighbours: Vec<Slot>,
}

/// The list of a generation and type.
pub(crate) const fn head(seq: u32, file: bool) -> Slot {
    (seq % 4) * 2 + file as u32
}

impl Generations {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            window: Window::INITIAL,
            nr_pages: [[0; 2]; 4],
            controller: Controller::default(),
            credit: Credit::default(),
            walking: false,
            isolated: Vec::with_capacity(128),
            retry: Vec::with_capacity(128),
            neighbours: Vec::with_capacity(64),
        }
    }

    /// A folio's state, its generation made absolute (spec 1.3).
    pub(crate) fn state(&self, word: Word) -> FolioState {
        let youngest = self.window.youngest();
        let seq = youngest.wrapping_sub(youngest.wrapping_sub(u32::from(word.gen_field).wrapping_sub(1)) % 4);
        FolioState { seq, on_list: word.gen_field != 0, flags: word.flags }
    }

    /// Writes flags and generation back and keeps the sizes.
    pub(crate) fn store(&mut self, core: &mut Core, slot: Slot, state: &FolioState) {
        let attr = core.folios.attr(slot);
        let word = core.folios.word_mut(slot);
        let new = Word { flags: state.flags, gen_field: state.gen_field() };
        if word.gen_field != new.gen_field {
            let (pages, t) = (u64::from(attr.pages()), usize::from(attr.file()));
            if word.gen_field != 0 {
                self.nr_pages[usize::from(word.gen_field) - 1][t] -= pages;
            }
            if new.gen_field != 0 {
                self.nr_pages[usize::from(new.gen_field) - 1][t] += pages;
            }
        }
        *word = new;
    }

    /// Onto the list that its flags choose.
    pub(crate) fn place(&mut self, core: &mut Core, slot: Slot, mut state: FolioState, reclaiming: bool) {
        let traits = core.folios.attr(slot).traits();
        self.rules.on_insert(&mut state, &traits, &self.window, reclaiming);
        self.store(core, slot, &state);
        if state.on_list {
            let head = head(state.seq, traits.file);
            if reclaiming { core.folios.push_tail(head, slot) } else { core.folios.push_head(head, slot) }
        }
    }

    /// Pages of the evictable types (spec 6.1: E).
    pub(crate) fn evictable_pages(&self, swappiness: u8) -> u64 {
        (0..2).filter(|&t| evictable(t == 1, swappiness)).map(|t| self.nr_pages.iter().map(|pages| pages[t]).sum::<u64>()).sum()
    }

    /// Pages of a type in its oldest generation (`nr_oldest_anon`, `nr_oldest_file`; spec D1).
    pub(crate) fn oldest_pages(&self, file: bool) -> u64 {
        let t = usize::from(file);
        self.nr_pages[(self.window.min_seq[t] % 4) as usize][t]
    }

    /// Aging's page-table walk: every mapped folio with the accessed bit, of the evictable types (spec 3.2, W).
    fn walk(&mut self, core: &mut Core, swappiness: u8) {
        for slot in core.folios.slots() {
            let attr = core.folios.attr(slot);
            if !attr.has_all(Attr::MAPPED | Attr::YOUNG) || !evictable(attr.file(), swappiness) {
                continue;
            }
            let mut state = self.state(core.folios.word(slot));
            if !state.on_list && self.rules.walk != Walk::Youngest {
                continue;
            }
            core.folios.attr_mut(slot).clear(Attr::YOUNG);
            let moved = self.rules.on_walk(&mut state, &attr.traits(), &self.window);
            core.counters.promotions += u64::from(moved.promoted());
            self.store(core, slot, &state);
        }
    }

    /// `try_to_inc_max_seq` with its walk, then `inc_max_seq` (spec 5.2, 5.3).
    pub(crate) fn inc_max_seq(&mut self, core: &mut Core, swappiness: u8) {
        self.walk(core, swappiness);
        self.walking = true;
        for file in [false, true] {
            if self.window.nr_gens(file) == 4 {
                self.inc_min_seq(core, file, swappiness);
            }
        }
        self.window.max_seq += 1;
        self.credit.on_age();
        core.counters.agings += 1;
    }

    /// Folds the oldest of four generations into the next (spec 5.4).
    fn inc_min_seq(&mut self, core: &mut Core, file: bool, swappiness: u8) {
        let t = usize::from(file);
        let oldest = self.window.min_seq[t] as u32;
        // A type that is not evictable keeps its folios in what becomes the youngest generation's index (spec 9.5).
        if evictable(file, swappiness) {
            let (from, to) = (head(oldest, file), head(oldest.wrapping_add(1), file));
            let mut cursor = core.folios.tail(from);
            while let Some(slot) = cursor {
                cursor = core.folios.younger(from, slot);
                let mut state = self.state(core.folios.word(slot));
                if state.seq != oldest {
                    // Promoted by its flags alone.
                    core.folios.unlink(slot);
                    let own = head(state.seq, file);
                    match self.rules.fold {
                        Fold::Reversed => core.folios.push_tail(own, slot),
                        Fold::Kept => core.folios.push_head(own, slot),
                    }
                    continue;
                }
                if self.rules.fold_counts
                    && let Some(tier) = self.fold_counted(state)
                {
                    self.controller.protected[t][tier] += u64::from(core.folios.attr(slot).pages());
                }
                self.rules.on_inc_gen(&mut state, file, &self.window);
                self.store(core, slot, &state);
                if self.rules.fold == Fold::Reversed {
                    core.folios.unlink(slot);
                    core.folios.push_tail(to, slot);
                }
            }
            core.folios.splice_tail(from, to);
        }
        self.controller.carry_over(file);
        self.window.min_seq[t] += 1;
    }

    /// Tier in which a folded folio counts as protected; saturated ones do not where the scan would not count them (spec 4.1).
    fn fold_counted(&self, state: FolioState) -> Option<usize> {
        match self.rules.protects(state.flags, 3) {
            Some(saturated) => self.rules.counts_protection(saturated),
            None => Some(self.rules.tier(state.flags)),
        }
    }

    /// Advances `min_seq` over empty generations (spec 5.6). True if it moved.
    pub(crate) fn try_to_inc_min_seq(&mut self, core: &Core, swappiness: u8) -> bool {
        let next = self.rules.next_min_seq(&self.window, swappiness, |file, seq| core.folios.is_empty(head(seq as u32, file)));
        let mut moved = false;
        for (t, next) in next.into_iter().enumerate() {
            if next != self.window.min_seq[t] {
                self.controller.carry_over(t == 1);
                self.window.min_seq[t] = next;
                moved = true;
            }
        }
        moved
    }
}

impl Policy for Generations {
    fn added(&mut self, core: &mut Core, slot: Slot, how: &Entering) {
        let attr = core.folios.attr(slot);
        let mut state = FolioState { flags: core.folios.word(slot).flags, ..Default::default() };
        let asks = self.rules.fault_add == FaultAdd::Credit && attr.file() && how.in_fault && !state.flags.workingset();
        let credited = asks && self.credit.spend(&self.rules, &mut core.this_cpu().credit, attr.pages());
        self.rules.on_add(&mut state, &attr.traits(), Add { in_fault: how.in_fault, memalloc: false, credited });
        core.folios.word_mut(slot).flags = state.flags;
    }

    fn refault(&mut self, core: &mut Core, slot: Slot, shadow: Shadow, in_fault: bool) {
        let attr = core.folios.attr(slot);
        let (file, pages) = (attr.file(), u64::from(attr.pages()));
        let (t, token): (_, Token) = (usize::from(file), shadow.token());
        if !self.rules.is_recent(token, &self.window, file) {
            return;
        }
        let mut state = FolioState { flags: core.folios.word(slot).flags, ..Default::default() };
        let effect = self.rules.on_refault(&mut state, token, in_fault);
        core.folios.word_mut(slot).flags = state.flags;
        self.controller.refaulted[t][effect.tier] += pages;
        core.counters.activates[t] += if effect.activate { pages } else { 0 };
        core.counters.restores[t] += if effect.restore { pages } else { 0 };
        if file && self.rules.fault_add == FaultAdd::Credit {
            let cap = self.nr_pages.iter().map(|pages| pages[1]).sum();
            self.credit.on_refault(&self.rules, attr.pages(), cap);
        }
    }

    fn stale_shadow(&self) -> Shadow {
        // Half the token's range away from any window to come.
        let mut then = self.window;
        then.min_seq = then.min_seq.map(|seq| seq.wrapping_add(1 << 20));
        let token = self.rules.evict(&FolioState::default(), &then, true);
        Shadow::new(token.value, token.workingset)
    }

    fn insert(&mut self, core: &mut Core, slot: Slot) {
        let state = self.state(core.folios.word(slot));
        self.place(core, slot, state, false);
    }

    fn activate(&mut self, core: &mut Core, slot: Slot) {
        let mut state = self.state(core.folios.word(slot));
        if state.on_list {
            core.folios.unlink(slot);
            let from = state.seq;
            let traits = core.folios.attr(slot).traits();
            let moved = self.rules.on_activate(&mut state, &traits, &self.window);
            core.counters.promotions += u64::from(moved.promoted());
            debug_assert_eq!(moved.from, from);
            self.store(core, slot, &state);
            core.folios.push_head(head(state.seq, traits.file), slot);
        }
    }

    fn mark(&mut self, core: &mut Core, slot: Slot) {
        let attr = core.folios.attr(slot);
        let word = core.folios.word(slot);
        if self.rules.encoding != Encoding::Count {
            // These never move a folio.
            self.rules.mark(&mut core.folios.word_mut(slot).flags, &attr.traits());
            return;
        }
        let mut state = self.state(word);
        let moved = self.rules.on_mark(&mut state, &attr.traits(), &self.window);
        if moved.promoted() {
            core.counters.promotions += 1;
            self.store(core, slot, &state);
        } else {
            core.folios.word_mut(slot).flags = state.flags;
        }
    }

    fn unlink(&mut self, core: &mut Core, slot: Slot) {
        let mut state = self.state(core.folios.word(slot));
        core.folios.unlink(slot);
        self.rules.on_delete(&mut state, &self.window);
        self.store(core, slot, &state);
    }

    fn rotate(&mut self, core: &mut Core, slot: Slot) {
        let mut state = self.state(core.folios.word(slot));
        if state.on_list {
            core.folios.unlink(slot);
            self.rules.on_delete(&mut state, &self.window);
            state.flags.set_active(false);
            self.place(core, slot, state, true);
        }
    }

    fn before_reclaim(&mut self, core: &mut Core) {
        let percent = u64::from(self.rules.proactive_percent);
        let anon: u64 = self.nr_pages.iter().map(|pages| pages[0]).sum();
        if anon > 0 && self.oldest_pages(false) * 100 < anon * percent {
            self.age(core);
        }
    }

    fn shrink(&mut self, core: &mut Core, sc: &mut ScanControl) {
        self.walking = false;
        self.shrink_lruvec(core, sc);
    }

    fn after_reclaim(&mut self, _core: &mut Core) {}

    fn age(&mut self, core: &mut Core) {
        let swappiness = core.swappiness();
        self.inc_max_seq(core, swappiness);
    }

    fn generations(&self) -> Option<GenerationPages> {
        let mut by_age = [[0; 2]; 4];
        for (age, pages) in by_age.iter_mut().enumerate() {
            *pages = self.nr_pages[(self.window.max_seq.wrapping_sub(age as u64) % 4) as usize];
        }
        Some(GenerationPages { window: self.window, by_age })
    }
}
