//! Deterministic memory workloads for the end-to-end tests.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use memmap2::Advice as MapAdvice;
use observer::simulate::random::Random;
use observer::simulate::zipf::Zipf;
use observer_tests::cgroup::Cgroup;
use observer_tests::report::Meter;
use observer_tests::slices::Slices;
use observer_tests::{PAGE, files, large};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;

/// Deterministic memory workloads: the same seed gives the same accesses. One JSON line on standard output says what was done.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Makes a file, or leaves it when it is there with the right size, and ends.
    MakeFile(FileArgs),
    /// Reads pages of a file with zipf-distributed popularity, 4 KiB at a time.
    ZipfRead(ZipfRead),
    /// Touches pages of a mapped file with zipf-distributed popularity.
    ZipfMmap(ZipfMmap),
    /// Reads a hot file over and over beside cold files, whose pages are read once per pass.
    ScanAndHot(ScanAndHot),
    /// Writes to pages of private memory with zipf-distributed popularity; above the limit it swaps.
    Anon(Anon),
    /// Makes large folios of a file and of private memory, and has them split and partly removed.
    LargeFolios(LargeFolios),
}

#[derive(Args, Clone, Serialize)]
struct FileArgs {
    /// The file; made when it is absent or of another size.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Its size in pages of 4 KiB.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
}

#[derive(Args, Clone, Serialize)]
struct Popularity {
    /// Exponent of the popularity: rank r is chosen with probability proportional to 1 / r^θ.
    #[arg(long, default_value_t = 0.9, value_name = "θ")]
    theta: f64,
    /// Seed of the accesses and of the places of popular pages.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Args, Clone, Serialize)]
struct Amount {
    /// Accesses that are counted.
    #[arg(long, value_name = "N")]
    reads: u64,
    /// Accesses before them, to warm up.
    #[arg(long, default_value_t = 0, value_name = "N")]
    ramp: u64,
}

#[derive(Args, Clone, Serialize)]
struct Group {
    /// Control group to make and enter before the first access (the file is made outside of it).
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Its memory limit in bytes.
    #[arg(long, value_name = "BYTES", requires = "cgroup")]
    memory_max: Option<u64>,
}

impl Group {
    /// Enters it, and counts from here on.
    fn enter(&self) -> Result<Meter> {
        if let Some(path) = &self.cgroup {
            Cgroup::enter(path, self.memory_max)?;
        }
        Meter::start()
    }
}

/// What every popularity workload is told.
#[derive(Args, Serialize)]
struct Accesses {
    #[command(flatten)]
    #[serde(flatten)]
    popularity: Popularity,
    #[command(flatten)]
    #[serde(skip)]
    amount: Amount,
    #[command(flatten)]
    #[serde(skip)]
    group: Group,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Switch {
    On,
    Off,
}

#[derive(Args, Serialize)]
struct ZipfRead {
    #[command(flatten)]
    #[serde(flatten)]
    file: FileArgs,
    #[command(flatten)]
    #[serde(flatten)]
    accesses: Accesses,
    /// Whether the kernel may read ahead.
    #[arg(long, default_value = "off", value_name = "WHETHER")]
    readahead: Switch,
    /// Where to write, as they go on, how long every 1024 accesses took.
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    slices: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Advised {
    Normal,
    Random,
}

#[derive(Args, Serialize)]
struct ZipfMmap {
    #[command(flatten)]
    #[serde(flatten)]
    file: FileArgs,
    #[command(flatten)]
    #[serde(flatten)]
    accesses: Accesses,
    /// What the kernel is told of the mapping: `normal` reads around a fault, `random` does not.
    #[arg(long, default_value = "normal", value_name = "ADVICE")]
    advice: Advised,
}

#[derive(Args, Serialize)]
struct ScanAndHot {
    /// Folder of the files; they are made when absent.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Pages of the hot file.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    hot_pages: u64,
    /// Number of cold files.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cold_files: u64,
    /// Pages of each cold file.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cold_pages: u64,
    /// Hot pages read for each cold one.
    #[arg(long, default_value_t = 1, value_name = "N")]
    hot_per_cold: u64,
    /// Passes over all cold files that are counted.
    #[arg(long, default_value_t = 1, value_name = "N")]
    passes: u64,
    /// Passes before them, to warm up.
    #[arg(long, default_value_t = 0, value_name = "N")]
    ramp_passes: u64,
    /// Whether the kernel may read ahead.
    #[arg(long, default_value = "off", value_name = "WHETHER")]
    readahead: Switch,
    #[command(flatten)]
    #[serde(skip)]
    group: Group,
}

#[derive(Args, Serialize)]
struct Anon {
    /// Pages of memory, all of them written once before the ramp.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    #[command(flatten)]
    #[serde(flatten)]
    accesses: Accesses,
    /// Whether the memory may be made of huge pages.
    #[arg(long, default_value = "off", value_name = "WHETHER")]
    huge_pages: Switch,
}

#[derive(Args, Serialize)]
struct LargeFolios {
    #[command(flatten)]
    #[serde(flatten)]
    file: FileArgs,
    /// Pages of private memory.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(64..))]
    memory_pages: u64,
    /// Seconds between the splits and what uses their parts: reading the file twice, and reclaim.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    #[serde(skip)]
    settle: u64,
    /// Pages to reclaim in the end.
    #[arg(long, value_name = "N")]
    reclaim: u64,
    /// Control group to make and enter before the first access.
    #[arg(long, value_name = "PATH")]
    cgroup: PathBuf,
    /// Stay when all is done, until killed.
    #[arg(long)]
    #[serde(skip)]
    stay: bool,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().workload {
        Workload::MakeFile(args) => files::open(&args.file, args.pages).map(drop),
        Workload::ZipfRead(args) => zipf_read(&args),
        Workload::ZipfMmap(args) => zipf_mmap(&args),
        Workload::ScanAndHot(args) => scan_and_hot(&args),
        Workload::Anon(args) => anon(&args),
        Workload::LargeFolios(args) => large_folios(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Chooses pages by popularity, the same ones as `observer simulate zipf` with one job of that seed.
struct Chooser {
    law: Zipf,
    random: Random,
}

impl Chooser {
    fn new(pages: u64, popularity: &Popularity) -> Result<Self> {
        let pages = u32::try_from(pages).context("a popularity of so many pages takes too much memory")?;
        ensure!(popularity.theta.is_finite() && popularity.theta >= 0.0, "θ must be 0 or above, not {}", popularity.theta);
        let mut random = Random::new(popularity.seed);
        Ok(Self { law: Zipf::new(pages, popularity.theta, &mut random), random })
    }

    fn next(&mut self) -> u64 {
        self.law.next(&mut self.random).into()
    }
}

fn zipf_read(args: &ZipfRead) -> Result<()> {
    let mut chooser = Chooser::new(args.file.pages, &args.accesses.popularity)?;
    let reader = Reader::new(files::open(&args.file.file, args.file.pages)?, args.readahead)?;
    let mut slices = args.slices.as_deref().map(Slices::create).transpose()?;
    let meter = args.accesses.group.enter()?;
    let access = || {
        reader.read(chooser.next())?;
        slices.as_mut().map_or(Ok(()), Slices::count)
    };
    print(&meter.run("zipf-read", args, args.accesses.amount.ramp, args.accesses.amount.reads, access)?)
}

fn zipf_mmap(args: &ZipfMmap) -> Result<()> {
    let mut chooser = Chooser::new(args.file.pages, &args.accesses.popularity)?;
    let map = files::map(&files::open(&args.file.file, args.file.pages)?)?;
    map.advise(match args.advice {
        Advised::Normal => MapAdvice::Normal,
        Advised::Random => MapAdvice::Random,
    })?;
    let meter = args.accesses.group.enter()?;
    let access = || {
        let page = chooser.next();
        files::check(&map[usize::try_from(page * PAGE)?..], page)
    };
    print(&meter.run("zipf-mmap", args, args.accesses.amount.ramp, args.accesses.amount.reads, access)?)
}

fn scan_and_hot(args: &ScanAndHot) -> Result<()> {
    let open = |name: String, pages| Reader::new(files::open(&args.folder.join(name), pages)?, args.readahead);
    let hot = open("hot".to_owned(), args.hot_pages)?;
    let cold: Vec<_> = (0..args.cold_files).map(|index| open(format!("cold-{index}"), args.cold_pages)).collect::<Result<_>>()?;
    let meter = args.group.enter()?;
    // A turn is one cold page and the hot pages that go with it.
    let turns = |passes: u64| passes.checked_mul(args.cold_files * args.cold_pages).context("so many passes would never end");
    let turn_reads = args.hot_per_cold + 1;
    let (ramp, reads) = (turns(args.ramp_passes)?, turns(args.passes)?);
    let (mut next_cold, mut next_hot) = (0, 0);
    let turn = || {
        let (file, page) = (next_cold / args.cold_pages % args.cold_files, next_cold % args.cold_pages);
        next_cold += 1;
        cold[usize::try_from(file)?].read(page)?;
        for _ in 0..args.hot_per_cold {
            hot.read(next_hot)?;
            next_hot = (next_hot + 1) % args.hot_pages;
        }
        Ok(())
    };
    let mut report = meter.run("scan-and-hot", args, ramp, reads, turn)?;
    report.ramp *= turn_reads;
    report.reads *= turn_reads;
    print(&report)
}

fn anon(args: &Anon) -> Result<()> {
    let mut chooser = Chooser::new(args.pages, &args.accesses.popularity)?;
    rustix::thread::disable_transparent_huge_pages(args.huge_pages == Switch::Off).context("huge pages")?;
    let meter = args.accesses.group.enter()?;
    let page_bytes = usize::try_from(PAGE)?;
    let Some(bytes) = usize::try_from(args.pages)?.checked_mul(page_bytes) else { bail!("so many pages are no memory") };
    let mut memory = vec![0_u8; bytes];
    let mut filler = Random::new(args.accesses.popularity.seed);
    for page in memory.chunks_exact_mut(page_bytes) {
        // A quarter of a page is noise, so that compressed swap compresses as well as it does for real data.
        for word in page[..page_bytes / 4].chunks_exact_mut(8) {
            word.copy_from_slice(&filler.bits().to_le_bytes());
        }
    }
    let access = || {
        let at = usize::try_from(chooser.next() * PAGE)?;
        memory[at] = black_box(memory[at]).wrapping_add(1);
        Ok(())
    };
    let report = meter.run("anon", args, args.accesses.amount.ramp, args.accesses.amount.reads, access)?;
    black_box(&memory);
    print(&report)
}

fn large_folios(args: &LargeFolios) -> Result<()> {
    let file = &args.file.file;
    drop(files::open(file, args.file.pages)?);
    let group = Cgroup::enter(&args.cgroup, None)?;
    let meter = Meter::start()?;
    let mut memory = large::memory(usize::try_from(args.memory_pages)?)?;
    large::read(file)?;
    let change = || {
        large::cut(file, args.file.pages)?;
        large::advise(&mut memory)?;
        std::thread::sleep(Duration::from_secs(args.settle));
        large::read(file)?;
        large::read(file)?;
        large::reclaim(group.folder(), args.reclaim)
    };
    print(&meter.run("large-folios", args, 0, 1, change)?)?;
    if args.stay {
        loop {
            std::thread::park();
        }
    }
    black_box(&memory);
    Ok(())
}

/// Reads single pages of a file, and checks them.
struct Reader {
    file: File,
}

impl Reader {
    fn new(file: File, readahead: Switch) -> Result<Self> {
        if readahead == Switch::Off {
            fadvise(&file, 0, None, Advice::Random).context("switch readahead off")?;
        }
        Ok(Self { file })
    }

    fn read(&self, page: u64) -> Result<()> {
        let mut bytes = [0; PAGE as usize];
        self.file.read_exact_at(&mut bytes, page * PAGE).with_context(|| format!("read page {page}"))?;
        files::check(&bytes, page)
    }
}

fn print(report: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    std::io::stdout().write_all(&line).context("standard output")
}
