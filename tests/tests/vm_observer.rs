//! observer on real kernels: recorded in the guest, judged by the kernel's own flags and counters.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use xtask::kernel::Kernel;
use xtask::vm::{Output, Step, Vm};

/// Reads of the file, which is 2.5 times the cgroup's limit.
const READS: u64 = 320_000;
const PAGES: u64 = 40_960;

fn shell(script: &str) -> Step {
    Step::new(["sh", "-ec", script])
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn rules<'a>(summary: &'a Value, name: &str) -> &'a Value {
    summary["rules"].as_array().unwrap().iter().find(|rules| rules["name"] == name).unwrap()
}

/// What is asked of every kernel: all folios followed, the model right about them, refaults as the kernel counts them.
fn follows_the_kernel(kernel: &str) {
    let out = tempfile::tempdir().unwrap();
    let mut vm = Vm::new(Kernel::resolve(kernel).unwrap());
    vm.out = Some(out.path().to_owned());
    vm.timeout = Duration::from_secs(900);
    let steps = [
        shell(&format!("workload make-file --file /data/zipf.db --pages {PAGES}; sync; echo 3 > /proc/sys/vm/drop_caches")),
        shell(&format!(
            "observer record -o /out/zipf.arrows --sample 1/1 --memory-max 64M -- \
             workload zipf-read --file /data/zipf.db --pages {PAGES} --theta 0.9 --reads {READS} --seed 5"
        )),
        shell("observer replay /out/zipf.arrows --json > /out/zipf.json"),
        shell("observer record -o /out/status.arrows -- sh -c 'exit 9'").may_fail(),
        shell("observer doctor --json > /out/doctor.json").may_fail(),
        // Killed in the middle of work: everything older than a second is there.
        shell(
            "observer record -o /out/killed.arrows --sample 1/1 & recorder=$!; \
             while ! [ -s /out/killed.arrows ]; do sleep 0.1; done; \
             workload zipf-read --file /data/zipf.db --pages 2000 --theta 0.9 --reads 20000 --seed 6; \
             sleep 2.5; kill -9 $recorder; wait $recorder || true; \
             observer replay /out/killed.arrows --json > /out/killed.json",
        )
        .may_fail(),
        // The tier of kernels that let no function be hooked.
        shell(
            "observer record -o /out/ranges.arrows --sample 1/1 --hooks tracepoints -- \
             workload zipf-read --file /data/zipf.db --pages 2000 --theta 0.9 --reads 20000 --seed 6; \
             observer replay /out/ranges.arrows --json > /out/ranges.json",
        ),
    ];
    let result = vm.run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    assert_eq!(result.warnings(), Vec::<&str>::new());
    assert_eq!(result.steps[3].status, 9, "the command's own status is passed on: {:?}", result.steps[3]);

    let summary = json(&out.path().join("zipf.json"));
    assert_eq!(summary["schema"], "observer.summary/1");
    assert_eq!(number(&summary["source"]["lost"]), 0);
    assert_eq!(summary["calibration"]["state"], "confirmed");
    let hook = |name: &str| summary["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap().clone();
    for name in ["folio_add_lru", "lru_gen_refault", "try_to_shrink_lruvec"] {
        assert_ne!(hook(name)["via"], "none", "{name} is one of the three named hooks");
    }
    assert_eq!(hook("lru_gen_refault")["target"], "workingset_refault", "inlined, so reached through its caller");

    let own = &summary["rules"][0];
    assert_eq!(own["own"], true);
    let fidelity = |name: &str| number(&own["fidelity"][name]);
    let (scored, agree, unknown) = (fidelity("scored"), fidelity("agree"), fidelity("unknown"));
    assert!(scored > READS, "every read is a folio event: {scored}");
    assert!(scored * 10 >= (scored + unknown) * 9, "{scored} scored, {unknown} unknown");
    assert!(agree * 100 >= scored * 99, "{agree} of {scored} agree");
    assert!(number(&rules(&summary, "fg-v4")["promotions"]["predicted"]) > 0);

    let counters = summary["counters"].as_array().unwrap();
    let counter = |name: &str| number(&counters.iter().find(|counter| counter["name"] == name).unwrap()["delta"]);
    let (refaults, kernel_s) = (number(&own["refaults"]["actual"]), counter("workingset_refault_file"));
    assert!(kernel_s > 10_000, "memory pressure: {kernel_s}");
    assert!(refaults.abs_diff(kernel_s) * 100 <= kernel_s, "{refaults} refaults seen, the kernel counted {kernel_s}");

    let doctor = json(&out.path().join("doctor.json"));
    assert_eq!((&doctor["lru"], &doctor["attached"]), (&Value::from("mglru"), &Value::from(true)));
    assert_eq!(number(&doctor["layout"]["gen_pgoff"]), 27, "Debian's cloud kernels (spec 1.3)");
    for name in ["census", "sweep"] {
        let row = doctor["hooks"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["via"], &row["change"]), (&Value::from("run"), &Value::from("")), "{row}");
    }

    let killed = json(&out.path().join("killed.json"));
    let file = killed["files"].as_array().unwrap().iter().find(|file| file["name"].as_str().unwrap().ends_with("zipf.db")).unwrap().clone();
    // All reads were over a second before the kill. The kernel counts reads that begin in the folio where the last one
    // ended once (spec 3.1): some hundreds, large folios being many pages.
    let accesses = number(&file["accesses"]);
    assert!((19_000..=20_000).contains(&accesses), "{accesses} of 20000 reads before the last second");

    let ranges = json(&out.path().join("ranges.json"));
    let hooked = |via: &str| ranges["hooks"].as_array().unwrap().iter().filter(|hook| hook["via"] == via).count();
    assert_eq!((hooked("fentry"), hooked("fexit"), hooked("kprobe")), (0, 0, 0));
    for name in ["reads", "faults", "fault-around"] {
        let row = ranges["hooks"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(row["via"], "tpbtf", "{row}");
    }
    let file = ranges["files"].as_array().unwrap().iter().find(|file| file["name"].as_str().unwrap().ends_with("zipf.db")).unwrap().clone();
    let accesses = number(&file["accesses"]);
    assert!((19_000..=20_000).contains(&accesses), "{accesses} of 20000 reads in the tracepoints tier");

    println!(
        "{}: {scored} scored, {agree} agree, {unknown} unknown; {refaults} refaults, kernel {kernel_s}; {} events, ready after {:.1} s, over after {:.1} s",
        result.release,
        summary["source"]["events"],
        result.boot.as_secs_f64(),
        result.total.as_secs_f64()
    );
}

#[test]
fn the_newest_kernel_is_followed() {
    follows_the_kernel("newest");
}

#[test]
fn kernel_6_18_is_followed() {
    follows_the_kernel("6.18");
}

#[test]
fn kernel_6_12_is_followed() {
    follows_the_kernel("6.12");
}
