//! `cargo xtask bench capture`: what observing takes from a page-cache read workload.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::kernel::Kernel;
use xtask::programs::{self, Link, PROGRAMS};
use xtask::shell::{self, say};
use xtask::vm::{Output, Step, Vm};

/// Measured runs of each way, alternating.
const REPEATS: usize = 5;

/// The ways to run the workload, and observer's arguments in each; none without observer.
const WAYS: [(&str, Option<&str>); 4] =
    [("no observer", None), ("observer 1/1", Some("")), ("observer 1/1 --cost", Some("--cost")), ("observer 1/64", Some("--sample 1/64"))];

/// Runs every way in turn (`@WAYS@`, quoted), `$1` times; workload reports and summaries end up in `$2`, scratch files in `$3`.
const SCRIPT: &str = r#"
read_file() { workload zipf-read --file "$3/capture.bench" --pages 16384 --theta 0.9 --reads "$4" --seed 5; }
read_file "$@" > /dev/null
for turn in $(seq "$1"); do
  read_file "$@" > "$2/0.$turn.workload"
  way=0
  for how in @WAYS@; do
    way=$((way + 1))
    : > "$3/run.arrows"
    observer record -o "$3/run.arrows" $how & recorder=$!
    while ! [ -s "$3/run.arrows" ]; do sleep 0.1; done
    read_file "$@" > "$2/$way.$turn.workload"
    kill $recorder; wait $recorder || true
    observer replay "$3/run.arrows" --json > "$2/$way.$turn.summary"
    wc -c < "$3/run.arrows" > "$2/$way.$turn.bytes"
  done
done
rm -f "$3/capture.bench" "$3/run.arrows"
"#;

/// [`SCRIPT`] with the ways in it.
fn script() -> String {
    let ways: Vec<String> = WAYS.iter().filter_map(|(_, how)| how.map(|how| format!("\"{how}\""))).collect();
    SCRIPT.replace("@WAYS@", &ways.join(" "))
}

/// Measures on a kernel in a virtual machine, or natively on this one (as root) where `kernel` is `host`.
pub(super) fn run(kernel: &str) -> Result<()> {
    let out = tempfile::tempdir()?;
    let path = out.path().to_str().context("a path that is text")?;
    let release = if kernel == "host" {
        let folder = tempfile::tempdir()?;
        for (program, built) in PROGRAMS.iter().zip(programs::build(&PROGRAMS, Link::Host)?) {
            fs::copy(built, folder.path().join(program.name))?;
        }
        let search = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
        let scratch = folder.path().to_str().context("a path that is text")?;
        let script = script();
        let words = ["-ec", &script, "sh", &REPEATS.to_string(), path, scratch, "2000000"];
        say(format_args!("{REPEATS} rounds on this machine's own kernel"));
        shell::output(Command::new("sh").args(words).env("PATH", search))?;
        fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned()
    } else {
        let mut vm = Vm::new(Kernel::resolve(kernel)?);
        vm.out = Some(out.path().to_owned());
        vm.timeout = std::time::Duration::from_secs(1800);
        let script = script();
        let words = ["sh", "-ec", &script, "sh", &REPEATS.to_string(), "/out", "/data", "60000"];
        vm.run_steps(&[Step::new(words)], &mut Output::Keep)?.succeeded()?.release
    };
    print(out.path(), &release)
}

/// One run's report.
fn json(file: &Path) -> Result<Value> {
    let text = fs::read(file).with_context(|| file.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| file.display().to_string())
}

fn print(folder: &Path, release: &str) -> Result<()> {
    let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let (mut events, mut lost, mut bytes) = ([0_u64; WAYS.len()], [0_u64; WAYS.len()], [0_u64; WAYS.len()]);
    let mut per_run = None;
    for turn in 1..=REPEATS {
        for (way, (_, observer)) in WAYS.iter().enumerate() {
            let report = json(&folder.join(format!("{way}.{turn}.workload")))?;
            let rate = |report: &Value| Some(report["reads"].as_f64()? / report["seconds"].as_f64()?);
            rates.entry(way).or_default().push(rate(&report).context("the workload's rate")?);
            if observer.is_none() {
                continue;
            }
            let summary = json(&folder.join(format!("{way}.{turn}.summary")))?;
            events[way] += summary["source"]["events"].as_u64().context("events")?;
            lost[way] += summary["source"]["lost"].as_u64().context("lost events")?;
            bytes[way] += fs::read_to_string(folder.join(format!("{way}.{turn}.bytes")))?.trim().parse::<u64>()?;
            per_run = summary["cost"]["ns"].as_f64().zip(summary["cost"]["runs"].as_f64()).map(|(ns, runs)| ns / runs).or(per_run);
        }
    }
    let base = median(rates.get(&0).map_or(&[], Vec::as_slice));
    println!("page-cache reads on {release}, medians of {REPEATS} alternating runs\n");
    println!("{:22} {:>12} {:>8} {:>12} {:>10} {:>12}", "", "reads/s", "kept", "events", "lost", "bytes/event");
    for (way, (name, observer)) in WAYS.iter().enumerate() {
        let rate = median(rates.get(&way).map_or(&[], Vec::as_slice));
        print!("{name:22} {rate:>12.0} {:>7.1}%", rate * 100.0 / base);
        match observer {
            None => println!(),
            Some(_) => println!(" {:>12} {:>10} {:>12.1}", events[way], lost[way], bytes[way] as f64 / events[way].max(1) as f64),
        }
    }
    if let Some(ns) = per_run {
        println!("\n{ns:.0} ns per run of a program, by the kernel's own count");
    }
    println!("not measured: bpftrace and trace-cmd on the same hooks");
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_middle_value_is_taken() {
        assert_eq!(super::median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(super::median(&[]).is_nan());
    }
}
