//! `cargo xtask memory`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use rustix::process::{Pid, Signal, kill_process};

use super::size::parse_time;

/// Watches how much memory a command holds: its resident size, sampled every second.
///
/// Prints the smallest and the largest size after the warm-up and how far they lie apart, and fails if that is further than --within.
/// For example `cargo xtask memory --for 1h -- observer live --json --duration 2h`: the command is interrupted when the time is over.
/// One that needs a terminal is started on its own and left alone, `cargo xtask memory --for 1h --pid PID`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How long it is watched.
    #[arg(long = "for", default_value = "20m", value_name = "TIME", value_parser = parse_time)]
    time: Duration,
    /// How long it may grow before it counts.
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = parse_time)]
    warm_up: Duration,
    /// Compare the peaks of periods this long, instead of the samples: for a program that begins again from time to time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    peaks: Option<Duration>,
    /// How far apart sizes may lie after that, in per cent of the smallest.
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    within: f64,
    /// Every sample as a row of CSV: seconds, KiB resident in all, of that anonymous, of files, shared.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Watch this process.
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pid: Option<i32>,
    /// Run and watch this command.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// One of /proc/PID/status' readings, KiB.
const COLUMNS: [&str; 4] = ["VmRSS:", "RssAnon:", "RssFile:", "RssShmem:"];

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut log = args.log.as_ref().map(|path| File::create(path).map(BufWriter::new)).transpose()?;
    if let Some(log) = &mut log {
        writeln!(log, "seconds,resident,anon,file,shared")?;
    }
    let (mut child, pid) = match (args.pid, args.command.as_slice()) {
        (Some(pid), _) => (None, pid),
        (None, [program, words @ ..]) => {
            let child = start(program, words)?;
            let pid = child.id().cast_signed();
            (Some(child), pid)
        }
        (None, []) => bail!("no command"),
    };
    let watched = watch(args, pid, child.as_mut(), &mut log);
    if let Some(child) = &mut child {
        if let (None, Some(pid)) = (child.try_wait()?, Pid::from_raw(pid)) {
            kill_process(pid, Signal::INT)?;
        }
        child.wait()?;
    }
    let Watched { sizes, ended_after } = watched?;
    let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max()) else {
        bail!("it ended after {} s, before the warm-up was over", ended_after.as_secs());
    };
    let apart = (most - least) as f64 * 100.0 / *least as f64;
    println!(
        "{} {} after {} s of warm-up, {} s in all: {least} to {most} KiB resident, {apart:.1} % apart",
        sizes.len(),
        args.peaks.map_or("samples".to_owned(), |period| format!("peaks of {} s", period.as_secs())),
        args.warm_up.as_secs(),
        ended_after.as_secs(),
    );
    if ended_after < args.time {
        println!("it ended before its time");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if apart <= args.within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn start(program: &str, words: &[String]) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn().with_context(|| program.to_owned())
}

struct Watched {
    /// KiB resident, every second after the warm-up, or peaks.
    sizes: Vec<u64>,
    ended_after: Duration,
}

fn watch(args: &Args, pid: i32, mut child: Option<&mut Child>, log: &mut Option<impl Write>) -> Result<Watched> {
    let status = format!("/proc/{pid}/status");
    let start = Instant::now();
    let mut sizes = Vec::new();
    let mut period = None;
    for second in 0_u32.. {
        let at = start.elapsed();
        if at >= args.time || child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
            break;
        }
        // One that has ended has no sizes, or no status at all.
        let Some(readings) = fs::read_to_string(&status).ok().as_deref().and_then(readings) else { break };
        if let Some(log) = log {
            let [resident, anon, file, shared] = readings;
            writeln!(log, "{:.1},{resident},{anon},{file},{shared}", at.as_secs_f64())?;
            log.flush()?;
        }
        if at >= args.warm_up
            && let Some(length) = args.peaks
        {
            let over = period.is_some_and(|since: Duration| at - since >= length);
            if over {
                sizes.extend(fs::read_to_string(&status).ok().as_deref().and_then(|status| reading(status, "VmHWM:")));
            }
            if over || period.is_none() {
                period = Some(at);
                // The kernel counts the peak from now on (proc_pid_clear_refs(5)).
                fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the peak")?;
            }
        } else if at >= args.warm_up {
            sizes.push(readings[0]);
        }
        thread::sleep(Duration::from_secs(u64::from(second) + 1).saturating_sub(start.elapsed()));
    }
    Ok(Watched { sizes, ended_after: start.elapsed() })
}

/// KiB of each column.
fn readings(status: &str) -> Option<[u64; 4]> {
    let [resident, anon, file, shared] = COLUMNS.map(|name| reading(status, name));
    Some([resident?, anon?, file?, shared?])
}

/// KiB of one.
fn reading(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::readings;

    #[test]
    fn sizes_are_read_and_a_process_that_ended_has_none() {
        let status =
            "Name:\tobserver\nVmPeak:\t  9 kB\nVmRSS:\t  314696 kB\nRssAnon:\t  242196 kB\nRssFile:\t 72500 kB\nRssShmem:\t 0 kB\n";
        assert_eq!(readings(status), Some([314_696, 242_196, 72_500, 0]));
        assert_eq!(readings("Name:\tobserver\nState:\tZ (zombie)\n"), None);
    }
}
