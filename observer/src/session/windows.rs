//! Windows of event time in which promotions are compared: both, only predicted, only actual (design.md).

use crate::session::{
    Session,
    sampling::{self, By, Of},
    world::Slot,
};

/// Length of a window.
pub(crate) const WINDOW_NS: u64 = 1_000_000_000;

/// A gap this long in event time starts afresh instead of filling the graph with empty windows.
const MAX_EMPTY: u64 = 60;

/// Promotions noted before the window's cells are counted early: a stream whose time stands still would add to them for ever.
const MAX_PROMOTED: usize = 1 << 20;

/// The current window.
#[derive(Debug)]
pub(crate) struct Windows {
    ends: u64,
    /// Folios that some side promoted in it.
    pub(crate) promoted: Vec<Slot>,
    /// Events at its start.
    pub(crate) events_at: u64,
    /// Events per second in the one before.
    pub(crate) events_per_s: f64,
}

impl Windows {
    pub(crate) fn new(start: u64) -> Self {
        Self { ends: start.saturating_add(WINDOW_NS), promoted: Vec::new(), events_at: 0, events_per_s: 0.0 }
    }
}

impl Session {
    /// Closes the windows that the latest event has left behind.
    pub(crate) fn roll_windows(&mut self) {
        if self.last_ts < self.windows.ends {
            return;
        }
        let passed = (self.last_ts - self.windows.ends) / WINDOW_NS + 1;
        self.close_cells();
        let seconds = WINDOW_NS as f64 / 1e9;
        for _ in 0..passed.min(MAX_EMPTY) {
            for side in &mut self.actual_sides {
                side.roll(seconds);
            }
            for side in self.rules.iter_mut().flat_map(|set| &mut set.sides) {
                side.roll(seconds);
            }
        }
        self.windows.events_per_s = (self.events - self.windows.events_at) as f64 / (passed as f64 * seconds);
        self.windows.events_at = self.events;
        self.windows.ends = self.windows.ends.saturating_add(passed.saturating_mul(WINDOW_NS));
    }

    /// Counts the cells of every folio promoted in this window.
    fn close_cells(&mut self) {
        let promoted = std::mem::take(&mut self.windows.promoted);
        for slot in &promoted {
            self.close_cell(*slot);
        }
        self.windows.promoted = promoted;
        self.windows.promoted.clear();
    }

    /// Counts one folio's cells, when its window or its residency ends.
    pub(crate) fn close_cell(&mut self, slot: Slot) {
        let folio = self.world.folio_mut(slot);
        let bits = std::mem::take(&mut folio.promoted);
        if bits == 0 {
            return;
        }
        let folio = *folio;
        let file = folio.file as usize;
        let actual = bits & 1 != 0;
        for (index, set) in self.rules.iter_mut().enumerate() {
            let predicted = bits & (2 << index) != 0;
            let (total, here) = (&mut set.promotions, &mut set.files[file]);
            let cell = match (predicted, actual) {
                (true, true) => {
                    total.both += 1;
                    here.both += 1;
                    By::Both
                }
                (true, false) => {
                    total.only_predicted += 1;
                    here.only_predicted += 1;
                    By::OnlyPredicted
                }
                (false, true) => {
                    total.only_actual += 1;
                    here.only_actual += 1;
                    By::OnlyActual
                }
                (false, false) => continue,
            };
            self.sampling.count_by(|| sampling::unit(&folio), index, cell, 1);
        }
    }

    /// Notes a promotion by the kernel (`None`) or by a rule set.
    pub(crate) fn promoted(&mut self, slot: Slot, by: Option<usize>) {
        if self.windows.promoted.len() >= MAX_PROMOTED {
            self.close_cells();
        }
        let folio = self.world.folio_mut(slot);
        let bit = by.map_or(1, |index| 2 << index);
        if folio.promoted == 0 {
            self.windows.promoted.push(slot);
        }
        folio.promoted |= bit;
        let (lruvec, pages) = (folio.lruvec as usize, folio.pages());
        match by {
            None => {
                self.actual_sides[lruvec].promote(pages);
                for set in &mut self.rules {
                    set.promotions.actual += 1;
                }
                self.sample(slot, Of::Promoted, 1);
            }
            Some(index) => {
                let set = &mut self.rules[index];
                set.promotions.predicted += 1;
                set.sides[lruvec].promote(pages);
                self.sample_by(slot, index, By::Promoted, 1);
            }
        }
    }
}
