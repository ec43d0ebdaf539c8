//! `cargo xtask memory`.

use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use rustix::process::{Pid, Signal, kill_process};

use super::size::parse_time;

/// Runs a command and watches how much memory it holds: its resident size, sampled every second.
///
/// Prints the smallest and the largest size after the warm-up, and how far they lie apart. For example
/// `cargo xtask memory --for 1h -- observer live --json --duration 2h`. The command is interrupted when the time is over.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How long it is watched.
    #[arg(long = "for", default_value = "20m", value_name = "TIME", value_parser = parse_time)]
    time: Duration,
    /// How long it may grow before it counts.
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = parse_time)]
    warm_up: Duration,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let [program, words @ ..] = args.command.as_slice() else { bail!("no command") };
    let mut child =
        Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn().with_context(|| program.clone())?;
    let status = format!("/proc/{}/status", child.id());
    let start = Instant::now();
    let mut sizes = Vec::new();
    while start.elapsed() < args.time && child.try_wait()?.is_none() {
        // It may have ended just now.
        let size = fs::read_to_string(&status).ok().as_deref().and_then(resident);
        if let Some(size) = size.filter(|_| start.elapsed() >= args.warm_up) {
            sizes.push(size);
        }
        thread::sleep(Duration::from_secs(1));
    }
    let watched = start.elapsed();
    if let (None, Some(pid)) = (child.try_wait()?, Pid::from_raw(child.id().cast_signed())) {
        kill_process(pid, Signal::INT)?;
    }
    child.wait()?;
    let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max()) else {
        bail!("it ended after {} s, before the warm-up was over", watched.as_secs());
    };
    println!(
        "{} samples after {} s of warm-up, {} s in all: {least} to {most} KiB resident, {:.1} % apart",
        sizes.len(),
        args.warm_up.as_secs(),
        watched.as_secs(),
        (most - least) as f64 * 100.0 / *least as f64
    );
    Ok(ExitCode::SUCCESS)
}

/// KiB of VmRSS.
fn resident(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}
