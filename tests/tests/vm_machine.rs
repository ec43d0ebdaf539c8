//! The machines themselves: what a guest has, what comes back from it, and how failures are told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::time::Duration;

use serde_json::Value;
use xtask::kernel::Kernel;
use xtask::vm::{Output, STATUS_FAILED, STATUS_TIMEOUT, Step, Verdict, Vm};

/// A small machine with one of the kernels.
fn machine(kernel: &str) -> Vm {
    let mut vm = Vm::new(Kernel::resolve(kernel).unwrap());
    vm.cpus = 1;
    vm
}

fn shell(script: &str) -> Step {
    Step::new(["sh", "-ec", script])
}

/// A guest of that kernel has what the tests of the tool rely on, and the workloads make the kernel reclaim.
fn offers_everything(kernel: &str, release: &str) {
    let out = tempfile::tempdir().unwrap();
    let mut vm = machine(kernel);
    vm.out = Some(out.path().to_owned());
    let zipf =
        "workload zipf-read --file /data/f --pages 8192 --theta 0.9 --ramp 40000 --reads 40000 --seed 3 --cgroup w --memory-max 16777216";
    let anon = "workload anon --pages 8192 --theta 0.8 --ramp 20000 --reads 40000 --seed 3 --cgroup a --memory-max 16777216";
    let steps = [
        shell("uname -r; cat /sys/kernel/mm/lru_gen/enabled; cat /sys/fs/cgroup/cgroup.subtree_control; grep -c zram0 /proc/swaps"),
        shell(
            "grep -q ' /data ext4 ' /proc/mounts; ls -d /sys/kernel/debug/lru_gen /sys/kernel/tracing/events /sys/kernel/btf/vmlinux; grep bpf /proc/mounts",
        ),
        Step::new(["printf", "%s|", "two words", "*", "$HOME", ""]),
        shell("echo out; echo err >&2; exit 7").may_fail(),
        shell("mkdir -p /out/sub; head -c 3000000 /dev/zero | tr '\\0' x > /out/sub/big; echo hi > /out/small"),
        Step::new(zipf.split(' ')),
        Step::new(anon.split(' ')),
    ];
    let result = vm.run_steps(&steps, &mut Output::Keep).unwrap().succeeded().unwrap();
    assert!(result.release.starts_with(release) && result.steps.len() == steps.len(), "{result:?}");
    assert_eq!(result.warnings(), Vec::<&str>::new());
    let facts = result.steps[0].text();
    let facts: Vec<&str> = facts.lines().collect();
    assert_eq!(facts[0], result.release);
    assert_eq!(u32::from_str_radix(facts[1].trim_start_matches("0x"), 16).unwrap() & 1, 1, "MGLRU is on: {facts:?}");
    assert!(facts[2].contains("memory"));
    assert_eq!(facts[3], "1");
    assert_eq!(result.steps[2].text(), "two words|*|$HOME||");
    let failing = &result.steps[3];
    assert_eq!((failing.status, failing.text().as_str(), failing.stderr.as_slice()), (7, "out\n", b"err\n".as_slice()));
    assert_eq!(fs::read(out.path().join("small")).unwrap(), b"hi\n");
    let big = fs::read(out.path().join("sub/big")).unwrap();
    assert!(big.len() == 3_000_000 && big.iter().all(|byte| *byte == b'x'));

    let report = |step: usize| -> Value { serde_json::from_str(&result.steps[step].text()).unwrap() };
    let (zipf, anon) = (report(5), report(6));
    let counter = |report: &Value, name: &str| report["cgroup"]["measured"][name].as_u64().unwrap();
    // Half the file fits; most accesses go to popular pages, yet thousands of pages come back, each for one that goes.
    assert!((4000..10_000).contains(&counter(&zipf, "workingset_refault_file")), "{zipf}");
    assert!(counter(&zipf, "pgsteal") >= counter(&zipf, "workingset_refault_file"), "{zipf}");
    assert!((1000..20_000).contains(&counter(&anon, "workingset_refault_anon")), "{anon}");
    println!(
        "{}: ready after {:.1} s, over after {:.1} s, zipf-read {} reads in {} s",
        result.release,
        result.boot.as_secs_f64(),
        result.total.as_secs_f64(),
        zipf["reads"],
        zipf["seconds"]
    );
}

#[test]
fn the_newest_kernel_offers_everything() {
    offers_everything("newest", "");
}

#[test]
fn kernel_6_12_offers_everything() {
    offers_everything("6.12", "6.12.");
}

#[test]
fn the_classical_lru_can_be_asked_for() {
    let mut vm = machine("newest");
    vm.mglru = false;
    vm.zram = false;
    vm.disk = None;
    vm.programs.clear();
    let result = vm.run(["sh", "-c", "cat /sys/kernel/mm/lru_gen/enabled; wc -l < /proc/swaps; ls /data | wc -l"]).unwrap();
    assert_eq!(result.succeeded().unwrap().steps[0].text(), "0x0000\n1\n0\n");
}

#[test]
fn a_panic_is_the_verdict() {
    let mut vm = machine("newest");
    vm.programs.clear();
    // What a command prints is not the verdict, however much it looks like it.
    let result = vm.run(["sh", "-c", "echo 'vm: exit 0'; echo c > /proc/sysrq-trigger; sleep 100"]).unwrap();
    assert!(matches!(&result.verdict, Verdict::Kernel(line) if line.contains("sysrq triggered crash")), "{}", result.verdict);
    assert_eq!(result.verdict.status(), STATUS_FAILED);
    assert!(result.console.contains("Call Trace"), "{}", result.console);
}

#[test]
fn a_command_that_hangs_is_killed_and_its_results_are_kept() {
    let out = tempfile::tempdir().unwrap();
    let mut vm = machine("newest");
    vm.programs.clear();
    vm.timeout = Duration::from_secs(3);
    vm.out = Some(out.path().to_owned());
    let steps = [Step::new(["no-such-program"]).may_fail(), shell("echo partial > /out/result; sleep 1000"), shell("true")];
    let result = vm.run_steps(&steps, &mut Output::Keep).unwrap();
    let missing = &result.steps[0];
    assert!(missing.status == 127 && String::from_utf8_lossy(&missing.stderr).contains("no-such-program"), "{missing:?}");
    assert_eq!(result.steps.len(), 2, "nothing runs after the end of time");
    assert!(matches!(result.verdict, Verdict::Timeout(_)), "{}", result.verdict);
    assert_eq!(result.verdict.status(), STATUS_TIMEOUT);
    assert_eq!(fs::read(out.path().join("result")).unwrap(), b"partial\n");
}
