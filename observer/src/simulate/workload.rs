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
}

impl Stream {
    pub(crate) fn new(workload: Workload, mode: Mode, readahead: Readahead, accesses: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
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
        Self { workload, mode, random, files, laws, anon, keys: anon + aligned(anon_pages), step: 0 }
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
            Workload::Zipf { jobs, .. } => {
                let job = (step % u64::from(jobs.max(1))) as usize;
                cache.run_on(job);
                let page = self.laws[job].next(&mut self.random);
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
