//! The whole machine, free running: a memory cgroup with its limit and one lruvec that inserts, ages, evicts and refaults by itself.
//!
//! A page is a *key*: a dense number that the caller gives to each page of each file and of anonymous memory. Keys of one mapping are
//! consecutive, and mappings start at multiples of 512 (a page-table page), so that page-table neighbours are neighbours in keys.
//! One zone, one node; I/O completes at once.

mod cache;
mod classic;
mod core;
mod evict;
mod folios;
mod generations;
mod pages;

#[cfg(test)]
mod mapped_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use self::core::{Core, ScanControl};
use self::folios::{Attr, Slot};
use self::pages::{Entry, Shadow};

pub use self::cache::{Cache, Config, Counters, Entering, GenerationPages, Lru};

/// What an LRU does with folios; the machine does the rest.
pub(crate) trait Policy: Send {
    /// The flag touch of `folio_add_lru`.
    fn added(&mut self, core: &mut Core, slot: Slot, how: &Entering);
    /// A page comes back whose shadow is this.
    fn refault(&mut self, core: &mut Core, slot: Slot, shadow: Shadow, in_fault: bool);
    /// A shadow too old to be recent, or within any distance.
    fn stale_shadow(&self) -> Shadow;
    /// The batch was drained: onto a list.
    fn insert(&mut self, core: &mut Core, slot: Slot);
    /// `folio_activate`, drained.
    fn activate(&mut self, core: &mut Core, slot: Slot);
    /// `folio_mark_accessed`.
    fn mark(&mut self, core: &mut Core, slot: Slot);
    /// Off its list, not for reclaim.
    fn unlink(&mut self, core: &mut Core, slot: Slot);
    /// `folio_rotate_reclaimable`.
    fn rotate(&mut self, core: &mut Core, slot: Slot);
    /// Before a reclaim call.
    fn before_reclaim(&mut self, core: &mut Core);
    /// One pass at one priority.
    fn shrink(&mut self, core: &mut Core, sc: &mut ScanControl);
    /// After a reclaim call.
    fn after_reclaim(&mut self, core: &mut Core);
    /// A new generation.
    fn age(&mut self, core: &mut Core);
    /// Generations, if there are any.
    fn generations(&self) -> Option<GenerationPages>;
}

/// Reclaim attempts before a charge goes over the limit (the kernel would kill; mem).
const MAX_RECLAIM_RETRIES: u32 = 16;
/// `SWAP_CLUSTER_MAX`.
const SWAP_CLUSTER_MAX: u64 = 32;

/// Puts the folios of a CPU's `activate` batch where they belong.
pub(crate) fn drain_activate<P: Policy>(lru: &mut P, core: &mut Core, cpu: usize) {
    let batch = core.cpus[cpu].activate.take();
    for &slot in batch.as_slice() {
        // The folio may have left while it waited.
        if core.folios.attr(slot).has(Attr::ACTIVATING) {
            core.folios.attr_mut(slot).clear(Attr::ACTIVATING);
            lru.activate(core, slot);
        }
    }
}

/// A memory cgroup with one lruvec.
pub(crate) struct Machine<P> {
    core: Core,
    lru: P,
}

impl<P: Policy> Machine<P> {
    pub(crate) fn new(lru: P, config: Config) -> Self {
        Self { core: Core::new(config), lru }
    }

    fn drain_cpu(&mut self, cpu: usize) {
        let add = self.core.cpus[cpu].add.take();
        for &slot in add.as_slice() {
            self.lru.insert(&mut self.core, slot);
        }
        drain_activate(&mut self.lru, &mut self.core, cpu);
    }

    fn reclaim_to(&mut self, goal: u64) -> u64 {
        self.core.counters.reclaims += 1;
        self.lru.before_reclaim(&mut self.core);
        let mut sc = ScanControl { goal: goal.max(SWAP_CLUSTER_MAX), reclaimed: 0, priority: super::aging::DEF_PRIORITY };
        loop {
            self.core.counters.passes += 1;
            self.drain_cpu(self.core.cpu);
            self.lru.shrink(&mut self.core, &mut sc);
            if sc.reclaimed >= sc.goal || sc.priority == 0 {
                break;
            }
            sc.priority -= 1;
        }
        self.lru.after_reclaim(&mut self.core);
        sc.reclaimed
    }

    fn charge(&mut self, pages: u32) {
        for _ in 0..MAX_RECLAIM_RETRIES {
            if self.core.try_charge(pages) {
                return;
            }
            if self.reclaim_to(u64::from(pages)) == 0 {
                self.core.drain_stocks();
            }
        }
        if !self.core.try_charge(pages) {
            self.core.force_charge(pages);
        }
    }

    /// Brings a folio in and queues it for insertion.
    fn bring_in(&mut self, first: u32, order: u8, how: Entering) -> Slot {
        let pages = 1 << order;
        self.charge(pages);
        let mut bits = if how.anon { 0 } else { Attr::FILE };
        for (on, bit) in [(how.exec, Attr::EXEC), (how.dropbehind, Attr::DROPBEHIND), (how.write, Attr::DIRTY)] {
            bits |= if on { bit } else { 0 };
        }
        let entry = (first..first + pages).map(|key| self.core.pages.get(key)).find(|entry| *entry != Entry::Empty);
        if how.anon {
            let swapped = (first..first + pages).filter(|&key| matches!(self.core.pages.get(key), Entry::Shadow(_))).count();
            if swapped > 0 {
                self.core.free_swap(swapped as u32);
                bits |= if how.swapcache { Attr::SWAPCACHE } else { 0 };
            }
        }
        let slot = self.core.create(first, Attr::new(bits, order));
        if how.accessed {
            self.core.folios.word_mut(slot).flags.set_referenced(true);
        }
        if let Some(Entry::Shadow(shadow)) = entry
            && !how.write
        {
            self.core.counters.refaults[usize::from(!how.anon)] += u64::from(pages);
            self.lru.refault(&mut self.core, slot, shadow, how.in_fault);
        }
        self.lru.added(&mut self.core, slot, &how);
        let full = self.core.this_cpu().add.push(slot);
        if full || order > 0 {
            self.drain_cpu(self.core.cpu);
        }
        slot
    }
}

impl<P: Policy> Cache for Machine<P> {
    fn read(&mut self, key: u32) -> bool {
        self.core.counters.accesses += 1;
        if let Some(slot) = self.core.pages.folio(key) {
            self.lru.mark(&mut self.core, slot);
            return true;
        }
        self.core.counters.misses += 1;
        let slot = self.bring_in(key, 0, Entering::READ);
        self.lru.mark(&mut self.core, slot);
        false
    }

    fn read_on(&mut self) {
        self.core.counters.accesses += 1;
    }

    fn touch(&mut self, key: u32, how: Entering) -> bool {
        self.core.counters.accesses += 1;
        let resident = self.core.pages.folio(key);
        let slot = resident.unwrap_or_else(|| {
            self.core.counters.misses += 1;
            self.bring_in(key, 0, how)
        });
        self.core.folios.attr_mut(slot).set(Attr::MAPPED | Attr::YOUNG);
        resident.is_some()
    }

    fn add(&mut self, first: u32, order: u8, how: Entering) {
        if (first..first + (1 << order)).all(|key| self.core.pages.folio(key).is_none()) {
            self.bring_in(first, order, how);
        }
    }

    fn mark(&mut self, key: u32) -> bool {
        let slot = self.core.pages.folio(key);
        if let Some(slot) = slot {
            self.lru.mark(&mut self.core, slot);
        }
        slot.is_some()
    }

    fn map(&mut self, key: u32, young: bool) {
        if let Some(slot) = self.core.pages.folio(key) {
            self.core.folios.attr_mut(slot).set(Attr::MAPPED | if young { Attr::YOUNG } else { 0 });
        }
    }

    fn dirty(&mut self, key: u32) {
        if let Some(slot) = self.core.pages.folio(key) {
            self.core.folios.attr_mut(slot).set(Attr::DIRTY);
        }
    }

    fn cleaned(&mut self, key: u32) {
        if let Some(slot) = self.core.pages.folio(key) {
            let attr = self.core.folios.attr_mut(slot);
            let rotate = attr.has(Attr::RECLAIM);
            attr.clear(Attr::DIRTY | Attr::WRITEBACK | Attr::RECLAIM);
            if rotate {
                self.lru.rotate(&mut self.core, slot);
            }
        }
    }

    fn remove(&mut self, key: u32, anon: bool) {
        match self.core.pages.get(key) {
            Entry::Empty => {}
            Entry::Shadow(_) => {
                self.core.pages.set(key, 1, Entry::Empty);
                if anon {
                    self.core.free_swap(1);
                }
            }
            Entry::Folio(slot) => {
                if self.core.folios.word(slot).gen_field == 0 {
                    self.core.forget_in_batches(slot);
                } else {
                    self.lru.unlink(&mut self.core, slot);
                }
                self.core.destroy(slot, Entry::Empty);
            }
        }
    }

    fn evicted_before(&mut self, key: u32) {
        if self.core.pages.get(key) == Entry::Empty {
            let shadow = self.lru.stale_shadow();
            self.core.pages.set(key, 1, Entry::Shadow(shadow));
        }
    }

    fn is_resident(&self, key: u32) -> bool {
        self.core.pages.folio(key).is_some()
    }

    fn is_mapped(&self, key: u32) -> bool {
        self.core.pages.folio(key).is_some_and(|slot| self.core.folios.attr(slot).has(Attr::MAPPED))
    }

    fn same_folio(&self, a: u32, b: u32) -> bool {
        self.core.pages.folio(a).is_some_and(|slot| self.core.pages.folio(b) == Some(slot))
    }

    fn run_on(&mut self, cpu: usize) {
        self.core.cpu = cpu % self.core.cpus.len();
    }

    fn age(&mut self, n: u32) {
        for _ in 0..n {
            self.lru.age(&mut self.core);
        }
    }

    fn reclaim(&mut self, pages: u64) -> u64 {
        self.reclaim_to(pages)
    }

    fn set_limit(&mut self, pages: u64) {
        self.core.config.limit = pages;
        self.core.drain_stocks();
        for _ in 0..MAX_RECLAIM_RETRIES {
            let above = self.core.usage().saturating_sub(pages);
            if above == 0 {
                break;
            }
            self.reclaim_to(above);
        }
    }

    fn drain(&mut self) {
        for cpu in 0..self.core.cpus.len() {
            self.drain_cpu(cpu);
        }
    }

    fn reserve(&mut self, keys: usize) {
        self.core.pages.reserve(keys);
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    fn resident(&self) -> u64 {
        self.core.resident()
    }

    fn folios(&self) -> u32 {
        self.core.folios.len()
    }

    fn generations(&self) -> Option<GenerationPages> {
        self.lru.generations()
    }

    fn memory(&self) -> usize {
        self.core.memory()
    }
}
