//! What changes under a running observer: the LRU is switched, a cgroup goes, its limit falls, another observer comes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use xtask::kernel::Kernel;
use xtask::programs::Program;
use xtask::vm::{Output, Step, Vm};

const PAGES: u64 = 12_288;

fn shell(script: &str) -> Step {
    Step::new(["sh", "-ec", script])
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn machine(kernel: &str, out: &Path) -> Vm {
    let mut vm = Vm::new(Kernel::resolve(kernel).unwrap());
    vm.out = Some(out.to_owned());
    vm.timeout = Duration::from_secs(900);
    // The kernel patches running functions when a hook comes or goes; emulated CPUs may execute what is no longer there.
    vm.cpus = 1;
    vm
}

fn reads(reads: u64, seed: u64) -> String {
    format!("workload zipf-read --file /data/f --pages {PAGES} --theta 0.9 --reads {reads} --seed {seed}")
}

/// Records `script` in a cgroup of 24 MiB, half of what it reads, and keeps the summary.
fn record(name: &str, script: &str) -> Step {
    shell(&format!(
        "observer record -o /tmp/{name}.arrows --sample 1/1 --memory-max 24M -- sh -ec '{script}'; observer replay /tmp/{name}.arrows --json > /out/{name}.json"
    ))
}

/// Scored predictions of the kernel's own rules and how many of them were right.
fn fidelity(summary: &Value) -> (u64, u64) {
    let fidelity = &summary["rules"][0]["fidelity"];
    (number(&fidelity["scored"]), number(&fidelity["agree"]))
}

/// Refaults in cgroups that observer made.
fn refaults(summary: &Value) -> u64 {
    let lruvecs = summary["lruvecs"].as_array().unwrap().iter();
    lruvecs.filter(|lruvec| lruvec["cgroup"].as_str().unwrap().starts_with("/observer-")).map(|lruvec| number(&lruvec["refaults"])).sum()
}

fn assert_right(summary: &Value, name: &str) {
    let (scored, agree) = fidelity(summary);
    assert!(scored > 10_000 && agree * 100 >= scored * 98, "{name}: {agree} of {scored}");
    assert_eq!(number(&summary["source"]["lost"]), 0, "{name}");
}

#[test]
fn changes_are_survived_and_said() {
    let out = tempfile::tempdir().unwrap();
    let switch = "/sys/kernel/mm/lru_gen/enabled";
    let steps = [
        shell(&format!("workload make-file --file /data/f --pages {PAGES}; sync; echo 3 > /proc/sys/vm/drop_caches")),
        record(
            "switched",
            &format!("{}; echo n > {switch}; {}; echo y > {switch}; {}", reads(40_000, 1), reads(40_000, 2), reads(40_000, 3)),
        ),
        record(
            "lowered",
            &format!(
                "{}; cg=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); echo 12M > $cg/memory.max; {}",
                reads(40_000, 4),
                reads(40_000, 5)
            ),
        ),
        // The cgroup that is observed goes while its events are still read.
        shell(&format!(
            "mkdir /sys/fs/cgroup/gone; echo 24M > /sys/fs/cgroup/gone/memory.max; \
             observer record -o /tmp/gone.arrows --sample 1/1 --cgroup /gone --duration 60s & recorder=$!; \
             while ! [ -s /tmp/gone.arrows ]; do sleep 0.1; done; \
             sh -c 'echo 0 > /sys/fs/cgroup/gone/cgroup.procs; exec {}'; \
             rmdir /sys/fs/cgroup/gone; sleep 2; kill $recorder; wait $recorder; \
             observer replay /tmp/gone.arrows --json > /out/gone.json",
            reads(40_000, 6)
        )),
        // Two at once, on the same hooks.
        shell(&format!(
            "observer record -o /tmp/other.arrows --sample 1/1 --duration 300s & other=$!; \
             while ! [ -s /tmp/other.arrows ]; do sleep 0.1; done; \
             observer record -o /tmp/second.arrows --sample 1/1 --memory-max 24M -- {}; \
             kill $other; wait $other; \
             for name in other second; do observer replay /tmp/$name.arrows --json > /out/$name.json; done",
            reads(40_000, 7)
        )),
    ];
    let result = machine("newest", out.path()).run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    assert_eq!(result.warnings(), Vec::<&str>::new());
    let summary = |name: &str| json(out.path(), &format!("{name}.json"));

    let switched = summary("switched");
    assert!(switched["source"]["note"].as_str().unwrap().contains("switched off and on while observed"), "{}", switched["source"]);
    assert_right(&switched, "switched");
    for name in ["lowered", "gone", "second"] {
        assert_right(&summary(name), name);
    }
    // Refaults as the kernel counts them, whichever LRU was on, and by both observers.
    for name in ["switched", "lowered", "second"] {
        let check = &summary(name)["checks"][0];
        let (kernel, observed) = (number(&check["kernel"]), number(&check["observed"]));
        assert!(kernel > 300 && observed.abs_diff(kernel) * 100 <= kernel, "{name}: {check}");
    }
    let (second, other) = (refaults(&summary("second")), refaults(&summary("other")));
    assert!(second.abs_diff(other) * 100 <= second, "{second} and {other} refaults of the same cgroup");
    println!("{second} and {other} refaults seen by two observers; fidelity (scored, agree):");
    for name in ["switched", "lowered", "gone", "second", "other"] {
        println!("{name}: {:?}, unknown {}", fidelity(&summary(name)), summary(name)["rules"][0]["fidelity"]["unknown"]);
    }
    let gone = summary("gone");
    assert!(
        gone["lruvecs"].as_array().unwrap().iter().any(|lruvec| lruvec["cgroup"] == "/gone"),
        "its name was told in time: {}",
        gone["lruvecs"]
    );
}

/// Observes as an ordinary user with capabilities, and looks at what every thread of observer still has once it is attached.
#[test]
fn capabilities_do_instead_of_root_and_are_given_up() {
    let out = tempfile::tempdir().unwrap();
    let mut vm = machine("newest", out.path());
    vm.programs.push(Program { package: "observer-tests", name: "with-capabilities" });
    let watch = |name: &str, command: &str| {
        shell(&format!(
            "mkdir -p /tmp/{name}; chmod 777 /tmp/{name}; {command} record -o /tmp/{name}/run.arrows --sample 1/1 --duration 120s & recorder=$!; \
             while ! [ -s /tmp/{name}/run.arrows ]; do sleep 0.1; done; \
             grep -h CapEff /proc/$recorder/task/*/status > /out/{name}.caps; \
             {}; kill $recorder; wait $recorder; observer replay /tmp/{name}/run.arrows --json > /out/{name}.json",
            reads(30_000, 8)
        ))
    };
    let steps = [
        shell(&format!("workload make-file --file /data/f --pages {PAGES}; sync; echo 3 > /proc/sys/vm/drop_caches")),
        watch("user", "with-capabilities cap_bpf,cap_perfmon,cap_syslog observer"),
        watch("root", "observer"),
        shell("with-capabilities cap_bpf observer record -o /tmp/user/none.arrows").may_fail(),
    ];
    let result = vm.run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    for name in ["user", "root"] {
        let capabilities = fs::read_to_string(out.path().join(format!("{name}.caps"))).unwrap();
        let threads: Vec<&str> = capabilities.lines().collect();
        assert!(threads.len() >= 2 && threads.iter().all(|line| line.ends_with("\t0000000000000000")), "{name}: {threads:?}");
        let summary = json(out.path(), &format!("{name}.json"));
        let file = summary["files"].as_array().unwrap().iter().find(|file| file["name"].as_str().unwrap().ends_with("/f")).unwrap().clone();
        // The kernel counts reads that begin in the folio where the last one ended once (spec 3.1).
        assert!((28_000..=30_000).contains(&number(&file["accesses"])), "{name}: {file}");
        assert_eq!(number(&summary["source"]["lost"]), 0, "{name}");
        assert_eq!(summary["calibration"]["state"], "confirmed", "{name}");
        let missing: Vec<_> = summary["hooks"].as_array().unwrap().iter().filter(|hook| hook["via"] == "none").collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
    let refused = &result.steps[3];
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status == 4 && said.lines().count() == 1 && said.contains("CAP_PERFMON"), "{refused:?}");
}

/// A ring that holds less than what comes between two drains overflows at any speed.
#[test]
fn fewer_folios_are_observed_where_the_ring_overflows() {
    let out = tempfile::tempdir().unwrap();
    let steps = [
        shell(&format!("workload make-file --file /data/f --pages {PAGES}; sync")),
        shell(&format!(
            "observer record -o /tmp/few.arrows --ring 4K --memory-max 24M -- {} 2> /out/said; \
             observer replay /tmp/few.arrows --json > /out/few.json; \
             observer record -o /tmp/all.arrows --ring 4K --sample 1/1 --memory-max 24M -- {}; \
             observer replay /tmp/all.arrows --json > /out/all.json",
            reads(100_000, 1),
            reads(40_000, 2)
        )),
    ];
    machine("newest", out.path()).run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    let few = json(out.path(), "few.json");
    let changes = few["sampling"]["changes"].as_array().unwrap();
    let last = changes.last().map(|change| number(&change["one_in"]));
    assert!(last.is_some_and(|one_in| one_in >= 4) && last == few["source"]["sampling"].as_u64(), "{changes:?}");
    assert!(few["source"]["note"].as_str().unwrap().contains("events or folios were too many"), "{}", few["source"]);
    let said = fs::read_to_string(out.path().join("said")).unwrap();
    assert!(said.contains("is observed from now on"), "{said}");
    // Who stays in the sample is followed as before, between losses.
    let (scored, agree) = fidelity(&few);
    assert!(scored > 100 && agree * 100 >= scored * 95, "{agree} of {scored}");

    let all = json(out.path(), "all.json");
    assert!(number(&all["source"]["lost"]) > 0 && all["sampling"].is_null(), "{}", all["source"]);
}

/// Reads without a pause take more than two percent of one processor, emulated or not.
#[test]
fn observing_is_kept_within_its_share_of_processor_time() {
    let out = tempfile::tempdir().unwrap();
    let steps = [
        shell(&format!("workload make-file --file /data/f --pages {PAGES}; sync")),
        shell(&format!(
            "observer record -o /tmp/little.arrows --duration 16s --memory-max 24M -- {} 2> /out/said; \
             observer replay /tmp/little.arrows --json > /out/little.json",
            reads(1_000_000_000, 3)
        )),
    ];
    machine("newest", out.path()).run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    let little = json(out.path(), "little.json");
    let changes = little["sampling"]["changes"].as_array().unwrap();
    assert!(changes.first().is_some_and(|change| change["seconds"].as_f64().unwrap() > 4.0), "{changes:?}");
    assert_eq!(changes.last().map(|change| number(&change["one_in"])), little["source"]["sampling"].as_u64());
    assert_eq!(number(&little["source"]["lost"]), 0, "{}", little["source"]);
    let said = fs::read_to_string(out.path().join("said")).unwrap();
    assert!(said.contains("more processor time than its share"), "{said}");
    let (scored, agree) = fidelity(&little);
    assert!(scored > 100 && agree * 100 >= scored * 95, "{agree} of {scored}");
}
