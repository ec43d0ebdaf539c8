//! A source into a recording, until it ends, a command ends, or someone wants it to.

mod names;
pub mod parts;
pub mod referee;
pub mod signals;
mod sink;

use std::io::{self, IsTerminal, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::referee::Referee;
use self::signals::{Signals, to_pass_on};
pub use self::sink::Rotation;
use self::sink::Sink;
use crate::capture::command::Running;
use crate::exit::say;
use crate::replay::Source;
use crate::stream::{Body, Event};

/// Longest wait before signals and the command are looked at again.
const PATIENCE: Duration = Duration::from_millis(20);

/// Time for a command to end by itself when the recording ends before it.
const GRACE: Duration = Duration::from_secs(5);

/// Time to empty the ring at the end; a machine that is busy all the time would never finish otherwise.
const LAST_DRAIN: Duration = Duration::from_secs(2);

/// Fewer events than this in a drain: the ring is as good as empty.
const FEW: usize = 1000;

/// Time between batches for a reader at the other end of a pipe.
const PIPE_INTERVAL: Duration = Duration::from_millis(100);

/// Where a recording goes.
pub struct Output {
    /// Takes the bytes.
    pub write: Box<dyn Write>,
    /// What to call it.
    pub name: String,
    /// Whether someone may be watching at its other end.
    pub pipe: bool,
}

/// One recording, or one after another.
pub enum Target {
    /// All of it.
    One(Output),
    /// A new file from time to time.
    Many(Rotation),
}

/// What to record.
pub struct Job<'a> {
    /// Events.
    pub source: &'a mut dyn Source,
    /// The kernel's own counters; none for events of another time or machine.
    pub referee: Option<&'a Referee>,
    /// Where to.
    pub target: Target,
    /// End after so long.
    pub duration: Option<Duration>,
    /// Starts the command, once the recording runs; ends with it.
    pub command: Option<Box<dyn FnOnce() -> Result<Running> + 'a>>,
    /// End when the user wants.
    pub signals: &'a Signals,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What it is called, or its last file.
    pub name: String,
    /// Files begun, where there may be several.
    pub files: Option<u32>,
    /// Rows written.
    pub rows: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events lost on the way.
    pub lost: u64,
    /// How the command ended, by itself or because the user insisted.
    pub command: Option<ExitStatus>,
    /// Nobody reads the output any more.
    pub closed: bool,
    /// Whether someone may be reading it.
    pub pipe: bool,
}

/// Records.
///
/// # Errors
/// When the source or the output fails (a closed pipe is none); what was written before stays readable.
pub fn run(job: Job<'_>) -> Result<Outcome> {
    let Job { source, referee, target, duration, command, signals } = job;
    let header = source.header();
    let (sink, name, pipe) = match target {
        Target::One(Output { write, name, pipe }) => (Sink::one(write, &header, pipe.then_some(PIPE_INTERVAL)), name, pipe),
        Target::Many(rotation) => {
            let name = rotation.parts.pattern();
            (Sink::many(rotation, &header), name, false)
        }
    };
    let mut outcome = Outcome { pipe, name, ..Outcome::default() };
    let mut recorder = match sink {
        Ok(sink) => Recorder { sink, events: Vec::new(), lost: 0, progress: progress(&outcome.name, pipe) },
        Err(error) => return closed_or(error, outcome),
    };
    let mut command = command.map(|start| start()).transpose()?;
    let followed = recorder.follow(source, referee, &mut command, signals, duration);
    let written = followed.and_then(|end| {
        if let End::Command(status) = end {
            outcome.command = Some(status);
        }
        recorder.close(source, referee).map(|()| end)
    });
    if let (Some(running), None) = (&mut command, outcome.command) {
        // The command was only ever run to be recorded.
        let status = running.stop(GRACE).context("cannot stop the command")?;
        outcome.command = matches!(written, Ok(End::Signals)).then_some(status);
    }
    recorder.progress.finish_and_clear();
    let written = written.and_then(|_| Ok(recorder.sink.flush()?));
    (outcome.rows, outcome.bytes, outcome.lost) = (recorder.sink.written_rows(), recorder.sink.bytes(), recorder.lost);
    if let Some((files, last)) = recorder.sink.files() {
        (outcome.files, outcome.name) = (Some(files), last);
    }
    match written.and_then(|()| Ok(recorder.sink.finish()?)) {
        Ok(()) => Ok(outcome),
        Err(Stop::Output(error)) => closed_or(error, outcome),
        Err(Stop::Other(error)) => Err(error),
    }
}

/// What ended a recording.
#[derive(Clone, Copy)]
enum End {
    Command(ExitStatus),
    Signals,
    Duration,
    Source,
}

/// Why recording ended early.
enum Stop {
    Output(io::Error),
    Other(anyhow::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Output(error)
    }
}

fn closed_or(error: io::Error, outcome: Outcome) -> Result<Outcome> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(Outcome { closed: true, ..outcome });
    }
    let name = &outcome.name;
    Err(error).with_context(|| match outcome.rows {
        0 => format!("cannot write {name}"),
        rows => format!("cannot write {name} any further (the {} events before that are readable)", HumanCount(rows)),
    })
}

struct Recorder {
    sink: Sink,
    events: Vec<Event>,
    lost: u64,
    progress: ProgressBar,
}

impl Recorder {
    /// Records until something ends.
    fn follow(
        &mut self,
        source: &mut dyn Source,
        referee: Option<&Referee>,
        command: &mut Option<Running>,
        signals: &Signals,
        duration: Option<Duration>,
    ) -> Result<End, Stop> {
        let start = Instant::now();
        let mut heard = (0, 0);
        while self.step(source, referee, PATIENCE)? {
            if let Some(running) = command {
                if let Some(status) = running.try_wait().context("cannot wait for the command").map_err(Stop::Other)? {
                    return Ok(End::Command(status));
                }
                let now = (signals.interrupts(), signals.terminations());
                if let Some(signal) = to_pass_on(now.0 - heard.0, now.1 - heard.1) {
                    running.signal(signal);
                }
                heard = now;
            }
            // A command decides itself what a first signal means; nobody has to ask twice otherwise.
            let wanted = if command.is_some() { 2 } else { 1 };
            if signals.count() >= wanted {
                return Ok(End::Signals);
            }
            if duration.is_some_and(|duration| start.elapsed() >= duration) {
                return Ok(End::Duration);
            }
        }
        Ok(End::Source)
    }

    /// Takes what has come; `false` when the source has ended.
    fn step(&mut self, source: &mut dyn Source, referee: Option<&Referee>, patience: Duration) -> Result<bool, Stop> {
        self.events.clear();
        let more = source.fill(&mut self.events, patience).map_err(Stop::Other)?;
        for event in &self.events {
            self.sink.push(event, referee)?;
            if let Body::Lost { count, .. } = event.body {
                self.lost += count;
            }
        }
        for note in source.take_notes() {
            self.progress.suspend(|| say(format_args!("{}: {note}", source.name())));
        }
        self.sink.tick(Instant::now())?;
        if !self.progress.is_hidden() {
            let (rows, bytes) = (HumanCount(self.sink.rows()), HumanBytes(self.sink.bytes()));
            self.progress.set_message(format!("{rows} events, {} lost, {bytes}", HumanCount(self.lost)));
        }
        Ok(more)
    }

    /// The last events and the referee's last word.
    fn close(&mut self, source: &mut dyn Source, referee: Option<&Referee>) -> Result<(), Stop> {
        let Some(referee) = referee else { return Ok(()) };
        let counters = referee.read();
        let start = Instant::now();
        while self.step(source, Some(referee), Duration::ZERO)? && self.events.len() >= FEW && start.elapsed() < LAST_DRAIN {}
        for counter in &counters {
            self.sink.push(counter, Some(referee))?;
        }
        Ok(())
    }
}

/// A counter on a terminal, nothing elsewhere; nor where the other end of the pipe may be drawing on the same terminal.
fn progress(name: &str, pipe: bool) -> ProgressBar {
    if pipe || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {prefix}: {msg}, {elapsed} (Ctrl-C ends it)");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_prefix(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::session::frame::SourceKind;
    use crate::stream::tests::{header, mark};
    use crate::stream::{Header, Reader};

    /// An event at every fill.
    struct Ticking {
        count: u64,
        end: u64,
    }

    impl Source for Ticking {
        fn header(&self) -> Arc<Header> {
            Arc::new(header())
        }

        fn kind(&self) -> SourceKind {
            SourceKind::Live
        }

        fn name(&self) -> String {
            "ticking".into()
        }

        fn fill(&mut self, out: &mut Vec<Event>, patience: Duration) -> Result<bool> {
            out.push(mark(self.count, 1));
            self.count += 1;
            std::thread::sleep(patience.min(Duration::from_millis(1)));
            Ok(self.count < self.end)
        }
    }

    /// Bytes that outlive the job, or an error after so many.
    #[derive(Clone)]
    struct Shared(Arc<Mutex<Vec<u8>>>, usize, io::ErrorKind);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut held = self.0.lock().unwrap();
            if held.len() + bytes.len() > self.1 {
                return Err(self.2.into());
            }
            held.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn record(end: u64, duration: Option<Duration>, shared: &Shared, signals: &Signals) -> Result<Outcome> {
        let output = Output { write: Box::new(shared.clone()), name: "test".into(), pipe: true };
        let referee = Referee::new(None).unwrap();
        run(Job {
            source: &mut Ticking { count: 0, end },
            referee: Some(&referee),
            target: Target::One(output),
            duration,
            command: None,
            signals,
        })
    }

    fn endless() -> Shared {
        Shared(Arc::default(), usize::MAX, io::ErrorKind::Other)
    }

    #[test]
    fn everything_and_the_counters_are_recorded() {
        let shared = endless();
        let outcome = record(100, None, &shared, &Signals::default()).unwrap();
        let bytes = shared.0.lock().unwrap().clone();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut events = Vec::new();
        while reader.next_batch(&mut events).unwrap().is_some() {}
        assert_eq!((reader.damage().len(), events.len() as u64), (0, outcome.rows));
        assert_eq!(events.iter().filter(|event| matches!(event.body, Body::Folio(_))).count(), 101);
        assert!(matches!(events.last().unwrap().body, Body::Counter { .. }));
    }

    #[test]
    fn a_duration_ends_it() {
        let outcome = record(u64::MAX, Some(Duration::from_millis(100)), &endless(), &Signals::default()).unwrap();
        assert!(!outcome.closed && outcome.rows > 0);
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        let closed = Shared(Arc::default(), 6000, io::ErrorKind::BrokenPipe);
        assert!(record(u64::MAX, None, &closed, &Signals::default()).unwrap().closed);
        let full = Shared(Arc::default(), 20_000, io::ErrorKind::StorageFull);
        let error = record(u64::MAX, None, &full, &Signals::default()).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot write test any further (the "), "{error:#}");
    }

    #[test]
    fn a_signal_ends_it() {
        let signals = Signals::listen().unwrap();
        let pid = std::process::id().to_string();
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        });
        record(u64::MAX, Some(Duration::from_secs(60)), &endless(), &signals).unwrap();
        sender.join().unwrap();
        assert_eq!((signals.interrupts(), signals.terminations()), (0, 1));
    }
}
