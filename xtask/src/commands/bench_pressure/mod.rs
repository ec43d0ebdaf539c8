//! `cargo xtask bench pressure`: what observing takes from reads of which some miss, under a cgroup's limit.
//!
//! On a shared machine one run differs from the next by more than what is looked for. So one workload goes on all the time, and each
//! stretch that is observed stands between two that are not.

mod stretches;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::scripted::{Folders, Scripted};
use stretches::{Cost, Stretch, cost, parse};

/// Runs the workload, and observer from time to time.
const TURNS: &str = include_str!("turns.sh");

/// Measures on a kernel in a virtual machine, or natively on this one (as root) where `kernel` is `host`. Each of `samples`
/// is a way to observe.
pub(super) fn run(kernel: &str, turns: usize, samples: &[String]) -> Result<()> {
    let out = tempfile::tempdir()?;
    let timeout = Duration::from_secs(600 + 300 * turns as u64);
    let script = Scripted { kernel, scripts: &[("turns.sh", TURNS)], files: &[], out: out.path(), timeout };
    // Emulated, the same reads take some ten times longer.
    let seconds = if script.is_native() { 8 } else { 20 };
    let result = script.run(|Folders { scripts, out, scratch }| {
        let kind = if script.is_native() { "host" } else { "guest" };
        let fixed = [scripts, &turns.to_string(), out, scratch, &seconds.to_string(), kind].map(str::to_owned);
        fixed.into_iter().chain(samples.iter().cloned()).collect()
    });
    let read = |name: &str| fs::read_to_string(out.path().join(name));
    let release = match (result, read("failed")) {
        (_, Ok(reason)) => bail!("cannot measure: {}", reason.trim()),
        (Err(error), _) => return Err(error),
        (Ok(release), _) => release,
    };
    let stretches = parse(&read("stretches")?, &read("slices")?)?;
    println!("Page-cache reads of 4 KiB, zipf 0.9 over 128 MiB in a cgroup of 64 MiB, on {release}: stretches of {seconds} s\n");
    println!("| observer `--sample` | chosen | reads/s | kept | CPU per read | more | pairs | lost |\n|---|---|---|---|---|---|---|---|");
    let idle: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.way.is_none()).collect();
    let mean = |of: fn(&Stretch) -> f64, of_all: &[&Stretch]| of_all.iter().map(|stretch| of(stretch)).sum::<f64>() / of_all.len() as f64;
    println!("| no tracer | | {:.0} | | {:.0} ns | | | |", 1e9 / mean(|s| s.wall, &idle), mean(|s| s.cpu, &idle));
    for (number, sample) in samples.iter().enumerate() {
        let own: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.way == Some(number)).collect();
        let Cost { kept, kept_error, more, more_error, pairs } = cost(&stretches, number);
        let sources = (1..=turns).map(|turn| source(&read(&format!("{number}.{turn}.summary"))?)).collect::<Result<Vec<_>>>()?;
        let lost: u64 = sources.iter().map(|[_, lost]| lost).sum();
        let mut chosen: Vec<u64> = sources.iter().map(|[one_in, _]| *one_in).collect();
        chosen.sort_unstable();
        let chosen = format!("1/{}", chosen[chosen.len() / 2]);
        println!(
            "| {sample} | {chosen} | {:.0} | {:.1} ± {:.1} % | {:.0} ns | {more:+.0} ± {more_error:.0} ns | {pairs} | {lost} |",
            1e9 / mean(|s| s.wall, &own),
            kept * 100.0,
            kept_error * 100.0,
            mean(|s| s.cpu, &own)
        );
    }
    println!(
        "\nEach stretch against the mean of the two around it; ± is one standard error of the mean. `CPU per read` and `more`: of the reading process. `chosen`: one in how many folios, the median."
    );
    Ok(())
}

/// One in how many folios was observed in the end, and how many events were lost.
fn source(summary: &str) -> Result<[u64; 2]> {
    let summary: Value = serde_json::from_str(summary)?;
    let number = |name: &str| summary["source"][name].as_u64().with_context(|| format!("a summary without source.{name}"));
    Ok([number("sampling")?, number("lost")?])
}
