//! The simulator against real kernels: the same access streams in a guest and in `observer simulate`, refaults beside refaults.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kernel::Kernel;
use crate::programs::{self, Link, OBSERVER};
use crate::shell::output;
use crate::vm::{Output, Step, Vm, VmResult};

/// Bytes of a page in the guests.
const PAGE: u64 = 4096;
/// The cgroup's limit in pages: 64 MiB.
const LIMIT: u64 = 16_384;
/// Pages of the file that zipf reads: 2.5 times the limit.
const FILE: u64 = 40_960;
/// `scan-and-hot`: a hot file that fits beside nothing, cold files that do not fit at all. Rule sets differ by up to a
/// factor of two here.
const HOT: u64 = 10_240;
const COLD_FILES: u64 = 4;
const COLD: u64 = 8192;
const HOT_PER_COLD: u64 = 2;
/// Reads of one pass over all cold files.
const PASS: u64 = COLD_FILES * COLD * (1 + HOT_PER_COLD);
/// How far a row's refaults may lie from the kernel's, relative.
const ZIPF_WITHIN: f64 = 0.03;
const SCAN_WITHIN: f64 = 0.1;

/// How much is run.
#[derive(Clone, Debug)]
pub struct Size {
    /// Exponents of the zipf rows.
    pub thetas: Vec<f64>,
    /// Reads before counting, in the zipf rows.
    pub ramp: u64,
    /// Reads counted.
    pub reads: u64,
    /// `scan-and-hot` without and with readahead, a row each.
    pub scans: Vec<bool>,
    /// Passes over the cold files before counting, and counted.
    pub passes: (u64, u64),
    /// Seed of all streams.
    pub seed: u64,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// Random reads by popularity.
    Zipf {
        /// Exponent.
        theta: f64,
    },
    /// A hot file in circles beside cold ones.
    ScanAndHot {
        /// Whether the kernel reads ahead.
        readahead: bool,
    },
}

/// One workload on one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The kernel's release.
    pub kernel: String,
    /// Rules it was simulated with.
    pub rules: String,
    /// What was read.
    pub workload: Workload,
    /// Reads counted.
    pub reads: u64,
    /// `workingset_refault_file` over them.
    pub kernel_s: u64,
    /// Refaults simulated.
    pub simulated: u64,
}

impl Row {
    /// How far the simulation is off, relative to the kernel.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.simulated as f64 / self.kernel_s.max(1) as f64 - 1.0
    }

    /// How far it may be off.
    #[must_use]
    pub fn within(&self) -> f64 {
        match self.workload {
            Workload::Zipf { .. } => ZIPF_WITHIN,
            Workload::ScanAndHot { .. } => SCAN_WITHIN,
        }
    }

    /// Whether the simulation is as close as is asked of it. A kernel that refaulted nothing proves nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.kernel_s > 0 && self.difference().abs() <= self.within()
    }

    /// The row of a Markdown table.
    #[must_use]
    pub fn markdown(&self) -> String {
        let workload = match self.workload {
            Workload::Zipf { theta } => format!("zipf θ {theta}"),
            Workload::ScanAndHot { readahead: false } => "scan-and-hot".to_owned(),
            Workload::ScanAndHot { readahead: true } => "scan-and-hot, readahead".to_owned(),
        };
        let per_read = |refaults: u64| refaults as f64 / self.reads.max(1) as f64;
        format!(
            "| {} | {} | {workload} | {} | {:.5} | {:.5} | {:+.2} % | {} |",
            self.kernel,
            self.rules,
            self.reads,
            per_read(self.kernel_s),
            per_read(self.simulated),
            self.difference() * 100.0,
            if self.holds() { "yes" } else { "**no**" }
        )
    }
}

/// The head of the table whose rows are [`Row::markdown`].
pub const MARKDOWN_HEAD: &str =
    "| kernel | rules | workload | reads | refaults/read, kernel | simulated | difference | within |\n|---|---|---|---|---|---|---|---|";

/// Which LRU of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lru {
    /// The multi-gen LRU, as it boots.
    Generations,
    /// The classical one: `echo n > /sys/kernel/mm/lru_gen/enabled`.
    Classical,
}

/// Runs every workload on one kernel with each LRU in one boot, then simulates the same.
pub fn run(kernel: &str, lrus: &[Lru], size: &Size) -> Result<Vec<Row>> {
    let mut vm = Vm::new(Kernel::resolve(kernel)?);
    // One CPU, one batch of insertions: where the scheduler puts the reader must not matter.
    vm.cpus = 1;
    vm.timeout = Duration::from_secs(7200);
    let workloads = workloads(size);
    let files = [("/data/zipf", FILE), ("/data/scan/hot", HOT)].map(|(file, pages)| (file.to_owned(), pages));
    let cold = (0..COLD_FILES).map(|index| (format!("/data/scan/cold-{index}"), COLD));
    let make: String =
        files.into_iter().chain(cold).map(|(file, pages)| format!("workload make-file --file {file} --pages {pages}; ")).collect();
    let mut steps = vec![shell(&format!("mkdir -p /data/scan; {make} sync")), shell("observer doctor --json").may_fail()];
    for lru in lrus {
        if *lru == Lru::Classical {
            steps.push(shell("echo n > /sys/kernel/mm/lru_gen/enabled"));
        }
        steps.extend(workloads.iter().map(|workload| shell(&guest_command(*workload, *lru, size))));
    }
    let result = vm.run_steps(&steps, &mut Output::Keep)?.succeeded()?;
    let doctor: Value = serde_json::from_str(&result.steps[1].text()).context("observer doctor --json")?;
    let own = doctor["own_rules"].as_str().context("doctor names no rules")?.to_owned();
    let observer = programs::build(&[OBSERVER], Link::Static)?;

    let mut rows = Vec::new();
    let mut step = 2;
    for lru in lrus {
        step += usize::from(*lru == Lru::Classical);
        let rules = if *lru == Lru::Classical { "classical" } else { &own };
        for workload in &workloads {
            let (reads, kernel_s) = counted(&result, step)?;
            step += 1;
            let simulated = simulate(&observer[0], *workload, rules, large_folios(&result.release), size)?;
            rows.push(Row { kernel: result.release.clone(), rules: rules.to_owned(), workload: *workload, reads, kernel_s, simulated });
        }
    }
    Ok(rows)
}

fn workloads(size: &Size) -> Vec<Workload> {
    let zipf = size.thetas.iter().map(|&theta| Workload::Zipf { theta });
    zipf.chain(size.scans.iter().map(|&readahead| Workload::ScanAndHot { readahead })).collect()
}

fn shell(script: &str) -> Step {
    Step::new(["sh", "-ec", script])
}

/// The workload in a cgroup of its own, so that nothing that another one left counts.
fn guest_command(workload: Workload, lru: Lru, size: &Size) -> String {
    let (seed, (ramp_passes, passes)) = (size.seed, size.passes);
    let (name, command) = match workload {
        Workload::Zipf { theta } => (
            format!("zipf-{theta}"),
            format!("zipf-read --file /data/zipf --pages {FILE} --theta {theta} --ramp {} --reads {} --seed {seed}", size.ramp, size.reads),
        ),
        Workload::ScanAndHot { readahead } => (
            format!("scan-{readahead}"),
            format!(
                "scan-and-hot --folder /data/scan --hot-pages {HOT} --cold-files {COLD_FILES} --cold-pages {COLD} --hot-per-cold {HOT_PER_COLD} \
                 --ramp-passes {ramp_passes} --passes {passes} --readahead {}",
                if readahead { "on" } else { "off" }
            ),
        ),
    };
    format!("echo 3 > /proc/sys/vm/drop_caches; workload {command} --cgroup {name}-{lru:?} --memory-max {}", LIMIT * PAGE)
}

/// Reads and refaults that a workload reported.
fn counted(result: &VmResult, step: usize) -> Result<(u64, u64)> {
    let text = result.steps.get(step).context("a step is missing")?.text();
    let report: Value = serde_json::from_str(&text).with_context(|| format!("the workload's report: {text}"))?;
    let number = |value: &Value| value.as_u64().with_context(|| format!("no number in {report}"));
    Ok((number(&report["reads"])?, number(&report["cgroup"]["measured"]["workingset_refault_file"])?))
}

/// Whether ext4 keeps large folios: since 6.16 (known from its changelog; the spec is silent).
fn large_folios(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 16)
}

/// Refaults that the simulator counts for the same reads.
fn simulate(observer: &Path, workload: Workload, rules: &str, large: bool, size: &Size) -> Result<u64> {
    let mut command = Command::new(observer);
    command.arg("simulate");
    let bytes = |pages: u64| (pages * PAGE).to_string();
    let (ramp, reads) = match workload {
        Workload::Zipf { theta } => {
            command.args(["zipf", "--theta", &theta.to_string(), "--file", &bytes(FILE)]);
            (size.ramp, size.reads)
        }
        Workload::ScanAndHot { readahead } => {
            command.args(["scan-and-hot", "--hot", &bytes(HOT), "--cold-files", &COLD_FILES.to_string(), "--cold", &bytes(COLD)]);
            command.args(["--hot-per-cold", &HOT_PER_COLD.to_string()]);
            command.args([
                "--readahead",
                if !readahead {
                    "off"
                } else if large {
                    "large"
                } else {
                    "small"
                },
            ]);
            (size.passes.0 * PASS, size.passes.1 * PASS)
        }
    };
    command.args(["--memory", &bytes(LIMIT), "--ramp", &ramp.to_string(), "--reads", &reads.to_string()]);
    command.args(["--seed", &size.seed.to_string(), "--rules", rules, "--json"]);
    let report: Value = serde_json::from_str(&output(&mut command)?).context("observer simulate --json")?;
    let Some(refaults) = report["rows"][0]["refaults"][1].as_u64() else { bail!("the simulation has no refaults: {report}") };
    Ok(refaults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_within_its_tolerance_and_needs_refaults() {
        let row =
            |workload, kernel_s, simulated| Row { kernel: "7.3.4".into(), rules: "7.3".into(), workload, reads: 1000, kernel_s, simulated };
        let (zipf, scan) = (Workload::Zipf { theta: 0.9 }, Workload::ScanAndHot { readahead: true });
        assert!(row(zipf, 1000, 1029).holds() && !row(zipf, 1000, 1031).holds() && !row(zipf, 1000, 969).holds());
        assert!(row(scan, 1000, 1099).holds() && !row(scan, 1000, 1101).holds());
        assert!(!row(zipf, 0, 0).holds());
        assert_eq!(row(zipf, 200, 198).markdown(), "| 7.3.4 | 7.3 | zipf θ 0.9 | 1000 | 0.20000 | 0.19800 | -1.00 % | yes |");
    }

    #[test]
    fn large_folios_came_with_6_16() {
        let expected =
            [("6.12.117+deb13-cloud-amd64", false), ("6.15.1", false), ("6.18.15", true), ("7.3.4+deb13", true), ("7", true), ("", false)];
        for (release, expected) in expected {
            assert_eq!(large_folios(release), expected, "{release}");
        }
    }
}
