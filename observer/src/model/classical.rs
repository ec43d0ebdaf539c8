//! The active/inactive LRU, one folio at a time (spec 11).

use super::access::Outcome;
use super::flags::Traits;

/// A folio's state under the classical LRU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassicalState {
    /// On a list at all.
    pub on_list: bool,
    /// `PG_active`: which list, or which it would go to.
    pub active: bool,
    /// `PG_referenced`.
    pub referenced: bool,
    /// `PG_workingset`.
    pub workingset: bool,
}

/// List sizes of a lruvec, pages, `[anon, file]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassicalSizes {
    /// Inactive lists.
    pub inactive: [u64; 2],
    /// Active lists.
    pub active: [u64; 2],
    /// Free swap, pages.
    pub free_swap: u64,
}

/// What a refault does (spec 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassicalRefault {
    /// Within the distance: goes to the active list, WORKINGSET_ACTIVATE.
    pub activate: bool,
    /// Was workingset as well: WORKINGSET_RESTORE.
    pub restore: bool,
}

impl ClassicalState {
    /// Inserted where `PG_active` says; new folios are inactive.
    pub fn on_insert(&mut self, traits: &Traits) {
        self.on_list = !traits.unevictable;
    }

    /// Off the lists; flags stay.
    pub fn on_delete(&mut self) {
        self.on_list = false;
    }

    /// `folio_mark_accessed`: the second access activates. True if it was activated (the caller ages non-resident pages by the folio's).
    pub fn on_mark(&mut self, traits: &Traits) -> bool {
        if traits.dropbehind || traits.unevictable {
            return false;
        }
        if !self.referenced {
            self.referenced = true;
            return false;
        }
        if self.active {
            return false;
        }
        self.active = true;
        self.referenced = false;
        true
    }

    /// A candidate at the tail of the inactive list with `young` young PTEs.
    pub fn on_candidate(&mut self, traits: &Traits, young: u32) -> Outcome {
        let referenced = self.referenced;
        self.referenced = young > 0;
        match young {
            0 if referenced && traits.file => Outcome::ReclaimClean,
            0 => Outcome::Reclaim,
            _ if referenced || young > 1 || traits.exec_file() => {
                self.active = true;
                Outcome::Activate
            }
            _ => Outcome::Keep,
        }
    }

    /// A folio at the tail of the active list. True if it stays there (executable and in use); else it is deactivated.
    pub fn on_shrink_active(&mut self, traits: &Traits, young: u32) -> bool {
        if young > 0 && traits.exec_file() {
            return true;
        }
        self.active = false;
        self.workingset = true;
        false
    }

    /// A refault at a distance in pages; `workingset` is the shadow's bit.
    pub fn on_refault(&mut self, file: bool, distance: u64, workingset: bool, sizes: &ClassicalSizes) -> ClassicalRefault {
        let activate = distance <= sizes.workingset_size(file);
        let restore = activate && workingset;
        if activate {
            self.active = true;
        }
        if restore {
            self.workingset = true;
        }
        ClassicalRefault { activate, restore }
    }
}

impl ClassicalSizes {
    /// What a refaulting folio of a type is held against, pages.
    pub const fn workingset_size(&self, file: bool) -> u64 {
        let mut size = self.active[1];
        if !file {
            size += self.inactive[1];
        }
        if self.free_swap > 0 {
            size += self.active[0];
            if file {
                size += self.inactive[0];
            }
        }
        size
    }

    /// Whether the active list of a type must give folios to the inactive one.
    pub const fn inactive_is_low(&self, file: bool) -> bool {
        let (inactive, active) = (self.inactive[file as usize], self.active[file as usize]);
        // The ratio is the root of ten times the lists' size in GiB; pages are 4 KiB.
        let gib = (inactive + active) >> 18;
        let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
        inactive * ratio < active
    }
}

/// Clock of evictions and activations of a lruvec, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonresidentAge(pub u64);

impl NonresidentAge {
    /// Token of an eviction now; `bucket_order` is how much precision the entry's bits leave.
    pub const fn token(self, bucket_order: u8) -> u64 {
        self.0 >> bucket_order
    }

    /// Pages evicted or activated since a token of `bits` bits.
    pub const fn distance(self, token: u64, bits: u8, bucket_order: u8) -> u64 {
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        ((self.0 >> bucket_order).wrapping_sub(token) & mask) << bucket_order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_access_activates_the_third_marks_again() {
        let mut state = ClassicalState::default();
        state.on_insert(&Traits::FILE);
        assert!(!state.on_mark(&Traits::FILE));
        assert!(state.referenced && !state.active);
        assert!(state.on_mark(&Traits::FILE));
        assert!(!state.referenced && state.active);
        assert!(!state.on_mark(&Traits::FILE));
        assert!(state.referenced && state.active);
        assert!(!state.on_mark(&Traits::FILE));
    }

    #[test]
    fn candidates() {
        let check = |referenced, young, traits: &Traits| {
            let mut state = ClassicalState { referenced, ..Default::default() };
            let outcome = state.on_candidate(traits, young);
            (outcome, state.referenced, state.active)
        };
        let exec = Traits { exec: true, mapped: true, ..Traits::FILE };
        assert_eq!(check(false, 0, &Traits::FILE), (Outcome::Reclaim, false, false));
        assert_eq!(check(true, 0, &Traits::FILE), (Outcome::ReclaimClean, false, false));
        assert_eq!(check(true, 0, &Traits::ANON), (Outcome::Reclaim, false, false));
        assert_eq!(check(false, 1, &Traits::FILE), (Outcome::Keep, true, false));
        assert_eq!(check(true, 1, &Traits::FILE), (Outcome::Activate, true, true));
        assert_eq!(check(false, 2, &Traits::FILE), (Outcome::Activate, true, true));
        assert_eq!(check(false, 1, &exec), (Outcome::Activate, true, true));
    }

    #[test]
    fn deactivation_makes_workingset_except_for_used_executables() {
        let mut state = ClassicalState { active: true, ..Default::default() };
        assert!(state.on_shrink_active(&Traits { exec: true, ..Traits::FILE }, 1));
        assert!(state.active && !state.workingset);
        assert!(!state.on_shrink_active(&Traits { exec: true, ..Traits::ANON }, 1));
        assert!(!state.active && state.workingset);
    }

    #[test]
    fn refault_distance() {
        let sizes = ClassicalSizes { inactive: [10, 20], active: [30, 40], free_swap: 0 };
        assert_eq!([sizes.workingset_size(true), sizes.workingset_size(false)], [40, 60]);
        let swap = ClassicalSizes { free_swap: 1, ..sizes };
        assert_eq!([swap.workingset_size(true), swap.workingset_size(false)], [80, 90]);
        let mut state = ClassicalState::default();
        assert_eq!(state.on_refault(true, 41, true, &sizes), ClassicalRefault::default());
        assert_eq!(state, ClassicalState::default());
        assert_eq!(state.on_refault(true, 40, true, &sizes), ClassicalRefault { activate: true, restore: true });
        assert!(state.active && state.workingset);
    }

    #[test]
    fn the_inactive_list_is_low_by_size() {
        let low = |inactive, active| ClassicalSizes { inactive: [0, inactive], active: [0, active], free_swap: 0 }.inactive_is_low(true);
        assert!(!low(100, 100));
        assert!(low(99, 100));
        let gib = 1 << 18;
        assert!(!low(gib, 4 * gib), "5 GiB: ratio 7");
        assert!(!low(gib, 8 * gib), "9 GiB: ratio 9");
        assert!(low(gib, 11 * gib), "12 GiB: ratio 10");
    }

    #[test]
    fn ages_wrap_within_their_bits() {
        assert_eq!(NonresidentAge(100).distance(NonresidentAge(60).token(0), 36, 0), 40);
        assert_eq!(NonresidentAge(5).distance(15, 4, 0), 6);
        assert_eq!(NonresidentAge(100).distance(NonresidentAge(60).token(2), 36, 2), 40);
    }
}
