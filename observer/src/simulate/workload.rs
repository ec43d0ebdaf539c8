//! Synthetic access streams.

use serde::Serialize;

use super::file::{File, Readahead};
use super::random::Random;
use super::zipf::{Scatter, Zipf};
use crate::model::{Cache, Entering};

/// How files are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// `read(2)`.
    Read,
    /// A mapping with recency.
    Mmap,
    /// A mapping with MADV_RANDOM: no reading around, and accesses are not seen (spec 9.29).
    MmapRandom,
}

/// What is accessed. Sizes are pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "workload")]
pub enum Workload {
    /// fio's random reads: each job on its own file, ranks scattered over it (spec 12.1).
    Zipf {
        /// Exponent.
        theta: f64,
        /// Jobs, each on a CPU of its own.
        jobs: u32,
        /// Pages of each job's file.
        file_pages: u32,
        /// Where in it popular pages lie.
        scatter: Scatter,
        /// How many accesses that hit take as long as one that misses. Each job goes on as its own accesses end; with 1 they take turns.
        miss_cost: u32,
    },
    /// A hot file read over and over beside cold files, each of whose pages is read once a pass (spec 12.2, SQLite and grep).
    ScanAndHot {
        /// Pages of the hot file.
        hot_pages: u32,
        /// Cold files.
        cold_files: u32,
        /// Pages of each.
        cold_pages: u32,
        /// Hot pages read for each cold one.
        hot_per_cold: u32,
    },
    /// One pass over a file; accesses beyond its end begin anew on pages never seen.
    Sequential,
    /// A file over and over.
    Loop {
        /// Its pages.
        file_pages: u32,
    },
    /// Zipf reads of a file and zipf touches of anonymous memory.
    Mixed {
        /// Exponent of both.
        theta: f64,
        /// Pages of the file.
        file_pages: u32,
        /// Pages of anonymous memory.
        anon_pages: u32,
        /// Of 100 accesses, those to anonymous memory.
        anon_percent: u32,
    },
}

/// Pages of a page table: keys of a mapping start at a multiple.
const ALIGN: u32 = 512;

const fn aligned(pages: u32) -> u32 {
    pages.div_ceil(ALIGN) * ALIGN
}

/// The stream of a workload on one cache.
pub(crate) struct Stream {
    workload: Workload,
    mode: Mode,
    random: Random,
    files: Vec<File>,
    laws: Vec<Zipf>,
    /// First key of anonymous memory.
    anon: u32,
    keys: u32,
    step: u64,
    /// When each job's last access ends, in times of a hit.
    ends: Vec<u64>,
}

impl Stream {
    pub(crate) fn new(workload: Workload, mode: Mode, readahead: Readahead, accesses: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let jobs = if let Workload::Zipf { jobs, .. } = workload { jobs.max(1) } else { 1 };
        let readahead = if mode == Mode::MmapRandom { Readahead::OFF } else { readahead };
        let lengths: Vec<u32> = match workload {
            Workload::Zipf { jobs, file_pages, .. } => vec![file_pages; jobs.max(1) as usize],
            Workload::ScanAndHot { hot_pages, cold_files, cold_pages, .. } => {
                let mut lengths = vec![cold_pages.max(1); cold_files.max(1) as usize + 1];
                lengths[0] = hot_pages;
                lengths
            }
            Workload::Sequential => vec![accesses.min(1 << 30) as u32],
            Workload::Loop { file_pages } | Workload::Mixed { file_pages, .. } => vec![file_pages],
        };
        let laws = match workload {
            Workload::Zipf { theta, file_pages, scatter, .. } => {
                lengths.iter().map(|_| Zipf::scattered(file_pages, theta, scatter, &mut random)).collect()
            }
            Workload::Mixed { theta, file_pages, anon_pages, .. } => {
                vec![Zipf::new(file_pages, theta, &mut random), Zipf::new(anon_pages, theta, &mut random)]
            }
            Workload::ScanAndHot { .. } | Workload::Sequential | Workload::Loop { .. } => Vec::new(),
        };
        let mut anon = 0;
        let files = lengths
            .into_iter()
            .map(|pages| {
                let file = File::new(anon, pages.max(1), readahead);
                anon += aligned(pages.max(1));
                file
            })
            .collect();
        let anon_pages = if let Workload::Mixed { anon_pages, .. } = workload { anon_pages } else { 0 };
        Self { workload, mode, random, files, laws, anon, keys: anon + aligned(anon_pages), step: 0, ends: vec![0; jobs as usize] }
    }

    /// Keys in use.
    pub(crate) fn keys(&self) -> usize {
        self.keys as usize
    }

    fn access(&mut self, cache: &mut dyn Cache, file: usize, page: u32) {
        let file = &mut self.files[file];
        match self.mode {
            Mode::Read => file.read(cache, page),
            Mode::Mmap => file.touch(cache, page, true),
            Mode::MmapRandom => file.touch(cache, page, false),
        }
    }

    /// The next access.
    pub(crate) fn next(&mut self, cache: &mut dyn Cache) {
        let step = self.step;
        self.step += 1;
        match self.workload {
            Workload::Zipf { jobs, miss_cost, .. } => {
                let job = match miss_cost {
                    ..=1 => (step % u64::from(jobs.max(1))) as usize,
                    // The first of those that end soonest.
                    _ => (0..self.ends.len()).min_by_key(|&job| self.ends[job]).unwrap_or(0),
                };
                cache.run_on(job);
                let page = self.laws[job].next(&mut self.random);
                if miss_cost > 1 {
                    self.ends[job] += if self.files[job].is_resident(cache, page) { 1 } else { u64::from(miss_cost) };
                }
                self.access(cache, job, page);
            }
            Workload::ScanAndHot { hot_pages, cold_files, cold_pages, hot_per_cold } => {
                // A turn is one cold page and the hot pages that go with it.
                let in_turn = u64::from(hot_per_cold) + 1;
                let (turn, at) = (step / in_turn, step % in_turn);
                if at == 0 {
                    let page = (turn % u64::from(cold_pages.max(1))) as u32;
                    let file = turn / u64::from(cold_pages.max(1)) % u64::from(cold_files.max(1));
                    self.access(cache, 1 + file as usize, page);
                } else {
                    let nth = turn * u64::from(hot_per_cold) + at - 1;
                    self.access(cache, 0, (nth % u64::from(hot_pages.max(1))) as u32);
                }
            }
            Workload::Sequential | Workload::Loop { .. } => {
                let page = (step % u64::from(self.files[0].pages())) as u32;
                self.access(cache, 0, page);
            }
            Workload::Mixed { anon_percent, .. } => {
                if self.random.below(100) < anon_percent {
                    let page = self.laws[1].next(&mut self.random);
                    cache.touch(self.anon + page, Entering::ANON);
                } else {
                    let page = self.laws[0].next(&mut self.random);
                    self.access(cache, 0, page);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Config, Lru};

    /// Misses of a job that has nothing cached, beside one that has everything, in so many accesses of both.
    fn misses(miss_cost: u32, accesses: u64) -> u64 {
        let workload = Workload::Zipf { theta: 0.0, jobs: 2, file_pages: 100_000, scatter: Scatter::Shuffle, miss_cost };
        let mut stream = Stream::new(workload, Mode::Read, Readahead::OFF, accesses, 1);
        let mut cache = Lru::Classical.cache(Config::pages(1 << 20));
        (0..100_000).for_each(|page| cache.add(page, 0, Entering::READ));
        (0..accesses).for_each(|_| stream.next(&mut *cache));
        cache.counters().misses
    }

    #[test]
    fn a_job_that_waits_falls_behind() {
        let in_turn = misses(1, 1100);
        assert!((540..=550).contains(&in_turn), "every second access, but for pages read twice: {in_turn}");
        assert_eq!(misses(10, 1100), 100);
    }
}
