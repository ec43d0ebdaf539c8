//! Tracked folios of one lruvec counted by place, for the kernel or for one rule set. Counts are pages.

use std::collections::VecDeque;

use crate::{model::Window, session::frame::Side};

/// Windows kept for the graph of promotions per second.
pub const HISTORY: usize = 240;

/// A folio's place, as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Low 32 bits of its generation (classical: 1 active, 0 inactive).
    pub seq: u32,
    /// Tier.
    pub tier: u8,
    /// References.
    pub refs: u8,
}

/// The counts.
#[derive(Clone, Debug, Default)]
pub struct SideCount {
    // By seq % 8: more than the four generations that exist at once.
    by_seq: [[i64; 2]; 8],
    by_tier: [[i64; 2]; 4],
    by_refs: [[i64; 2]; 8],
    promotions: u64,
    history: VecDeque<f32>,
}

impl SideCount {
    /// A folio entered a place (`sign` 1) or left it (-1).
    pub fn count(&mut self, place: Place, file: bool, pages: u32, sign: i64) {
        let pages = i64::from(pages) * sign;
        let kind = usize::from(file);
        self.by_seq[(place.seq % 8) as usize][kind] += pages;
        self.by_tier[usize::from(place.tier.min(3))][kind] += pages;
        self.by_refs[usize::from(place.refs.min(7))][kind] += pages;
    }

    /// `min_seq` of a type moved on: what is still counted below it now counts in it.
    pub fn fold(&mut self, file: bool, from: u64, to: u64) {
        let kind = usize::from(file);
        let first = from.max(to.saturating_sub(7));
        for seq in first..to {
            let moved = std::mem::take(&mut self.by_seq[(seq % 8) as usize][kind]);
            self.by_seq[(to % 8) as usize][kind] += moved;
        }
    }

    /// A promotion.
    pub fn promote(&mut self, pages: u32) {
        self.promotions += u64::from(pages);
    }

    /// Closes a window of the history.
    pub fn roll(&mut self, seconds: f64) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.promotions as f64 / seconds) as f32);
        self.promotions = 0;
    }

    /// As drawn. Without generations (classical LRU) `window` is `None`: age 0 active, age 3 inactive.
    pub fn frame(&self, window: Option<&Window>) -> Side {
        let pages = |count: i64| u64::try_from(count).unwrap_or(0);
        let pair = |counts: [i64; 2]| counts.map(pages);
        let mut side = Side {
            by_tier: self.by_tier.map(pair),
            by_refs: self.by_refs.map(pair),
            promotions_per_s: self.history.iter().map(|rate| f64::from(*rate)).collect(),
            ..Side::default()
        };
        match window {
            Some(window) => {
                for age in 0..4 {
                    let Some(seq) = window.max_seq.checked_sub(age) else { break };
                    side.by_age[age as usize] = pair(self.by_seq[(seq % 8) as usize]);
                }
            }
            None => {
                side.by_age[0] = pair(self.by_seq[1]);
                side.by_age[3] = pair(self.by_seq[0]);
            }
        }
        side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_follow_the_clock_and_folding_keeps_every_page() {
        let mut side = SideCount::default();
        let place = |seq| Place { seq, tier: 0, refs: 0 };
        side.count(place(5), true, 3, 1);
        side.count(place(8), true, 1, 1);
        let window = |max_seq, min_seq| Window { max_seq, min_seq: [min_seq; 2] };
        assert_eq!(side.frame(Some(&window(8, 5))).by_age, [[0, 1], [0, 0], [0, 0], [0, 3]]);
        side.fold(true, 5, 7);
        assert_eq!(side.frame(Some(&window(9, 7))).by_age, [[0, 0], [0, 1], [0, 3], [0, 0]]);
        side.count(place(7), true, 3, -1);
        assert_eq!(side.frame(Some(&window(9, 7))).by_age, [[0, 0], [0, 1], [0, 0], [0, 0]]);
    }
}
