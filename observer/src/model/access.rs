//! What references do: by file descriptor, and through page tables as each collector sees them (spec 3.1, 3.2).

use super::flags::{FolioFlags, FolioState, Traits, Window};
use super::rules::{Defer, Encoding, Rules, SetRefs, Walk};

/// Generation before and after, low 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Before.
    pub from: u32,
    /// After.
    pub to: u32,
}

impl Moved {
    /// No move.
    pub const fn stays(seq: u32) -> Self {
        Self { from: seq, to: seq }
    }

    /// Whether the generation rose. A promotion only if the folio was on a list.
    pub const fn promoted(self) -> bool {
        (self.to.wrapping_sub(self.from) as i32) > 0
    }
}

/// What `folio_check_references` decides on a reclaim candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Reclaim it.
    Reclaim,
    /// Reclaim it if it is clean.
    ReclaimClean,
    /// Give it back.
    Keep,
    /// Give it back active.
    Activate,
}

impl Rules {
    /// One access on the flags of the two encodings that never move a folio (spec 3.1).
    pub(crate) fn mark(&self, flags: &mut FolioFlags, traits: &Traits) {
        if traits.dropbehind || traits.unevictable {
            return;
        }
        match self.encoding {
            Encoding::ReferencedMask => {
                if !flags.referenced() {
                    flags.set_referenced(true);
                    flags.set_mask(0);
                } else if flags.mask() < self.mask_max() {
                    flags.set_mask(flags.mask() + 1);
                } else {
                    flags.set_workingset(true);
                }
            }
            Encoding::MaskWorkingset => {
                if !flags.referenced() {
                    flags.set_referenced(true);
                } else if !flags.workingset() {
                    flags.set_workingset(true);
                } else if flags.mask() < self.mask_max() {
                    flags.set_mask(flags.mask() + 1);
                }
            }
            Encoding::Count => Self::set_count(flags, (self.refs(*flags) + 1).min(self.max_refs())),
        }
    }

    /// `folio_mark_accessed`, on a list or off (spec 3.1).
    pub fn on_mark(&self, state: &mut FolioState, traits: &Traits, window: &Window) -> Moved {
        let from = state.seq;
        if self.encoding != Encoding::Count || !state.on_list || window.age(from) == 0 {
            self.mark(&mut state.flags, traits);
            return Moved::stays(from);
        }
        if traits.dropbehind || traits.unevictable {
            return Moved::stays(from);
        }
        let refs = self.refs(state.flags) + 1;
        if refs > self.max_refs() {
            if self.overflow_promotes {
                state.seq = from.wrapping_add(1);
                Self::set_count(&mut state.flags, 3);
            }
        } else if refs >= 2 && self.defers(self.defer, from, traits.file, window) {
            state.seq = from.wrapping_add(1);
            Self::set_count(&mut state.flags, refs.min(3));
        } else {
            Self::set_count(&mut state.flags, refs);
        }
        Moved { from, to: state.seq }
    }

    /// Whether a reference lifts a folio of this generation, which is not the youngest, by one.
    fn defers(&self, from: Defer, seq: u32, file: bool, window: &Window) -> bool {
        match from {
            Defer::Never => false,
            Defer::Oldest => window.is_oldest(seq, file),
            Defer::Tail => window.age(seq) >= 2,
            Defer::Any => true,
        }
    }

    /// A young PTE found by the aging walk, or by look-around with a walk object present (spec 3.2, W).
    pub fn on_walk(&self, state: &mut FolioState, traits: &Traits, window: &Window) -> Moved {
        let from = state.seq;
        let flags = &mut state.flags;
        match self.walk {
            Walk::Youngest if state.on_list => {
                flags.clear_refs();
                state.seq = window.youngest();
            }
            Walk::Youngest => flags.set_referenced(true),
            Walk::Second => {
                let second = flags.referenced() || flags.workingset() || self.exec_promotes && traits.exec_file();
                if !second {
                    flags.set_referenced(true);
                    flags.set_mask(0);
                } else if state.on_list {
                    flags.clear_referenced_and_mask();
                    flags.set_workingset(true);
                    state.seq = window.youngest();
                }
            }
            Walk::Count => self.count_mapped(state, traits, window),
        }
        if state.on_list { Moved { from, to: state.seq } } else { Moved::stays(from) }
    }

    /// FG's page-table reference (spec 3.2).
    fn count_mapped(&self, state: &mut FolioState, traits: &Traits, window: &Window) {
        let refs = self.refs(state.flags) + 1;
        if !state.on_list || window.age(state.seq) == 0 {
            Self::set_count(&mut state.flags, refs.min(self.max_refs()));
            return;
        }
        if refs >= 2 || self.exec_promotes && traits.exec_file() {
            state.seq = window.youngest();
        } else if self.defers(self.defer_mapped, state.seq, traits.file, window) {
            state.seq = state.seq.wrapping_add(1);
        }
        Self::set_count(&mut state.flags, refs.min(3));
    }

    /// A young PTE found by look-around without a walk object (spec 3.2, L); an activation is done at once.
    pub fn on_look_around(&self, state: &mut FolioState, traits: &Traits, window: &Window) -> Moved {
        let from = state.seq;
        if self.walk == Walk::Count {
            self.count_mapped(state, traits, window);
            return Moved { from, to: state.seq };
        }
        if self.on_set_refs(&mut state.flags, state.on_list, traits) && state.on_list && window.age(from) != 0 {
            return self.on_activate(state, traits, window);
        }
        Moved::stays(from)
    }

    /// `lru_gen_set_refs` alone, or its counterpart: the effect of a young PTE on the flags, and whether it asks for activation (spec 3.2).
    ///
    /// With one count per folio (FG) the kernel has no such function; what is done here is its rule for a folio off the lists.
    pub fn on_set_refs(&self, flags: &mut FolioFlags, on_list: bool, traits: &Traits) -> bool {
        let exec = self.exec_promotes && traits.exec_file();
        match self.encoding {
            Encoding::MaskWorkingset if on_list => {
                flags.clear_refs();
                true
            }
            Encoding::MaskWorkingset => {
                flags.set_referenced(true);
                false
            }
            Encoding::ReferencedMask if !flags.referenced() && !flags.workingset() => {
                if exec {
                    flags.set_workingset(true);
                } else {
                    flags.set_referenced(true);
                    // A restored mask would become visible here (spec 9.10); the walk clears it in the same step.
                    flags.set_mask(0);
                }
                exec
            }
            Encoding::ReferencedMask => {
                if self.set_refs == SetRefs::Workingset || self.refs(*flags) > 1 {
                    flags.clear_referenced_and_mask();
                    flags.set_workingset(true);
                } else {
                    self.mark(flags, traits);
                }
                true
            }
            Encoding::Count => {
                let refs = self.refs(*flags) + 1;
                Self::set_count(flags, refs.min(3));
                refs >= 2 || exec
            }
        }
    }

    /// `folio_check_references` on an isolated candidate with `young` young PTEs (spec 3.2, R). Activation sets `PG_active`.
    pub fn on_candidate(&self, state: &mut FolioState, traits: &Traits, young: u32) -> Outcome {
        let flags = &mut state.flags;
        let outcome = match self.encoding {
            // Only a hit after the isolation, which clears it, can have set this.
            Encoding::MaskWorkingset if traits.mapped && flags.referenced() => return Outcome::Keep,
            Encoding::MaskWorkingset => {
                let referenced = flags.referenced();
                flags.set_referenced(young > 0);
                match young {
                    0 if referenced && traits.file => Outcome::ReclaimClean,
                    0 => Outcome::Reclaim,
                    _ if referenced || young > 1 || traits.exec_file() => Outcome::Activate,
                    _ => Outcome::Keep,
                }
            }
            Encoding::ReferencedMask | Encoding::Count => {
                if young == 0 {
                    Outcome::Reclaim
                } else if self.on_set_refs(flags, false, traits) {
                    Outcome::Activate
                } else {
                    Outcome::Keep
                }
            }
        };
        if outcome == Outcome::Activate {
            state.flags.set_active(true);
        }
        outcome
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
