//! Every fio row of the FG v4 cover letter, scaled down beside what was published (spec 12.1). What the differences mean is in `validation.md`.
//!
//! Pages, cache and reads are divided by the same power of two, and popular pages are placed as fio places them. FG v4's rule for the tail is
//! known from its letter and one run (spec 15.1, 16), so v3's is shown beside it. The letter's "before" is 7.3's successor: it is shown as 7.3,
//! and as 7.3 whose insertions are not lifted by `PG_referenced` alone (spec 2.2, row 5).

use serde::Serialize;

use super::file::Readahead;
use super::run::{Config, Report, in_parallel, run};
use super::workload::{Mode, Workload};
use super::zipf::Scatter;
use crate::model::Lru;

/// A row as published.
struct Published {
    mode: Mode,
    /// Limit in GiB.
    memory: u32,
    theta: f64,
    /// Thousand reads per second before the series; they set the length of the run.
    iops: u64,
    /// Refaults per read of classical, before, FG; zero where the letter has only IOPS.
    refaults: [f64; 3],
}

const fn published(mode: Mode, memory: u32, theta: f64, iops: u64, refaults: [f64; 3]) -> Published {
    Published { mode, memory, theta, iops, refaults }
}

/// All rows, in the letter's order.
const ROWS: [Published; 18] = [
    published(Mode::Read, 16, 0.8, 396_046, [0.20108, 0.20074, 0.17660]),
    published(Mode::Read, 16, 0.9, 602_201, [0.13356, 0.13186, 0.11522]),
    published(Mode::Read, 16, 1.1, 2_122_415, [0.03641, 0.03586, 0.03065]),
    published(Mode::Read, 16, 1.2, 4_513_839, [0.01479, 0.01466, 0.01230]),
    published(Mode::Mmap, 16, 0.8, 3_610_516, [0.05403, 0.02009, 0.01805]),
    published(Mode::Mmap, 16, 0.9, 3_856_644, [0.08937, 0.01899, 0.01638]),
    published(Mode::Mmap, 16, 1.1, 2_225_641, [0.03549, 0.03644, 0.02925]),
    published(Mode::Mmap, 16, 1.2, 4_811_580, [0.01529, 0.01569, 0.01375]),
    published(Mode::MmapRandom, 16, 1.1, 1_641_981, [0.0; 3]),
    published(Mode::Mmap, 16, 1.4, 20_408_851, [0.00205, 0.00210, 0.00180]),
    published(Mode::Mmap, 8, 1.4, 13_650_929, [0.00392, 0.00430, 0.00379]),
    published(Mode::Mmap, 4, 1.4, 9_392_019, [0.00645, 0.00722, 0.00650]),
    published(Mode::Mmap, 12, 1.2, 3_502_117, [0.02169, 0.02245, 0.02055]),
    published(Mode::Mmap, 8, 1.2, 2_511_410, [0.02944, 0.03209, 0.02875]),
    published(Mode::Mmap, 4, 1.2, 1_672_370, [0.04459, 0.04897, 0.04388]),
    published(Mode::Mmap, 12, 1.1, 1_520_102, [0.05159, 0.05361, 0.04907]),
    published(Mode::Mmap, 8, 1.1, 1_100_118, [0.06830, 0.07387, 0.06708]),
    published(Mode::Mmap, 6, 1.1, 910_669, [0.08064, 0.08816, 0.08046]),
];

/// Jobs, pages of each job's file, seconds of ramp and of measuring.
const JOBS: u32 = 16;
const FILE_PAGES: u64 = 655_360;
const RAMP: u64 = 45;
const SECONDS: u64 = 600;
/// Pages of a GiB.
const GIB: u64 = 1 << 18;

/// How to run the table.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    /// Least cache of a row, pages; the letter's proportions decide the rest. At least 2^17 (spec 12.1).
    pub cache: u64,
    /// Most accesses of one run, ramp included; a longer one is cut, and its row says to what part.
    pub most_accesses: u64,
    /// Only the rows of `read(2)`.
    pub read_only: bool,
    /// Seed.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
}

/// LRUs that every row is simulated with.
pub const SIMULATED: [&str; 5] = ["classical", "7.3", "7.3,referenced-lifts=off", "fg-v3", "fg-v4"];

/// Published and simulated refaults per read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LetterRow {
    /// How the file was accessed.
    pub mode: Mode,
    /// The letter's limit, GiB.
    pub memory_gib: u32,
    /// Exponent.
    pub theta: f64,
    /// One in how many pages, and reads, was simulated.
    pub scale: f64,
    /// Part of the letter's reads per page that was run, 1 for all.
    pub run: f64,
    /// Published: classical, before, FG; none where the letter has IOPS only.
    pub published: Option<[f64; 3]>,
    /// Simulated, in the order of [`SIMULATED`].
    pub simulated: [f64; SIMULATED.len()],
}

/// A change that was published, and the same of the simulation, percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// From.
    pub from: &'static str,
    /// To.
    pub to: &'static str,
    /// Published; none where the letter has IOPS only.
    pub published: Option<f64>,
    /// Simulated.
    pub simulated: f64,
}

impl Change {
    /// Percentage points from published to simulated.
    pub fn difference(&self) -> Option<f64> {
        self.published.map(|published| self.simulated - published)
    }
}

impl LetterRow {
    /// The changes that the letter argues with: to FG from what was before it and from the classical LRU, and between those two.
    pub fn changes(&self) -> [Change; 7] {
        let pair = |from: usize, to: usize, published: (usize, usize)| Change {
            from: SIMULATED[from],
            to: SIMULATED[to],
            published: self.published.map(|row| change(row[published.0], row[published.1])),
            simulated: change(self.simulated[from], self.simulated[to]),
        };
        let (classical, before, fg) = (0, 1, 2);
        [
            pair(1, 3, (before, fg)),
            pair(1, 4, (before, fg)),
            pair(2, 4, (before, fg)),
            pair(0, 3, (classical, fg)),
            pair(0, 4, (classical, fg)),
            pair(0, 1, (classical, before)),
            pair(0, 2, (classical, before)),
        ]
    }
}

/// Relative change in percent.
fn change(from: f64, to: f64) -> f64 {
    if from > 0.0 { (to / from - 1.0) * 100.0 } else { 0.0 }
}

/// Into how many parts a row's pages are divided: the most that leave a cache of the size asked for, and a power of two, so that fio's
/// placement scales too.
fn scale(pages: u64, cache: u64) -> u32 {
    1 << (pages / cache.max(1)).max(1).ilog2().min(30)
}

/// The configuration of a row, and the part of its reads that fits.
fn configuration(row: &Published, letter: &Letter) -> (Config, f64, f64) {
    let scale = scale(u64::from(row.memory) * GIB, letter.cache);
    let scaled = |n: u64| (n as f64 / f64::from(scale)).round();
    let all = scaled(row.iops * (RAMP + SECONDS));
    let part = (letter.most_accesses as f64 / all).min(1.0);
    // Rates, sizes and cut are all positive and far below 2^53.
    let count = |n: f64| n.max(1.0).round().to_string().parse().unwrap_or(1);
    let (ramp, accesses): (u64, u64) = (count(scaled(row.iops * RAMP) * part), count(scaled(row.iops * SECONDS) * part));
    let file_pages: u64 = count(scaled(FILE_PAGES));
    let config = Config {
        workload: Workload::Zipf {
            theta: row.theta,
            jobs: JOBS,
            file_pages: file_pages as u32,
            scatter: Scatter::Fio { stride: scale },
            miss_cost: 1,
        },
        mode: row.mode,
        readahead: if row.mode == Mode::Mmap { Readahead::SMALL.scaled(scale) } else { Readahead::OFF },
        lrus: SIMULATED.iter().filter_map(|name| Lru::parse(name).ok()).collect(),
        memory: count(scaled(u64::from(row.memory) * GIB)),
        overhead: 0,
        cpus: JOBS as usize,
        swappiness: 60,
        swap: 0,
        ramp,
        accesses,
        seed: letter.seed,
        seeds: 1,
        threads: 1,
    };
    (config, f64::from(scale), part)
}

/// Runs the table. `progress` is called as rows end, with how many of how many.
pub fn cover_letter(letter: &Letter, progress: &(dyn Fn(usize, usize) + Sync)) -> Vec<LetterRow> {
    let rows: Vec<_> = ROWS.iter().filter(|row| !letter.read_only || row.mode == Mode::Read).collect();
    let ended = std::sync::atomic::AtomicUsize::new(0);
    in_parallel(rows.len(), letter.threads, |at| {
        let row = rows[at];
        let (config, scale, part) = configuration(row, letter);
        let report: Report = run(&config, &|_, _| {});
        let simulated = std::array::from_fn(|lru| report.rows[lru].refaults_per_access);
        progress(ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, rows.len());
        LetterRow {
            mode: row.mode,
            memory_gib: row.memory,
            theta: row.theta,
            scale,
            run: part,
            published: (row.refaults[1] > 0.0).then_some(row.refaults),
            simulated,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportions_are_the_letters() {
        let letter = Letter { cache: 1 << 17, most_accesses: u64::MAX, read_only: false, seed: 1, threads: 1 };
        let (config, scale, part) = configuration(&ROWS[0], &letter);
        assert_eq!((scale, part), (32.0, 1.0));
        assert_eq!(
            config.workload,
            Workload::Zipf { theta: 0.8, jobs: 16, file_pages: 20_480, scatter: Scatter::Fio { stride: 32 }, miss_cost: 1 }
        );
        assert_eq!((config.accesses, config.ramp), (7_425_863, 556_940));
        let (tight, scale, _) = configuration(&ROWS[11], &letter);
        assert_eq!(
            (scale, tight.workload),
            (8.0, Workload::Zipf { theta: 1.4, jobs: 16, file_pages: 81_920, scatter: Scatter::Fio { stride: 8 }, miss_cost: 1 })
        );
        let (_, _, part) = configuration(&ROWS[0], &Letter { most_accesses: 798_280, ..letter });
        assert!((part - 0.1).abs() < 1e-6);
    }

    #[test]
    fn published_changes_are_those_of_the_letter() {
        let expected = [-12.0, -12.6, -14.5, -16.1, -10.2, -13.8, -19.7, -12.4];
        for (row, expected) in ROWS.iter().zip(expected) {
            assert!((change(row.refaults[1], row.refaults[2]) - expected).abs() < 0.06, "θ {}", row.theta);
        }
    }

    #[test]
    fn changes_compare_the_right_columns() {
        let row = LetterRow {
            mode: Mode::Read,
            memory_gib: 16,
            theta: 0.8,
            scale: 32.0,
            run: 1.0,
            published: Some([0.2, 0.1, 0.05]),
            simulated: [0.2, 0.25, 0.1, 0.2, 0.05],
        };
        let changes = row.changes().map(|change| (change.from, change.to, change.published.map(f64::round), change.simulated.round()));
        let lifted = "7.3,referenced-lifts=off";
        let expected = [
            ("7.3", "fg-v3", Some(-50.0), -20.0),
            ("7.3", "fg-v4", Some(-50.0), -80.0),
            (lifted, "fg-v4", Some(-50.0), -50.0),
            ("classical", "fg-v3", Some(-75.0), 0.0),
            ("classical", "fg-v4", Some(-75.0), -75.0),
            ("classical", "7.3", Some(-50.0), 25.0),
            ("classical", lifted, Some(-50.0), -50.0),
        ];
        assert_eq!(changes, expected);
        assert!(row.changes()[0].difference().is_some_and(|points| (points - 30.0).abs() < 1e-9));
        assert!(SIMULATED.iter().all(|name| Lru::parse(name).is_ok()));
    }

    #[test]
    fn every_row_runs() {
        let letter = Letter { cache: 2048, most_accesses: 4000, read_only: false, seed: 1, threads: 2 };
        let rows = cover_letter(&letter, &|_, _| {});
        assert_eq!(rows.len(), 18);
        assert!(rows.iter().all(|row| row.run < 1.0));
        assert_eq!(rows.iter().filter(|row| row.published.is_none()).count(), 1);
    }
}
