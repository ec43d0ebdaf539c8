//! One folio event: find the folio, bring its states up to the clock, predict, score, apply (design.md, "Predicted and
//! actual").

use observer_common::{inc_gen, sweep, task, walk};

use crate::{
    model::{Add, FolioFlags, FolioState, Window},
    session::{
        Session,
        clock::absolute,
        decode::Seen,
        rule_set::{Engine, RuleSet},
        sampling::{Of, unit_of},
        shmem::FirstWrite,
        world::{Folio, NOBODY, Slot, is_anon},
    },
    stream::{
        event::{FolioEvent, Identity, Kind},
        header::Lru,
    },
};

/// The kernel's own rule set.
pub(super) const OWN: usize = 0;

/// What a folio event tells once its folio is known.
pub(super) struct Moment {
    pub(super) slot: Slot,
    pub(super) seen: Seen,
    /// The kernel's state by its flags and clock.
    pub(super) actual: FolioState,
    pub(super) window: Option<Window>,
    /// A prediction stands: the folio was followed without a gap.
    pub(super) known: bool,
    /// What told of it.
    pub(super) kind: Kind,
}

impl Session {
    pub(super) fn folio(&mut self, event: &FolioEvent, cpu: u16) {
        if self.left_out(event) {
            return;
        }
        match event.kind {
            Kind::LookAround => return,
            Kind::Add => self.calibrator.request(event.folio, event.flags),
            Kind::Insert => {
                let seen = self.decoder.read(event.flags, 1);
                self.calibrator.insertion(event.folio, event.flags, event.clock, seen.traits.file, seen.traits.unevictable);
                self.watch_switch(&seen);
            }
            _ => {}
        }
        if event.kind == Kind::SwapRead {
            self.on_swap_read(event);
            return;
        }
        let Some((slot, history)) = self.find(event) else {
            self.untracked(event);
            return;
        };
        let moment = self.moment(event, slot, history);
        if self.nested_mark(&moment, cpu) {
            return;
        }
        self.first_write(&moment);
        self.follow_residency(&moment);
        if self.free_run.is_some() {
            self.tell(event, &moment, history);
        }
        match event.kind {
            Kind::Add => self.on_add(&moment, event, cpu),
            Kind::Insert => self.on_insert(&moment, history),
            Kind::Mark => self.on_access(&moment, |set, state, moment| set.mark(state, &moment.seen.traits, moment.window.as_ref())),
            Kind::Walk => self.on_walk(&moment, event.aux & walk::AGING != 0),
            Kind::SetRefs => self.on_set_refs(&moment, cpu),
            Kind::IncGen => self.on_inc_gen(&moment, event.aux & inc_gen::DONE != 0),
            Kind::Activate => self.on_activate(&moment),
            Kind::Refault => self.on_refault(&moment, event),
            Kind::Evict => self.on_evict(&moment, event),
            Kind::Census | Kind::Sweep if !history => self.on_first_sight(&moment),
            Kind::Census | Kind::Sweep => self.on_sweep(&moment, event),
            Kind::CacheAdd => self.score(&moment),
            Kind::Delete => {
                self.score(&moment);
                self.end_residency(slot);
            }
            _ => {}
        }
    }

    /// The slot of an event's folio, and whether its history is known: a birth's is, being empty.
    fn find(&mut self, event: &FolioEvent) -> Option<(Slot, bool)> {
        let begins = matches!(event.kind, Kind::Add | Kind::Refault | Kind::CacheAdd);
        if let Some(slot) = self.world.slot(event.folio) {
            let Some(identity) = event.identity else { return Some((slot, true)) };
            let held = self.world.folio(slot).identity;
            // What was torn from its mapping has no identity any more, but still is the same folio.
            if held == identity || identity.ino == 0 {
                return Some((slot, true));
            }
            // Nor has what came from swap, before it is mapped; and anon memory may go over to another process.
            let moved = is_anon(&held) && is_anon(&identity) && held.index == identity.index && !begins;
            // A page that was removed while it waited for its insertion is inserted nameless, and free at once: who comes empty to its
            // address is another.
            let empty = || self.decoder.read(event.flags, 1).uptodate == Some(false);
            let reused = event.kind == Kind::Add && self.rules[OWN].state(slot).on_list && empty();
            if (held.ino == 0 || moved) && !reused {
                self.world.identify(slot, identity);
                return Some((slot, true));
            }
            // The address holds something else now: the old residency ended unseen.
            self.end_residency(slot);
        }
        // What a sweep finds where a folio was followed is a new one if it is on a list.
        let found = event.kind == Kind::Sweep && event.aux & sweep::FREE == 0 && self.decoder.read(event.flags, 1).lru;
        if !begins && !found && !matches!(event.kind, Kind::Insert | Kind::Census) {
            return None;
        }
        let (identity, home) = (event.identity?, event.home?);
        let slot = self.begin(event, identity, &home)?;
        Some((slot, begins))
    }

    fn begin(&mut self, event: &FolioEvent, identity: Identity, home: &crate::stream::event::Home) -> Option<Slot> {
        let lruvec = self.world.home(home);
        self.grow_lruvecs(lruvec);
        let file = self.world.files.of(&identity, home.cgroup, lruvec);
        self.begin_files_anew();
        let seen = self.decoder.read(event.flags, 1);
        let folio = Folio {
            address: event.folio,
            identity,
            lruvec,
            file,
            order: home.order,
            is_file: seen.traits.file,
            epoch: self.epoch,
            nested: NOBODY,
            first_write: FirstWrite::expected(event, &identity, &seen),
            promoted: 0,
        };
        let slot = self.world.begin(folio)?;
        if self.actual.len() <= slot as usize {
            self.actual.resize(slot as usize + 1, FolioState::default());
        }
        self.actual[slot as usize] = FolioState::default();
        for set in &mut self.rules {
            set.grow(slot, lruvec, file);
            set.set(slot, FolioState::default());
        }
        self.weigh(slot, true);
        Some(slot)
    }

    /// An event of a folio whose beginning was not seen.
    fn untracked(&mut self, event: &FolioEvent) {
        if matches!(event.kind, Kind::Delete | Kind::Sweep) {
            return;
        }
        let seen = self.decoder.read(event.flags, 1);
        self.tally.count(event.kind, seen.traits.file, None);
        if let (Kind::Evict, Some(home)) = (event.kind, event.home) {
            let lruvec = self.world.home(&home);
            self.grow_lruvecs(lruvec);
            let pages = 1 << home.order.min(20);
            self.world.lruvec_mut(lruvec).evictions += pages;
            self.sampling.count(|| unit_of(event, seen.traits.file), Of::Evicted, pages);
        }
    }

    pub(super) fn window_of(&self, folio: &Folio) -> Option<Window> {
        match self.header.lru {
            Lru::Mglru => self.world.lruvec(folio.lruvec).window,
            // No kernel clock: generations stand still where the kernel has none.
            Lru::Classical => Some(Window::INITIAL),
        }
    }

    fn moment(&mut self, event: &FolioEvent, slot: Slot, history: bool) -> Moment {
        if let Some(home) = &event.home {
            let lruvec = self.world.home(home);
            self.grow_lruvecs(lruvec);
            self.rehome(slot, lruvec);
            self.resize(slot, home.order);
        }
        let folio = *self.world.folio(slot);
        if let Some(clock) = event.clock {
            let advance = self.world.lruvec_mut(folio.lruvec).tick(clock);
            self.follow(folio.lruvec, advance);
        }
        let window = self.window_of(&folio);
        let seen = self.decoder.read(event.flags, folio.pages());
        if seen.traits.file != folio.is_file {
            self.uncount(slot);
            self.weigh(slot, false);
            self.world.folio_mut(slot).is_file = seen.traits.file;
            self.weigh(slot, true);
            self.forget(slot);
        }
        if let Some(clock) = event.clock {
            self.calibrator.sighting(event.flags, clock, seen.traits.file);
        }
        let known = history && self.world.folio(slot).epoch == self.epoch && !self.switch.off;
        self.world.folio_mut(slot).epoch = self.epoch;
        let mut actual = self.state_of(&seen, window.as_ref());
        if self.header.lru == Lru::Classical && matches!(event.kind, Kind::Insert | Kind::Activate) {
            // PG_lru is set a moment after the insertion that reports it (spec 8.4).
            actual.on_list = !seen.traits.unevictable;
        }
        Moment { slot, seen, actual, window, known, kind: event.kind }
    }

    /// The state a flags word shows.
    fn state_of(&self, seen: &Seen, window: Option<&Window>) -> FolioState {
        let off = FolioState { seq: 0, on_list: false, flags: seen.flags };
        match (self.header.lru, window) {
            (Lru::Mglru, Some(window)) => match absolute(seen.gen_field, window.max_seq) {
                Some(seq) => FolioState::on_list(seq, seen.flags),
                None => off,
            },
            (Lru::Mglru, None) => off,
            (Lru::Classical, _) => FolioState { on_list: seen.lru, ..off },
        }
    }

    /// Applies an effect of one rule set and keeps its counts.
    pub(super) fn step(&mut self, set: usize, moment: &Moment, effect: impl Fn(&RuleSet, &mut FolioState, &Moment) -> u32) {
        let before = self.rules[set].state(moment.slot);
        let mut state = before;
        if let Some(window) = &moment.window {
            self.rules[set].catch_up(&mut state, moment.seen.traits.file, window);
        }
        let risen = effect(&self.rules[set], &mut state, moment);
        self.replace(set, moment.slot, state);
        if risen > 0 {
            self.promoted(moment.slot, Some(set));
        }
    }

    /// Gives a folio another state under one rule set; its counts follow.
    pub(super) fn replace(&mut self, set: usize, slot: Slot, state: FolioState) {
        let before = self.rules[set].state(slot);
        if before == state {
            return;
        }
        let folio = *self.world.folio(slot);
        let window = self.window_of(&folio);
        let set = &mut self.rules[set];
        let (from, to) = (set.place(&before, folio.is_file, window.as_ref()), set.place(&state, folio.is_file, window.as_ref()));
        set.set(slot, state);
        if from == to {
            return;
        }
        let side = &mut set.sides[folio.lruvec as usize];
        if let Some(place) = from {
            side.count(place, folio.is_file, folio.pages(), -1);
        }
        if let Some(place) = to {
            side.count(place, folio.is_file, folio.pages(), 1);
        }
    }

    /// Takes what the flags show as the kernel's state; a rise on a list is a promotion unless it is an insertion.
    pub(super) fn observe(&mut self, moment: &Moment, insertion: bool) {
        let slot = moment.slot;
        let before = self.actual[slot as usize];
        let now = moment.actual;
        self.count_actual(slot, &before, -1);
        self.actual[slot as usize] = now;
        self.count_actual(slot, &now, 1);
        let rose = before.on_list
            && now.on_list
            && match self.header.lru {
                Lru::Mglru => (now.seq.wrapping_sub(before.seq) as i32) > 0,
                Lru::Classical => now.flags.active() && !before.flags.active(),
            };
        if rose && !insertion {
            self.promoted(slot, None);
        }
    }

    fn count_actual(&mut self, slot: Slot, state: &FolioState, sign: i64) {
        let folio = *self.world.folio(slot);
        let window = self.window_of(&folio);
        let place = self.rules[OWN].place(state, folio.is_file, window.as_ref());
        if let Some(place) = place {
            self.actual_sides[folio.lruvec as usize].count(place, folio.is_file, folio.pages(), sign);
        }
    }

    /// Compares the own prediction with the flags, then takes the flags: every score is one prediction.
    pub(super) fn score(&mut self, moment: &Moment) {
        self.score_as(moment, false);
    }

    fn score_as(&mut self, moment: &Moment, insertion: bool) {
        self.step(OWN, moment, |_, _, _| 0);
        let set = &self.rules[OWN];
        let readable = self.header.lru == Lru::Classical || moment.window.is_some();
        let verdict = (moment.known && readable).then(|| set.same(&set.state(moment.slot), &moment.actual));
        self.tally.count(moment.kind, moment.seen.traits.file, verdict);
        if let Some(agrees) = verdict {
            let file = moment.seen.traits.file;
            let (scored, agree) = if file { (Of::FileScored, Of::FileAgree) } else { (Of::AnonScored, Of::AnonAgree) };
            for (of, n) in [(Of::Scored, 1), (scored, 1), (Of::Agree, u64::from(agrees)), (agree, u64::from(agrees))] {
                self.sample(moment.slot, of, n);
            }
        }
        self.adopt(moment);
        self.observe(moment, insertion);
    }

    /// The own rule set takes what was seen.
    pub(super) fn adopt(&mut self, moment: &Moment) {
        let mut state = moment.actual;
        if !state.on_list {
            state.seq = self.rules[OWN].state(moment.slot).seq;
        }
        self.replace(OWN, moment.slot, state);
    }

    /// Flags before the effect: score, then apply to all.
    fn on_access(&mut self, moment: &Moment, effect: impl Fn(&RuleSet, &mut FolioState, &Moment) -> u32 + Copy) {
        self.score(moment);
        let file = self.world.folio(moment.slot).file;
        self.world.files.file_mut(file).accesses += 1;
        for set in 0..self.rules.len() {
            self.step(set, moment, effect);
        }
    }

    fn on_add(&mut self, moment: &Moment, event: &FolioEvent, cpu: u16) {
        // Still on a list in our books: it was taken off for something else than reclaim (migration, say).
        for set in 0..self.rules.len() {
            if self.rules[set].state(moment.slot).on_list {
                self.step(set, moment, |rules, state, moment| {
                    rules.leave(state, moment.window.as_ref());
                    0
                });
            }
        }
        self.score(moment);
        let add = Add { in_fault: event.aux & task::IN_LRU_FAULT != 0, memalloc: event.aux & task::MEMALLOC != 0, credited: false };
        let by_mark = self.marks_hooked && self.rules[OWN].add_marks(&self.rules[OWN].state(moment.slot), &moment.seen.traits, add);
        if by_mark {
            self.world.folio_mut(moment.slot).nested = cpu;
        }
        for set in usize::from(by_mark)..self.rules.len() {
            self.step(set, moment, |rules, state, moment| {
                rules.add(state, &moment.seen.traits, add);
                0
            });
        }
        if event.aux & task::UNKNOWN != 0 {
            // Whether it came in a fault decides its place: nothing is claimed about the insertion.
            self.forget(moment.slot);
        }
    }

    /// Flags after the insertion.
    fn on_insert(&mut self, moment: &Moment, history: bool) {
        self.isolated.remove(&moment.slot);
        for set in 0..self.rules.len() {
            if !history && set != OWN {
                // First sight: every rule set starts where the kernel has it, without references.
                self.replace(set, moment.slot, FolioState { flags: FolioFlags::default(), ..moment.actual });
                continue;
            }
            self.step(set, moment, |rules, state, moment| {
                if state.on_list {
                    rules.put_back(state, &moment.seen.traits, moment.window.as_ref());
                }
                rules.insert(state, &moment.seen.traits, moment.window.as_ref());
                0
            });
        }
        self.score_as(moment, true);
    }

    fn on_walk(&mut self, moment: &Moment, aging: bool) {
        if !aging && self.set_refs_hooked {
            // `lru_gen_set_refs` reports the same access with its effect.
            self.score(moment);
            return;
        }
        self.on_access(moment, move |rules, state, moment| rules.walk(state, &moment.seen.traits, moment.window.as_ref(), aging));
    }

    fn on_set_refs(&mut self, moment: &Moment, cpu: u16) {
        self.score(moment);
        let by_mark = self.marks_hooked && self.rules[OWN].set_refs_marks(&self.rules[OWN].state(moment.slot), &moment.seen.traits);
        if by_mark {
            self.world.folio_mut(moment.slot).nested = cpu;
        }
        for set in usize::from(by_mark)..self.rules.len() {
            self.step(set, moment, move |rules, state, moment| {
                if set == OWN {
                    // Its activation is an event of its own.
                    if let Engine::Generations(own) = &rules.engine {
                        own.on_set_refs(&mut state.flags, state.on_list, &moment.seen.traits);
                    }
                    return 0;
                }
                rules.set_refs(state, &moment.seen.traits, moment.window.as_ref())
            });
        }
    }

    fn on_inc_gen(&mut self, moment: &Moment, done: bool) {
        if !done {
            self.score(moment);
        }
        for set in 0..self.rules.len() {
            let limit = self.limit(set, moment);
            self.step(set, moment, move |rules, state, moment| rules.protected(state, &moment.seen.traits, moment.window.as_ref(), limit));
        }
        if done {
            self.score(moment);
        }
    }

    /// The highest tier a rule set leaves to eviction, by the kernel's own counters; none for the own: the kernel decided.
    fn limit(&self, set: usize, moment: &Moment) -> Option<usize> {
        if set == OWN {
            return None;
        }
        let Engine::Generations(rules) = &self.rules[set].engine else { return None };
        let lruvec = self.world.lruvec(self.world.folio(moment.slot).lruvec);
        Some(rules.tier_limit(&lruvec.controller, moment.seen.traits.file))
    }

    fn on_activate(&mut self, moment: &Moment) {
        self.step(OWN, moment, |rules, state, moment| rules.activate(state, &moment.seen.traits, moment.window.as_ref()));
        self.score(moment);
    }

    /// Ends a residency; its counts and its cell go with it.
    pub(super) fn end_residency(&mut self, slot: Slot) {
        self.isolated.remove(&slot);
        self.arrivals.remove(&slot);
        self.close_cell(slot);
        self.uncount(slot);
        self.weigh(slot, false);
        self.world.end(slot);
    }

    /// Takes a folio out of all counts.
    fn uncount(&mut self, slot: Slot) {
        let actual = self.actual[slot as usize];
        self.count_actual(slot, &actual, -1);
        self.actual[slot as usize] = FolioState { on_list: false, ..actual };
        for set in 0..self.rules.len() {
            let state = self.rules[set].state(slot);
            self.replace(set, slot, FolioState { on_list: false, ..state });
        }
    }

    /// What was known of it does not hold any more: the next event is not scored, and shows where it is.
    fn forget(&mut self, slot: Slot) {
        self.world.folio_mut(slot).epoch = self.epoch.wrapping_sub(1);
    }

    /// The folio is charged elsewhere now.
    fn rehome(&mut self, slot: Slot, lruvec: u32) {
        if self.world.folio(slot).lruvec == lruvec {
            return;
        }
        self.uncount(slot);
        self.weigh(slot, false);
        self.world.folio_mut(slot).lruvec = lruvec;
        self.weigh(slot, true);
        self.forget(slot);
        let file = self.world.folio(slot).file;
        for set in &mut self.rules {
            set.grow(slot, lruvec, file);
        }
    }
}
