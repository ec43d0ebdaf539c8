//! When generations open and close (spec 5.1, 5.6).

use super::flags::Window;
use super::rules::{Aging, MinSeqTie, Rules};
use super::tiers::{MAX_SWAPPINESS, evictable};

/// First and gentlest reclaim priority.
pub const DEF_PRIORITY: u8 = 12;

/// Pages of the evictable types, for the age-by-size rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// In the youngest generation.
    pub young: u64,
    /// In `max_seq - 2`.
    pub old: u64,
    /// In all generations.
    pub total: u64,
}

impl Rules {
    /// Whether reclaim at this priority ages first (spec 5.1). `sizes` is asked for only when they matter.
    pub fn should_age(&self, window: &Window, swappiness: u8, priority: u8, sizes: impl FnOnce() -> Sizes) -> bool {
        let oldest = self.evictable_min_seq(window, swappiness);
        if oldest + 2 > window.max_seq {
            return self.aging == Aging::Priority || priority != DEF_PRIORITY;
        }
        if oldest + 2 < window.max_seq || priority == DEF_PRIORITY {
            return false;
        }
        match self.aging {
            Aging::Priority | Aging::RaisedPriority => true,
            Aging::Sizes => {
                let sizes = sizes();
                sizes.young * 2 > sizes.total || sizes.old * 4 < sizes.total
            }
        }
    }

    /// The oldest generation that aging looks at (spec 5.1: e, or q in 6.12).
    pub fn evictable_min_seq(&self, window: &Window, swappiness: u8) -> u64 {
        match self.aging {
            Aging::Sizes => window.min_seq[usize::from(swappiness == 0)],
            Aging::Priority | Aging::RaisedPriority => match (evictable(false, swappiness), evictable(true, swappiness)) {
                (true, true) => window.min_seq[0].min(window.min_seq[1]),
                (true, false) => window.min_seq[0],
                (false, _) => window.min_seq[1],
            },
        }
    }

    /// Where `try_to_inc_min_seq` moves `min_seq` of both types, given which lists are empty (spec 5.6).
    pub fn next_min_seq(&self, window: &Window, swappiness: u8, empty: impl Fn(bool, u64) -> bool) -> [u64; 2] {
        let mut next = window.min_seq;
        for (t, seq) in next.iter_mut().enumerate() {
            while evictable(t == 1, swappiness) && *seq + 2 <= window.max_seq && empty(t == 1, *seq) {
                *seq += 1;
            }
        }
        match self.min_seq_tie {
            MinSeqTie::Diverge if (1..=MAX_SWAPPINESS).contains(&swappiness) => {
                let limit = window.max_seq.saturating_sub(2);
                if next[0] > limit && next[1] < limit {
                    next[0] = limit;
                } else if next[1] > limit && next[0] < limit {
                    next[1] = limit;
                }
            }
            MinSeqTie::AnonBehindFile if swappiness > 0 => {
                next[0] = next[0].min(next[1]);
                next[1] = next[0].max(window.min_seq[1]);
            }
            MinSeqTie::Diverge | MinSeqTie::AnonBehindFile => {}
        }
        [next[0].max(window.min_seq[0]), next[1].max(window.min_seq[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::*;
    use super::*;

    fn window(max_seq: u64, anon: u64, file: u64) -> Window {
        Window { max_seq, min_seq: [anon, file] }
    }

    #[test]
    fn t13_min_seq() {
        let empty = |file: bool, seq: u64| !file && seq < 2;
        for rules in [V6_18, V7_3, FG_V3, FG_V4] {
            assert_eq!(rules.next_min_seq(&Window::INITIAL, 60, empty), [1, 0]);
            assert_eq!(rules.next_min_seq(&Window::INITIAL, 0, empty), [0, 0], "anon not considered");
        }
        let file_too = |file: bool, seq: u64| seq < if file { 1 } else { 2 };
        assert_eq!(V7_3.next_min_seq(&Window::INITIAL, 60, file_too), [2, 1], "only a type further behind holds the other back");
        assert_eq!(V6_12.next_min_seq(&Window::INITIAL, 60, empty), [0, 0], "anon stays behind file");
    }

    #[test]
    fn min_seq_keeps_two_generations_and_never_decreases() {
        for rules in PRESETS {
            for (anon, file) in [(0, 0), (0, 2), (2, 0), (1, 2)] {
                let before = window(3, anon, file);
                let after = rules.next_min_seq(&before, 60, |_, _| true);
                for (after, before) in after.into_iter().zip(before.min_seq) {
                    assert!(after >= before && after <= 2, "edge 9.1");
                }
            }
        }
    }

    #[test]
    fn edge_9_1_anon_does_not_pass_file_in_6_12() {
        let empty = |_, seq| seq < 2;
        assert_eq!(V6_12.next_min_seq(&window(3, 0, 0), 60, empty), [2, 2]);
        assert_eq!(V6_12.next_min_seq(&window(3, 0, 0), 60, |file, _| file), [0, 0], "file waits for anon while swap is possible");
        assert_eq!(V6_12.next_min_seq(&window(3, 0, 0), 0, |file, _| file), [0, 2], "and does not when not");
    }

    #[test]
    fn spec_5_1_aging_by_generations_and_priority() {
        let none = Sizes::default;
        for rules in [V6_18, V7_3, FG_V3] {
            let early = rules.name != "6.18";
            assert_eq!(rules.should_age(&window(3, 2, 2), 60, 12, none), early, "two generations: mandatory, in 6.18 once pressed");
            assert!(rules.should_age(&window(3, 2, 2), 60, 11, none));
            assert!(!rules.should_age(&window(3, 1, 1), 60, 12, none), "three: not at the first priority");
            assert!(rules.should_age(&window(3, 1, 1), 60, 11, none));
            assert!(!rules.should_age(&window(3, 0, 0), 60, 0, none), "four: never");
            assert!(!rules.should_age(&window(3, 0, 2), 60, 0, none), "edge 9.25: the type with more generations decides");
            assert!(rules.should_age(&window(3, 0, 2), 0, 11, none), "unless it is not evictable");
        }
    }

    #[test]
    fn spec_5_1_aging_by_sizes_in_6_12() {
        let three = window(3, 1, 1);
        let sizes = |young, old| move || Sizes { young, old, total: 100 };
        assert!(V6_12.should_age(&three, 60, 11, sizes(51, 40)));
        assert!(V6_12.should_age(&three, 60, 11, sizes(40, 24)));
        assert!(!V6_12.should_age(&three, 60, 11, sizes(40, 25)));
        assert!(!V6_12.should_age(&three, 60, 12, sizes(51, 40)));
        assert!(V6_12.should_age(&window(3, 2, 2), 60, 11, sizes(0, 100)));
        assert!(!V6_12.should_age(&window(3, 0, 2), 60, 11, sizes(51, 0)));
        assert!(V6_12.should_age(&window(3, 0, 2), 0, 11, sizes(0, 100)), "without swap file decides");
    }
}
