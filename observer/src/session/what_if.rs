//! The access stream of a recording through free-running caches: what each rule set would have refaulted at the observed size, and at others.
//!
//! Which cgroup is the busiest, and how much memory it has, shows only after a while. So accesses are kept until one cgroup has filled its
//! memory, or until as many are kept as may be; then the caches take them, and all that follow, at once. Only file pages are fed: of anonymous
//! memory a recording shows no accesses, only what scans found. What was resident before the stream and is not told of is not fed either.

use rustc_hash::FxHashMap;

use crate::{
    model::{Config, Entering, Feed, KeySpace, Lru, WhatIf},
    session::frame::WhatIfFrame,
    stream::event::Identity,
};

/// Accesses kept before the caches start at the latest: 64 MiB.
const MAX_KEPT: usize = 1 << 22;
/// Accesses kept before a full cgroup is taken to be the one that matters.
const ENOUGH: usize = 1 << 17;
/// Cgroups told apart; the log's entries have room for more.
const MAX_CGROUPS: usize = 1 << 12;
/// Pages of a cache: as many as the session can track.
const MAX_PAGES: u64 = 1 << 22;
/// CPUs told apart, each with batches in each cache.
const MAX_CPUS: u32 = 64;
/// Bytes for the page indices of all caches, and as many for their folios.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes that a cache holds for a folio.
const FOLIO_BYTES: u64 = 20;
/// log2 of the pages of a folio at most: caches keep a folio within a page-table page.
const MAX_ORDER: u8 = 9;
/// Sizes at most.
pub(crate) const MAX_SIZES: usize = 16;

/// What happened to a page of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Read.
    Mark,
    /// Found accessed through a page table.
    Touch,
    /// Came in.
    Came {
        /// By a fault of a mapping with recency.
        in_fault: bool,
        /// By a reader that does not want it cached.
        dropbehind: bool,
    },
    /// The kernel counts its coming as a refault.
    Refaulted,
    /// Truncated.
    Gone,
}

/// One kept access.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Device and inode number in one.
    file: u64,
    index: u32,
    cgroup: u16,
    cpu: u8,
    order: u8,
    told: Told,
}

/// A cgroup so far, file pages.
#[derive(Clone, Debug)]
struct Cgroup {
    id: u64,
    accesses: u64,
    tracked: u64,
    peak: u64,
    evicted: bool,
    refaults: u64,
    /// Its own limit in pages seen, when told.
    limit: Option<u64>,
}

impl Cgroup {
    /// Pages that its file pages had to live in.
    ///
    /// A cgroup that evicted was full: what it held then is what its limit leaves beside everything else charged to it.
    fn size(&self) -> u64 {
        let size = match self.limit {
            Some(limit) if self.evicted => self.peak.min(limit),
            Some(limit) => limit,
            None => self.peak,
        };
        size.min(MAX_PAGES)
    }
}

/// Caches at work.
struct Running {
    cgroup: u16,
    what_if: WhatIf,
    keys: KeySpace,
    /// The observed size that the caches have followed.
    size: u64,
    percents: Vec<u32>,
}

/// Free-running caches beside the session.
pub(crate) struct FreeRun {
    /// Name and LRU of each rule set.
    rules: Vec<(String, Lru)>,
    percents: Vec<u32>,
    cgroups: Vec<Cgroup>,
    by_id: FxHashMap<u64, u16>,
    kept: Vec<Kept>,
    running: Option<Running>,
    sample: u64,
    page_size: u64,
    cpus: u32,
    cpu: u8,
    /// Accesses, cgroups and sizes that found no room.
    pub(crate) refused: u64,
}

impl FreeRun {
    /// For rule sets and sizes in percent of the observed one, on a stream that shows one in `sample` folios.
    pub(crate) fn new(rules: Vec<(String, Lru)>, percents: &[u32], sample: u32, page_size: u32, cpus: u32) -> Self {
        let mut distinct: Vec<u32> = Vec::new();
        for &percent in percents.iter().filter(|&&percent| percent > 0) {
            if !distinct.contains(&percent) && distinct.len() < MAX_SIZES {
                distinct.push(percent);
            }
        }
        Self {
            rules,
            percents: distinct,
            cgroups: Vec::new(),
            by_id: FxHashMap::default(),
            kept: Vec::new(),
            running: None,
            sample: u64::from(sample.max(1)),
            page_size: u64::from(page_size.max(1)),
            // A sampled stream fills a batch as much more slowly: batches of one CPU are closer to the truth than one for each.
            cpus: if sample > 1 { 1 } else { cpus.clamp(1, MAX_CPUS) },
            cpu: 0,
            refused: 0,
        }
    }

    /// The same rule sets and sizes on a stream that shows fewer folios from here on: one in `sample`. Nothing of what was fed holds
    /// there; cgroups' limits do.
    pub(crate) fn anew(self, sample: u32) -> Self {
        let was = self.sample;
        let page_size = u32::try_from(self.page_size).unwrap_or(u32::MAX);
        let mut new = Self { refused: self.refused, ..Self::new(self.rules, &self.percents, sample, page_size, self.cpus) };
        for Cgroup { id, limit, .. } in self.cgroups {
            if let Some(pages) = limit {
                new.limit(id, pages.saturating_mul(was).saturating_mul(new.page_size));
            }
        }
        new
    }

    /// The CPU of the events to come.
    pub(crate) fn run_on(&mut self, cpu: u16) {
        self.cpu = (u32::from(cpu) % self.cpus) as u8;
    }

    fn cgroup(&mut self, id: u64) -> Option<u16> {
        if let Some(&at) = self.by_id.get(&id) {
            return Some(at);
        }
        if self.cgroups.len() >= MAX_CGROUPS {
            self.refused += 1;
            return None;
        }
        let at = u16::try_from(self.cgroups.len()).ok()?;
        self.cgroups.push(Cgroup { id, accesses: 0, tracked: 0, peak: 0, evicted: false, refaults: 0, limit: None });
        self.by_id.insert(id, at);
        Some(at)
    }

    /// A cgroup's `memory.max`.
    pub(crate) fn limit(&mut self, id: u64, bytes: u64) {
        let limit = bytes / self.page_size / self.sample;
        if let Some(at) = self.cgroup(id) {
            // "max" is a number too, and none that limits anything.
            self.cgroups[usize::from(at)].limit = Some(limit).filter(|&limit| limit > 0 && limit < MAX_PAGES);
            self.follow(at);
        }
    }

    /// File pages of a cgroup were begun to be tracked.
    pub(crate) fn arrived(&mut self, id: u64, pages: u32) {
        let Some(at) = self.cgroup(id) else { return };
        let cgroup = &mut self.cgroups[usize::from(at)];
        cgroup.tracked += u64::from(pages);
        if cgroup.tracked > cgroup.peak {
            cgroup.peak = cgroup.tracked;
            self.follow(at);
        }
    }

    /// File pages of a cgroup are not tracked any more.
    pub(crate) fn left(&mut self, id: u64, pages: u32) {
        if let Some(at) = self.cgroup(id) {
            let cgroup = &mut self.cgroups[usize::from(at)];
            cgroup.tracked = cgroup.tracked.saturating_sub(u64::from(pages));
        }
    }

    /// Reclaim took file pages of a cgroup.
    pub(crate) fn evicted(&mut self, id: u64) {
        if let Some(at) = self.cgroup(id) {
            self.cgroups[usize::from(at)].evicted = true;
        }
    }

    /// The kernel refaulted a file folio.
    pub(crate) fn refaulted(&mut self, id: u64, identity: &Identity, order: u8) {
        if let Some(at) = self.cgroup(id) {
            self.cgroups[usize::from(at)].refaults += 1 << order.min(20);
        }
        self.tell(id, identity, order, Told::Refaulted);
    }

    /// Something happened to a file folio of a cgroup.
    pub(crate) fn tell(&mut self, id: u64, identity: &Identity, order: u8, told: Told) {
        let Some(cgroup) = self.cgroup(id) else { return };
        let Ok(index) = u32::try_from(identity.index) else {
            self.refused += 1;
            return;
        };
        let order = order.min(MAX_ORDER);
        let access = Kept {
            file: u64::from(identity.dev) << 44 ^ identity.ino,
            // Folios are aligned in their files; one that is not would reach into another file's keys.
            index: index & !((1 << order) - 1),
            cgroup,
            cpu: self.cpu,
            order,
            told,
        };
        self.cgroups[usize::from(cgroup)].accesses += u64::from(matches!(told, Told::Mark | Told::Touch));
        if self.running.is_some() {
            self.feed(&access);
            return;
        }
        self.kept.push(access);
        let full = self.kept.len().is_multiple_of(ENOUGH) && self.busiest().is_some_and(|at| self.cgroups[usize::from(at)].evicted);
        if full || self.kept.len() >= MAX_KEPT {
            self.start();
        }
    }

    fn busiest(&self) -> Option<u16> {
        let busiest = self.cgroups.iter().enumerate().filter(|(_, cgroup)| cgroup.accesses > 0);
        // What is charged to an unknown cgroup is no cgroup's.
        let (at, _) = busiest.max_by_key(|(_, cgroup)| (cgroup.id != 0, cgroup.accesses))?;
        u16::try_from(at).ok()
    }

    /// Starts the caches with what was kept, if they have not been started: no more is waited for.
    pub(crate) fn start(&mut self) {
        if self.running.is_some() || self.rules.is_empty() {
            return;
        }
        let Some(cgroup) = self.busiest() else { return };
        let size = self.cgroups[usize::from(cgroup)].size();
        let percents = self.affordable(size);
        if size == 0 || percents.is_empty() {
            return;
        }
        let lrus: Vec<Lru> = self.rules.iter().map(|(_, lru)| *lru).collect();
        let sizes: Vec<u64> = percents.iter().map(|&percent| of(size, percent)).collect();
        let keys = if self.sample > 1 { KeySpace::sampled() } else { KeySpace::whole() };
        let most = MAX_BYTES / 4 / (lrus.len() * sizes.len()) as u64;
        self.running = Some(Running {
            cgroup,
            what_if: WhatIf::new(&lrus, &sizes, Config { cpus: self.cpus as usize, ..Config::pages(0) }),
            keys: keys.up_to(u32::try_from(most).unwrap_or(u32::MAX)),
            size,
            percents,
        });
        for access in std::mem::take(&mut self.kept) {
            self.feed(&access);
        }
    }

    /// The sizes that fit into the memory for them, those closest to the observed one first; in the order given.
    fn affordable(&mut self, size: u64) -> Vec<u32> {
        let mut nearest = self.percents.clone();
        nearest.sort_by_key(|percent| percent.abs_diff(100));
        let mut left = MAX_BYTES;
        nearest.retain(|&percent| {
            let bytes = of(size, percent).saturating_mul(FOLIO_BYTES * self.rules.len() as u64);
            let fits = bytes <= left;
            left -= if fits { bytes } else { 0 };
            fits
        });
        self.refused += (self.percents.len() - nearest.len()) as u64;
        self.percents.iter().copied().filter(|percent| nearest.contains(percent)).collect()
    }

    /// Lets the caches grow or shrink with the observed size, in steps that are worth it.
    fn follow(&mut self, at: u16) {
        let Some(running) = self.running.as_mut().filter(|running| running.cgroup == at) else { return };
        let size = self.cgroups[usize::from(at)].size();
        if size == 0 || size.abs_diff(running.size) <= running.size / 128 {
            return;
        }
        let mut percents = running.percents.clone();
        percents.sort_unstable();
        if size > running.size {
            // From the far end, so that no size becomes one that is still to be changed.
            percents.reverse();
        }
        for percent in percents {
            running.what_if.resize(of(running.size, percent), of(size, percent));
        }
        running.size = size;
    }

    fn feed(&mut self, access: &Kept) {
        let Some(running) = self.running.as_mut().filter(|running| running.cgroup == access.cgroup) else { return };
        let Some(key) = running.keys.key(access.file, u64::from(access.index)) else {
            self.refused += 1;
            return;
        };
        let mut feed = |key, event| running.what_if.feed(usize::from(access.cpu), key, event);
        let came = |how| Feed::Add { order: access.order, how };
        // A large folio that a cache does not have comes in as a whole, as it did in the kernel.
        if access.order > 0 && matches!(access.told, Told::Mark | Told::Touch) {
            feed(key, came(Entering::READ));
        }
        match access.told {
            Told::Mark => feed(key, Feed::Mark),
            Told::Touch => feed(key, Feed::Touch(Entering::FAULT)),
            Told::Came { in_fault, dropbehind } => feed(key, came(Entering { in_fault, dropbehind, ..Entering::READ })),
            Told::Refaulted => feed(key, Feed::EvictedBefore),
            Told::Gone => (key..key + (1 << access.order)).for_each(|key| feed(key, Feed::Delete { anon: false })),
        }
    }

    /// Where the caches stand; none before they started. `own` is the kernel's own rule set, `name` names cgroups, and `refaults` says
    /// whether the kernel's were observed.
    pub(crate) fn rows(&self, name: impl Fn(u64) -> String, refaults: bool) -> Vec<WhatIfFrame> {
        let Some(running) = &self.running else { return Vec::new() };
        let cgroup = &self.cgroups[usize::from(running.cgroup)];
        let sizes = running.percents.iter().copied();
        let named = self.rules.iter().enumerate().flat_map(|(at, (rules, _))| sizes.clone().map(move |percent| (at, rules, percent)));
        named
            .zip(running.what_if.rows())
            .map(|((at, rules, percent), row)| WhatIfFrame {
                rules: rules.clone(),
                own: at == 0,
                cgroup: name(cgroup.id),
                percent,
                pages: row.pages,
                accesses: row.accesses,
                refaults: row.refaults,
                observed: (refaults && percent == 100).then_some(cgroup.refaults),
            })
            .collect()
    }
}

/// A part of a size, at least a page.
fn of(size: u64, percent: u32) -> u64 {
    (size * u64::from(percent) / 100).max(1)
}

#[cfg(test)]
#[path = "what_if_tests.rs"]
mod tests;
