//! The sampling rate is lowered while observed: the stream says from where on it holds (`observer.sample`).
//!
//! Who is left out from then on is unknown, not idle: it goes from every table. What the kernel still reports of it, because
//! the programs learned of the rate a moment later, is left out too, so that the row in the stream is the exact border.

use observer_common::{sample, sweep};

use crate::{
    session::{
        Session,
        frame::RateChange,
        sampling::{hash, outlives, unit, unit_of},
        world::Slot,
    },
    stream::event::{FolioEvent, Kind},
};

/// The lowest rate that a stream may change to. With powers of two only, a damaged one cannot change it often.
const MOST: u32 = 1 << 16;

impl Session {
    /// One folio in so many is observed from here on. A rate that no recorder chooses, or that is not below the one in force,
    /// changes nothing.
    pub(super) fn thin(&mut self, one_in: u64) {
        let Some(one_in) = u32::try_from(one_in).ok().filter(|n| n.is_power_of_two() && *n <= MOST) else { return };
        if one_in <= self.sampling.one_in() {
            return;
        }
        let out: Vec<Slot> = self.world.all().filter(|slot| !sample::keeps(unit(self.world.folio(*slot)), one_in)).collect();
        for slot in out {
            self.end_residency(slot);
        }
        self.ghosts.retain(|identity| {
            // Of memory without a file, whether a refault is seen is chance from now on.
            outlives(identity, true) && sample::keeps(hash(identity, true, 0), one_in)
        });
        self.sampling.thin(one_in);
        let at_ns = self.last_ts.saturating_sub(self.first_ts);
        self.sampling.changes.push(RateChange { at_ns, one_in });
        self.feed_anew(one_in);
    }

    /// The what-if caches begin anew: their sizes and what they hold belong to the former sample. As at the beginning of a stream they are
    /// empty, and what the kernel refaults is what they refault.
    fn feed_anew(&mut self, one_in: u32) {
        let Some(free_run) = self.free_run.take() else { return };
        self.free_run = Some(Box::new(free_run.anew(one_in)));
        let resident: Vec<Slot> = self.world.all().collect();
        resident.into_iter().for_each(|slot| self.weigh(slot, true));
    }

    /// Whether a folio is one that the rate in force leaves out.
    pub(super) fn left_out(&self, event: &FolioEvent) -> bool {
        if self.sampling.changes.is_empty() {
            return false;
        }
        // What is in a followed folio's place is not what such an event is about.
        let gone = event.kind == Kind::Sweep && event.aux & sweep::FREE != 0;
        let unit = match (event.identity, self.world.slot(event.folio)) {
            (Some(_), _) if !gone => unit_of(event, self.decoder.read(event.flags, 1).traits.file),
            (_, Some(slot)) => unit(self.world.folio(slot)),
            (_, None) => return true,
        };
        !sample::keeps(unit, self.sampling.one_in())
    }

    /// What a lowered rate means, for the user.
    pub(super) fn thinning_note(&self) -> Option<String> {
        let RateChange { at_ns, one_in } = self.sampling.changes.last()?;
        let seconds = *at_ns as f64 / 1e9;
        let caches = if self.free_run.is_some() { ", and what-if caches began anew then" } else { "" };
        Some(format!("events or folios were too many or too dear: one folio in {one_in} is observed since {seconds:.1} s{caches}"))
    }
}
