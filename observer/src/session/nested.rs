//! `folio_mark_accessed` as the kernel's own means: `folio_add_lru` and `lru_gen_set_refs` of 7.2 and later call it for
//! what they have to do (spec 2.1, 3.2). Such a call is hooked like any other, but it is no access of its own: the
//! event before it reported the same one.

use crate::{
    model::Traits,
    session::{
        Session,
        rule_set::{Engine, RuleSet},
        step::{Moment, OWN},
        world::NOBODY,
    },
    stream::event::Kind,
};

impl Session {
    /// Takes a mark that belongs to the event before it: the own rules' flags follow, nobody else hears of an access.
    /// What was expected and did not come was done without a call, and is done here before anything else is looked at.
    pub(super) fn nested_mark(&mut self, moment: &Moment, cpu: u16) -> bool {
        let expected = std::mem::replace(&mut self.world.folio_mut(moment.slot).nested, NOBODY);
        if expected == NOBODY {
            return false;
        }
        // Another CPU's access may be seen first; ours shows the flags as they were before it.
        let nested =
            moment.kind == Kind::Mark && expected == cpu && self.rules[OWN].same(&self.rules[OWN].state(moment.slot), &moment.actual);
        if nested {
            self.score(moment);
        }
        self.step(OWN, moment, |rules, state, moment| {
            rules.mark(state, &moment.seen.traits, moment.window.as_ref());
            0
        });
        nested
    }
}

impl RuleSet {
    /// Whether `folio_add_lru` marks this folio accessed.
    pub(super) fn add_marks(&self, state: &crate::model::FolioState, traits: &Traits, add: crate::model::Add) -> bool {
        let mut touched = *state;
        self.add(&mut touched, traits, add);
        !state.flags.referenced() && touched.flags.referenced()
    }

    /// Whether `lru_gen_set_refs` marks this folio accessed, instead of writing its flags itself.
    pub(super) fn set_refs_marks(&self, state: &crate::model::FolioState, traits: &Traits) -> bool {
        let Engine::Generations(rules) = &self.engine else { return false };
        let (mut by_set_refs, mut by_mark) = (state.flags, *state);
        rules.on_set_refs(&mut by_set_refs, state.on_list, traits);
        // The first reference is set directly; it is the later ones that are counted.
        self.mark(&mut by_mark, traits, Some(&crate::model::Window::INITIAL));
        (state.flags.referenced() || state.flags.workingset()) && by_set_refs == by_mark.flags && by_set_refs != state.flags
    }
}
