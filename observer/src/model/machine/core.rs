//! What every LRU needs around it: folios, page index, per-CPU batches, the memory limit, swap and counters.

use super::folios::{Attr, Folios, Slot};
use super::pages::{Entry, PageIndex, Shadow};
use super::{Config, Counters};
use crate::model::tiers::MAX_SWAPPINESS;

/// Entries of a folio batch (spec 1.1).
const BATCH: usize = 31;
/// `MEMCG_CHARGE_BATCH`, pages.
const CHARGE_BATCH: u32 = 64;
/// Fewer free swap pages than this and anon is not reclaimed (spec 4.4).
const MIN_FREE_SWAP: u64 = 64;

/// A per-CPU folio batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    slots: [Slot; BATCH],
    len: usize,
}

impl Batch {
    const EMPTY: Self = Self { slots: [0; BATCH], len: 0 };

    /// Queues a folio; true when the batch must be drained.
    pub(crate) fn push(&mut self, slot: Slot) -> bool {
        self.slots[self.len] = slot;
        self.len += 1;
        self.len == BATCH
    }

    /// Empties it.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::EMPTY)
    }

    pub(crate) fn as_slice(&self) -> &[Slot] {
        &self.slots[..self.len]
    }

    fn forget(&mut self, slot: Slot) -> bool {
        let Some(at) = self.as_slice().iter().position(|&s| s == slot) else { return false };
        self.slots.copy_within(at + 1..self.len, at);
        self.len -= 1;
        true
    }
}

/// One CPU's private state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    /// `lru_add`: inserted, not placed yet.
    pub(crate) add: Batch,
    /// `lru_activate`.
    pub(crate) activate: Batch,
    /// Pages charged ahead.
    stock: u32,
    /// Refault credit taken (spec D2).
    pub(crate) credit: u64,
}

impl Cpu {
    const IDLE: Self = Self { add: Batch::EMPTY, activate: Batch::EMPTY, stock: 0, credit: 0 };
}

/// One reclaim call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanControl {
    /// Pages wanted.
    pub(crate) goal: u64,
    /// Pages reclaimed so far.
    pub(crate) reclaimed: u64,
    /// 12 (gentle) to 0.
    pub(crate) priority: u8,
}

/// Everything but the LRU.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) folios: Folios,
    pub(crate) pages: PageIndex,
    pub(crate) counters: Counters,
    pub(crate) config: Config,
    pub(crate) cpus: Vec<Cpu>,
    /// The CPU that runs now.
    pub(crate) cpu: usize,
    /// Pages charged, stocks included.
    usage: u64,
    swap_used: u64,
}

impl Core {
    pub(crate) fn new(config: Config) -> Self {
        // Reclaim keeps usage below the limit; what is beyond are large folios in flight.
        let folios = usize::try_from(config.limit).unwrap_or(usize::MAX).min(1 << 24) + 64;
        Self {
            folios: Folios::new(folios),
            pages: PageIndex::default(),
            counters: Counters::default(),
            cpus: vec![Cpu::IDLE; config.cpus.max(1)],
            config,
            cpu: 0,
            usage: 0,
            swap_used: 0,
        }
    }

    pub(crate) fn this_cpu(&mut self) -> &mut Cpu {
        &mut self.cpus[self.cpu]
    }

    /// Charges pages if the limit allows (spec 6.1, 9.28).
    pub(crate) fn try_charge(&mut self, pages: u32) -> bool {
        let limit = self.config.limit;
        let stock = &mut self.cpus[self.cpu].stock;
        if *stock >= pages {
            *stock -= pages;
            return true;
        }
        let ahead = pages.max(CHARGE_BATCH);
        if self.usage + u64::from(ahead) <= limit {
            self.usage += u64::from(ahead);
            *stock += ahead - pages;
            return true;
        }
        let fits = self.usage + u64::from(pages) <= limit;
        if fits {
            self.usage += u64::from(pages);
        }
        fits
    }

    /// Charges pages whatever the limit: where the kernel would kill.
    pub(crate) fn force_charge(&mut self, pages: u32) {
        self.usage += u64::from(pages);
        self.counters.over_limit += u64::from(pages);
    }

    /// Gives back what CPUs charged ahead.
    pub(crate) fn drain_stocks(&mut self) {
        for cpu in &mut self.cpus {
            self.usage -= u64::from(std::mem::take(&mut cpu.stock));
        }
    }

    /// Pages charged, stocks included.
    pub(crate) fn usage(&self) -> u64 {
        self.usage
    }

    /// Pages resident.
    pub(crate) fn resident(&self) -> u64 {
        self.usage - self.cpus.iter().map(|cpu| u64::from(cpu.stock)).sum::<u64>()
    }

    /// Bytes held for folios and page index.
    pub(crate) fn memory(&self) -> usize {
        self.folios.slots().len() * Folios::BYTES_PER_FOLIO + self.pages.len() * size_of::<u32>()
    }

    /// A charged folio in the page index, off the lists.
    pub(crate) fn create(&mut self, first: u32, attr: Attr) -> Slot {
        let slot = self.folios.allocate(first, attr);
        self.pages.set(first, attr.pages(), Entry::Folio(slot));
        slot
    }

    /// Ends an unlinked folio; its pages keep `entry`.
    pub(crate) fn destroy(&mut self, slot: Slot, entry: Entry) {
        let (attr, first) = (self.folios.attr(slot), self.folios.key(slot));
        self.pages.set(first, attr.pages(), entry);
        self.usage -= u64::from(attr.pages());
        self.folios.release(slot);
    }

    /// Ends a folio that reclaim took.
    pub(crate) fn evict(&mut self, slot: Slot, shadow: Shadow) {
        let attr = self.folios.attr(slot);
        let pages = u64::from(attr.pages());
        self.counters.evictions[usize::from(attr.file())] += pages;
        if !attr.file() {
            self.swap_used += pages;
        }
        self.destroy(slot, Entry::Shadow(shadow));
    }

    /// A swapped page came back or died.
    pub(crate) fn free_swap(&mut self, pages: u32) {
        self.swap_used = self.swap_used.saturating_sub(u64::from(pages));
    }

    /// Free swap, pages.
    pub(crate) fn swap_left(&self) -> u64 {
        self.config.swap_pages.saturating_sub(self.swap_used)
    }

    /// Effective swappiness: none without room for a batch (spec 4.4).
    pub(crate) fn swappiness(&self) -> u8 {
        if self.config.swappiness <= MAX_SWAPPINESS && self.swap_left() < MIN_FREE_SWAP { 0 } else { self.config.swappiness }
    }

    /// Takes a folio out of whatever batch holds it.
    pub(crate) fn forget_in_batches(&mut self, slot: Slot) {
        for cpu in &mut self.cpus {
            if cpu.add.forget(slot) {
                break;
            }
        }
    }

    /// Clears the accessed bit of a folio's mappings and says whether it was set.
    pub(crate) fn take_young(&mut self, slot: Slot) -> bool {
        let attr = self.folios.attr_mut(slot);
        let young = attr.has_all(Attr::MAPPED | Attr::YOUNG);
        attr.clear(Attr::YOUNG);
        young
    }

    /// Mapped folios with the accessed bit among the (at most 64) page-table neighbours of a page, itself excluded (spec 3.2, L).
    pub(crate) fn young_neighbours(&self, slot: Slot, found: &mut Vec<Slot>) {
        const PTES: u32 = 64;
        const PMD: u32 = 512;
        found.clear();
        let key = self.folios.key(slot);
        let pmd = key - key % PMD;
        let start = key.saturating_sub(PTES / 2).clamp(pmd, pmd + PMD - PTES);
        let file = self.folios.attr(slot).file();
        for at in start..start + PTES {
            if let Some(other) = self.pages.folio(at) {
                let attr = self.folios.attr(other);
                let young = attr.has_all(Attr::MAPPED | Attr::YOUNG) && attr.file() == file;
                // Pages of one folio are neighbours: it counts once per run.
                if young && other != slot && found.last() != Some(&other) {
                    found.push(other);
                }
            }
        }
    }
}
