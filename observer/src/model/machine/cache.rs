//! What a user of the machine sees: its size, its counters, how pages enter, and a cache of any LRU.

use super::super::flags::Window;
use super::super::parse::ParseError;
use super::super::rules::Rules;
use super::Machine;
use super::classic::Classic;
use super::generations::Generations;

/// Size of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `memory.max` of what is modelled, pages.
    pub limit: u64,
    /// CPUs, each with its own batches.
    pub cpus: usize,
    /// 0..=200, 201 anon only.
    pub swappiness: u8,
    /// Size of swap, pages.
    pub swap_pages: u64,
}

impl Config {
    /// A cgroup of so many pages on one CPU, without swap.
    pub const fn pages(limit: u64) -> Self {
        Self { limit, cpus: 1, swappiness: 60, swap_pages: 0 }
    }
}

/// What happened so far; pages unless said otherwise, by type anon, file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads and touches.
    pub accesses: u64,
    /// Of those, on pages that were not resident.
    pub misses: u64,
    /// WORKINGSET_REFAULT.
    pub refaults: [u64; 2],
    /// WORKINGSET_ACTIVATE.
    pub activates: [u64; 2],
    /// WORKINGSET_RESTORE.
    pub restores: [u64; 2],
    /// Evictions by reclaim.
    pub evictions: [u64; 2],
    /// Isolated for reclaim.
    pub scanned: u64,
    /// Moved on by the scan because of their tier.
    pub protected: u64,
    /// Given back by reclaim, folios.
    pub rejected: u64,
    /// Rises of a folio's generation by references while on a list (classical: activations), folios.
    pub promotions: u64,
    /// Times that `max_seq` moved.
    pub agings: u64,
    /// Reclaim calls.
    pub reclaims: u64,
    /// Passes of those, one per priority.
    pub passes: u64,
    /// Charged although nothing could be reclaimed.
    pub over_limit: u64,
}

/// How pages enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entering {
    /// Type anon instead of file.
    pub anon: bool,
    /// Within a fault of a mapping with recency (spec 2.1).
    pub in_fault: bool,
    /// Mapped executable.
    pub exec: bool,
    /// By a reader that does not want it cached (`PG_dropbehind`).
    pub dropbehind: bool,
    /// Allocated for writing: dirty, and shadows are not consulted (spec 9.20).
    pub write: bool,
    /// Created by FGP_ACCESSED: referenced from the start (spec 3.1).
    pub accessed: bool,
    /// A swap-in that stays in the swap cache (spec 2.3).
    pub swapcache: bool,
}

impl Entering {
    /// By `read(2)`.
    pub const READ: Self =
        Self { anon: false, in_fault: false, exec: false, dropbehind: false, write: false, accessed: false, swapcache: false };
    /// By a fault on a file mapping.
    pub const FAULT: Self = Self { in_fault: true, ..Self::READ };
    /// By a fault on anonymous memory.
    pub const ANON: Self = Self { anon: true, ..Self::FAULT };
}

/// Generations of the machine as debugfs would show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationPages {
    /// `max_seq` and `min_seq`.
    pub window: Window,
    /// Pages by age (0 youngest) and type.
    pub by_age: [[u64; 2]; 4],
}

/// A cache of pages under one set of rules.
pub trait Cache: Send {
    /// `read(2)` of one page: marks it accessed, and brings it in first if need be. True if it was resident.
    fn read(&mut self, key: u32) -> bool;

    /// A `read(2)` that goes on in the folio where the last one ended: an access that is not marked (spec 3.1).
    fn read_on(&mut self);

    /// An access through a page table; the page is mapped by it. `how` says how it enters if it is not resident. True if it was.
    fn touch(&mut self, key: u32, how: Entering) -> bool;

    /// Read-ahead: a folio of `2^order` pages at a key that is a multiple of it; nothing if one of them is resident.
    fn add(&mut self, first: u32, order: u8, how: Entering);

    /// `folio_mark_accessed` of a resident page. False if it is not resident.
    fn mark(&mut self, key: u32) -> bool;

    /// Fault-around: maps a resident page, with the accessed bit or without.
    fn map(&mut self, key: u32, young: bool);

    /// A write made a resident page dirty.
    fn dirty(&mut self, key: u32);

    /// Writeback of a page has ended: clean, and rotated if reclaim asked for it (spec 9.24).
    fn cleaned(&mut self, key: u32);

    /// Truncation, or exit: the page, its shadow and its swap are gone; a large folio goes as a whole.
    fn remove(&mut self, key: u32, anon: bool);

    /// A page was evicted before the first event: its next arrival is a refault, though not a recent one.
    fn evicted_before(&mut self, key: u32);

    /// Whether a page is resident.
    fn is_resident(&self, key: u32) -> bool;

    /// Whether a page is resident and mapped.
    fn is_mapped(&self, key: u32) -> bool;

    /// Whether two pages are in one resident folio.
    fn same_folio(&self, a: u32, b: u32) -> bool;

    /// The CPU that makes the next accesses.
    fn run_on(&mut self, cpu: usize);

    /// `memory.aging`: opens `n` generations, page-table walk included (spec D1).
    fn age(&mut self, n: u32);

    /// `memory.reclaim`: takes as many pages if it can; what it got.
    fn reclaim(&mut self, pages: u64) -> u64;

    /// Changes the limit, reclaiming what is above it.
    fn set_limit(&mut self, pages: u64);

    /// Drains all per-CPU batches.
    fn drain(&mut self);

    /// Room for keys below `keys`, so that no access allocates.
    fn reserve(&mut self, keys: usize);

    /// What happened so far.
    fn counters(&self) -> &Counters;

    /// Pages resident now.
    fn resident(&self) -> u64;

    /// Folios resident now.
    fn folios(&self) -> u32;

    /// Generations; none for the classical LRU.
    fn generations(&self) -> Option<GenerationPages>;

    /// Bytes held for folios and page index.
    fn memory(&self) -> usize;
}

/// An LRU to run: generations under some rules, or the classical lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lru {
    /// MGLRU.
    Generations(Rules),
    /// Active and inactive lists.
    Classical,
}

impl Lru {
    /// Name of the classical LRU among rule sets.
    pub const CLASSICAL: &'static str = "classical";

    /// Reads `classical` or what [`Rules::parse`] reads.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.trim() == Self::CLASSICAL { Ok(Self::Classical) } else { Rules::parse(text).map(Self::Generations) }
    }

    /// Text that [`Lru::parse`] reads back.
    pub fn label(&self) -> String {
        match self {
            Self::Generations(rules) => rules.label(),
            Self::Classical => Self::CLASSICAL.to_owned(),
        }
    }

    /// An empty cache under these rules.
    pub fn cache(&self, config: Config) -> Box<dyn Cache> {
        match self {
            Self::Generations(rules) => Box::new(Machine::new(Generations::new(*rules), config)),
            Self::Classical => Box::new(Machine::new(Classic::default(), config)),
        }
    }
}
