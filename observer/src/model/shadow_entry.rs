//! What an evicted folio leaves behind, and what it gets back (spec 7).

use super::flags::{FolioState, Window};
use super::rules::{Encoding, Recent, Rules};

/// The two values that reclaim leaves of a folio (spec 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Generation and references.
    pub value: u64,
    /// The entry's "workingset" bit, whatever the variant keeps in it.
    pub workingset: bool,
    /// Bits of `value` that are kept; the rest was cut off.
    pub bits: u8,
}

/// A raw shadow entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowEntry {
    /// What the LRU put in.
    pub token: Token,
    /// Private id of the memory cgroup that the folio was charged to.
    pub memcg_id: u16,
    /// NUMA node.
    pub node: u32,
}

/// How this kernel packs a shadow entry in 64 bits (spec 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowLayout {
    /// `NODES_SHIFT`.
    pub nodes_shift: u8,
    /// High bits that the swap table takes from anon tokens (7.3: `SWAP_COUNT_SHIFT`; else 0).
    pub anon_cut: u8,
}

/// Tag of an xarray value.
const VALUE_TAG: u64 = 1;

impl ShadowLayout {
    /// Bits of a token.
    pub const fn token_bits(&self, file: bool) -> u8 {
        let taken = 1 + 1 + self.nodes_shift + 16 + if file { 0 } else { self.anon_cut };
        64u8.saturating_sub(taken)
    }

    /// The 64-bit entry.
    pub const fn encode(&self, entry: &ShadowEntry, file: bool) -> u64 {
        let token = entry.token.value & low_bits(self.token_bits(file));
        let packed = (((token << 16) | entry.memcg_id as u64) << self.nodes_shift) | entry.node as u64;
        ((packed << 1 | entry.token.workingset as u64) << 1) | VALUE_TAG
    }

    /// The parts of a 64-bit entry; none if it is no entry at all (an xarray value is odd).
    pub const fn decode(&self, raw: u64, file: bool) -> Option<ShadowEntry> {
        if raw & VALUE_TAG == 0 {
            return None;
        }
        let packed = raw >> 2;
        let node = packed & low_bits(self.nodes_shift);
        let packed = packed >> self.nodes_shift;
        let bits = self.token_bits(file);
        let token = Token { value: (packed >> 16) & low_bits(bits), workingset: raw & 2 != 0, bits };
        Some(ShadowEntry { token, memcg_id: packed as u16, node: node as u32 })
    }
}

const fn low_bits(n: u8) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// What a refault did and counts (spec 7.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefaultEffect {
    /// WORKINGSET_ACTIVATE is counted.
    pub activate: bool,
    /// WORKINGSET_RESTORE is counted.
    pub restore: bool,
    /// Tier in which the controller counts it.
    pub tier: usize,
}

impl Rules {
    /// Bits of a token below the generation.
    const fn token_shift(&self) -> u8 {
        match self.encoding {
            Encoding::Count => self.width + 1,
            Encoding::MaskWorkingset | Encoding::ReferencedMask => self.width,
        }
    }

    /// What eviction stores for a folio of a type (spec 7.1).
    pub fn evict(&self, state: &FolioState, window: &Window, file: bool) -> Token {
        let refs = self.refs(state.flags);
        let (low, workingset) = match self.encoding {
            Encoding::MaskWorkingset => (refs.saturating_sub(1), refs > 0),
            Encoding::ReferencedMask => (refs.saturating_sub(1), state.flags.workingset()),
            Encoding::Count => (refs >> 1, refs & 1 != 0),
        };
        Token { value: (window.min_seq[file as usize] << self.token_shift()) + u64::from(low), workingset, bits: 64 }
    }

    /// References that a token stands for, and its workingset bit as the tier sees it (spec 7.3).
    pub fn token_refs(&self, token: Token) -> (u32, bool) {
        let low = (token.value & low_bits(self.token_shift())) as u32;
        match self.encoding {
            Encoding::MaskWorkingset => (low + u32::from(token.workingset), token.workingset),
            Encoding::ReferencedMask => (low + 1, token.workingset),
            Encoding::Count => ((low << 1) + u32::from(token.workingset), false),
        }
    }

    /// Whether an evicted folio comes back early enough to count (spec 7.2).
    pub fn is_recent(&self, token: Token, window: &Window, file: bool) -> bool {
        let mask = low_bits(token.bits.saturating_sub(self.token_shift()));
        let seq = token.value >> self.token_shift();
        match self.recent {
            Recent::SameMinSeq => seq == window.min_seq[file as usize] & mask,
            Recent::WithinWindow => (window.max_seq & mask).abs_diff(seq) < 4,
        }
    }

    /// A recent refault: restores references in the new folio, before `folio_add_lru` (spec 7.3).
    pub fn on_refault(&self, state: &mut FolioState, token: Token, in_fault: bool) -> RefaultEffect {
        let (refs, workingset) = self.token_refs(token);
        let (activate, restore) = self.restore(&mut state.flags, refs, workingset, in_fault);
        RefaultEffect { activate, restore, tier: self.tier_of(refs, workingset) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::{FolioFlags, Traits};
    use super::super::rules::*;
    use super::*;

    const LAYOUT: ShadowLayout = ShadowLayout { nodes_shift: 10, anon_cut: 5 };

    fn window(max_seq: u64, min_seq: u64) -> Window {
        Window { max_seq, min_seq: [min_seq; 2] }
    }

    fn fg(refs: u32) -> FolioFlags {
        let mut flags = FolioFlags::default();
        Rules::set_count(&mut flags, refs);
        flags
    }

    #[test]
    fn t8_shadow_7_3() {
        let state = FolioState { flags: FolioFlags::new(2, true, false, false), ..Default::default() };
        let token = V7_3.evict(&state, &window(43, 41), true);
        assert_eq!((token.value, token.workingset), (166, false));
        let raw = LAYOUT.encode(&ShadowEntry { token, memcg_id: 7, node: 1 }, true);
        let v = ((166 << 16 | 7) << 10 | 1) << 1;
        assert_eq!(raw, v << 1 | 1);
        let back = LAYOUT.decode(raw, true).expect("an entry");
        assert_eq!((back.token.value, back.token.workingset, back.memcg_id, back.node), (166, false, 7, 1));
        assert_eq!(V7_3.token_refs(back.token), (3, false));
    }

    #[test]
    fn t8_shadow_fg() {
        for rules in [FG_V2, FG_V3, FG_V4] {
            let token = rules.evict(&FolioState { flags: fg(5), ..Default::default() }, &window(43, 41), true);
            assert_eq!((token.value, token.workingset), (41 * 4 + 2, true));
            assert_eq!(rules.token_refs(token).0, 5);
        }
    }

    #[test]
    fn t8_shadow_6_12() {
        let state = FolioState { flags: FolioFlags::new(1, false, true, false), ..Default::default() };
        let token = V6_12.evict(&state, &window(43, 41), true);
        assert_eq!((token.value, token.workingset), (41 * 4 + 1, true));
        assert_eq!(V6_12.token_refs(token), (2, true));
        let cold = V6_12.evict(&FolioState::default(), &window(43, 41), true);
        assert_eq!(V6_12.token_refs(cold), (0, false));
    }

    #[test]
    fn entries_of_every_width_invert() {
        for (nodes_shift, anon_cut) in [(0, 0), (6, 5), (10, 5)] {
            let layout = ShadowLayout { nodes_shift, anon_cut };
            for file in [false, true] {
                let bits = layout.token_bits(file);
                for value in [0, 1, 0xdead_beef, u64::MAX] {
                    let token = Token { value, workingset: true, bits: 64 };
                    let raw = layout.encode(&ShadowEntry { token, memcg_id: 0xffff, node: 0 }, file);
                    let back = layout.decode(raw, file).expect("an entry");
                    assert_eq!(back.token, Token { value: value & low_bits(bits), workingset: true, bits });
                    assert_eq!((back.memcg_id, back.node), (0xffff, 0));
                }
            }
        }
        assert_eq!(LAYOUT.decode(0, true), None);
        assert_eq!(LAYOUT.token_bits(true), 36);
    }

    #[test]
    fn t9_recency() {
        for rules in [V6_18, V7_3, FG_V3, FG_V4] {
            let token = rules.evict(&FolioState::default(), &window(41, 38), true);
            assert!(rules.is_recent(token, &window(41, 38), true), "{}", rules.name);
            assert!(!rules.is_recent(token, &window(42, 39), true), "{}", rules.name);
        }
        let token = V6_12.evict(&FolioState::default(), &window(40, 38), true);
        assert!(V6_12.is_recent(token, &window(41, 38), true));
        assert!(!V6_12.is_recent(token, &window(41, 39), true));
    }

    #[test]
    fn recency_survives_truncation() {
        let far = (1 << 40) + 2;
        let mut token = V7_3.evict(&FolioState::default(), &window(far, far - 2), true);
        token = LAYOUT.decode(LAYOUT.encode(&ShadowEntry { token, memcg_id: 1, node: 0 }, true), true).expect("an entry").token;
        assert!(V7_3.is_recent(token, &window(far, far - 2), true));
        assert!(!V7_3.is_recent(token, &window(far + 4, far + 2), true));
    }

    #[test]
    fn t10_restored_mask_is_lost_by_fd_accesses() {
        let token = Token { value: 41 * 4 + 2, workingset: false, bits: 36 };
        let mut state = FolioState::default();
        let effect = V7_3.on_refault(&mut state, token, false);
        assert_eq!(effect, RefaultEffect { activate: false, restore: false, tier: 2 });
        assert_eq!((state.flags, V7_3.refs(state.flags), V7_3.tier(state.flags)), (FolioFlags::new(2, false, false, false), 0, 0));
        V7_3.on_mark(&mut state, &Traits::FILE, &Window::INITIAL);
        V7_3.on_mark(&mut state, &Traits::FILE, &Window::INITIAL);
        assert_eq!((state.flags, V7_3.refs(state.flags)), (FolioFlags::new(1, true, false, false), 2));
    }

    #[test]
    fn t10_restored_mask_shows_in_a_folio_created_referenced() {
        let token = Token { value: 41 * 4 + 2, workingset: false, bits: 36 };
        let mut state = FolioState { flags: FolioFlags::new(0, true, false, false), ..Default::default() };
        V7_3.on_refault(&mut state, token, false);
        assert_eq!(V7_3.refs(state.flags), 3);
    }

    #[test]
    fn spec_7_3_effects_by_variant() {
        let effect = |rules: &Rules, low: u64, workingset, in_fault| {
            let mut state = FolioState::default();
            let e = rules.on_refault(&mut state, Token { value: 400 + low, workingset, bits: 36 }, in_fault);
            (e.activate, e.restore, e.tier, state.flags)
        };
        let hot = FolioFlags::new(0, false, true, false);
        assert_eq!(effect(&V7_3, 0, true, true), (true, true, 3, hot));
        assert_eq!(effect(&V7_3, 0, true, false), (false, true, 3, hot));
        assert!(!effect(&V7_3, 0, false, true).0);
        assert_eq!(effect(&V6_18, 0, false, true), (true, false, 0, FolioFlags::default()));
        let full = FolioFlags::new(3, false, true, false);
        assert_eq!(effect(&V6_12, 0, false, false), (true, false, 0, FolioFlags::default()));
        assert_eq!(effect(&V6_12, 0, false, true), (true, true, 0, full));
        assert_eq!(effect(&V6_12, 2, true, false), (true, true, 2, full));
        let fg_active = |refs| {
            let mut flags = fg(refs);
            flags.set_active(true);
            flags
        };
        assert_eq!(effect(&FG_V3, 0, false, true), (false, false, 0, FolioFlags::default()));
        assert_eq!(effect(&FG_V3, 0, true, true), (true, false, 0, fg_active(1)), "section 16");
        assert_eq!(effect(&FG_V3, 1, false, true), (true, true, 1, fg_active(2)));
        assert_eq!(effect(&FG_V3, 3, true, false), (false, true, 3, fg(3)), "at most three");
    }

    #[test]
    fn widths_that_were_not_granted() {
        let narrow = Rules { width: 0, ..FG_V3 };
        for refs in 0..=3 {
            let token = narrow.evict(&FolioState { flags: fg(refs), ..Default::default() }, &window(43, 41), true);
            assert_eq!(narrow.token_refs(token).0, refs);
            assert!(narrow.is_recent(token, &window(43, 41), true));
        }
    }
}
