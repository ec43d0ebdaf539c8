//! The command line.

pub mod simulate;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::capture::sample::Sample;
use crate::kernel::hooks::Tier;
use crate::model::rules::Rules;
use crate::units::{self, Limit};

/// Shown below every help text.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something failed
  2  wrong usage
  3  this kernel lacks what is needed
  4  a permission is missing
  5  data are missing: a damaged recording, or events lost while recording
`record -- CMD` passes the exit code of CMD on, 128 + N if signal N ended it.";

/// Shows what a kernel's multi-gen LRU does and, beside it, what frequency guided promotion (MGLRU-FG) would do.
///
/// Without a command: live on this kernel if it runs the multi-gen LRU and lets us trace, else a recording of one that does.
#[derive(Debug, Parser)]
#[command(name = "observer", version, max_term_width = 100, after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The summary instead of the screen.
    #[command(flatten)]
    pub summary: Summary,
    /// When to use colours; `NO_COLOR` counts for auto.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    pub color: Color,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch this kernel, whatever LRU it has
    Live(Live),
    /// Write the event stream to a file or pipe
    Record(Record),
    /// Show a recording, from a file or as it comes through a pipe
    Replay(Replay),
    /// Run rule sets on a synthetic access stream, or against published numbers
    Simulate(simulate::Simulate),
    /// Say what this kernel lets observer see, and what to change
    Doctor(Doctor),
}

/// A picture as text instead of a screen.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Print one JSON object (schema observer.summary/1)
    #[arg(long, conflicts_with = "text")]
    pub json: bool,
    /// Print a plain-text summary; the default where standard output is no terminal
    #[arg(long)]
    pub text: bool,
}

/// How a kernel is observed.
#[derive(Args, Clone, Debug)]
pub struct Observe {
    /// Let the kernel count what each eBPF program costs: c on the screen, cost in summaries. Counting costs some itself
    #[arg(long)]
    pub cost: bool,
    /// Observe one in N folios, each for its whole life (1/64, or 64), and totals become estimates
    ///
    /// auto observes all, and fewer once there are too many of them, their events come too fast, or observer's work on them takes
    /// more than 2 % of all processors' time: that is said on the screen and in the stream. 10% is auto with another such share. 1/1
    /// observes all whatever happens, and counts what is lost.
    #[arg(long, value_name = "1/N|auto|SHARE%", default_value = "auto", value_parser = units::sample)]
    pub sample: Sample,
    /// Buffer between the kernel and observer, a power of two (up to 1G): a larger one outlives longer bursts
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = units::ring)]
    pub ring: u32,
    /// Which hooks are used
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub hooks: Tier,
}

/// `observer live`.
#[derive(Args, Debug)]
pub struct Live {
    /// Only what is charged to this cgroup and those below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// End after this long (90s, 5m); summaries without it cover ten seconds
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
    /// How this kernel is observed.
    #[command(flatten)]
    pub observe: Observe,
    /// Rule set to show, may be given several times (fg-v4, 7.3, fg-v4,defer=oldest)
    #[arg(long, value_name = "RULES", value_parser = rules)]
    pub rules: Vec<Rules>,
    /// The summary instead of the screen.
    #[command(flatten)]
    pub summary: Summary,
}

/// `observer record`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct Record {
    /// The recording to write (.arrows), - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Begin a new file at a size (256M) or after a time (10m), or whichever comes first (256M,10m)
    ///
    /// With -o run.arrows the files are run-000001.arrows, run-000002.arrows and so on. Each is a recording of its own and
    /// tells again the names it needs; `observer replay run-*.arrows` shows them as one. M is mebibytes, m is minutes. A file
    /// ends with the batch that reaches the size.
    #[arg(long, value_name = "SIZE|TIME", value_delimiter = ',', value_parser = units::limit)]
    pub rotate: Vec<Limit>,
    /// Keep only the newest N files, those of earlier recordings of that name included
    #[arg(long, value_name = "N", requires = "rotate", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Take the events from a recording, - for standard input, instead of from this kernel
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cgroup", "run", "memory_max", "cost", "sample", "ring", "hooks"])]
    pub from: Option<PathBuf>,
    /// End after this long (90s, 5m)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
    /// Only what is charged to this cgroup and those below it; CMD's own cgroup is made below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Limit of CMD's cgroup (512M)
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "run")]
    pub memory_max: Option<u64>,
    /// How this kernel is observed.
    #[command(flatten)]
    pub observe: Observe,
    /// Run this in a cgroup of its own, record that cgroup, end with it
    #[arg(last = true, value_name = "CMD")]
    pub run: Vec<OsString>,
}

/// `observer replay`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct Replay {
    /// A recording, - for standard input; several files that --rotate made are shown as one
    #[arg(value_name = "FILE", required = true)]
    pub inputs: Vec<PathBuf>,
    /// The summary instead of the screen.
    #[command(flatten)]
    pub summary: Summary,
    /// Speed on the screen: 1 as recorded, max as fast as it goes
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Start paused
    #[arg(long)]
    pub paused: bool,
    /// On the screen: begin again at the end, until q
    #[arg(long = "loop", conflicts_with_all = ["json", "text"])]
    pub repeat: bool,
    /// Rule set to show beside the kernel's own, may be given several times (fg-v4, 7.3, fg-v4,defer=oldest)
    #[arg(long, value_name = "RULES", value_parser = rules)]
    pub rules: Vec<Rules>,
    /// Sizes of the what-if caches, in percent of the memory observed (50%,100%,200%); 100% unless given
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = percent)]
    pub sizes: Vec<u32>,
}

/// `observer doctor`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct Doctor {
    /// Print one JSON object (schema observer.doctor/1)
    #[arg(long)]
    pub json: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Even with `NO_COLOR`
    Always,
    /// Never
    Never,
}

fn rules(text: &str) -> Result<Rules, String> {
    Rules::parse(text).map_err(|error| error.to_string())
}

fn percent(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.trim().strip_suffix('%').unwrap_or(text.trim()).parse().ok();
    number.filter(|percent| (1..=10_000).contains(percent)).ok_or_else(|| format!("{text:?} is no size: give 1% to 10000%"))
}

fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    let number: Option<f64> = text.strip_suffix(['x', '×']).unwrap_or(text).parse().ok();
    number.filter(|speed| speed.is_finite() && *speed > 0.0).ok_or_else(|| format!("{text:?} is no speed: give a number above 0, or max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn what_people_type_is_understood() {
        assert!(parse("observer").unwrap().command.is_none());
        assert!(parse("observer --json").unwrap().summary.json);
        let Some(Command::Record(record)) =
            parse("observer record -o - --duration 60s --memory-max 512M --color never -- dd if=a of=b").unwrap().command
        else {
            panic!()
        };
        assert_eq!((record.run.len(), record.memory_max, record.duration), (3, Some(512 << 20), Some(Duration::from_secs(60))));
        let Some(Command::Record(record)) = parse("observer record -o x --rotate 256M,10m --keep 8 --from -").unwrap().command else {
            panic!()
        };
        assert_eq!((record.rotate.len(), record.keep, record.from), (2, Some(8), Some(PathBuf::from("-"))));
        for (line, sample, ring) in [
            ("observer record -o x", Sample::default(), 32 << 20),
            ("observer record -o x --sample 1/64 --ring 4M", Sample::OneIn(64), 4 << 20),
            ("observer record -o x --sample 8", Sample::OneIn(8), 32 << 20),
        ] {
            let Some(Command::Record(record)) = parse(line).unwrap().command else { panic!("{line}") };
            assert_eq!((record.observe.sample, record.observe.ring), (sample, ring), "{line}");
        }
        let Some(Command::Live(live)) = parse("observer live --sample 1/64").unwrap().command else { panic!() };
        assert_eq!((live.observe.sample, live.observe.hooks), (Sample::OneIn(64), Tier::All));
        let Some(Command::Live(live)) = parse("observer live --hooks tracepoints").unwrap().command else { panic!() };
        assert_eq!(live.observe.hooks, Tier::Tracepoints);
        let Some(Command::Replay(replay)) =
            parse("observer replay - --speed 2.5x --rules fg-v4 --rules fg-v4,defer=oldest").unwrap().command
        else {
            panic!()
        };
        assert_eq!((replay.speed, replay.rules.len(), replay.sizes.len()), (2.5, 2, 0));
        assert!(matches!(parse("observer replay x --loop").unwrap().command, Some(Command::Replay(Replay { repeat: true, .. }))));
        let Some(Command::Replay(replay)) = parse("observer replay - --json --sizes 50%,75,100% --sizes 200%").unwrap().command else {
            panic!()
        };
        assert_eq!(replay.sizes, [50, 75, 100, 200]);
        assert!(
            matches!(parse("observer replay run.arrows --speed max").unwrap().command, Some(Command::Replay(Replay { speed, .. })) if speed.is_infinite())
        );
    }

    #[test]
    fn wrong_usage_has_exit_code_2() {
        for line in [
            "observer record",
            "observer record -o x --memory-max 1G",
            "observer record -o x --duration soon -- true",
            "observer record -o x --keep 3",
            "observer record -o x --rotate 256",
            "observer record -o x --rotate 256M --keep 0",
            "observer record -o x --from y --cgroup z",
            "observer replay",
            "observer replay x --speed 0",
            "observer replay x --speed NaN",
            "observer replay x --rules fg-v9",
            "observer replay x --json --text",
            "observer replay x --json --loop",
            "observer replay x --sizes 0%",
            "observer replay x --sizes 50%,half",
            "observer live --sizes 50%",
            "observer live --sample 0",
            "observer live --sample 2/64",
            "observer record -o x --from y --sample 1/8",
            "observer record -o x --from y --sample auto",
            "observer record -o x --from y --ring 4M",
            "observer record -o x --from y --hooks tracepoints",
            "observer live --hooks some",
            "observer live --ring 5M",
            "observer live --ring 2G",
            "observer live --ring 100",
            "observer --json replay x",
            "observer fly",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
