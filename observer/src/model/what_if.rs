//! What if: one access stream through free-running caches of several rule sets and sizes.

use rustc_hash::FxHashMap;

use super::machine::{Cache, Config, Counters, Entering, Lru};

/// Gives pages dense keys. Neighbours in a file are neighbours in keys, within chunks.
#[derive(Clone, Debug)]
pub struct KeySpace {
    chunk: u32,
    most: u32,
    bases: FxHashMap<(u64, u64), u32>,
    used: u32,
}

impl KeySpace {
    /// For streams that show every page: chunks of a page-table page, so that look-around finds neighbours.
    pub fn whole() -> Self {
        Self { chunk: 512, most: 1 << 31, bases: FxHashMap::default(), used: 0 }
    }

    /// For sampled streams, where neighbours are not seen anyhow.
    pub fn sampled() -> Self {
        Self { chunk: 1, ..Self::whole() }
    }

    /// With fewer keys: caches hold a word for each.
    pub fn up_to(self, most: u32) -> Self {
        Self { most: most.min(1 << 31), ..self }
    }

    /// The key of a page of a file (or of an anonymous mapping); the same each time. None when all keys, 2^31 or less, are in use.
    pub fn key(&mut self, file: u64, index: u64) -> Option<u32> {
        let (at, chunk, most) = (index % u64::from(self.chunk), self.chunk, self.most);
        let used = &mut self.used;
        let base = match self.bases.entry((file, index / u64::from(chunk))) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(free) => {
                let end = used.checked_add(chunk).filter(|&end| end <= most)?;
                *free.insert(std::mem::replace(used, end))
            }
        };
        Some(base + at as u32)
    }

    /// Keys given so far, chunks rounded up.
    pub const fn len(&self) -> u32 {
        self.used
    }

    /// Whether none was given.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
}

/// One event of the stream, as far as a cache can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// `folio_mark_accessed` by a reader: a read of a page that is brought in if it is not there.
    Mark,
    /// A folio of `2^order` pages was added to the page cache or mapped anew; nothing if a page of it is there.
    Add {
        /// log2 of its pages.
        order: u8,
        /// How it entered.
        how: Entering,
    },
    /// An access through a page table.
    Touch(Entering),
    /// Truncated or freed.
    Delete {
        /// Anonymous memory.
        anon: bool,
    },
    /// The kernel refaulted a page whose eviction was before the stream began.
    EvictedBefore,
}

struct Run {
    lru: Lru,
    pages: u64,
    cache: Box<dyn Cache>,
    since: Counters,
}

/// What one rule set at one size would have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIfRow {
    /// The rule set's label.
    pub rules: String,
    /// Size, pages.
    pub pages: u64,
    /// Accesses.
    pub accesses: u64,
    /// Accesses to pages that were not resident.
    pub misses: u64,
    /// Pages refaulted, anon and file.
    pub refaults: u64,
    /// Pages evicted, anon and file.
    pub evictions: u64,
}

/// The caches.
pub struct WhatIf {
    runs: Vec<Run>,
}

impl std::fmt::Debug for WhatIf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

impl WhatIf {
    /// A cache for each rule set and size; `config.limit` is not used.
    pub fn new(lrus: &[Lru], sizes: &[u64], config: Config) -> Self {
        let run =
            |lru: &Lru, pages| Run { lru: *lru, pages, cache: lru.cache(Config { limit: pages, ..config }), since: Counters::default() };
        Self { runs: lrus.iter().flat_map(|lru| sizes.iter().map(move |&pages| run(lru, pages))).collect() }
    }

    /// One event on a CPU, to all caches.
    pub fn feed(&mut self, cpu: usize, key: u32, event: Feed) {
        for run in &mut self.runs {
            let cache = &mut *run.cache;
            cache.run_on(cpu);
            match event {
                Feed::Mark => {
                    cache.read(key);
                }
                // A folio's pages are aligned to its size in its file, and so within a chunk.
                Feed::Add { order, how } => cache.add(key, order, how),
                Feed::Touch(how) => {
                    cache.touch(key, how);
                }
                Feed::Delete { anon } => cache.remove(key, anon),
                Feed::EvictedBefore => cache.evicted_before(key),
            }
        }
    }

    /// Counts from here on: what came before was warm-up.
    pub fn start_counting(&mut self) {
        for run in &mut self.runs {
            run.since = *run.cache.counters();
        }
    }

    /// The observed limit has changed: a size that followed it is now another.
    pub fn resize(&mut self, from: u64, to: u64) {
        for run in self.runs.iter_mut().filter(|run| run.pages == from) {
            run.pages = to;
            run.cache.set_limit(to);
        }
    }

    /// Where each stands; rule set by rule set, sizes in the order given.
    pub fn rows(&self) -> impl Iterator<Item = WhatIfRow> + '_ {
        self.runs.iter().map(|run| {
            let (now, then) = (run.cache.counters(), run.since);
            let sum = |counts: [u64; 2]| counts[0] + counts[1];
            WhatIfRow {
                rules: run.lru.label(),
                pages: run.pages,
                accesses: now.accesses - then.accesses,
                misses: now.misses - then.misses,
                refaults: sum(now.refaults) - sum(then.refaults),
                evictions: sum(now.evictions) - sum(then.evictions),
            }
        })
    }

    /// Bytes held by all caches.
    pub fn memory(&self) -> usize {
        self.runs.iter().map(|run| run.cache.memory()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::*;
    use super::*;

    #[test]
    fn keys_are_dense_stable_and_neighbourly() {
        let mut keys = KeySpace::whole();
        let a = keys.key(1, 1000).expect("room");
        assert_eq!((keys.key(1, 1001), keys.key(1, 1000)), (Some(a + 1), Some(a)));
        assert_eq!(a % 512, 1000 % 512);
        let b = keys.key(2, 1000).expect("room");
        assert_ne!(a, b);
        assert_eq!(keys.len(), 1024);
        let mut sampled = KeySpace::sampled();
        assert_eq!((sampled.key(1, 70_000), sampled.key(1, 9)), (Some(0), Some(1)));
    }

    #[test]
    fn the_key_space_ends_instead_of_wrapping() {
        let mut keys = KeySpace { used: (1 << 31) - 512, ..KeySpace::whole() };
        assert!(keys.key(1, 0).is_some());
        assert_eq!(keys.key(2, 0), None);
        assert!(keys.key(1, 511).is_some());
        let mut few = KeySpace::whole().up_to(1024);
        assert_eq!([few.key(1, 0), few.key(2, 0), few.key(3, 0), few.key(2, 9)], [Some(0), Some(512), None, Some(521)]);
    }

    #[test]
    fn larger_caches_refault_less_and_rule_sets_differ_only_by_rules() {
        let lrus = [Lru::Generations(V7_3), Lru::Generations(FG_V4), Lru::Classical];
        let mut what_if = WhatIf::new(&lrus, &[100, 200, 400], Config::pages(0));
        for n in 0..20_000u32 {
            what_if.feed(0, n * n % 499, Feed::Mark);
        }
        let rows: Vec<_> = what_if.rows().collect();
        assert_eq!(rows.len(), 9);
        for rows in rows.chunks(3) {
            assert!(rows.windows(2).all(|pair| pair[0].refaults >= pair[1].refaults), "{rows:?}");
            assert!(rows.iter().all(|row| row.accesses == 20_000 && row.misses >= row.refaults));
        }
        assert_eq!((rows[0].rules.as_str(), rows[0].pages, rows[8].rules.as_str()), ("7.3", 100, "classical"));
    }

    #[test]
    fn an_addition_that_is_there_already_is_no_second_miss() {
        let mut what_if = WhatIf::new(&[Lru::Generations(V7_3)], &[100], Config::pages(0));
        let read = Feed::Add { order: 0, how: Entering::READ };
        for event in [Feed::EvictedBefore, read, Feed::Mark, read, Feed::Mark] {
            what_if.feed(0, 7, event);
        }
        let row = what_if.rows().next().expect("one");
        assert_eq!((row.accesses, row.misses, row.refaults), (2, 0, 1));
        what_if.start_counting();
        what_if.feed(0, 7, Feed::Delete { anon: false });
        what_if.feed(0, 7, Feed::Mark);
        let row = what_if.rows().next().expect("one");
        assert_eq!((row.accesses, row.misses, row.refaults), (1, 1, 0), "truncation leaves no shadow");
    }

    #[test]
    fn resizing_follows_the_observed_limit() {
        let mut what_if = WhatIf::new(&[Lru::Classical], &[400, 800], Config::pages(0));
        (0..1000).for_each(|key| what_if.feed(0, key, Feed::Mark));
        what_if.resize(400, 200);
        assert_eq!(what_if.rows().map(|row| row.pages).collect::<Vec<_>>(), [200, 800]);
        assert!(what_if.runs[0].cache.resident() <= 200);
    }
}
