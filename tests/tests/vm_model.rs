//! The model free running, judged by real kernels: refaults of the same reads, and of a recording's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::time::Duration;

use serde_json::Value;
use xtask::kernel::Kernel;
use xtask::validate::{self, Lru, Size};
use xtask::vm::{Output, Step, Vm};

/// The short variant of `cargo xtask validate-model`.
fn refaults_as_the_kernel_does(kernel: &str, lrus: &[Lru]) {
    let size = Size { thetas: vec![0.9], ramp: 70_000, reads: 100_000, scans: vec![false], passes: (1, 1), seed: 5 };
    let rows = validate::run(kernel, lrus, &size).unwrap();
    assert_eq!(rows.len(), 2 * lrus.len());
    let table: Vec<String> = rows.iter().map(validate::Row::markdown).collect();
    println!("{}\n{}", validate::MARKDOWN_HEAD, table.join("\n"));
    assert!(rows.iter().all(validate::Row::holds), "{}", table.join("\n"));
}

#[test]
fn the_newest_kernel_refaults_as_simulated_with_either_lru() {
    refaults_as_the_kernel_does("newest", &[Lru::Generations, Lru::Classical]);
}

#[test]
fn kernel_6_12_refaults_as_simulated() {
    refaults_as_the_kernel_does("6.12", &[Lru::Generations]);
}

/// From a recording alone: the kernel's own rules at the observed size refault what the recording saw refaulted.
fn what_if_meets_the_recording(kernel: &str) {
    let out = tempfile::tempdir().unwrap();
    let mut vm = Vm::new(Kernel::resolve(kernel).unwrap());
    vm.out = Some(out.path().to_owned());
    vm.timeout = Duration::from_secs(900);
    let record = |name: &str, workload: &str| {
        format!(
            "echo 3 > /proc/sys/vm/drop_caches; observer record -o /out/{name}.arrows --sample 1/1 --memory-max 32M -- workload {workload}; \
             observer replay /out/{name}.arrows --json --sizes 50%,100%,200% > /out/{name}.json"
        )
    };
    let scan = "scan-and-hot --folder /data/scan --hot-pages 5120 --cold-files 4 --cold-pages 4096 --hot-per-cold 2 --passes 2";
    let make = "mkdir -p /data/scan; workload make-file --file /data/zipf --pages 20480; workload make-file --file /data/scan/hot --pages 5120; \
                for n in 0 1 2 3; do workload make-file --file /data/scan/cold-$n --pages 4096; done; sync";
    let steps = [
        make.to_owned(),
        record("zipf", "zipf-read --file /data/zipf --pages 20480 --theta 0.9 --reads 150000 --seed 5"),
        record("scan", scan),
    ];
    let steps = steps.map(|script| Step::new(["sh", "-ec", &script]));
    vm.run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    for name in ["zipf", "scan"] {
        let summary: Value = serde_json::from_slice(&fs::read(out.path().join(format!("{name}.json"))).unwrap()).unwrap();
        let rows = summary["what_if"].as_array().unwrap();
        let row = |rules: &str, percent: u64| rows.iter().find(|row| row["rules"] == rules && row["percent"] == percent).unwrap();
        let own = summary["rules"][0]["name"].as_str().unwrap();
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"));
        let (own_row, fg) = (row(own, 100), row("fg-v4", 100));
        let (observed, predicted) = (number(own_row, "observed"), number(own_row, "refaults"));
        println!(
            "{kernel} {name}: {observed} refaults observed, {predicted} predicted for {own} ({:+.2} %), {} for fg-v4; at half the size {}, at twice {}",
            (predicted as f64 / observed.max(1) as f64 - 1.0) * 100.0,
            number(fg, "refaults"),
            number(row(own, 50), "refaults"),
            number(row(own, 200), "refaults")
        );
        assert!(observed > 10_000, "{name}: memory pressure: {observed}");
        assert!(predicted.abs_diff(observed) * 20 <= observed, "{name}: {predicted} predicted, {observed} observed");
    }
}

#[test]
fn what_if_meets_recordings_of_the_newest_kernel() {
    what_if_meets_the_recording("newest");
}

#[test]
fn what_if_meets_recordings_of_6_12() {
    what_if_meets_the_recording("6.12");
}
