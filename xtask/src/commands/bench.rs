//! `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use xtask::shell::say;

/// Measures speed and size, and prints the figures beside a peer's of the same run.
///
/// Nothing is asserted: machines are shared and noisy. Figures are those of optimised builds (cargo bench).
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// What to measure; without it everything.
    #[arg(value_enum)]
    what: Vec<What>,
    /// Where `capture` and `pressure` measure: `host` (as root), or a kernel in a virtual machine, where ratios count and absolutes do not.
    #[arg(long, default_value = "newest", value_name = "host|VERSION")]
    kernel: String,
    /// How often they measure each way.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// What observer is told as `--sample` by `pressure`: each is a way of its own.
    #[arg(long, default_value = "auto,1/1,1/64", value_delimiter = ',', value_name = "RATE")]
    sample: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Sessions, lock step and what-if caches, beside a plain LRU.
    Model,
    /// Bytes per event, events per second written and read.
    Recording,
    /// What observing takes from a page-cache read workload, events lost, bytes per event, beside bpftrace and trace-cmd from
    /// Debian's packages. Only when named.
    Capture,
    /// What observing takes from reads of which some miss, under a cgroup's limit, in one workload beside which observer comes and
    /// goes: throughput with its standard error. Only when named.
    Pressure,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let all = args.what.is_empty();
    for (what, bench) in [(What::Model, "model"), (What::Recording, "recording")] {
        if !all && !args.what.contains(&what) {
            continue;
        }
        say(format_args!("measuring: {bench}"));
        super::cargo(&["bench", "--locked", "--package", "observer", "--bench", bench], &[])?;
    }
    if args.what.contains(&What::Capture) {
        super::bench_capture::run(&args.kernel, args.rounds.into())?;
    }
    if args.what.contains(&What::Pressure) {
        super::bench_pressure::run(&args.kernel, args.rounds.into(), &args.sample)?;
    }
    Ok(ExitCode::SUCCESS)
}
