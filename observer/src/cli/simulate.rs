//! `observer simulate`: its words, and what they make of the simulator's configuration.

use clap::{Args, Subcommand, ValueEnum};

use super::EXIT_CODES;
use crate::model::Lru;
use crate::simulate::run::page_index_overhead;
use crate::simulate::{Config, Letter, Mode, Readahead, Scatter, Workload};
use crate::units;

/// Bytes of a page in the simulation.
const PAGE: u64 = 4096;

/// Rule sets compared unless others are asked for.
const DEFAULT_RULES: [&str; 4] = ["7.3", "fg-v3", "fg-v4", Lru::CLASSICAL];

/// Keys in use at most: the page index of each cache has four bytes for each.
const MAX_KEYS: u64 = 1 << 29;

/// Pages of memory at most, 64 GiB: every rule set has tables for as many.
const MAX_MEMORY: u64 = 1 << 24;

/// `observer simulate`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub struct Simulate {
    /// What is accessed.
    #[command(subcommand)]
    pub workload: Option<Accessed>,
    /// A published table instead of a workload.
    #[command(flatten)]
    pub table: Table,
}

/// `observer simulate --table`.
#[derive(Args, Clone, Debug)]
pub struct Table {
    /// Run a published table scaled down, and print published and simulated side by side
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<Tables>,
    /// Cache of every row, which decides the scale; changes hold from 512M (2^17 pages) on
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "512M")]
    pub memory: u64,
    /// Most accesses of one run, ramp included; a longer row is cut and says to what part
    #[arg(long, value_name = "N", value_parser = count)]
    pub reads: Option<u64>,
    /// Only rows of this mode
    #[arg(long, value_enum, value_name = "MODE")]
    pub only: Option<Only>,
    /// Seed of the access streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print one JSON object (schema observer.cover-letter/1)
    #[arg(long)]
    pub json: bool,
}

/// Tables that were published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tables {
    /// Every fio row of the FG v4 cover letter
    CoverLetter,
}

/// Where popular pages lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scattered {
    /// In a random order
    #[default]
    Shuffle,
    /// By fio's hash
    Fio,
}

/// Rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// Rows of read(2), which are the ones that can be compared
    Read,
}

/// Workloads.
#[derive(Clone, Debug, Subcommand)]
pub enum Accessed {
    /// fio's random reads: each job on a file of its own, popular pages scattered over it
    #[command(after_help = EXIT_CODES)]
    Zipf {
        /// Exponent of the law
        #[arg(long, value_name = "N", default_value = "0.9", value_parser = theta)]
        theta: f64,
        /// Jobs, each with its file and on its CPU
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
        jobs: u32,
        /// Size of each job's file
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "160M")]
        file: u64,
        /// Where in its file popular pages lie: `fio` leaves some pages out, as its hash does
        #[arg(long, value_enum, value_name = "HOW", default_value_t)]
        scatter: Scattered,
        /// How many hits take as long as a miss: jobs then go on at their own pace; they take turns unless given
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        miss_cost: u32,
        /// The rest.
        #[command(flatten)]
        run: Run,
    },
    /// A hot file read over and over beside cold files read once a pass (SQLite and grep)
    #[command(after_help = EXIT_CODES)]
    ScanAndHot {
        /// Size of the hot file
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "24M")]
        hot: u64,
        /// Cold files
        #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
        cold_files: u32,
        /// Size of each cold file
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "8M")]
        cold: u64,
        /// Hot pages read for each cold one
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
        hot_per_cold: u32,
        /// The rest.
        #[command(flatten)]
        run: Run,
    },
    /// Each page once
    #[command(after_help = EXIT_CODES)]
    Sequential {
        /// The rest.
        #[command(flatten)]
        run: Run,
    },
    /// A file over and over
    #[command(after_help = EXIT_CODES)]
    Loop {
        /// Size of the file
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "80M")]
        file: u64,
        /// The rest.
        #[command(flatten)]
        run: Run,
    },
    /// Zipf reads of a file and zipf touches of anonymous memory
    #[command(after_help = EXIT_CODES)]
    Mixed {
        /// Exponent of both laws
        #[arg(long, value_name = "N", default_value = "0.9", value_parser = theta)]
        theta: f64,
        /// Size of the file
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "128M")]
        file: u64,
        /// Size of the anonymous memory
        #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "64M")]
        anon: u64,
        /// Of 100 accesses, those to anonymous memory
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
        anon_percent: u32,
        /// The rest.
        #[command(flatten)]
        run: Run,
    },
}

/// What every workload takes.
#[derive(Args, Clone, Debug)]
pub struct Run {
    /// Rule set to run, may be given several times (7.3, classical, fg-v4,defer=oldest)
    #[arg(long, value_name = "RULES", value_parser = lru)]
    pub rules: Vec<Lru>,
    /// Limit of the cgroup
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "64M")]
    pub memory: u64,
    /// Part of the limit that holds no pages of the workload; the page index of the files unless given
    #[arg(long, value_name = "SIZE", value_parser = overhead)]
    pub overhead: Option<u64>,
    /// Accesses counted (900k, 1.5M)
    #[arg(long, value_name = "N", value_parser = count, default_value = "1M")]
    pub reads: u64,
    /// Accesses before counting begins
    #[arg(long, value_name = "N", value_parser = count, default_value = "100k")]
    pub ramp: u64,
    /// Divide all sizes, reads and the ramp by this
    #[arg(long, value_name = "N", default_value = "1", value_parser = scale)]
    pub scale: f64,
    /// How files are accessed
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub mode: Access,
    /// How the kernel reads ahead; off for zipf, small for the others unless given
    #[arg(long, value_enum, value_name = "HOW")]
    pub readahead: Option<Ahead>,
    /// CPUs, each with batches of its own; as many as zipf has jobs, else one, unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub cpus: Option<u16>,
    /// 0 to 200, 201 for anonymous memory only
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u8).range(0..=201))]
    pub swappiness: u8,
    /// Size of swap; none unless given
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub swap: Option<u64>,
    /// Seed of the access stream
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Streams to add up, of this seed and those after it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Threads; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print one JSON object (schema observer.simulate/1)
    #[arg(long)]
    pub json: bool,
}

/// How files are accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// By read(2)
    #[default]
    Read,
    /// Through a mapping, with reading and faulting around
    Mmap,
    /// Through a mapping with `MADV_RANDOM`, whose accesses the kernel does not see
    MmapRandom,
}

/// How the kernel reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ahead {
    /// Single pages, as after `POSIX_FADV_RANDOM`
    Off,
    /// Windows up to 128 KiB of single pages
    Small,
    /// Windows up to 128 KiB in large folios
    Large,
}

impl Accessed {
    /// What every workload takes.
    pub fn run(&self) -> &Run {
        match self {
            Self::Zipf { run, .. } | Self::ScanAndHot { run, .. } | Self::Sequential { run } | Self::Loop { run, .. } => run,
            Self::Mixed { run, .. } => run,
        }
    }

    /// The simulator's configuration.
    ///
    /// # Errors
    /// When sizes do not fit each other, or the simulator; says which.
    pub fn config(&self) -> Result<Config, String> {
        let run = self.run();
        let reads = scaled(run.reads, run.scale).max(1);
        let pages = |bytes: u64| scaled(bytes.div_ceil(PAGE), run.scale);
        let short =
            |bytes: u64| u32::try_from(pages(bytes)).map_err(|_| format!("a file of {} pages is too large to simulate", pages(bytes)));
        let (workload, file_pages, anon_pages) = match *self {
            Self::Zipf { theta, jobs, file, scatter, miss_cost, .. } => {
                // A file scaled by a power of two stands for the large one; by anything else it is a file of its own.
                let whole = u32::try_from(crate::report::num::to_u64(run.scale)).unwrap_or(1);
                let stride = if f64::from(whole) == run.scale && whole.is_power_of_two() { whole } else { 1 };
                let scatter = if scatter == Scattered::Fio { Scatter::Fio { stride } } else { Scatter::Shuffle };
                (Workload::Zipf { theta, jobs, file_pages: short(file)?, scatter, miss_cost }, u64::from(jobs) * pages(file), 0)
            }
            Self::ScanAndHot { hot, cold_files, cold, hot_per_cold, .. } => (
                Workload::ScanAndHot { hot_pages: short(hot)?, cold_files, cold_pages: short(cold)?, hot_per_cold },
                pages(hot) + u64::from(cold_files) * pages(cold),
                0,
            ),
            Self::Sequential { .. } => (Workload::Sequential, reads + scaled(run.ramp, run.scale), 0),
            Self::Loop { file, .. } => (Workload::Loop { file_pages: short(file)? }, pages(file), 0),
            Self::Mixed { theta, file, anon, anon_percent, .. } => {
                (Workload::Mixed { theta, file_pages: short(file)?, anon_pages: short(anon)?, anon_percent }, pages(file), pages(anon))
            }
        };
        if file_pages + anon_pages > MAX_KEYS {
            return Err(format!("{} pages are too many to simulate: divide them by --scale", file_pages + anon_pages));
        }
        let memory = pages(run.memory);
        if memory > MAX_MEMORY {
            return Err(format!("{memory} pages of memory are too many to simulate: divide them by --scale"));
        }
        // What was read once and for all leaves shadows that the kernel's shrinker takes: only what is resident is indexed for long.
        let indexed = if workload == Workload::Sequential { memory } else { file_pages };
        let overhead = run.overhead.map_or_else(|| page_index_overhead(indexed), pages);
        if overhead >= memory {
            return Err(format!("of {memory} pages of memory, {overhead} are overhead: nothing is left for the workload"));
        }
        let jobs = if let Workload::Zipf { jobs, .. } = workload { jobs } else { 1 };
        Ok(Config {
            workload,
            mode: match run.mode {
                Access::Read => Mode::Read,
                Access::Mmap => Mode::Mmap,
                Access::MmapRandom => Mode::MmapRandom,
            },
            readahead: match (run.readahead, workload) {
                (Some(Ahead::Off), _) | (None, Workload::Zipf { .. }) => Readahead::OFF,
                (Some(Ahead::Small), _) | (None, _) => Readahead::SMALL,
                (Some(Ahead::Large), _) => Readahead::LARGE,
            },
            lrus: if run.rules.is_empty() { default_rules() } else { run.rules.clone() },
            memory,
            overhead,
            cpus: run.cpus.map_or(jobs as usize, usize::from),
            swappiness: run.swappiness,
            swap: run.swap.map_or(0, pages),
            ramp: scaled(run.ramp, run.scale),
            accesses: reads,
            seed: run.seed,
            seeds: run.seeds,
            threads: threads(run.threads),
        })
    }
}

impl Table {
    /// How to run the cover letter's table.
    ///
    /// # Errors
    /// When the cache is too small or large to mean anything.
    pub fn letter(&self) -> Result<Letter, String> {
        let cache = self.memory / PAGE;
        if !(1024..=MAX_MEMORY).contains(&cache) {
            return Err(format!("a cache of {cache} pages is out of range: give 4M to 64G"));
        }
        Ok(Letter {
            cache,
            most_accesses: self.reads.unwrap_or(u64::MAX),
            read_only: self.only == Some(Only::Read),
            seed: self.seed,
            threads: threads(self.threads),
        })
    }
}

fn default_rules() -> Vec<Lru> {
    DEFAULT_RULES.iter().filter_map(|name| Lru::parse(name).ok()).collect()
}

fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// At least one, of what is there at all.
fn scaled(n: u64, scale: f64) -> u64 {
    crate::report::num::to_u64((n as f64 / scale).round()).max(n.min(1))
}

fn lru(text: &str) -> Result<Lru, String> {
    Lru::parse(text).map_err(|error| format!("{error}, or {}", Lru::CLASSICAL))
}

/// A number of things: `900k`, `1.5M`, in thousands as things are counted.
fn count(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is no number: give one, perhaps with k, M or G (900k)");
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        Some((at, 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| refuse())?;
    if (0.0..=1e15).contains(&(number * unit)) { Ok(crate::report::num::to_u64((number * unit).round())) } else { Err(refuse()) }
}

/// A size, or nothing.
fn overhead(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { units::size(text) }
}

fn theta(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|theta| (0.0..=10.0).contains(theta)).ok_or_else(|| format!("{text:?} is no exponent: give a number from 0 to 10"))
}

fn scale(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|scale| (1.0..=1e9).contains(scale)).ok_or_else(|| format!("{text:?} is no scale: give a number from 1 on"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::model::rules::{FG_V3, V7_3};

    fn parse(line: &str) -> Result<Simulate, clap::Error> {
        match Cli::try_parse_from(["observer", "simulate"].into_iter().chain(line.split(' ')))?.command {
            Some(Command::Simulate(simulate)) => Ok(simulate),
            other => panic!("{other:?}"),
        }
    }

    fn config(line: &str) -> Result<Config, String> {
        parse(line).unwrap().workload.expect("a workload").config()
    }

    #[test]
    fn the_reference_run_is_a_line() {
        let got = config("zipf --theta 1.1 --file 160M --memory 64M --reads 940k --ramp 70k --rules 7.3 --rules classical").unwrap();
        assert_eq!(got.workload, Workload::Zipf { theta: 1.1, jobs: 1, file_pages: 40_960, scatter: Scatter::Shuffle, miss_cost: 1 });
        assert_eq!((got.memory, got.overhead, got.cpus, got.swap), (16_384, page_index_overhead(40_960), 1, 0));
        assert_eq!((got.accesses, got.ramp, got.seed, got.seeds), (940_000, 70_000, 1, 1));
        assert_eq!((got.lrus, got.readahead, got.mode), (vec![Lru::Generations(V7_3), Lru::Classical], Readahead::OFF, Mode::Read));
    }

    #[test]
    fn a_scale_divides_sizes_and_counts() {
        let got = config("zipf --jobs 16 --file 2560M --scatter fio --memory 16G --reads 32M --ramp 0 --scale 32 --overhead 32M").unwrap();
        assert_eq!(
            got.workload,
            Workload::Zipf { theta: 0.9, jobs: 16, file_pages: 20_480, scatter: Scatter::Fio { stride: 32 }, miss_cost: 1 }
        );
        assert_eq!((got.memory, got.accesses, got.ramp, got.cpus, got.overhead), (1 << 17, 1_000_000, 0, 16, 256));
        assert_eq!(config("zipf --overhead 0").unwrap().overhead, 0);
        assert_eq!(config("loop --file 8K --scale 1000").unwrap().workload, Workload::Loop { file_pages: 1 });
    }

    #[test]
    fn workloads_have_parameters_of_their_own() {
        let scan = config("scan-and-hot --hot 4M --cold-files 3 --cold 8M --hot-per-cold 2 --readahead large").unwrap();
        assert_eq!(scan.workload, Workload::ScanAndHot { hot_pages: 1024, cold_files: 3, cold_pages: 2048, hot_per_cold: 2 });
        assert_eq!(scan.readahead, Readahead::LARGE);
        let mixed = config("mixed --theta 1.2 --file 4M --anon 8M --anon-percent 30 --swap 1G --swappiness 201").unwrap();
        assert_eq!(mixed.workload, Workload::Mixed { theta: 1.2, file_pages: 1024, anon_pages: 2048, anon_percent: 30 });
        assert_eq!((mixed.swap, mixed.swappiness, mixed.readahead), (1 << 18, 201, Readahead::SMALL));
        let sequential = config("sequential --mode mmap-random --reads 1000").unwrap();
        assert_eq!((sequential.workload, sequential.mode, sequential.overhead), (Workload::Sequential, Mode::MmapRandom, 37));
        let rules = config("sequential --rules fg-v4,defer=oldest").unwrap().lrus;
        assert_eq!(rules, [Lru::Generations(crate::model::Rules { name: "fg-v4", ..FG_V3 })]);
        assert_eq!(config("sequential").unwrap().lrus.iter().map(Lru::label).collect::<Vec<_>>(), DEFAULT_RULES);
    }

    #[test]
    fn the_table_stands_alone() {
        let table = parse("--table cover-letter --reads 2M --only read --threads 3 --json").unwrap().table;
        let letter = table.letter().unwrap();
        assert_eq!((table.table, table.json), (Some(Tables::CoverLetter), true));
        assert_eq!((letter.cache, letter.most_accesses, letter.read_only, letter.threads), (1 << 17, 2_000_000, true, 3));
        assert!(parse("--table cover-letter --memory 4K").unwrap().table.letter().is_err());
    }

    #[test]
    fn wrong_usage_has_exit_code_2() {
        for line in [
            "--table fio",
            "--table cover-letter zipf",
            "fly",
            "zipf --theta -1",
            "zipf --theta NaN",
            "zipf --reads many",
            "zipf --reads -1k",
            "zipf --scale 0",
            "zipf --jobs 0",
            "zipf --rules fg-v9",
            "zipf --swappiness 202",
            "sequential --file 1M",
            "mixed --anon-percent 101",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_reason() {
        assert!(config("zipf --memory 4K --file 1G").unwrap_err().contains("overhead"));
        assert!(config("zipf --jobs 4096 --file 1G --memory 1G").unwrap_err().contains("--scale"));
        assert!(config("zipf --file 100T --memory 1G").unwrap_err().contains("too large"));
        assert!(config("zipf --memory 1T").unwrap_err().contains("--scale"));
        assert!(config("sequential --reads 1G").unwrap_err().contains("--scale"));
    }
}
