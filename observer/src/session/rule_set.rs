//! One rule set in lock step: a state per tracked folio, moved by the same events as the kernel's.

use crate::{
    model::{Add, FolioState, Rules, Token, Traits, Window, classical::ClassicalState},
    session::{
        frame::{Evictions, FileDivergence, Promotions, Refaults},
        side::{Place, SideCount},
        world::Slot,
    },
};

/// What interprets the events.
#[derive(Clone, Copy, Debug)]
pub enum Engine {
    /// Generations.
    Generations(Rules),
    /// Active and inactive lists.
    Classical,
}

/// A rule set with its state and its standing.
#[derive(Debug)]
pub struct RuleSet {
    /// Its name.
    pub name: String,
    /// What interprets the events.
    pub engine: Engine,
    states: Vec<FolioState>,
    /// Pages by place, per lruvec.
    pub sides: Vec<SideCount>,
    /// Divergence, per file.
    pub files: Vec<FileDivergence>,
    /// Promotions.
    pub promotions: Promotions,
    /// Verdicts on the kernel's evictions.
    pub evictions: Evictions,
    /// Refaults it would have avoided.
    pub refaults: Refaults,
}

/// A promotion's size: generations risen, 0 for none.
pub type Rise = u32;

impl RuleSet {
    /// A rule set without folios.
    pub fn new(name: String, engine: Engine) -> Self {
        Self {
            name,
            engine,
            states: Vec::new(),
            sides: Vec::new(),
            files: Vec::new(),
            promotions: Promotions::default(),
            evictions: Evictions::default(),
            refaults: Refaults::default(),
        }
    }

    /// Makes room for a slot, a lruvec and a file.
    pub fn grow(&mut self, slot: Slot, lruvec: u32, file: u32) {
        if self.states.len() <= slot as usize {
            self.states.resize(slot as usize + 1, FolioState::default());
        }
        self.grow_lruvecs(lruvec);
        if self.files.len() <= file as usize {
            self.files.resize(file as usize + 1, FileDivergence::default());
        }
    }

    /// A file's number is another's now.
    pub(crate) fn forget_file(&mut self, file: u32) {
        if let Some(divergence) = self.files.get_mut(file as usize) {
            *divergence = FileDivergence::default();
        }
    }

    /// Makes room for a lruvec.
    pub fn grow_lruvecs(&mut self, lruvec: u32) {
        if self.sides.len() <= lruvec as usize {
            self.sides.resize(lruvec as usize + 1, SideCount::default());
        }
    }

    /// A folio's state.
    pub fn state(&self, slot: Slot) -> FolioState {
        self.states[slot as usize]
    }

    /// Replaces a folio's state.
    pub fn set(&mut self, slot: Slot, state: FolioState) {
        self.states[slot as usize] = state;
    }

    /// Where a state counts; `None` off the lists.
    pub fn place(&self, state: &FolioState, file: bool, window: Option<&Window>) -> Option<Place> {
        if !state.on_list {
            return None;
        }
        Some(match &self.engine {
            Engine::Generations(rules) => {
                // min_seq may have passed it: it counts in the oldest generation until its next event.
                let seq = match window {
                    Some(window) if window.age(state.seq) as i32 > window.oldest_age(file) as i32 => {
                        window.min_seq[usize::from(file)] as u32
                    }
                    _ => state.seq,
                };
                Place {
                    seq,
                    tier: u8::try_from(rules.tier(state.flags)).unwrap_or(3),
                    refs: u8::try_from(rules.refs(state.flags)).unwrap_or(7),
                }
            }
            Engine::Classical => Place { seq: u32::from(state.flags.active()), tier: 0, refs: u8::from(state.flags.referenced()) },
        })
    }

    /// Brings a state up to a clock that moved since its last event.
    pub fn catch_up(&self, state: &mut FolioState, file: bool, window: &Window) {
        if let Engine::Generations(rules) = &self.engine {
            rules.catch_up(state, file, window);
        }
    }

    /// The flag touch of `folio_add_lru`. A folio that is still on a list was taken off it first, not by reclaim.
    pub fn add(&self, state: &mut FolioState, traits: &Traits, add: Add) {
        if let Engine::Generations(rules) = &self.engine {
            rules.on_add(state, traits, add);
        }
    }

    /// Taken off the lists, not by reclaim.
    pub fn leave(&self, state: &mut FolioState, window: Option<&Window>) {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) => rules.on_delete(state, window),
            _ => state.on_list = false,
        }
    }

    /// Isolated by reclaim and rejected: what its flags become before it is placed again.
    pub fn put_back(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>) {
        if let (Engine::Generations(rules), Some(window)) = (&self.engine, window) {
            rules.on_isolate(state);
            rules.on_reject(state, traits, window, false);
        }
    }

    /// Put on a list.
    pub fn insert(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>) {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) => rules.on_insert(state, traits, window, false),
            (Engine::Generations(_), None) => {}
            (Engine::Classical, _) => state.on_list = !traits.unevictable,
        }
    }

    /// Accessed through a file descriptor.
    pub fn mark(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>) -> Rise {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) => rise(rules.on_mark(state, traits, window)),
            (Engine::Generations(_), None) => 0,
            (Engine::Classical, _) => classical(state, |classical| classical.on_mark(traits)),
        }
    }

    /// Seen young by an aging walk (`aging`) or while looking around without a walk object.
    pub fn walk(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>, aging: bool) -> Rise {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) if aging => rise(rules.on_walk(state, traits, window)),
            (Engine::Generations(rules), Some(window)) => rise(rules.on_look_around(state, traits, window)),
            _ => 0,
        }
    }

    /// `lru_gen_set_refs`; off the lists it is a reclaim candidate.
    pub fn set_refs(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>) -> Rise {
        let (Engine::Generations(rules), Some(window)) = (&self.engine, window) else { return 0 };
        if state.on_list {
            return rise(rules.on_look_around(state, traits, window));
        }
        rules.on_candidate(state, traits, 1);
        0
    }

    /// Moved up by the scan: the kernel keeps it. A rule set that would not protect it follows residency only.
    pub fn protected(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>, limit: Option<usize>) -> Rise {
        let (Engine::Generations(rules), Some(window)) = (&self.engine, window) else { return 0 };
        match limit {
            Some(limit) if rules.protects(state.flags, limit).is_none() => 0,
            _ => rise(rules.on_inc_gen(state, traits.file, window)),
        }
    }

    /// Activated: off its list and on another.
    pub fn activate(&self, state: &mut FolioState, traits: &Traits, window: Option<&Window>) -> Rise {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) => rise(rules.on_activate(state, traits, window)),
            (Engine::Generations(_), None) => 0,
            (Engine::Classical, _) => {
                let risen = u32::from(!state.flags.active());
                state.flags.set_active(true);
                state.flags.set_referenced(false);
                risen
            }
        }
    }

    /// Isolated by reclaim, as eviction finds it.
    pub fn isolate(&self, state: &mut FolioState) {
        match &self.engine {
            Engine::Generations(rules) => rules.on_isolate(state),
            Engine::Classical => state.on_list = false,
        }
    }

    /// Whether it holds the folio in its oldest generation (classical: on the inactive list).
    pub fn is_oldest(&self, state: &FolioState, file: bool, window: Option<&Window>) -> Option<bool> {
        if !state.on_list {
            return None;
        }
        match (&self.engine, window) {
            (Engine::Generations(_), Some(window)) => Some(window.is_oldest(state.seq, file)),
            (Engine::Generations(_), None) => None,
            (Engine::Classical, _) => Some(!state.flags.active()),
        }
    }

    /// What it would leave in the page cache.
    pub fn token(&self, state: &FolioState, file: bool, window: Option<&Window>) -> Token {
        match (&self.engine, window) {
            (Engine::Generations(rules), Some(window)) => rules.evict(state, window, file),
            _ => Token { value: 0, workingset: state.flags.workingset(), bits: 64 },
        }
    }

    /// A refault restores what the token holds, if it is recent.
    pub fn refault(&self, state: &mut FolioState, token: Token, file: bool, window: Option<&Window>, in_fault: bool) {
        if let (Engine::Generations(rules), Some(window)) = (&self.engine, window)
            && rules.is_recent(token, window, file)
        {
            rules.on_refault(state, token, in_fault);
        }
    }

    /// Whether two states look the same to this rule set: generation field and references, the workingset bit included.
    pub fn same(&self, predicted: &FolioState, seen: &FolioState) -> bool {
        match &self.engine {
            Engine::Generations(rules) => {
                predicted.gen_field() == seen.gen_field()
                    && rules.refs(predicted.flags) == rules.refs(seen.flags)
                    && rules.is_workingset(predicted.flags) == rules.is_workingset(seen.flags)
            }
            Engine::Classical => predicted.flags.active() == seen.flags.active() && predicted.flags.referenced() == seen.flags.referenced(),
        }
    }
}

fn rise(moved: crate::model::Moved) -> Rise {
    if moved.promoted() { moved.to.wrapping_sub(moved.from) } else { 0 }
}

fn classical(state: &mut FolioState, step: impl FnOnce(&mut ClassicalState) -> bool) -> Rise {
    let mut classical = ClassicalState {
        on_list: state.on_list,
        active: state.flags.active(),
        referenced: state.flags.referenced(),
        workingset: state.flags.workingset(),
    };
    let activated = step(&mut classical);
    state.flags.set_active(classical.active);
    state.flags.set_referenced(classical.referenced);
    state.flags.set_workingset(classical.workingset);
    u32::from(activated)
}
