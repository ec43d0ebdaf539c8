//! Reclaim takes folios off the lists and gives back those it does not take, without an event for either (spec 6.4,
//! 6.6): which ones it takes is residency, and followed; what their flags become is predicted.

use crate::{
    model::{Traits, Window},
    session::{
        Session,
        step::{Moment, OWN},
    },
    stream::{event::Kind, header::Lru},
};

impl Session {
    /// Brings an event's folio to where its flags show it, on a list or off, before it is scored.
    pub(super) fn follow_residency(&mut self, moment: &Moment) {
        let reports_access = matches!(moment.kind, Kind::Mark | Kind::Walk | Kind::SetRefs | Kind::IncGen | Kind::Activate | Kind::Sweep);
        if self.header.lru != Lru::Mglru || !reports_access {
            return;
        }
        let believed = self.rules[OWN].state(moment.slot).on_list;
        match (believed, moment.actual.on_list) {
            (true, false) if !moment.seen.traits.unevictable => self.isolate(moment),
            (false, true) => self.put_back(moment),
            _ => {}
        }
    }

    fn isolate(&mut self, moment: &Moment) {
        let Some(window) = moment.window else { return };
        for set in 0..self.rules.len() {
            self.step(set, moment, |rules, state, _| {
                rules.isolate(state);
                0
            });
        }
        // It goes back at the end of the same batch: by the clock of now, whenever it is seen again.
        if self.isolated.len() < MAX_ISOLATED || self.isolated.contains_key(&moment.slot) {
            self.isolated.insert(moment.slot, window);
        } else {
            self.world.refused += 1;
        }
    }

    fn put_back(&mut self, moment: &Moment) {
        let Some(window) = self.isolated.remove(&moment.slot) else { return };
        // What is kept for its references is mapped, or they would not have been found.
        let traits = Traits { mapped: true, ..moment.seen.traits };
        for set in 0..self.rules.len() {
            let mut state = self.rules[set].state(moment.slot);
            if state.on_list {
                continue;
            }
            give_back(&self.rules[set], &mut state, &traits, &window);
            self.replace(set, moment.slot, state);
        }
    }
}

fn give_back(rules: &crate::session::rule_set::RuleSet, state: &mut crate::model::FolioState, traits: &Traits, window: &Window) {
    rules.put_back(state, traits, Some(window));
    rules.insert(state, traits, Some(window));
}

/// Folios off the lists that are remembered; a batch is 64 at most, for each CPU.
pub(super) const MAX_ISOLATED: usize = 1 << 16;
