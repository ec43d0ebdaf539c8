//! What the session tells its what-if caches. Nothing of it runs where they are off.

use observer_common::{task, walk};

use crate::{
    session::{
        Session,
        step::Moment,
        what_if::Told,
        world::{Folio, Slot},
    },
    stream::event::{FolioEvent, Kind},
};

impl Session {
    /// An event of a tracked folio, before its effect. `history` is false for one that was there before it was first seen.
    pub(super) fn tell(&mut self, event: &FolioEvent, moment: &Moment, history: bool) {
        let came = Told::Came { in_fault: event.aux & task::IN_LRU_FAULT != 0, dropbehind: moment.seen.traits.dropbehind };
        let told = match event.kind {
            // What is on a list was taken off it first and came from nowhere new (migration, say).
            Kind::Add if !self.actual[moment.slot as usize].on_list => came,
            Kind::CacheAdd if !self.adds_hooked => came,
            Kind::Insert if !history => Told::Came { in_fault: false, dropbehind: moment.seen.traits.dropbehind },
            Kind::Mark => Told::Mark,
            // `lru_gen_set_refs`, where it reports, reports look-around once more.
            Kind::Walk if event.aux & walk::AGING != 0 || !self.set_refs_hooked => Told::Touch,
            Kind::SetRefs => Told::Touch,
            // Without evictions as events of their own, they look like truncations: a cache must not follow the kernel's.
            Kind::Delete if self.evictions_hooked => Told::Gone,
            _ => return,
        };
        let folio = *self.world.folio(moment.slot);
        self.tell_of(&folio, told);
    }

    /// An access known by file and page only.
    pub(super) fn tell_range(&mut self, kind: Kind, folio: &Folio) {
        match kind {
            Kind::ReadRange => self.tell_of(folio, Told::Mark),
            Kind::FaultRange => self.tell_of(folio, Told::Touch),
            _ => {}
        }
    }

    /// An access, or an arrival or departure, of a page of a file.
    pub(super) fn tell_of(&mut self, folio: &Folio, told: Told) {
        let cgroup = self.world.lruvec(folio.lruvec).cgroup;
        if let Some(free_run) = self.free_run.as_mut().filter(|_| folio.is_file && folio.identity.ino != 0) {
            free_run.tell(cgroup, &folio.identity, folio.order, told);
        }
    }

    /// A refault that the kernel counts.
    pub(super) fn tell_refault(&mut self, folio: &Folio) {
        let cgroup = self.world.lruvec(folio.lruvec).cgroup;
        if let Some(free_run) = self.free_run.as_mut().filter(|_| folio.is_file) {
            free_run.refaulted(cgroup, &folio.identity, folio.order);
        }
    }

    /// An eviction by the kernel.
    pub(super) fn tell_eviction(&mut self, folio: &Folio) {
        let cgroup = self.world.lruvec(folio.lruvec).cgroup;
        if let Some(free_run) = self.free_run.as_mut().filter(|_| folio.is_file) {
            free_run.evicted(cgroup);
        }
    }

    /// A folio's pages begin or end to be tracked where it is charged.
    pub(super) fn weigh(&mut self, slot: Slot, arrives: bool) {
        let Some(free_run) = &mut self.free_run else { return };
        let folio = self.world.folio(slot);
        if !folio.is_file {
            return;
        }
        let cgroup = self.world.lruvec(folio.lruvec).cgroup;
        if arrives { free_run.arrived(cgroup, folio.pages()) } else { free_run.left(cgroup, folio.pages()) }
    }
}
