//! The command as people and scripts meet it: outputs, exit codes, closed pipes.
//!
//! What needs to trace this kernel is skipped, and says so, where that is not possible.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn observer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
    command.args(arguments).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

fn run(arguments: &[&str]) -> Output {
    observer(arguments).output().expect("observer runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The recording that is inside the binary.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/default.arrows")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of ours")
}

/// Checks that it failed with `code` and one line that contains `what`.
fn assert_one_line(output: &Output, code: i32, what: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("observer: ") && said.contains(what), "{said}");
}

#[test]
fn summaries_of_a_recording() {
    let recording = recording();
    let text = run(&["replay", path(&recording)]);
    assert_eq!((text.status.code(), stderr(&text)), (Some(0), String::new()));
    assert!(text.stdout.starts_with(b"observer "), "{text:?}");
    let json = run(&["replay", path(&recording), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["schema"], "observer.summary/1");
    assert!(value["source"]["events"].as_u64().unwrap() > 1000, "{}", value["source"]);
    let piped = observer(&["replay", "-", "--json"]).stdin(fs::File::open(&recording).unwrap()).output().unwrap();
    let piped: serde_json::Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!((&piped["source"]["kind"], &piped["rules"]), (&"pipe".into(), &value["rules"]));
}

#[test]
fn a_reader_that_closes_early_ends_it_silently() {
    let recording = recording();
    for arguments in
        [&["replay", path(&recording), "--text"][..], &["replay", path(&recording), "--json"], &["--help"], &["record", "--help"]]
    {
        let mut child = observer(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn damage_is_one_line_and_exit_code_5() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = fs::read(recording()).unwrap();
    let file = dir.path().join("damaged.arrows");
    let replay = |content: &[u8]| {
        fs::write(&file, content).unwrap();
        run(&["replay", path(&file), "--json"])
    };
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    let damaged = replay(&flipped);
    assert_one_line(&damaged, 5, "are missing");
    assert!(!damaged.stdout.is_empty());
    assert_one_line(&replay(&bytes[..bytes.len() / 2]), 5, "cut off");
    assert_one_line(&replay(b""), 5, "empty");
    assert_one_line(&replay(b"text\n"), 5, "not a recording");
    // A killed recorder is not damage.
    assert_one_line(&replay(&bytes[..bytes.len() - 8]), 0, "no end marker");
}

#[test]
fn what_is_asked_wrongly_is_said() {
    assert_one_line(&run(&["replay", "/nonexistent/run.arrows"]), 1, "cannot open /nonexistent/run.arrows");
    assert_one_line(&run(&["replay", "/"]), 1, "/ is a directory");
    assert_eq!(run(&["replay"]).status.code(), Some(2));
    assert_one_line(&run(&["replay", path(&recording()), "--loop"]), 2, "no terminal");
    assert_eq!(run(&["replay", "x", "--rules", "fg-v99"]).status.code(), Some(2));
    assert_eq!(run(&["record"]).status.code(), Some(2));
}

/// Whether this machine lets us record; says why not.
fn can_record() -> bool {
    let probe = run(&["record", "-o", "/dev/null", "--duration", "50ms"]);
    let can = probe.status.success();
    if !can {
        eprintln!("skipped: {}", stderr(&probe));
    }
    can
}

/// Waits until a recording has begun: attaching takes a while.
fn await_start(file: &Path) {
    for _ in 0..1000 {
        if fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0) {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("no recording after 20 s");
}

#[test]
fn a_command_is_recorded_in_its_own_cgroup_and_its_status_passed_on() {
    if !can_record() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.arrows");
    let record = |command: &[&str]| run(&[&["record", "-o", path(&file), "--memory-max", "256M", "--"], command].concat());
    let output = record(&["sh", "-c", "cat /proc/self/cgroup; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let cgroups = String::from_utf8_lossy(&output.stdout).into_owned();
    let own = cgroups.lines().find_map(|line| line.split('/').find(|part| part.starts_with("observer-"))).unwrap();
    assert!(!Path::new("/sys/fs/cgroup").join(own).exists() && !Path::new("/sys/fs/cgroup/memory").join(own).exists());
    assert_eq!(run(&["replay", path(&file), "--json"]).status.code(), Some(0));

    assert_eq!(record(&["sh", "-c", "kill -SEGV $$"]).status.code(), Some(128 + 11));
    assert_one_line(&record(&["/nonexistent/command"]), 127, "cannot run /nonexistent/command");
    assert_one_line(&record(&["/etc/passwd"]), 126, "cannot run /etc/passwd");
}

#[test]
fn a_recording_to_standard_output_is_not_mixed_with_the_command_s() {
    if !can_record() {
        return;
    }
    let output = run(&["record", "-o", "-", "--", "echo", "hello"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), "hello\n"));
    let mut replay = observer(&["replay", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    replay.stdin.take().unwrap().write_all(&output.stdout).unwrap();
    assert_eq!(replay.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_ends_a_recording_silently() {
    if !can_record() {
        return;
    }
    let mut child = observer(&["record", "-o", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 10_000]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn a_killed_recorder_leaves_all_but_the_last_second() {
    if !can_record() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.arrows");
    let mut child = observer(&["record", "-o", path(&file)]).spawn().unwrap();
    await_start(&file);
    sleep(Duration::from_millis(3500));
    child.kill().unwrap();
    child.wait().unwrap();
    let replay = run(&["replay", path(&file), "--json"]);
    assert_eq!(replay.status.code(), Some(0), "{}", stderr(&replay));
    let value: serde_json::Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert!(value["source"]["duration_s"].as_f64().unwrap() > 1.5, "{}", value["source"]);
}

#[test]
fn a_full_disk_is_one_line() {
    if can_record() {
        assert_one_line(&run(&["record", "-o", "/dev/full", "--duration", "5s"]), 1, "cannot write /dev/full");
    }
}

#[test]
fn a_signal_ends_a_recording_properly() {
    if !can_record() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.arrows");
    for (command, code) in [(&[][..], 0), (&["--", "sleep", "60"], 128 + 15)] {
        let _ = fs::remove_file(&file);
        let mut child = observer(&[&["record", "-o", path(&file)], command].concat()).spawn().unwrap();
        await_start(&file);
        sleep(Duration::from_millis(300));
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let replay = run(&["replay", path(&file), "--json"]);
        assert_eq!((replay.status.code(), stderr(&replay)), (Some(0), String::new()));
    }
}
