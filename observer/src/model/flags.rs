//! A folio's LRU state, and how each encoding reads its references (spec 1.4).

use super::rules::{Encoding, Rules, Saturation};

const MASK: u8 = 0x0f;
const REFERENCED: u8 = 0x10;
const WORKINGSET: u8 = 0x20;
const ACTIVE: u8 = 0x40;

/// The LRU bits of a flags word, whatever the variant: the `LRU_REFS` field ("mask"), `PG_referenced`, `PG_workingset`, `PG_active`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FolioFlags(u8);

impl std::fmt::Debug for FolioFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on = |set, text| if set { text } else { "" };
        write!(f, "{{mask {}{}{}{}}}", self.mask(), on(self.referenced(), " ref"), on(self.workingset(), " ws"), on(self.active(), " act"))
    }
}

impl FolioFlags {
    /// Flags with these bits (`mask` 0..=15).
    pub const fn new(mask: u8, referenced: bool, workingset: bool, active: bool) -> Self {
        let mut bits = mask & MASK;
        if referenced {
            bits |= REFERENCED;
        }
        if workingset {
            bits |= WORKINGSET;
        }
        if active {
            bits |= ACTIVE;
        }
        Self(bits)
    }

    /// Value of the `LRU_REFS` field.
    pub const fn mask(self) -> u8 {
        self.0 & MASK
    }

    /// `PG_referenced`.
    pub const fn referenced(self) -> bool {
        self.0 & REFERENCED != 0
    }

    /// `PG_workingset`.
    pub const fn workingset(self) -> bool {
        self.0 & WORKINGSET != 0
    }

    /// `PG_active`; never set on an MGLRU list (spec 9.2).
    pub const fn active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// The same without regard to `PG_active`.
    pub const fn without_active(self) -> Self {
        Self(self.0 & !ACTIVE)
    }

    /// Sets the `LRU_REFS` field.
    pub const fn set_mask(&mut self, mask: u8) {
        self.0 = self.0 & !MASK | mask & MASK;
    }

    /// Sets `PG_referenced`.
    pub const fn set_referenced(&mut self, on: bool) {
        self.set(REFERENCED, on);
    }

    /// Sets `PG_workingset`.
    pub const fn set_workingset(&mut self, on: bool) {
        self.set(WORKINGSET, on);
    }

    /// Sets `PG_active`.
    pub const fn set_active(&mut self, on: bool) {
        self.set(ACTIVE, on);
    }

    /// Clears mask and referenced: what 6.14 and later call the reference flags.
    pub const fn clear_referenced_and_mask(&mut self) {
        self.0 &= !(MASK | REFERENCED);
    }

    /// Clears mask, referenced and workingset.
    pub const fn clear_refs(&mut self) {
        self.0 &= ACTIVE;
    }

    const fn set(&mut self, bit: u8, on: bool) {
        if on {
            self.0 |= bit;
        } else {
            self.0 &= !bit;
        }
    }
}

/// One folio's place and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FolioState {
    /// Low 32 bits of the absolute generation number; the last one while off the lists.
    pub seq: u32,
    /// Whether it is on an MGLRU list (the gen field is not 0).
    pub on_list: bool,
    /// Its LRU bits.
    pub flags: FolioFlags,
}

impl FolioState {
    /// A folio on a list.
    pub const fn on_list(seq: u64, flags: FolioFlags) -> Self {
        Self { seq: seq as u32, on_list: true, flags }
    }

    /// Value of the gen field: 0 off the lists, else `seq % 4 + 1` (spec 1.3).
    pub const fn gen_field(self) -> u8 {
        if self.on_list { (self.seq % 4) as u8 + 1 } else { 0 }
    }
}

/// What a folio is, as far as the rules ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traits {
    /// Not `PG_swapbacked`: type file. shmem is anon, lazily freed anon is file (spec 1.1).
    pub file: bool,
    /// In the swap cache.
    pub swapcache: bool,
    /// `PG_reclaim`.
    pub reclaim: bool,
    /// Dirty.
    pub dirty: bool,
    /// Under writeback.
    pub writeback: bool,
    /// Unevictable or mlocked.
    pub unevictable: bool,
    /// `PG_dropbehind`: accesses do not count.
    pub dropbehind: bool,
    /// Mapped executable where the access was seen.
    pub exec: bool,
    /// Mapped at all.
    pub mapped: bool,
    /// Base pages.
    pub pages: u32,
}

impl Traits {
    /// A clean page-cache page.
    pub const FILE: Self = Self {
        file: true,
        swapcache: false,
        reclaim: false,
        dirty: false,
        writeback: false,
        unevictable: false,
        dropbehind: false,
        exec: false,
        mapped: false,
        pages: 1,
    };

    /// An anonymous page that never was in swap.
    pub const ANON: Self = Self { file: false, mapped: true, ..Self::FILE };

    /// Whether an access through this mapping counts double (`VM_EXEC` and type file, spec 3.2).
    pub(crate) const fn exec_file(&self) -> bool {
        self.exec && self.file
    }
}

/// A lruvec's generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The youngest generation.
    pub max_seq: u64,
    /// The oldest of anon and file.
    pub min_seq: [u64; 2],
}

impl Window {
    /// A lruvec's first state (spec 1.1).
    pub const INITIAL: Self = Self { max_seq: 3, min_seq: [0, 0] };

    /// `max_seq - seq` for a seq of which the low 32 bits are known.
    pub const fn age(&self, seq: u32) -> u32 {
        (self.max_seq as u32).wrapping_sub(seq)
    }

    /// Age of a type's oldest generation.
    pub const fn oldest_age(&self, file: bool) -> u32 {
        self.max_seq.wrapping_sub(self.min_seq[file as usize]) as u32
    }

    /// Whether this is the oldest generation of the type, or one that `min_seq` has already passed.
    pub const fn is_oldest(&self, seq: u32, file: bool) -> bool {
        self.age(seq) as i32 >= self.oldest_age(file) as i32
    }

    /// Number of generations of a type, 2..=4 (spec 9.1).
    pub const fn nr_gens(&self, file: bool) -> u32 {
        self.oldest_age(file) + 1
    }

    /// Low 32 bits of `max_seq`.
    pub const fn youngest(&self) -> u32 {
        self.max_seq as u32
    }
}

/// Smallest n with 2^n >= x (0 for 0).
const fn order_base_2(x: u32) -> u8 {
    if x <= 1 { 0 } else { (32 - (x - 1).leading_zeros()) as u8 }
}

impl Rules {
    /// Largest value of the mask field.
    pub const fn mask_max(&self) -> u8 {
        (1 << self.width) - 1
    }

    /// Largest reference count.
    pub const fn max_refs(&self) -> u32 {
        match self.encoding {
            Encoding::Count => (1 << (self.width + 2)) - 1,
            Encoding::MaskWorkingset | Encoding::ReferencedMask => 1 << self.width,
        }
    }

    /// Reference count (spec 1.4).
    pub const fn refs(&self, flags: FolioFlags) -> u32 {
        match self.encoding {
            Encoding::MaskWorkingset => flags.mask() as u32 + flags.workingset() as u32,
            Encoding::ReferencedMask => {
                if flags.referenced() {
                    flags.mask() as u32 + 1
                } else {
                    0
                }
            }
            Encoding::Count => flags.referenced() as u32 + 2 * flags.workingset() as u32 + 4 * flags.mask() as u32,
        }
    }

    /// Tier, 0..=3 (spec 1.4).
    pub const fn tier(&self, flags: FolioFlags) -> usize {
        self.tier_of(self.refs(flags), flags.workingset())
    }

    /// Tier of a count and a workingset bit, as a shadow holds them.
    pub(crate) const fn tier_of(&self, refs: u32, workingset: bool) -> usize {
        let tier = match self.encoding {
            Encoding::MaskWorkingset => order_base_2(refs + 1),
            Encoding::ReferencedMask if workingset => 3,
            Encoding::ReferencedMask => order_base_2(refs),
            Encoding::Count if refs < 2 => 0,
            Encoding::Count => order_base_2(refs),
        };
        // Widths above the requested one would count further than there are tiers.
        if tier > 3 { 3 } else { tier as usize }
    }

    /// Whether the scan moves the folio on whatever the controller says (spec 1.4).
    pub const fn saturated(&self, flags: FolioFlags) -> bool {
        match self.saturation {
            Saturation::Refs => self.refs(flags) == 1 << self.width,
            Saturation::RefsWorkingset => self.refs(flags) + flags.workingset() as u32 == (1 << self.width) + 1,
            Saturation::Never => false,
        }
    }

    /// Whether the folio is what readers of `folio_test_workingset` see as workingset.
    pub const fn is_workingset(&self, flags: FolioFlags) -> bool {
        match self.encoding {
            Encoding::Count => self.refs(flags) >= 2,
            Encoding::MaskWorkingset | Encoding::ReferencedMask => flags.workingset(),
        }
    }

    /// Whether vmstat counts the folio as active (spec 5.5): FG by its references, others by generation.
    pub const fn counts_as_active(&self, state: &FolioState, window: &Window) -> bool {
        match self.encoding {
            Encoding::Count => self.refs(state.flags) >= 3,
            Encoding::MaskWorkingset | Encoding::ReferencedMask => window.age(state.seq) < 2,
        }
    }

    /// Writes a count in the one-count encoding, keeping `PG_active`.
    pub(crate) const fn set_count(flags: &mut FolioFlags, refs: u32) {
        *flags = FolioFlags::new((refs >> 2) as u8, refs & 1 != 0, refs & 2 != 0, flags.active());
    }

    /// Lowers a count to at most `cap` (one-count encoding).
    pub(crate) const fn cap_count(&self, flags: &mut FolioFlags, cap: u32) {
        if self.refs(*flags) > cap {
            Self::set_count(flags, cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::*;
    use super::*;

    const fn flags(mask: u8, referenced: bool, workingset: bool) -> FolioFlags {
        FolioFlags::new(mask, referenced, workingset, false)
    }

    #[test]
    fn a_state_is_small() {
        assert!(size_of::<FolioFlags>() <= 4);
        assert!(size_of::<FolioState>() <= 8);
    }

    #[test]
    fn spec_1_4_tiers() {
        let of = |rules: &Rules, range: std::ops::RangeInclusive<u32>| range.map(|r| rules.tier_of(r, false)).collect::<Vec<_>>();
        assert_eq!(of(&V6_12, 0..=4), [0, 1, 2, 2, 3]);
        assert_eq!(of(&V7_3, 0..=4), [0, 0, 1, 2, 2]);
        assert_eq!(V7_3.tier_of(0, true), 3);
        assert_eq!(of(&FG_V3, 0..=7), [0, 0, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn spec_1_4_refs_and_maxima() {
        assert_eq!(V7_3.refs(flags(3, false, false)), 0, "the mask is stale without PG_referenced");
        assert_eq!(V7_3.refs(flags(3, true, true)), 4);
        assert_eq!(V6_12.refs(flags(3, false, true)), 4);
        assert_eq!(V6_12.refs(flags(1, true, false)), 1);
        assert_eq!(FG_V3.refs(flags(1, true, true)), 7);
        assert_eq!([V6_12.max_refs(), V6_18.max_refs(), V7_3.max_refs(), FG_V3.max_refs()], [4, 4, 4, 7]);
        assert_eq!(Rules { width: 0, ..FG_V3 }.max_refs(), 3);
    }

    #[test]
    fn spec_1_4_saturation() {
        assert!(V7_3.saturated(flags(3, true, true)));
        assert!(!V7_3.saturated(flags(3, true, false)));
        assert!(!V7_3.saturated(flags(0, false, true)));
        assert!(V6_12.saturated(flags(3, false, true)));
        assert!(!V6_12.saturated(flags(2, true, true)));
        assert!(!FG_V3.saturated(flags(1, true, true)));
        assert!(Rules { width: 0, ..V7_3 }.saturated(flags(0, true, true)));
    }

    #[test]
    fn counts_survive_a_round_trip() {
        for refs in 0..=7 {
            let mut f = FolioFlags::new(0, false, false, true);
            Rules::set_count(&mut f, refs);
            assert_eq!(FG_V3.refs(f), refs);
            assert!(f.active());
        }
    }

    #[test]
    fn ages_work_across_the_32_bit_wrap() {
        let window = Window { max_seq: (1 << 32) + 1, min_seq: [(1 << 32) - 2, 1 << 32] };
        assert_eq!(window.age(u32::MAX), 2);
        assert!(window.is_oldest(u32::MAX - 1, false));
        assert!(!window.is_oldest(1, true));
        assert!(window.is_oldest(u32::MAX, true), "min_seq has passed it");
        assert_eq!([window.nr_gens(false), window.nr_gens(true)], [4, 2]);
    }
}
