#![doc = include_str!("shmem.md")]

use observer_common::{SWAP_DEV, task};

use crate::{
    session::{Session, decode::Seen, step::Moment},
    stream::event::{FolioEvent, Identity, Kind},
};

/// Whether the reference of a first write is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstWrite {
    /// It came, or none will.
    Settled,
    /// The folio was requested, empty; a write or fallocate is about to go on.
    Requested,
    /// Its own request filled the batch and inserted it, still empty (spec 2.1): what goes on does so on the list.
    Inserted,
}

impl FirstWrite {
    /// Of a folio that begins with this event: shared memory that comes empty, not by a fault and not from swap, may be written.
    pub(super) fn expected(event: &FolioEvent, identity: &Identity, seen: &Seen) -> Self {
        let by_fault_or_unknown = event.aux & (task::IN_LRU_FAULT | task::UNKNOWN) != 0;
        // Anonymous memory has no device; what collapse and migration request holds data already.
        let shared = !seen.traits.file && identity.dev != 0 && identity.dev != SWAP_DEV;
        let empty = seen.uptodate == Some(false) && !seen.traits.dirty && !seen.traits.swapcache;
        // Before 6.7 the bit is set ahead of the request, which shows it.
        let expected = event.kind == Kind::Add && shared && empty && !seen.flags.referenced() && !by_fault_or_unknown;
        if expected { Self::Requested } else { Self::Settled }
    }

    /// What an event shows of it, and whether it was a write.
    fn next(self, kind: Kind, seen: &Seen) -> (Self, bool) {
        match (self, seen.uptodate == Some(true), seen.traits.dirty) {
            (Self::Settled, ..) => (Self::Settled, false),
            (_, true, true) => (Self::Settled, true),
            // Truncation and swap-out have cleaned what was dirty.
            (Self::Inserted, true, false) => (Self::Settled, true),
            (Self::Requested, true, false) => (Self::Settled, kind == Kind::Delete),
            // Allocated: dirty lest it be dropped, and without data.
            (_, false, true) => (Self::Settled, false),
            (Self::Requested, false, false) if kind == Kind::Insert => (Self::Inserted, false),
            (_, false, false) => (self, false),
        }
    }
}

impl Session {
    /// Gives every rule set the reference of a first write, once an event shows that there was one: it came before that event.
    pub(super) fn first_write(&mut self, moment: &Moment) {
        let folio = self.world.folio_mut(moment.slot);
        let (next, written) = folio.first_write.next(moment.kind, &moment.seen);
        folio.first_write = next;
        if !written {
            return;
        }
        let file = folio.file;
        self.world.files.file_mut(file).accesses += 1;
        for set in 0..self.rules.len() {
            self.step(set, moment, |rules, state, moment| rules.mark(state, &moment.seen.traits, moment.window.as_ref()));
        }
    }
}
