//! What is seen of a folio though nothing happened to it: the census at attach, and the sweeps over followed folios.
//! Neither is a prediction's test by itself: a sweep confirms what was predicted, or shows what came without an event.

use observer_common::sweep;

use crate::{
    model::{FolioFlags, FolioState},
    session::{
        Session,
        rule_set::{Engine, RuleSet},
        step::{Moment, OWN},
        what_if::Told,
        world::Slot,
    },
    stream::{event::FolioEvent, header::Lru},
};

impl Session {
    /// First sight of a folio in mid-life: place and references are the kernel's; how it came there is unknown.
    pub(super) fn on_first_sight(&mut self, moment: &Moment) {
        for set in OWN + 1..self.rules.len() {
            // References mean something else in another encoding: such a rule set starts without.
            let flags = if self.reads_alike(set) { moment.actual.flags } else { FolioFlags::default() };
            self.replace(set, moment.slot, FolioState { flags, ..moment.actual });
        }
        self.note_unscored(moment);
        self.observe(moment, true);
    }

    /// A followed folio that is not as it was last seen.
    pub(super) fn on_sweep(&mut self, moment: &Moment, event: &FolioEvent) {
        if event.aux & sweep::FREE != 0 {
            self.end_residency(moment.slot);
            return;
        }
        self.step(OWN, moment, |_, _, _| 0);
        let predicted = self.rules[OWN].state(moment.slot);
        if self.rules[OWN].same(&predicted, &moment.actual) {
            // An event on its way here may have told already.
            if self.actual[moment.slot as usize] != moment.actual {
                self.score(moment);
            }
            return;
        }
        if let Some(aging) = self.access_explains(moment, &predicted) {
            let folio = *self.world.folio(moment.slot);
            self.world.files.file_mut(folio.file).accesses += 1;
            self.tell_of(&folio, Told::Touch);
            for set in 0..self.rules.len() {
                self.step(set, moment, move |rules, state, moment| rules.walk(state, &moment.seen.traits, moment.window.as_ref(), aging));
            }
        }
        self.note_unscored(moment);
        self.observe(moment, false);
    }

    /// Whether a page-table access leads from the predicted state to what is seen, and if so whether an aging walk's (spec 3.2).
    fn access_explains(&self, moment: &Moment, predicted: &FolioState) -> Option<bool> {
        let rules = &self.rules[OWN];
        if !moment.known || !predicted.on_list || !moment.actual.on_list {
            return None;
        }
        [true, false].into_iter().find(|aging| {
            let mut state = *predicted;
            // The second access may have come before the first was seen.
            (0..2).any(|_| {
                rules.walk(&mut state, &moment.seen.traits, moment.window.as_ref(), *aging);
                rules.same(&state, &moment.actual)
            })
        })
    }

    /// The own rule set takes what is seen, and nothing is claimed about it.
    fn note_unscored(&mut self, moment: &Moment) {
        self.tally.count(moment.kind, moment.seen.traits.file, None);
        self.adopt(moment);
    }

    /// Whether a rule set counts references in the same bits as the kernel's own.
    fn reads_alike(&self, set: usize) -> bool {
        match (&self.rules[set].engine, &self.rules[OWN].engine) {
            (Engine::Generations(rules), Engine::Generations(own)) => rules.encoding == own.encoding && rules.width == own.width,
            _ => self.header.lru == Lru::Classical,
        }
    }

    /// A folio has another size than was known: split, or joined with its neighbours. Its counts follow, in pages.
    pub(super) fn resize(&mut self, slot: Slot, order: u8) {
        let before = *self.world.folio(slot);
        if before.order == order {
            return;
        }
        self.weigh(slot, false);
        self.world.resize(slot, order);
        self.weigh(slot, true);
        let pages = i64::from(self.world.folio(slot).pages()) - i64::from(before.pages());
        let window = self.window_of(&before);
        let moved = u32::try_from(pages.unsigned_abs()).unwrap_or(u32::MAX);
        let lruvec = before.lruvec as usize;
        let place = |rules: &RuleSet, state: &FolioState| rules.place(state, before.is_file, window.as_ref());
        if let Some(place) = place(&self.rules[OWN], &self.actual[slot as usize]) {
            self.actual_sides[lruvec].count(place, before.is_file, moved, pages.signum());
        }
        for set in &mut self.rules {
            if let Some(place) = place(set, &set.state(slot)) {
                set.sides[lruvec].count(place, before.is_file, moved, pages.signum());
            }
        }
    }
}
