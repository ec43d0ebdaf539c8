//! Recordings in several files, and what is left when things go wrong: disks fill, readers go, recorders are killed.
//!
//! Nothing here traces a kernel: the recorder takes its events from a recording, so that it works without privileges.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use observer::stream::damage::What;
use observer::stream::event::{Body, Clock, Event, FolioEvent, Kind};
use observer::stream::{Header, Reader, Writer};
use serde_json::Value;

fn observer<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
    command.args(arguments).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    observer(arguments).output().expect("observer runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The recording that is inside the binary: 32 seconds.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/default.arrows")
}

/// `record --from RECORDING -o OUTPUT MORE`.
fn record(from: &Path, output: &Path, more: &[&str]) -> Output {
    let fixed = [OsStr::new("record"), "--from".as_ref(), from.as_ref(), "-o".as_ref(), output.as_ref()];
    run(fixed.into_iter().chain(more.iter().map(OsStr::new)))
}

/// The recording's files in a folder, in order.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-")));
    parts.sort();
    parts
}

fn replay(files: &[PathBuf]) -> (Output, Value) {
    let output = run([OsStr::new("replay"), "--json".as_ref()].into_iter().chain(files.iter().map(AsRef::as_ref)));
    let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output, value)
}

/// Checks that it failed with `code` and one line that contains `what`.
fn assert_one_line(output: &Output, code: i32, what: &str) {
    let said = stderr(output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
    assert!(said.starts_with("observer: ") && said.contains(what), "{said}");
}

fn read(file: &Path) -> (Header, Vec<Event>, Vec<What>) {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut events = Vec::new();
    while reader.next_batch(&mut events).unwrap().is_some() {}
    ((*reader.header()).clone(), events, reader.damage().iter().map(|flaw| flaw.what.clone()).collect())
}

#[test]
fn files_together_are_the_recording_and_each_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(&recording(), &folder.path().join("run.arrows"), &["--rotate", "10s"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let files = parts(folder.path());
    assert_eq!(files.len(), 4, "{files:?}");

    let (_, whole) = replay(&[recording()]);
    // In any order: the files know their own.
    let shuffled = [&files[2], &files[0], &files[3], &files[1]].map(Clone::clone);
    let (output, together) = replay(&shuffled);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    for part in ["rules", "counters", "lruvecs", "files"] {
        assert_eq!(together[part], whole[part], "{part}");
    }

    let mut rows = 0;
    for (number, file) in files.iter().enumerate() {
        let (header, events, damage) = read(file);
        assert_eq!(damage, []);
        let part = header.part.unwrap();
        assert_eq!((part.number as usize, part.first_row), (number + 1, rows));
        rows += events.len() as u64;
        // Each alone says who is who.
        let (_, alone) = replay(std::slice::from_ref(file));
        let names = alone["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap());
        assert!(names.filter(|name| *name == "/app.db").count() == 1, "{}", alone["files"]);
        assert!(alone["lruvecs"].as_array().unwrap().iter().all(|lruvec| lruvec["cgroup"].as_str().unwrap().starts_with('/')));
        let seconds = alone["source"]["duration_s"].as_f64().unwrap();
        assert!((1.0..=11.0).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_missing_file_is_counted_and_a_stranger_refused() {
    let folder = tempfile::tempdir().unwrap();
    record(&recording(), &folder.path().join("run.arrows"), &["--rotate", "10s"]);
    let files = parts(folder.path());
    let (_, missing, _) = read(&files[1]);
    let (output, gapped) = replay(&[files[0].clone(), files[2].clone()]);
    assert_one_line(&output, 5, &format!("{} rows are missing before", missing.len()));
    assert_eq!(gapped["source"]["lost"], missing.len());
    assert_one_line(&replay(&[files[0].clone(), recording()]).0, 2, "a recording of its own");
    assert_one_line(&replay(&[files[0].clone(), files[0].clone()]).0, 2, "is the same part as");
}

#[test]
fn size_and_number_of_files_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(&recording(), &folder.path().join("run.arrows"), &["--rotate", "200K", "--keep", "3"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let files = parts(folder.path());
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0].ends_with("run-000001.arrows") as usize == 0, "the oldest went: {files:?}");
    let largest = files.iter().map(|file| fs::metadata(file).unwrap().len()).max().unwrap();
    // One batch of at most a second more.
    assert!((200 << 10..400 << 10).contains(&largest), "{largest}");
    assert_eq!(replay(&files).0.status.code(), Some(0));
}

#[test]
fn wrong_wishes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.arrows");
    fs::copy(recording(), &own).unwrap();
    assert_one_line(&record(&own, &own, &[]), 2, "would overwrite itself");
    assert_eq!(read(&own).2, []);
    assert_one_line(&record(&own, Path::new("-"), &["--rotate", "1M"]), 2, "--rotate needs a file's name");
    assert_one_line(&record(&own, Path::new("/dev/null"), &["--rotate", "1M"]), 2, "--rotate needs a file's name");
    assert_one_line(&record(&own, &folder.path().join("x"), &["--rotate", "1M,2M"]), 2, "one size and one time");
    assert_one_line(&record(&own, &folder.path().join("no/such/x"), &["--rotate", "1M"]), 1, "cannot look into");
}

#[test]
fn a_full_device_and_a_closed_pipe() {
    assert_one_line(&record(&recording(), Path::new("/dev/full"), &[]), 1, "cannot write /dev/full");
    let mut child = observer([OsStr::new("record"), "--from".as_ref(), recording().as_ref(), "-o".as_ref(), "-".as_ref()]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

/// A tiny file system; gone when dropped.
struct Tiny(tempfile::TempDir);

impl Tiny {
    /// None where it cannot be mounted, which it says.
    fn mount() -> Option<Tiny> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=600k", "observer-test"]).arg(folder.path()).output();
        if mount.as_ref().is_ok_and(|mount| mount.status.success()) {
            return Some(Tiny(folder));
        }
        eprintln!("SKIPPED: a file system that fills up cannot be mounted here (root can): {mount:?}");
        None
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // A mount that stays behind is the operating system's to clean up; the test has said what it had to.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_keeps_what_was_there_and_rotation_avoids_it() {
    let Some(tiny) = Tiny::mount() else { return };
    let file = tiny.0.path().join("run-whole.arrows");
    assert_one_line(&record(&recording(), &file, &[]), 1, "events before that are readable");
    let (_, events, damage) = read(&file);
    assert!(events.len() > 10_000 && matches!(damage.as_slice(), [What::Truncated | What::NotClosed]), "{} {damage:?}", events.len());
    fs::remove_file(&file).unwrap();

    let some = record(&recording(), &tiny.0.path().join("run.arrows"), &["--rotate", "100K"]);
    assert_one_line(&some, 1, "events before that are readable");
    let files = parts(tiny.0.path());
    let (last, closed) = files.split_last().unwrap();
    assert!(!closed.is_empty() && closed.iter().all(|file| read(file).2.is_empty()));
    assert!(read(last).2.len() <= 1);
    files.iter().for_each(|file| fs::remove_file(file).unwrap());

    let kept = record(&recording(), &tiny.0.path().join("run.arrows"), &["--rotate", "100K", "--keep", "2"]);
    assert_eq!((kept.status.code(), stderr(&kept)), (Some(0), String::new()));
}

#[test]
fn damage_on_the_way_is_one_line_and_lost_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(recording()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    let (damaged, copy) = (folder.path().join("damaged.arrows"), folder.path().join("copy.arrows"));
    fs::write(&damaged, bytes).unwrap();
    assert_one_line(&record(&damaged, &copy, &[]), 5, "are missing");
    let (_, events, damage) = read(&copy);
    let lost: u64 = events.iter().map(|event| if let Body::Lost { count, .. } = event.body { count } else { 0 }).sum();
    assert_eq!(damage, []);
    assert!(lost > 0);
    assert_eq!(events.len() as u64 + lost, read(&recording()).1.len() as u64 + 1, "all but what is counted, and the count itself");
}

/// Recorders killed.
const KILLS: u64 = 50;

/// Events in a batch of what they are sent, and event time between two.
const BATCH: u64 = 2;
const STEP: u64 = 10_000_000;

/// Batches sent to a recorder that lives to the end: 10 s of event time.
const BATCHES: u64 = 500;

/// Batches that may be under way to a recorder: of at least 4 KB each in a pipe of 64 KiB and in what its reader takes out of
/// that at once, and a few in its own queue.
const UNDER_WAY: u64 = 16 + 16 + 6;

fn event(number: u64, start: u64) -> Event {
    let clock = Some(Clock { max_seq: 7, window: [3, 2] });
    let body = FolioEvent { kind: Kind::Mark, folio: 64 * number, flags: 0x29, clock, aux: 0, identity: None, home: None, shadow: 0 };
    Event { ts: start + number * STEP, cpu: 0, body: Body::Folio(body) }
}

/// Random enough to choose moments, the same in every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Sends batches to a recorder, kills it after so many; how many events were sent.
fn send_and_kill(child: &mut Child, header: &Header, batches: u64, spin: u64) -> u64 {
    let mut writer = Writer::new(child.stdin.take().unwrap(), header).unwrap();
    for number in 0..batches * BATCH {
        writer.push(&event(number, header.start_boottime)).unwrap();
        if number % BATCH == BATCH - 1 {
            writer.flush().unwrap();
        }
    }
    // Not always right after a write.
    for turn in 0..spin {
        std::hint::black_box(turn);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    batches * BATCH
}

#[test]
fn killed_recorders_lose_a_second_at_most() {
    let header = read(&recording()).0;
    let mut state = 4;
    let mut largest_loss = 0;
    let mut most_files = 0;
    for kill in 0..KILLS {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("run.arrows");
        let arguments = [OsStr::new("record"), "--from".as_ref(), "-".as_ref(), "-o".as_ref(), output.as_ref()];
        let mut command = observer(arguments.into_iter().chain(["--rotate", "40K,2s"].map(OsStr::new)));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (batches, spin) = (1 + random(&mut state) % BATCHES, random(&mut state) % 1_000_000);
        let sent = send_and_kill(&mut child, &header, batches, spin);

        let files = parts(folder.path());
        let mut found = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let (header, events, damage) = read(file);
            assert_eq!(header.part.unwrap().first_row, found.len() as u64, "kill {kill}: {}", file.display());
            let last_two = number + 2 >= files.len();
            assert!(
                damage.is_empty() || last_two && matches!(damage.as_slice(), [What::Truncated | What::NotClosed]),
                "kill {kill}: {damage:?}"
            );
            found.extend(events);
        }
        assert!(found.iter().enumerate().all(|(number, found)| *found == event(number as u64, header.start_boottime)), "kill {kill}");
        let loss = (sent - found.len() as u64) * STEP;
        assert!(loss <= 1_000_000_000 + UNDER_WAY * BATCH * STEP, "kill {kill}: {} of {sent} events in {} files", found.len(), files.len());
        largest_loss = largest_loss.max(loss);
        most_files = most_files.max(files.len());
        if kill % 10 == 9 && !files.is_empty() {
            let (output, summary) = replay(&files);
            assert!(matches!(output.status.code(), Some(0 | 5)), "kill {kill}: {}", stderr(&output));
            assert_eq!(summary["source"]["events"], found.len(), "kill {kill}");
        }
    }
    assert!(most_files > 3, "kills happened within files and between them");
    println!("{KILLS} kills: at most {:.2} s of events lost, in at most {most_files} files", largest_loss as f64 / 1e9);
}

#[test]
fn a_recorder_that_lives_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let header = read(&recording()).0;
    let output = folder.path().join("run.arrows");
    let arguments = [OsStr::new("record"), "--from".as_ref(), "-".as_ref(), "-o".as_ref(), output.as_ref()];
    let mut command = observer(arguments.into_iter().chain(["--rotate", "3s"].map(OsStr::new)));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut writer = Writer::new(child.stdin.take().unwrap(), &header).unwrap();
    for number in 0..BATCHES * BATCH {
        writer.push(&event(number, header.start_boottime)).unwrap();
    }
    writer.finish().unwrap().flush().unwrap();
    assert!(child.wait().unwrap().success());
    let events: Vec<Event> = parts(folder.path()).iter().flat_map(|file| read(file).1).collect();
    assert_eq!(events.len() as u64, BATCHES * BATCH);
}
