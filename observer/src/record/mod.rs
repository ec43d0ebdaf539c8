//! A source into a recording, until it ends, a command ends, or someone wants it to.

pub mod referee;
pub mod signals;

use std::io::{self, IsTerminal, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::referee::Referee;
use self::signals::{Signals, to_pass_on};
use crate::capture::command::Running;
use crate::replay::Source;
use crate::stream::{Body, Event, Writer};

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

/// What to record.
pub struct Job<'a> {
    /// Events.
    pub source: &'a mut dyn Source,
    /// The kernel's own counters.
    pub referee: &'a Referee,
    /// Where to.
    pub output: Output,
    /// End after so long.
    pub duration: Option<Duration>,
    /// Starts the command, once the recording runs; ends with it.
    pub command: Option<Box<dyn FnOnce() -> Result<Running> + 'a>>,
    /// End when the user wants.
    pub signals: &'a Signals,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
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
}

/// Records.
///
/// # Errors
/// When the source or the output fails (a closed pipe is none); what was written before stays readable.
pub fn run(job: Job<'_>) -> Result<Outcome> {
    let Job { source, referee, output: Output { write, name, pipe }, duration, command, signals } = job;
    let mut outcome = Outcome::default();
    let mut recorder = match Writer::new(write, &source.header()) {
        Ok(writer) => Recorder { writer, events: Vec::new(), lost: 0, progress: progress(&name) },
        Err(error) => return closed_or(error, &name, outcome),
    };
    if pipe {
        recorder.writer = recorder.writer.with_interval(PIPE_INTERVAL);
    }
    let mut command = command.map(|start| start()).transpose()?;
    let followed = recorder.follow(source, &mut command, signals, duration);
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
    let written = written.and_then(|_| Ok(recorder.writer.flush()?));
    (outcome.rows, outcome.bytes, outcome.lost) = (recorder.writer.written_rows(), recorder.writer.bytes(), recorder.lost);
    match written.and_then(|()| Ok(recorder.writer.finish()?)) {
        Ok(_) => Ok(outcome),
        Err(Stop::Output(error)) => closed_or(error, &name, outcome),
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

fn closed_or(error: io::Error, name: &str, outcome: Outcome) -> Result<Outcome> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(Outcome { closed: true, ..outcome });
    }
    Err(error).with_context(|| match outcome.rows {
        0 => format!("cannot write {name}"),
        rows => format!("cannot write {name} any further (the {} events before that are readable)", HumanCount(rows)),
    })
}

struct Recorder {
    writer: Writer<Box<dyn Write>>,
    events: Vec<Event>,
    lost: u64,
    progress: ProgressBar,
}

impl Recorder {
    /// Records until something ends.
    fn follow(
        &mut self, source: &mut dyn Source, command: &mut Option<Running>, signals: &Signals, duration: Option<Duration>,
    ) -> Result<End, Stop> {
        let start = Instant::now();
        let mut heard = (0, 0);
        while self.step(source, PATIENCE)? {
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
    fn step(&mut self, source: &mut dyn Source, patience: Duration) -> Result<bool, Stop> {
        self.events.clear();
        let more = source.fill(&mut self.events, patience).map_err(Stop::Other)?;
        for event in &self.events {
            self.writer.push(event)?;
            if let Body::Lost { count, .. } = event.body {
                self.lost += count;
            }
        }
        self.writer.tick(Instant::now())?;
        if !self.progress.is_hidden() {
            let (rows, bytes) = (HumanCount(self.writer.rows()), HumanBytes(self.writer.bytes()));
            self.progress.set_message(format!("{rows} events, {} lost, {bytes}", HumanCount(self.lost)));
        }
        Ok(more)
    }

    /// The last events and the referee's last word.
    fn close(&mut self, source: &mut dyn Source, referee: &Referee) -> Result<(), Stop> {
        let counters = referee.read();
        let start = Instant::now();
        while self.step(source, Duration::ZERO)? && self.events.len() >= FEW && start.elapsed() < LAST_DRAIN {}
        for counter in &counters {
            self.writer.push(counter)?;
        }
        Ok(())
    }
}

/// A counter on a terminal, nothing elsewhere.
fn progress(name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
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
        run(Job { source: &mut Ticking { count: 0, end }, referee: &referee, output, duration, command: None, signals })
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
