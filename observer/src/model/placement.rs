//! From the request to insert until a folio stands in a generation, and how it leaves (spec 2).

use super::access::Moved;
use super::flags::{FolioFlags, FolioState, Traits, Window};
use super::rules::{Encoding, FaultAdd, Placement, Refault, Rules};

/// Circumstances of `folio_add_lru`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// `current->in_lru_fault`.
    pub in_fault: bool,
    /// `PF_MEMALLOC`.
    pub memalloc: bool,
    /// The CPU had enough refault credit for this folio (spec D2); false when that is not known.
    pub credited: bool,
}

/// Why a folio's references are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// `/proc/PID/clear_refs`, DAMON.
    ClearRefs,
    /// `MADV_PAGEOUT`.
    Pageout,
}

impl Rules {
    /// The flag touch of `folio_add_lru`; the folio is off the lists (spec 2.1).
    pub fn on_add(&self, state: &mut FolioState, traits: &Traits, add: Add) {
        if traits.unevictable || !add.in_fault || add.memalloc {
            return;
        }
        let touch = |state: &mut FolioState| {
            if state.flags.workingset() {
                state.flags.set_active(true);
            } else if !state.flags.referenced() {
                self.mark(&mut state.flags, traits);
            }
        };
        match self.fault_add {
            FaultAdd::Activate => state.flags.set_active(true),
            FaultAdd::ActivateSwapbacked if !traits.file => state.flags.set_active(true),
            FaultAdd::Credit if traits.file && add.credited => state.flags.set_active(true),
            FaultAdd::Touch | FaultAdd::Credit => touch(state),
            FaultAdd::ActivateSwapbacked | FaultAdd::Nothing => {}
        }
    }

    /// The generation that insertion chooses; `reclaiming` is insertion at the tail (spec 2.2).
    pub const fn place(&self, state: &FolioState, traits: &Traits, window: &Window, reclaiming: bool) -> u64 {
        let flags = state.flags;
        let max_seq = window.max_seq;
        let min_seq = window.min_seq[traits.file as usize];
        let held_back = !traits.file && !traits.swapcache || traits.reclaim && (traits.dirty || traits.writeback);
        let distance = match self.placement {
            Placement::Early if flags.active() => 0,
            Placement::Early if held_back => return min_seq + 1,
            Placement::Early => return min_seq,
            Placement::Window if flags.active() => 0,
            Placement::Window if held_back => 1,
            Placement::Window if reclaiming || min_seq + 2 >= max_seq => return min_seq,
            Placement::Window => return min_seq + 1,
            Placement::Distance | Placement::DistanceFileOlder => {
                let workingset = self.is_workingset(flags);
                if flags.active() {
                    let older = matches!(self.placement, Placement::DistanceFileOlder) && traits.file;
                    if workingset { 0 } else { 1 + older as u64 }
                } else if reclaiming {
                    3
                } else if held_back {
                    1
                } else if workingset || self.referenced_lifts && flags.referenced() {
                    2
                } else {
                    3
                }
            }
        };
        let seq = max_seq.saturating_sub(distance);
        if seq < min_seq { min_seq } else { seq }
    }

    /// Puts the folio on the list that [`Rules::place`] chooses. An unevictable folio stays off the MGLRU lists (spec 9.17).
    pub fn on_insert(&self, state: &mut FolioState, traits: &Traits, window: &Window, reclaiming: bool) {
        if traits.unevictable {
            state.on_list = false;
            return;
        }
        state.seq = self.place(state, traits, window, reclaiming) as u32;
        state.on_list = true;
        if state.flags.active() && matches!(self.placement, Placement::Early | Placement::Window) {
            state.flags.clear_referenced_and_mask();
        }
        state.flags.set_active(false);
    }

    /// Leaves the list, not for reclaim: the two youngest generations are remembered in `PG_active` (spec 2.2).
    pub fn on_delete(&self, state: &mut FolioState, window: &Window) {
        if state.on_list && window.age(state.seq) < 2 {
            state.flags.set_active(true);
        }
        state.on_list = false;
    }

    /// `folio_activate`, done at once: off the list, active, on the list again (spec 3.2).
    pub fn on_activate(&self, state: &mut FolioState, traits: &Traits, window: &Window) -> Moved {
        let from = state.seq;
        if !state.on_list {
            return Moved::stays(from);
        }
        self.on_delete(state, window);
        state.flags.set_active(true);
        self.on_insert(state, traits, window, false);
        Moved { from, to: state.seq }
    }

    /// `folio_deactivate` (`MADV_COLD`): cold, and down unless already in the oldest generation (spec 3.3).
    pub fn on_deactivate(&self, state: &mut FolioState, traits: &Traits, window: &Window) -> Moved {
        let from = state.seq;
        match self.encoding {
            Encoding::MaskWorkingset => {
                if !state.on_list {
                    return Moved::stays(from);
                }
                self.on_delete(state, window);
                state.flags.set_active(false);
                state.flags.set_referenced(false);
            }
            Encoding::ReferencedMask | Encoding::Count => {
                state.flags.clear_refs();
                if !state.on_list || window.is_oldest(state.seq, traits.file) {
                    return Moved::stays(from);
                }
                self.on_delete(state, window);
                state.flags.set_active(false);
            }
        }
        self.on_insert(state, traits, window, false);
        Moved { from, to: state.seq }
    }

    /// `MADV_FREE` of a clean anonymous folio: it becomes type file, and `traits` with it (spec 3.3).
    pub fn on_lazyfree(&self, state: &mut FolioState, traits: &mut Traits, window: &Window) -> Moved {
        let from = state.seq;
        if !state.on_list {
            return Moved::stays(from);
        }
        self.on_delete(state, window);
        state.flags.set_active(false);
        match self.encoding {
            Encoding::MaskWorkingset => state.flags.set_referenced(false),
            // The helper that clears references is called too late to do anything.
            Encoding::ReferencedMask => {}
            Encoding::Count => state.flags.clear_refs(),
        }
        traits.file = true;
        self.on_insert(state, traits, window, false);
        Moved { from, to: state.seq }
    }

    /// References reset from outside; the folio stays where it is (spec 3.3).
    pub fn on_reset_refs(&self, flags: &mut FolioFlags, why: Reset) {
        match (self.encoding, why) {
            (Encoding::Count, Reset::ClearRefs) => flags.clear_refs(),
            (Encoding::Count, Reset::Pageout) => Self::set_count(flags, if self.refs(*flags) >= 2 { 2 } else { 0 }),
            (Encoding::MaskWorkingset | Encoding::ReferencedMask, _) => flags.set_referenced(false),
        }
    }

    /// A recent refault's effect on the flags, before `folio_add_lru` (spec 7.3). `refs` and `workingset` are the shadow's.
    pub(crate) fn restore(&self, flags: &mut FolioFlags, refs: u32, workingset: bool, in_fault: bool) -> (bool, bool) {
        match self.refault {
            Refault::WorkingsetIfHot => {
                let hot = in_fault || refs >= 3;
                if hot {
                    flags.set_workingset(true);
                    flags.set_mask(self.mask_max());
                }
                (true, hot)
            }
            Refault::MaskActivateFault | Refault::MaskActivateWorkingset => {
                if workingset {
                    flags.set_workingset(true);
                } else {
                    flags.set_mask((refs.max(1) - 1) as u8);
                }
                let activate = in_fault && (workingset || matches!(self.refault, Refault::MaskActivateFault));
                (activate, workingset)
            }
            Refault::Count => {
                if refs >= 1 {
                    if in_fault {
                        flags.set_active(true);
                    }
                    Self::set_count(flags, refs.min(3));
                }
                (in_fault && refs >= 1, refs >= 2)
            }
        }
    }
}

/// The readahead and refault credit of one lruvec (spec D2), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// Shared credit.
    pub shared: u64,
}

impl Credit {
    /// A recent file refault of `pages` earns credit, up to `cap` (the lruvec's file pages).
    pub fn on_refault(&mut self, rules: &Rules, pages: u32, cap: u64) {
        if self.shared < cap {
            self.shared = (self.shared + u64::from(rules.credit.per_refault) * u64::from(pages)).min(cap);
        }
    }

    /// `max_seq` moved: a quarter expires.
    pub fn on_age(&mut self) {
        self.shared = self.shared * 3 / 4;
    }

    /// Whether a folio of `pages` may be activated, paid from this CPU's share of the credit of the same lruvec.
    pub fn spend(&mut self, rules: &Rules, cpu_share: &mut u64, pages: u32) -> bool {
        let pages = u64::from(pages);
        if *cpu_share < pages {
            let taken = self.shared.min(u64::from(rules.credit.batch));
            self.shared -= taken;
            *cpu_share += taken;
        }
        let enough = *cpu_share >= pages;
        if enough {
            *cpu_share -= pages;
        }
        enough
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
