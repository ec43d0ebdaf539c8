//! Reads and faults of which only file and page are known: what the tracepoints tier has instead of events of folios.

use crate::{
    model::{FolioFlags, Traits},
    session::{Session, decode::Seen, step::Moment},
    stream::event::Kind,
};

/// Pages of one range event looked at; a longer one is a mapping of everything and no access to each.
const MAX_RANGE: u64 = 1 << 16;

impl Session {
    /// An access known by file and page only.
    pub(super) fn range(&mut self, kind: Kind, dev: u32, ino: u64, first: u64, last: u64) {
        if last < first || last - first > MAX_RANGE {
            return;
        }
        let mut index = first;
        if kind == Kind::ReadRange {
            // The folio in which the previous read ended is not marked again (spec 3.1; there by open file, here by file).
            let previous = self.world.files.last_read(dev, ino, last);
            if let Some(slot) = self.world.slot_of(dev, ino, first) {
                let folio = self.world.folio(slot);
                let end = folio.identity.index + u64::from(folio.pages());
                if previous.is_some_and(|page| (folio.identity.index..end).contains(&page)) {
                    index = end;
                }
            }
        }
        while index <= last {
            let Some(slot) = self.world.slot_of(dev, ino, index) else {
                index += 1;
                continue;
            };
            let folio = *self.world.folio(slot);
            index = (folio.identity.index + u64::from(folio.pages())).max(index + 1);
            self.world.files.file_mut(folio.file).accesses += 1;
            if self.free_run.is_some() {
                self.tell_range(kind, &folio);
            }
            let seen = Seen {
                gen_field: 0,
                flags: FolioFlags::default(),
                traits: Traits { pages: folio.pages(), file: folio.is_file, ..Default::default() },
                lru: true,
                uptodate: None,
            };
            let moment = Moment { slot, seen, actual: self.actual[slot as usize], window: self.window_of(&folio), known: false, kind };
            for set in 0..self.rules.len() {
                self.step(set, &moment, |rules, state, moment| match kind {
                    Kind::ReadRange => rules.mark(state, &moment.seen.traits, moment.window.as_ref()),
                    Kind::FaultRange => rules.walk(state, &moment.seen.traits, moment.window.as_ref(), false),
                    _ => 0,
                });
            }
        }
    }
}
