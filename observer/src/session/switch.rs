//! The multi-gen LRU switched off and on while it is observed.
//!
//! The switch moves every folio between the lists of the two LRUs without a call that is hooked. But where it is on, a folio
//! is inserted with a generation in its flags, and where it is off, without one: insertions tell at once. While it is off
//! there is no clock of generations, so nothing is scored or judged, and what was known before is not believed afterwards.

use crate::session::{Session, decode::Seen, frame::Calibration};
use crate::stream::header::Lru;

/// Which LRU took the last insertion, where the kernel runs the multi-gen LRU when observation begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switch {
    /// It is off.
    pub(super) off: bool,
    /// Times it was turned.
    turned: u32,
}

impl Session {
    /// A folio was inserted: `seen` are its flags afterwards.
    pub(super) fn watch_switch(&mut self, seen: &Seen) {
        let proven = matches!(self.calibrator.state(), Calibration::Confirmed { .. });
        // Unevictable folios never have a generation.
        if self.header.lru != Lru::Mglru || !proven || seen.traits.unevictable {
            return;
        }
        let off = seen.gen_field == 0;
        if off != self.switch.off {
            self.switch = Switch { off, turned: self.switch.turned.saturating_add(1) };
            self.lru = if off { Lru::Classical } else { Lru::Mglru };
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// The note for the user, with what changed while observed.
    pub(super) fn whole_note(&self) -> String {
        let turned = match (self.switch.turned, self.switch.off) {
            (0, _) => None,
            (_, true) => Some("the multi-gen LRU was switched off while observed: nothing is scored any more".to_owned()),
            (_, false) => Some("the multi-gen LRU was switched off and on while observed: nothing was scored meanwhile".to_owned()),
        };
        let given = (!self.note.is_empty()).then(|| self.note.clone());
        let all: Vec<String> = [given, self.thinning_note(), turned].into_iter().flatten().collect();
        all.join("; ")
    }
}
