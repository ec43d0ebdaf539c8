//! Proof of the flag positions on the kernel's own insertions (spec 1.3): between the request and the insertion of a
//! folio only the generation field may change above the named flags, and it must name a generation that exists.

use std::collections::HashMap;

use crate::{
    session::frame::Calibration,
    stream::{event::Clock, header::FlagLayout},
};

/// Insertions that must agree before anything is predicted.
const NEEDED: u32 = 64;

/// Requests remembered until their insertion; a batch holds 31 per CPU.
const MAX_WAITING: usize = 4096;

/// Watches insertions and keeps the verdict.
#[derive(Debug)]
pub struct Calibrator {
    gen_mask: u64,
    gen_shift: u8,
    refs_mask: u64,
    /// Bits that calibration looks at: above the named flags.
    upper: u64,
    waiting: HashMap<u64, u64>,
    /// Generation values seen; two different ones at least, since a constant would fit many positions.
    values: u8,
    agreed: u64,
    state: Calibration,
}

impl Calibrator {
    /// For a layout whose positions were derived; without them the verdict is a contradiction from the start.
    pub fn new(layout: &FlagLayout, needed: bool) -> Self {
        let mut calibrator = Self {
            gen_mask: 0,
            gen_shift: 0,
            refs_mask: 0,
            upper: u64::MAX.checked_shl(u32::from(layout.nr_pageflags)).unwrap_or(0),
            waiting: HashMap::new(),
            values: 0,
            agreed: 0,
            state: if needed { Calibration::Pending { seen: 0, need: NEEDED } } else { Calibration::NotNeeded },
        };
        match (layout.gen_pgoff, layout.refs_pgoff, layout.refs_width) {
            (Some(gen_pgoff), Some(refs_pgoff), Some(width)) if gen_pgoff < 62 && width <= 4 => {
                calibrator.gen_shift = gen_pgoff;
                calibrator.gen_mask = 7 << gen_pgoff;
                calibrator.refs_mask = ((1 << width) - 1) << (refs_pgoff & 63);
            }
            _ if needed => {
                calibrator.state = Calibration::Contradicted {
                    why: "the positions of generation and references in a flags word could not be derived (is /proc/kallsyms readable?)"
                        .to_owned(),
                };
            }
            _ => {}
        }
        calibrator
    }

    /// The verdict so far.
    pub fn state(&self) -> &Calibration {
        &self.state
    }

    /// A folio asks for insertion: its word before.
    pub fn request(&mut self, folio: u64, word: u64) {
        if matches!(self.state, Calibration::Pending { .. }) && self.waiting.len() < MAX_WAITING {
            self.waiting.insert(folio, word);
        }
    }

    /// The folio was inserted: its word after, and its lruvec's clock.
    pub fn insertion(&mut self, folio: u64, word: u64, clock: Option<Clock>, file: bool, unevictable: bool) {
        if !matches!(self.state, Calibration::Pending { .. }) {
            return;
        }
        let (Some(before), Some(clock)) = (self.waiting.remove(&folio), clock) else { return };
        if unevictable {
            return;
        }
        if let Err(why) = self.check(before, word, clock, file) {
            self.state = Calibration::Contradicted { why };
            return;
        }
        self.agreed += 1;
        self.values |= 1 << ((word & self.gen_mask) >> self.gen_shift);
        let seen = u32::try_from(self.agreed).unwrap_or(u32::MAX);
        self.state = if seen >= NEEDED && self.values.count_ones() >= 2 {
            self.waiting = HashMap::new();
            Calibration::Confirmed { samples: self.agreed }
        } else {
            Calibration::Pending { seen: seen.min(NEEDED - 1), need: NEEDED }
        };
    }

    /// A folio on a list was seen: another generation value that exists proves the position as well as an insertion
    /// into it. What does not fit proves nothing here: the clock may have moved between the two reads (spec 9.6).
    pub fn sighting(&mut self, word: u64, clock: Clock, file: bool) {
        if matches!(self.state, Calibration::Pending { .. }) && word & self.gen_mask != 0 && self.exists(word, clock, file) {
            self.values |= 1 << ((word & self.gen_mask) >> self.gen_shift);
        }
    }

    fn exists(&self, word: u64, clock: Clock, file: bool) -> bool {
        let value = (word & self.gen_mask) >> self.gen_shift;
        let window = u32::from(clock.window[usize::from(file)]);
        (0..=window.min(3)).any(|age| u64::from(clock.max_seq.wrapping_sub(age) % 4) + 1 == value)
    }

    fn check(&self, before: u64, after: u64, clock: Clock, file: bool) -> Result<(), String> {
        // References may be counted while the folio waits in a batch.
        let changed = (before ^ after) & self.upper & !self.refs_mask;
        if changed & !self.gen_mask != 0 {
            return Err(format!("an insertion changed bits {:#x} outside the generation field", changed & !self.gen_mask));
        }
        if before & self.gen_mask != 0 {
            return Err("a folio that asked for insertion already had a generation".to_owned());
        }
        if self.exists(after, clock, file) {
            return Ok(());
        }
        let value = (after & self.gen_mask) >> self.gen_shift;
        Err(format!("an insertion chose the generation value {value}, which is none of the lruvec's"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::header::tests::layout;

    fn clock(max_seq: u32) -> Option<Clock> {
        Some(Clock { max_seq, window: [3, 3] })
    }

    fn insert(calibrator: &mut Calibrator, n: u64, after: u64, max_seq: u32) {
        calibrator.request(n, 1 << 3);
        calibrator.insertion(n, after, clock(max_seq), true, false);
    }

    #[test]
    fn insertions_in_two_generations_confirm() {
        let mut calibrator = Calibrator::new(&layout(), true);
        for n in 0..63 {
            insert(&mut calibrator, n, (1 << 3) | (1 << 27), 3);
        }
        assert!(matches!(calibrator.state(), Calibration::Pending { .. }));
        insert(&mut calibrator, 100, (1 << 3) | (1 << 27), 3);
        assert!(matches!(calibrator.state(), Calibration::Pending { .. }), "one value alone proves too little");
        insert(&mut calibrator, 101, (1 << 3) | (2 << 27) | (1 << 25), 4);
        assert_eq!(*calibrator.state(), Calibration::Confirmed { samples: 65 });
    }

    #[test]
    fn a_sighting_in_another_generation_counts_as_the_second_value() {
        let mut calibrator = Calibrator::new(&layout(), true);
        for n in 0..70 {
            insert(&mut calibrator, n, (1 << 3) | (2 << 27), 3);
        }
        assert!(matches!(calibrator.state(), Calibration::Pending { .. }));
        calibrator.sighting(6 << 27, Clock { max_seq: 3, window: [3, 3] }, true);
        calibrator.sighting(0, Clock { max_seq: 3, window: [3, 3] }, true);
        insert(&mut calibrator, 70, (1 << 3) | (2 << 27), 3);
        assert!(matches!(calibrator.state(), Calibration::Pending { .. }), "neither value exists");
        calibrator.sighting(3 << 27, Clock { max_seq: 3, window: [3, 3] }, true);
        insert(&mut calibrator, 71, (1 << 3) | (2 << 27), 3);
        assert!(matches!(calibrator.state(), Calibration::Confirmed { .. }));
    }

    #[test]
    fn a_wrong_position_is_contradicted() {
        let mut calibrator = Calibrator::new(&FlagLayout { gen_pgoff: Some(30), refs_pgoff: Some(28), ..layout() }, true);
        insert(&mut calibrator, 1, (1 << 3) | (1 << 27), 3);
        assert!(matches!(calibrator.state(), Calibration::Contradicted { .. }));
    }

    #[test]
    fn a_generation_that_does_not_exist_is_contradicted() {
        let mut calibrator = Calibrator::new(&layout(), true);
        insert(&mut calibrator, 1, (1 << 3) | (6 << 27), 3);
        assert!(matches!(calibrator.state(), Calibration::Contradicted { .. }));
    }

    #[test]
    fn without_positions_nothing_is_predicted() {
        let calibrator = Calibrator::new(&FlagLayout { gen_pgoff: None, ..layout() }, true);
        assert!(matches!(calibrator.state(), Calibration::Contradicted { .. }));
        assert_eq!(*Calibrator::new(&FlagLayout { gen_pgoff: None, ..layout() }, false).state(), Calibration::NotNeeded);
    }
}
