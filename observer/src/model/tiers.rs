//! Tiers compared by their refaults: the controller (spec 4).

use super::flags::Window;
use super::rules::{Rules, TierLimit, TypeChoice};

/// Counters of a lruvec, `[type][tier]`, pages; types are anon, file (spec 4.1). One history slot, as with `NR_HIST_GENS` 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// Moving average of refaults.
    pub avg_refaulted: [[u64; 4]; 2],
    /// Moving average of evictions and protections.
    pub avg_total: [[u64; 4]; 2],
    /// Recent refaults since `min_seq` moved.
    pub refaulted: [[u64; 4]; 2],
    /// Evictions since `min_seq` moved.
    pub evicted: [[u64; 4]; 2],
    /// Protections since `min_seq` moved.
    pub protected: [[u64; 4]; 2],
}

/// What is compared: refaults and total of some tiers, with a gain.
#[derive(Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

/// `MIN_LRU_BATCH`: below as many refaults a position is not worth protecting.
const FLOOR: u64 = 64;

/// Whether PV is not worse than SP, so needs no protection (spec 4.2); the kernel multiplies in 64 bits.
const fn no_worse(sp: Position, pv: Position) -> bool {
    pv.refaulted < FLOOR
        || pv.refaulted.wrapping_mul(sp.total + FLOOR).wrapping_mul(sp.gain)
            <= (sp.refaulted + 1).wrapping_mul(pv.total).wrapping_mul(pv.gain)
}

impl Controller {
    fn position(&self, file: bool, tiers: std::ops::Range<usize>, gain: u64) -> Position {
        let t = file as usize;
        let sum = |counters: &[[u64; 4]; 2]| counters[t][tiers.clone()].iter().sum::<u64>();
        Position {
            refaulted: sum(&self.avg_refaulted) + sum(&self.refaulted),
            total: sum(&self.avg_total) + sum(&self.protected) + sum(&self.evicted),
            gain,
        }
    }

    /// Each time `min_seq` of a type moves: averages take half, counters start again (spec 4.1).
    pub fn carry_over(&mut self, file: bool) {
        let t = file as usize;
        for tier in 0..4 {
            self.avg_refaulted[t][tier] = (self.avg_refaulted[t][tier] + self.refaulted[t][tier]) / 2;
            self.avg_total[t][tier] = (self.avg_total[t][tier] + self.protected[t][tier] + self.evicted[t][tier]) / 2;
        }
        self.refaulted[t] = [0; 4];
        self.evicted[t] = [0; 4];
        self.protected[t] = [0; 4];
    }
}

/// Most swappiness that balances both types; one more means anon only (spec 1.1).
pub const MAX_SWAPPINESS: u8 = 200;

/// Whether a type may be reclaimed under this swappiness (spec 4.4).
pub const fn evictable(file: bool, swappiness: u8) -> bool {
    if file { swappiness <= MAX_SWAPPINESS } else { swappiness > 0 }
}

impl Rules {
    /// Highest tier that is not protected (spec 4.3).
    pub fn tier_limit(&self, controller: &Controller, file: bool) -> usize {
        let limit = |sp: &dyn Fn(usize) -> Position, pv_gain| {
            (1..4).find(|&t| !no_worse(sp(t), controller.position(file, t..t + 1, pv_gain))).map_or(3, |t| t - 1)
        };
        match self.tier_limit {
            TierLimit::OneTwo => limit(&|_| controller.position(file, 0..1, 1), 2),
            TierLimit::TwoThree => limit(&|_| controller.position(file, 0..1, 2), 3),
            TierLimit::Cumulative => limit(&|t| controller.position(file, 0..t, 1), 2),
        }
    }

    /// Type to scan (true: file) and its tier limit (spec 4.4). `io` says whether `__GFP_IO` is allowed.
    pub fn type_to_scan(&self, controller: &Controller, window: &Window, swappiness: u8, io: bool) -> (bool, usize) {
        let (anon_gain, file_gain) = (u64::from(swappiness), u64::from(MAX_SWAPPINESS.saturating_sub(swappiness)));
        let file = match self.type_choice {
            TypeChoice::BehindThenTierZero => {
                if swappiness == 0 {
                    true
                } else if window.min_seq[0] < window.min_seq[1] {
                    false
                } else if swappiness == 1 {
                    true
                } else if swappiness >= MAX_SWAPPINESS {
                    false
                } else if !io {
                    true
                } else {
                    let file = no_worse(controller.position(false, 0..1, anon_gain), controller.position(true, 0..1, file_gain));
                    // Only here are the chosen type's tiers held against the other type's tier 0.
                    let gain = [anon_gain, file_gain];
                    let sp = controller.position(!file, 0..1, gain[!file as usize]);
                    let limit = (1..4).find(|&t| !no_worse(sp, controller.position(file, t..t + 1, gain[file as usize])));
                    return (file, limit.map_or(3, |t| t - 1));
                }
            }
            TypeChoice::AllTiers => {
                if swappiness <= 1 {
                    true
                } else if swappiness >= MAX_SWAPPINESS {
                    false
                } else {
                    no_worse(controller.position(false, 0..4, anon_gain), controller.position(true, 0..4, file_gain))
                }
            }
        };
        (file, self.tier_limit(controller, file))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::*;
    use super::*;

    /// File tier 0 with refaulted 100 of 1000, tier 1 with `refaulted` of 1000.
    fn t5(refaulted: u64) -> Controller {
        let mut controller = Controller::default();
        controller.refaulted[1] = [100, refaulted, 0, 0];
        controller.evicted[1] = [1000, 1000, 0, 0];
        controller
    }

    #[test]
    fn t5_tier_limit() {
        let limit = |rules: &Rules, refaulted| rules.tier_limit(&t5(refaulted), true);
        for rules in PRESETS {
            assert_eq!(limit(rules, 63), 3, "floor, edge 9.26");
        }
        assert_eq!([limit(&V7_3, 140), limit(&FG_V3, 140), limit(&V6_12, 140)], [3, 3, 3]);
        assert_eq!([limit(&V7_3, 180), limit(&FG_V3, 180), limit(&V6_12, 180)], [0, 3, 3]);
        assert_eq!([limit(&V6_18, 180), limit(&FG_V4, 180)], [0, 3]);
        assert_eq!([limit(&V7_3, 200), limit(&FG_V3, 200), limit(&V6_12, 200)], [0, 0, 0]);
    }

    #[test]
    fn cumulative_limit_holds_a_tier_against_all_below() {
        let mut controller = Controller::default();
        controller.refaulted[1] = [0, 200, 200, 0];
        controller.evicted[1] = [1000, 100, 1000, 0];
        assert_eq!(FG_V3.tier_limit(&controller, true), 0, "tier 1 fails");
        controller.refaulted[1] = [10, 63, 100, 0];
        controller.evicted[1] = [1000; 4];
        // Tier 2: 100 * (2000 + 64) = 206,400 against 74 * 1000 * 2 = 148,000; against tier 0 alone 106,400 > 22,000 as well.
        assert_eq!(FG_V3.tier_limit(&controller, true), 1);
        controller.refaulted[1] = [60, 63, 100, 0];
        // 206,400 <= 124 * 2000.
        assert_eq!(FG_V3.tier_limit(&controller, true), 3);
        assert_eq!(V7_3.tier_limit(&controller, true), 1, "100 * 1064 * 2 > 61 * 1000 * 3");
    }

    #[test]
    fn t6_type_to_scan() {
        let mut controller = Controller::default();
        controller.refaulted[1][0] = 63;
        for rules in PRESETS {
            assert!(rules.type_to_scan(&controller, &Window::INITIAL, 60, true).0, "floor");
        }
        controller.refaulted[1][0] = 1000;
        controller.evicted[1][0] = 1000;
        for rules in PRESETS {
            assert!(!rules.type_to_scan(&controller, &Window::INITIAL, 60, true).0);
            assert!(rules.type_to_scan(&controller, &Window::INITIAL, 0, true).0);
            assert!(rules.type_to_scan(&controller, &Window::INITIAL, 1, true).0);
            assert!(!rules.type_to_scan(&controller, &Window::INITIAL, 200, true).0);
        }
        // 64 * 64 * 60 = 245,760 against (0 + 1) * 2000 * 140 = 280,000.
        let mut close = Controller::default();
        close.refaulted[1][0] = 64;
        close.evicted[1][0] = 2000;
        assert!(PRESETS.iter().all(|rules| rules.type_to_scan(&close, &Window::INITIAL, 60, true).0));
        assert!(V6_12.type_to_scan(&controller, &Window::INITIAL, 60, false).0, "no I/O: file");
        let behind = Window { max_seq: 3, min_seq: [0, 1] };
        assert!(!V6_12.type_to_scan(&Controller::default(), &behind, 60, true).0);
        assert!(V7_3.type_to_scan(&Controller::default(), &behind, 60, true).0);
    }

    #[test]
    fn a_6_12_choice_of_type_compares_tiers_with_the_other_type() {
        let mut controller = Controller::default();
        controller.refaulted[1] = [0, 100, 0, 0];
        controller.evicted[1] = [0, 1000, 0, 0];
        controller.evicted[0] = [1000, 0, 0, 0];
        // 100 * (1000 + 64) * 60 = 6,384,000 against (0 + 1) * 1000 * 140: protected from tier 1 on.
        assert_eq!(V6_12.type_to_scan(&controller, &Window::INITIAL, 60, true), (true, 0));
        controller.refaulted[0] = [48, 0, 0, 0];
        // 6,384,000 <= 49 * 140,000; at 1:2 it would be 106,400 > 49 * 2000.
        assert_eq!(V6_12.type_to_scan(&controller, &Window::INITIAL, 60, true), (true, 3));
    }

    #[test]
    fn t7_carry_over() {
        let mut controller = Controller::default();
        controller.avg_refaulted[1][2] = 10;
        controller.refaulted[1][2] = 5;
        controller.avg_total[1][2] = 3;
        controller.protected[1][2] = 1;
        controller.evicted[1][2] = 1;
        controller.refaulted[0][0] = 9;
        controller.carry_over(true);
        assert_eq!((controller.avg_refaulted[1][2], controller.avg_total[1][2]), (7, 2));
        assert_eq!((controller.refaulted[1], controller.protected[1], controller.evicted[1]), ([0; 4], [0; 4], [0; 4]));
        assert_eq!(controller.refaulted[0][0], 9, "the other type is untouched");
        controller.protected[1][2] = 10;
        controller.evicted[1][2] = 20;
        controller.carry_over(true);
        assert_eq!((controller.avg_refaulted[1][2], controller.avg_total[1][2]), (3, 16));
    }

    #[test]
    fn evictable_types() {
        let types = |swappiness| [evictable(false, swappiness), evictable(true, swappiness)];
        assert_eq!([types(0), types(1), types(200), types(201)], [[false, true], [true, true], [true, true], [true, false]]);
    }
}
