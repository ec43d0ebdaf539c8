//! One workload under several rule sets.

use serde::Serialize;

use super::file::Readahead;
use super::workload::{Mode, Stream, Workload};
use crate::model::{self, Counters, Lru};

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The access stream.
    pub workload: Workload,
    /// How files are accessed.
    pub mode: Mode,
    /// How the kernel reads ahead.
    pub readahead: Readahead,
    /// The LRUs to compare, in the order of the report.
    pub lrus: Vec<Lru>,
    /// The memory limit, pages.
    pub memory: u64,
    /// Of it, what holds no pages of the workload (see [`page_index_overhead`]).
    pub overhead: u64,
    /// CPUs; zipf jobs are spread over them.
    pub cpus: usize,
    /// 0..=201.
    pub swappiness: u8,
    /// Swap, pages.
    pub swap: u64,
    /// Accesses before counting begins.
    pub ramp: u64,
    /// Accesses counted.
    pub accesses: u64,
    /// Seed of the stream; each seed after the first of `seeds` is one more.
    pub seed: u64,
    /// Streams averaged.
    pub seeds: u32,
    /// Threads; the result does not depend on it.
    pub threads: usize,
}

/// Pages of a cgroup that the page index of `pages` file pages takes: a leaf node of 576 bytes for 64 pages, seven to a page (mem).
///
/// The kernel charges these nodes to the reader's cgroup, and shadows keep them alive, so it is the whole file that counts.
pub const fn page_index_overhead(pages: u64) -> u64 {
    pages.div_ceil(64).div_ceil(7)
}

/// One LRU's result, all seeds together. Pages unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The rule set.
    pub rules: String,
    /// Accesses counted.
    pub accesses: u64,
    /// Accesses to pages that were not resident.
    pub misses: u64,
    /// Refaults of anon and file; first touches are none.
    pub refaults: [u64; 2],
    /// Refaults of both per access.
    pub refaults_per_access: f64,
    /// Evictions of anon and file.
    pub evictions: [u64; 2],
    /// Moved on by scans because of their tier.
    pub protected: u64,
    /// Promotions by references, folios.
    pub promotions: u64,
    /// Generations opened.
    pub agings: u64,
}

/// All results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of this structure.
    pub schema: &'static str,
    /// The access stream.
    #[serde(flatten)]
    pub workload: Workload,
    /// How files were accessed.
    pub mode: Mode,
    /// Memory for the workload's pages, pages.
    pub memory: u64,
    /// Accesses before counting.
    pub ramp: u64,
    /// First seed.
    pub seed: u64,
    /// Streams.
    pub seeds: u32,
    /// By LRU.
    pub rows: Vec<Row>,
}

/// Counters of one LRU on one stream, from the end of the ramp on.
fn stream(config: &Config, lru: &Lru, seed: u64) -> Counters {
    let mut stream = Stream::new(config.workload, config.mode, config.readahead, config.ramp + config.accesses, seed);
    let memory = config.memory.saturating_sub(config.overhead);
    let mut cache = lru.cache(model::Config { limit: memory, cpus: config.cpus, swappiness: config.swappiness, swap_pages: config.swap });
    cache.reserve(stream.keys());
    for _ in 0..config.ramp {
        stream.next(&mut *cache);
    }
    let before = *cache.counters();
    for _ in 0..config.accesses {
        stream.next(&mut *cache);
    }
    difference(cache.counters(), &before)
}

fn difference(now: &Counters, then: &Counters) -> Counters {
    let pair = |now: [u64; 2], then: [u64; 2]| [now[0] - then[0], now[1] - then[1]];
    Counters {
        accesses: now.accesses - then.accesses,
        misses: now.misses - then.misses,
        refaults: pair(now.refaults, then.refaults),
        activates: pair(now.activates, then.activates),
        restores: pair(now.restores, then.restores),
        evictions: pair(now.evictions, then.evictions),
        scanned: now.scanned - then.scanned,
        protected: now.protected - then.protected,
        rejected: now.rejected - then.rejected,
        promotions: now.promotions - then.promotions,
        agings: now.agings - then.agings,
        reclaims: now.reclaims - then.reclaims,
        passes: now.passes - then.passes,
        over_limit: now.over_limit - then.over_limit,
    }
}

/// Runs `work(0..count)` on several threads; results in order.
pub(crate) fn in_parallel<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let done = std::sync::Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let result = work(at);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs the workload under each LRU. `progress` is called as streams end, with how many of how many.
pub fn run(config: &Config, progress: &(dyn Fn(usize, usize) + Sync)) -> Report {
    let seeds = config.seeds.max(1) as usize;
    let total = config.lrus.len() * seeds;
    let ended = std::sync::atomic::AtomicUsize::new(0);
    let results = in_parallel(total, config.threads, |at| {
        let result = stream(config, &config.lrus[at / seeds], config.seed.wrapping_add((at % seeds) as u64));
        progress(ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, total);
        result
    });
    let rows = config.lrus.iter().zip(results.chunks(seeds)).map(|(lru, results)| row(lru, results)).collect();
    Report {
        schema: "observer.simulate/1",
        workload: config.workload,
        mode: config.mode,
        memory: config.memory.saturating_sub(config.overhead),
        ramp: config.ramp,
        seed: config.seed,
        seeds: config.seeds.max(1),
        rows,
    }
}

fn row(lru: &Lru, results: &[Counters]) -> Row {
    let sum = |of: fn(&Counters) -> u64| results.iter().map(of).sum::<u64>();
    let refaults = [sum(|c| c.refaults[0]), sum(|c| c.refaults[1])];
    let accesses = sum(|c| c.accesses);
    Row {
        rules: lru.label(),
        accesses,
        misses: sum(|c| c.misses),
        refaults,
        refaults_per_access: (refaults[0] + refaults[1]) as f64 / accesses.max(1) as f64,
        evictions: [sum(|c| c.evictions[0]), sum(|c| c.evictions[1])],
        protected: sum(|c| c.protected),
        promotions: sum(|c| c.promotions),
        agings: sum(|c| c.agings),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
