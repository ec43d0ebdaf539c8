//! A lruvec's generations as its events report them: widened, never going back, with counts that follow.

use crate::{
    model::{Controller, Window},
    stream::event::{Clock, LruvecState},
};

/// A memory cgroup on a node.
#[derive(Clone, Debug)]
pub struct Lruvec {
    /// kernfs id; 0 unknown.
    pub cgroup: u64,
    /// NUMA node.
    pub node: u8,
    /// The memory cgroup's private id; 0 unknown.
    pub memcg_id: u16,
    /// Generations, once any event told.
    pub window: Option<Window>,
    /// Pages by generation index and type as the kernel counts them, with the max_seq they were read at.
    pub pages: Option<([[u32; 2]; 4], u64)>,
    /// The kernel's controller counters.
    pub controller: Controller,
    /// Times max_seq moved.
    pub agings: u64,
    /// Pages refaulted.
    pub refaults: u64,
    /// Pages evicted.
    pub evictions: u64,
}

/// What changed in a lruvec's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// `min_seq` of a type before the change, where it moved.
    pub min_from: [Option<u64>; 2],
}

impl Lruvec {
    /// One that was just met.
    pub fn new(cgroup: u64, node: u8, memcg_id: u16) -> Self {
        Self { cgroup, node, memcg_id, window: None, pages: None, controller: Controller::default(), agings: 0, refaults: 0, evictions: 0 }
    }

    /// Takes the packed clock of a folio event.
    pub fn tick(&mut self, clock: Clock) -> Advance {
        let max_seq = match self.window {
            Some(window) => widen(clock.max_seq, window.max_seq),
            None => u64::from(clock.max_seq),
        };
        let min = |kind: usize| max_seq.saturating_sub(u64::from(clock.window[kind]));
        self.advance(Window { max_seq, min_seq: [min(0), min(1)] })
    }

    /// Takes a full state.
    pub fn state(&mut self, state: &LruvecState) -> Advance {
        self.pages = Some((state.pages, state.max_seq));
        self.advance(Window { max_seq: state.max_seq, min_seq: state.min_seq })
    }

    fn advance(&mut self, new: Window) -> Advance {
        if !plausible(&new) {
            return Advance::default();
        }
        let Some(old) = &mut self.window else {
            self.window = Some(new);
            return Advance::default();
        };
        let mut advance = Advance::default();
        // Events of two CPUs may arrive in the other order: the clock never goes back.
        if new.max_seq > old.max_seq {
            self.agings += new.max_seq - old.max_seq;
            old.max_seq = new.max_seq;
        }
        for kind in 0..2 {
            if new.min_seq[kind] > old.min_seq[kind] {
                advance.min_from[kind] = Some(old.min_seq[kind]);
                old.min_seq[kind] = new.min_seq[kind];
            }
        }
        advance
    }
}

/// Whether a kernel could have these generations. A recording is not always made by one.
fn plausible(window: &Window) -> bool {
    window.max_seq < 1 << 62 && window.min_seq.iter().all(|&min| min <= window.max_seq && window.max_seq - min < 16)
}

/// The 64-bit number nearest to `near` whose low 24 bits are `low`.
fn widen(low: u32, near: u64) -> u64 {
    const SPAN: u64 = 1 << 24;
    let candidate = (near & !(SPAN - 1)) | u64::from(low);
    if candidate + SPAN / 2 < near {
        candidate + SPAN
    } else if candidate > near + SPAN / 2 && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

/// The absolute generation of a field value (spec 1.3): the one in the last four that has its residue.
pub fn absolute(gen_field: u8, max_seq: u64) -> Option<u64> {
    if gen_field == 0 || gen_field > 4 {
        return None;
    }
    let wanted = u64::from(gen_field - 1);
    (0..4).map(|age| max_seq.wrapping_sub(age)).find(|seq| seq % 4 == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_bits_widen_to_the_nearest_number() {
        assert_eq!(widen(5, (1 << 24) + 4), (1 << 24) + 5);
        assert_eq!(widen(1, (1 << 24) - 2), (1 << 24) + 1);
        assert_eq!(widen(0x00ff_ffff, 1 << 24), (1 << 24) - 1);
        assert_eq!(widen(7, 7), 7);
    }

    #[test]
    fn a_field_value_names_one_of_the_last_four_generations() {
        assert_eq!(absolute(1, 3), Some(0));
        assert_eq!(absolute(4, 3), Some(3));
        assert_eq!(absolute(1, 4), Some(4));
        assert_eq!(absolute(2, 4), Some(1));
        assert_eq!((absolute(0, 4), absolute(5, 4)), (None, None));
    }

    #[test]
    fn generations_that_no_kernel_has_are_not_believed() {
        let mut lruvec = Lruvec::new(1, 0, 0);
        for (max_seq, min_seq) in [(5, [6, 5]), (100, [3, 99]), (u64::MAX, [u64::MAX; 2])] {
            lruvec.advance(Window { max_seq, min_seq });
            assert_eq!(lruvec.window, None);
        }
    }

    #[test]
    fn late_events_do_not_turn_the_clock_back() {
        let mut lruvec = Lruvec::new(1, 0, 0);
        lruvec.tick(Clock { max_seq: 5, window: [2, 2] });
        let advance = lruvec.tick(Clock { max_seq: 6, window: [3, 2] });
        assert_eq!((lruvec.agings, advance.min_from), (1, [None, Some(3)]));
        lruvec.tick(Clock { max_seq: 5, window: [2, 2] });
        assert_eq!(lruvec.window, Some(Window { max_seq: 6, min_seq: [3, 4] }));
    }
}
