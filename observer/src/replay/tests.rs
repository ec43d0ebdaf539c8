//! Sources, pace and controls.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::pump::{Options, Played};
use super::*;
use crate::session::frame::{Calibration, Frame, Source as FrameSource, SourceKind};
use crate::stream::tests::{header, mark};
use crate::stream::{Body, Writer};

/// Counts.
struct Counter {
    kind: SourceKind,
    events: u64,
    lost: u64,
    note: String,
    cost: Duration,
}

impl Engine for Counter {
    fn apply(&mut self, event: &Event) {
        self.events += 1;
        if let Body::Lost { count, .. } = event.body {
            self.lost += count;
        }
        if !self.cost.is_zero() {
            std::thread::sleep(self.cost);
        }
    }

    fn frame(&self) -> Frame {
        let source = FrameSource {
            kind: self.kind,
            name: String::new(),
            note: self.note.clone(),
            duration_ns: 0,
            total_ns: None,
            events: self.events,
            events_per_s: 0.0,
            lost: self.lost,
            lost_per_cpu: vec![],
            sample: 1,
            ended: false,
            rounds: 0,
            table_evictions: 0,
        };
        Frame {
            source,
            header: Arc::new(header()),
            lru: header().lru,
            calibration: Calibration::NotNeeded,
            rules: vec![],
            fidelity_by_type: Default::default(),
            fidelity_by: vec![],
            lruvecs: vec![],
            files: vec![],
            window_s: 1.0,
            counters: vec![],
            what_if: vec![],
            sampling: None,
        }
    }

    fn note(&mut self, note: String) {
        self.note = note;
    }
}

/// What was done, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

/// A kernel that has events without end.
struct Kernel(Diary, u64);

impl Source for Kernel {
    fn header(&self) -> Arc<crate::stream::Header> {
        Arc::new(header())
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Live
    }

    fn name(&self) -> String {
        String::new()
    }

    fn fill(&mut self, out: &mut Vec<Event>, _: Duration) -> anyhow::Result<bool> {
        self.1 += 1;
        std::thread::sleep(Duration::from_millis(1));
        out.push(mark(header().start_boottime + self.1, self.1));
        Ok(true)
    }

    fn on_events(&mut self, on_events: bool) {
        self.0.note(if on_events { "on events" } else { "aside" });
    }
}

/// Does as [`Counter`], and tells of it.
struct Witness(Diary, Counter);

impl Engine for Witness {
    fn apply(&mut self, event: &Event) {
        self.0.note("event");
        self.1.apply(event);
    }

    fn frame(&self) -> Frame {
        self.0.note("picture");
        self.1.frame()
    }

    fn note(&mut self, note: String) {
        self.1.note(note);
    }
}

fn counter() -> Counter {
    Counter { kind: SourceKind::Recording, events: 0, lost: 0, note: String::new(), cost: Duration::ZERO }
}

/// A recording of `seconds` seconds, ten events and a batch in each; starts at the header's start.
fn recording(seconds: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for number in 0..seconds * 10 {
        writer.push(&mark(header().start_boottime + number * 100_000_000, number)).unwrap();
        if number % 10 == 9 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap()
}

fn embedded(bytes: Vec<u8>) -> Box<Recorded> {
    Box::new(Recorded::open(Input::Embedded(bytes.leak())).unwrap())
}

fn fast() -> Options {
    Options { speed: f64::INFINITY, note: "embedded".to_owned(), ..Options::default() }
}

/// Waits for a picture that `is` right.
fn await_frame(player: &Player, is: impl Fn(&Frame) -> bool) -> Arc<Frame> {
    let start = Instant::now();
    loop {
        let frame = player.frames.borrow().clone();
        if is(&frame) {
            return frame;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "still at {:?}", frame.source);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_replay_as_fast_as_it_goes_shows_everything_and_then_waits() {
    let player = Player::start(embedded(recording(30)), counter, fast()).unwrap();
    let frame = await_frame(&player, |frame| frame.source.ended);
    assert_eq!((frame.source.events, frame.source.total_ns), (300, Some(29_900_000_000)));
    player.controls.try_send(Control::Quit).unwrap();
    assert_eq!(player.join().unwrap(), Played { damaged: false });
}

#[test]
fn a_loop_shows_the_end_and_begins_again_until_told_otherwise() {
    let player = Player::start(embedded(recording(30)), counter, Options { repeat: true, ..fast() }).unwrap();
    let frame = await_frame(&player, |frame| frame.source.rounds >= 3);
    assert!(!frame.source.ended && frame.source.events <= 300, "{:?}", frame.source);
    // The end is seen in each round, however fast they go.
    let rounds = frame.source.rounds;
    await_frame(&player, |frame| frame.source.rounds > rounds && frame.source.events == 300);
    player.controls.try_send(Control::Pause(true)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let paused = player.frames.borrow().source.clone();
    std::thread::sleep(Duration::from_millis(100));
    let still = player.frames.borrow().source.clone();
    assert_eq!((still.rounds, still.events), (paused.rounds, paused.events));
    player.controls.try_send(Control::Quit).unwrap();
    assert_eq!(player.join().unwrap(), Played { damaged: false });
}

#[test]
fn a_loop_keeps_its_pace_in_every_round() {
    let options = Options { speed: 10.0, repeat: true, ..Options::default() };
    let player = Player::start(embedded(recording(3)), counter, options).unwrap();
    let start = Instant::now();
    await_frame(&player, |frame| frame.source.rounds == 2);
    // Twice 2.9 seconds, ten times as fast.
    assert!(start.elapsed() >= Duration::from_millis(550), "{:?}", start.elapsed());
}

#[test]
fn nothing_is_not_played_again_and_again() {
    let player = Player::start(embedded(recording(0)), counter, Options { repeat: true, ..fast() }).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(player.frames.borrow().source.rounds, 0);
    player.controls.try_send(Control::Quit).unwrap();
    player.join().unwrap();
}

#[test]
fn a_replay_keeps_its_pace_and_changes_it() {
    let player = Player::start(embedded(recording(1000)), counter, Options { speed: 20.0, ..Options::default() }).unwrap();
    let start = Instant::now();
    let frame = await_frame(&player, |frame| frame.source.events >= 100);
    // 100 events are ten seconds, half a second at this speed; how late it notices is up to the machine.
    assert!(start.elapsed() >= Duration::from_millis(450), "{:?} at {:?}", frame.source, start.elapsed());
    assert!(!frame.source.ended);
    player.controls.try_send(Control::Speed(1e6)).unwrap();
    await_frame(&player, |frame| frame.source.ended && frame.source.events == 10_000);
}

#[test]
fn time_stands_still_while_paused() {
    let player = Player::start(embedded(recording(20_000)), counter, Options { speed: 1000.0, ..Options::default() }).unwrap();
    await_frame(&player, |frame| frame.source.events > 1000);
    player.controls.try_send(Control::Pause(true)).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let paused = player.frames.borrow().source.events;
    player.controls.try_send(Control::Pause(false)).unwrap();
    let resumed = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let events = player.frames.borrow().source.events - paused;
    // Ten thousand a second; the pause would have been thirty thousand more.
    let allowed = resumed.elapsed().as_secs_f64() * 10_000.0 + 5000.0;
    assert!(events > 0 && (events as f64) < allowed, "{events} events, {allowed} allowed");
}

#[test]
fn a_paused_replay_moves_only_by_seeking() {
    let player = Player::start(embedded(recording(100)), counter, Options { paused: true, ..Options::default() }).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(player.frames.borrow().source.events, 0);
    for (seek, events) in [
        (Seek::To(10_000_000_000), 101),
        (Seek::By(5_000_000_000), 151),
        (Seek::By(-10_000_000_000), 51),
        (Seek::To(u64::MAX), 1000),
        (Seek::By(-1_000_000_000), 990),
        (Seek::To(0), 1),
        (Seek::By(i64::MIN), 1),
    ] {
        player.controls.try_send(Control::Seek(seek)).unwrap();
        await_frame(&player, |frame| frame.source.events == events);
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(player.frames.borrow().source.events, 1);
    player.controls.try_send(Control::Pause(false)).unwrap();
    player.controls.try_send(Control::Speed(1000.0)).unwrap();
    await_frame(&player, |frame| frame.source.ended);
}

#[test]
fn quitting_interrupts_a_long_seek() {
    let engine = || Counter { cost: Duration::from_millis(5), ..counter() };
    let player = Player::start(embedded(recording(10_000)), engine, Options::default()).unwrap();
    player.controls.try_send(Control::Seek(Seek::To(u64::MAX))).unwrap();
    await_frame(&player, |frame| frame.source.events > 20);
    player.controls.try_send(Control::Quit).unwrap();
    let start = Instant::now();
    player.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn pictures_are_no_work_on_events() {
    let diary = Diary::default();
    let witness = diary.clone();
    let engine = move || Witness(witness.clone(), Counter { kind: SourceKind::Live, ..counter() });
    let player = Player::start(Box::new(Kernel(diary.clone(), 0)), engine, fast()).unwrap();
    await_frame(&player, |frame| frame.source.events > 200);
    player.controls.blocking_send(Control::Quit).unwrap();
    player.join().unwrap();
    let done = diary.0.lock().unwrap();
    // The first is what there is to see before anything has come.
    assert_eq!(done.first(), Some(&"picture"));
    let mut on_events = true;
    for what in &done[1..] {
        match *what {
            "on events" | "aside" => on_events = *what == "on events",
            what => assert_eq!(what == "event", on_events, "{done:?}"),
        }
    }
    assert!(on_events && done.iter().filter(|what| **what == "picture").count() > 3);
}

#[test]
fn a_pump_ends_with_its_screen() {
    let player = Player::start(embedded(recording(10)), counter, Options { paused: true, ..Options::default() }).unwrap();
    player.join().unwrap();
}

/// A pipe made of a named one, as `replay /dev/stdin` sees it.
fn pipe() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    (dir, path)
}

#[test]
fn a_pipe_is_followed_and_says_that_it_cannot_be_wound() {
    let (_dir, path) = pipe();
    let (write, written) = std::sync::mpsc::channel::<usize>();
    let writer_path = path.clone();
    let writer = std::thread::spawn(move || {
        let mut writer = Writer::new(std::fs::File::options().write(true).open(writer_path).unwrap(), &header()).unwrap();
        for batch in written {
            // An hour between batches: a pipe is not paced.
            writer.push(&mark(batch as u64 * 3_600_000_000_000, 1)).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
    });
    let source = Recorded::open(Input::File(path)).unwrap();
    assert_eq!((source.kind(), source.total_ns()), (SourceKind::Pipe, None));
    let player = Player::start(Box::new(source), counter, Options::default()).unwrap();
    for batch in 1..4 {
        write.send(batch).unwrap();
        await_frame(&player, |frame| frame.source.events == batch as u64);
    }
    player.controls.try_send(Control::Pause(true)).unwrap();
    player.controls.try_send(Control::Seek(Seek::To(0))).unwrap();
    let frame = await_frame(&player, |frame| !frame.source.note.is_empty());
    assert!(frame.source.note.contains("cannot be wound"), "{}", frame.source.note);
    write.send(4).unwrap();
    await_frame(&player, |frame| frame.source.events == 4);
    drop(write);
    await_frame(&player, |frame| frame.source.ended);
    writer.join().unwrap();
}

#[test]
fn damage_is_a_note_and_lost_events() {
    let mut bytes = recording(5);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let player = Player::start(embedded(bytes), counter, fast()).unwrap();
    let frame = await_frame(&player, |frame| frame.source.ended);
    // Forty marks and the gap's own event.
    assert_eq!((frame.source.events, frame.source.lost), (41, 10));
    assert!(frame.source.note.starts_with("embedded; rows ") && frame.source.note.contains("are missing"), "{}", frame.source.note);
    player.controls.try_send(Control::Quit).unwrap();
    assert_eq!(player.join().unwrap(), Played { damaged: true });
}

#[test]
fn offscreen_reads_to_the_end() {
    let mut told = Vec::new();
    let mut bytes = recording(50);
    bytes.truncate(bytes.len() - 8);
    let frame = offscreen::run_to_end(&mut *embedded(bytes), &mut counter(), "first", |note| told.push(note.to_owned()), || false).unwrap();
    assert_eq!((frame.source.events, frame.source.ended, frame.source.total_ns), (500, true, Some(49_900_000_000)));
    assert_eq!(told.len(), 1);
    assert_eq!(frame.source.note, format!("first; {}", told[0]));
}

#[test]
fn what_cannot_be_opened_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::File::create(&text).unwrap().write_all(b"not a recording").unwrap();
    for path in [dir.path().join("missing"), dir.path().to_owned(), text] {
        let error = Recorded::open(Input::File(path.clone())).err().unwrap();
        let line = format!("{error:#}");
        assert!(line.contains(path.to_str().unwrap()) && !line.contains('\n'), "{line}");
    }
}

/// The same event about one of a few folios, so that events meet.
fn crowd(mut event: Event) -> Event {
    match &mut event.body {
        Body::Folio(folio) => {
            folio.folio &= 3;
            if let Some(identity) = &mut folio.identity {
                (identity.ino, identity.index) = (identity.ino & 7, identity.index & 3);
            }
            if let Some(home) = &mut folio.home {
                home.node &= 1;
            }
            if let Some(clock) = &mut folio.clock {
                (clock.max_seq, clock.window) = (clock.max_seq & 15, clock.window.map(|size| size & 3));
            }
        }
        Body::Lruvec { lruvec, state, .. } => {
            *lruvec &= 1;
            state.node &= 1;
            state.max_seq = state.max_seq & 15 | 8;
            state.min_seq = state.min_seq.map(|seq| state.max_seq - (seq & 3));
        }
        Body::Controller { lruvec, .. } => *lruvec &= 1,
        Body::Range { ino, first, last, .. } => (*ino, *first, *last) = (*ino & 7, *first & 3, *last & 3),
        Body::FileName { ino, .. } => *ino &= 7,
        _ => {}
    }
    event
}

proptest::proptest! {
    /// What a hostile recording holds, in the order and with the numbers it likes, reaches the session as it is.
    #[test]
    fn any_events_make_a_picture(
        events in proptest::collection::vec(crate::stream::tests::an_event(), 0..300), crowded in proptest::prelude::any::<bool>(),
    ) {
        let mut session = Session::new(Arc::new(header()), SourceKind::Recording, "hostile".into(), Session::default_rules());
        for event in events {
            session.apply(&if crowded { crowd(event) } else { event });
        }
        let frame = session.frame();
        proptest::prop_assert!(!crate::report::text(&frame).is_empty());
        proptest::prop_assert!(crate::report::json(&frame)["schema"].is_string());
    }
}
