//! From a source through an engine to the screen, at the pace the user wants.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};

use super::notes::Notes;
use super::pacer::Pacer;
use super::source::{Source, is_paced};
use super::{Control, Engine, Seek};
use crate::session::frame::Frame;
use crate::stream::Event;

/// Longest wait before controls are looked at again.
const PATIENCE: Duration = Duration::from_millis(10);

/// Time between pictures, unless making one takes longer than a quarter of it.
const PUBLISH_EVERY: Duration = Duration::from_millis(50);

/// Events applied between two looks at the clock.
const SLICE: usize = 4096;

/// Controls waiting at most.
const CONTROLS: usize = 64;

/// How to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// 1 is as recorded, infinity as fast as it goes.
    pub speed: f64,
    /// Show the beginning and wait.
    pub paused: bool,
    /// Begin again at the end, unless the source is a pipe or a kernel.
    pub repeat: bool,
    /// A line that stays on the screen; empty for none.
    pub note: String,
}

impl Default for Options {
    fn default() -> Options {
        Options { speed: 1.0, paused: false, repeat: false, note: String::new() }
    }
}

/// A running pump.
pub struct Player {
    /// The newest picture.
    pub frames: watch::Receiver<Arc<Frame>>,
    /// Takes what the user wants; when all senders are gone, the pump ends.
    pub controls: mpsc::Sender<Control>,
    thread: JoinHandle<Result<Played>>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Whether rows of the recording are missing.
    pub damaged: bool,
}

impl Player {
    /// Starts a thread that plays `source`. `engine` makes a fresh engine: at the start, and when the user goes back.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start<E: Engine + 'static>(
        source: Box<dyn Source>,
        engine: impl Fn() -> E + Send + 'static,
        options: Options,
    ) -> Result<Player> {
        let Options { speed, paused, repeat, note } = options;
        let notes = Notes::new(&note);
        let mut first = engine();
        first.note(notes.line());
        let (sender, frames) = watch::channel(Arc::new(first.frame()));
        let (controls, receiver) = mpsc::channel(CONTROLS);
        let paced = is_paced(source.kind());
        let pump = Pump {
            paused: paused && paced,
            repeat: repeat && paced,
            rounds: 0,
            paced,
            source,
            fresh: engine,
            engine: first,
            frames: sender,
            controls: receiver,
            queue: Vec::new(),
            next: 0,
            last_ts: None,
            pacer: Pacer::new(speed),
            goal: None,
            over: false,
            changed: true,
            publish_at: Instant::now(),
            note,
            notes,
        };
        let thread =
            thread::Builder::new().name("session".to_owned()).spawn(move || pump.run()).context("cannot start the session's thread")?;
        Ok(Player { frames, controls, thread })
    }

    /// Waits for the pump's end, after `Quit`.
    ///
    /// # Errors
    /// When the source failed.
    pub fn join(self) -> Result<Played> {
        drop(self.controls);
        self.thread.join().map_err(|_| anyhow!("the session failed"))?
    }
}

struct Pump<E, F> {
    source: Box<dyn Source>,
    fresh: F,
    engine: E,
    frames: watch::Sender<Arc<Frame>>,
    controls: mpsc::Receiver<Control>,
    /// Events to come, from `next` on.
    queue: Vec<Event>,
    next: usize,
    /// Largest `ts` applied.
    last_ts: Option<u64>,
    pacer: Pacer,
    /// Whether there is a pace to keep.
    paced: bool,
    paused: bool,
    /// Whether the end is followed by the beginning.
    repeat: bool,
    /// Times it was played through.
    rounds: u64,
    /// Event time to go to as fast as possible.
    goal: Option<u64>,
    /// The source has no more.
    over: bool,
    /// The picture has changed since it was published.
    changed: bool,
    publish_at: Instant,
    /// The line that was there from the start.
    note: String,
    notes: Notes,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Quit,
}

impl<E: Engine, F: Fn() -> E> Pump<E, F> {
    fn run(mut self) -> Result<Played> {
        let result = self.play();
        if let Err(error) = &result {
            // Whoever looks at the screen sees why it stands still; whoever started it gets the error.
            self.tell(format!("{error:#}"));
            self.over = true;
        }
        self.publish();
        result.map(|()| Played { damaged: self.source.is_damaged() })
    }

    fn play(&mut self) -> Result<()> {
        while self.take_controls()? == Flow::On {
            if self.next == self.queue.len() && !self.over {
                self.fill()?;
            }
            self.apply_due();
            if self.changed && Instant::now() >= self.publish_at {
                self.publish();
            }
        }
        Ok(())
    }

    /// Serves controls; waits for one when there is nothing else to do.
    fn take_controls(&mut self) -> Result<Flow> {
        loop {
            let idle = self.goal.is_none() && (self.paused || self.over && self.next == self.queue.len());
            let control = if idle {
                self.publish();
                match self.controls.blocking_recv() {
                    Some(control) => control,
                    None => return Ok(Flow::Quit),
                }
            } else {
                match self.controls.try_recv() {
                    Ok(control) => control,
                    Err(TryRecvError::Empty) => return Ok(Flow::On),
                    Err(TryRecvError::Disconnected) => return Ok(Flow::Quit),
                }
            };
            match control {
                Control::Quit => return Ok(Flow::Quit),
                Control::Pause(paused) if self.paced => self.pause(paused),
                Control::Speed(speed) if self.paced => {
                    let now = Instant::now();
                    self.pacer.set_speed(now, self.playhead(now), speed);
                }
                Control::Pause(_) | Control::Speed(_) => {}
                Control::Seek(seek) => self.seek(seek)?,
            }
        }
    }

    fn pause(&mut self, paused: bool) {
        let now = Instant::now();
        if let (true, false, Some(ts)) = (self.paused, paused, self.last_ts) {
            self.pacer.set(now, ts);
        }
        self.paused = paused;
    }

    /// The event time that is shown: further than the last event when the next one is not due yet.
    fn playhead(&self, now: Instant) -> Option<u64> {
        let last = self.last_ts?;
        if self.paused {
            return Some(last);
        }
        let next = self.queue.get(self.next).map_or(last, |event| event.ts);
        Some(self.pacer.due(now).unwrap_or(last).min(next).max(last))
    }

    fn seek(&mut self, seek: Seek) -> Result<()> {
        if !self.paced {
            // Not for the notes that stay.
            self.engine.note(format!("{} cannot be wound: record to a file (observer record -o FILE) and replay that", self.source.name()));
            self.changed = true;
            return Ok(());
        }
        let start = self.source.header().start_boottime;
        let goal = match seek {
            Seek::To(since_start) => start.saturating_add(since_start),
            Seek::By(by) => self.playhead(Instant::now()).unwrap_or(start).saturating_add_signed(by).max(start),
        };
        if self.last_ts.is_some_and(|last| goal < last) && self.source.rewind()? {
            self.begin();
        }
        self.goal = Some(goal);
        Ok(())
    }

    /// The source was wound back.
    fn begin(&mut self) {
        self.engine = (self.fresh)();
        self.notes = Notes::new(&self.note);
        self.engine.note(self.notes.line());
        self.queue.clear();
        self.next = 0;
        self.last_ts = None;
        self.over = false;
    }

    /// Shows the end, and begins again. What has not a single event has no end either.
    fn repeat(&mut self) -> Result<()> {
        if self.last_ts.is_none() {
            return Ok(());
        }
        self.publish();
        if self.source.rewind()? {
            self.begin();
            self.rounds += 1;
            self.goal = None;
            self.pacer.clear();
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        self.queue.clear();
        self.next = 0;
        self.over = !self.source.fill(&mut self.queue, PATIENCE)?;
        for note in self.source.take_notes() {
            self.tell(note);
        }
        self.changed |= self.over;
        if self.over && self.repeat {
            if self.queue.is_empty() {
                return self.repeat();
            }
            // Once these are played it says so again.
            self.over = false;
        }
        Ok(())
    }

    /// Puts a note before the user.
    fn tell(&mut self, note: String) {
        self.notes.add(note);
        self.engine.note(self.notes.line());
        self.changed = true;
    }

    /// Applies the events that are due, until it is time to look at something else; waits if none is.
    fn apply_due(&mut self) {
        let now = Instant::now();
        let Some(first) = self.queue.get(self.next) else {
            if self.over {
                self.goal = None;
            }
            return;
        };
        let due = match self.goal {
            Some(goal) => goal,
            None if !self.paced => u64::MAX,
            None => match self.pacer.due(now) {
                Some(due) => due,
                None => {
                    self.pacer.set(now, first.ts);
                    first.ts
                }
            },
        };
        while let Some(event) = self.queue.get(self.next).filter(|event| event.ts <= due) {
            self.engine.apply(event);
            self.last_ts = self.last_ts.max(Some(event.ts));
            self.changed = true;
            self.next += 1;
            if self.next.is_multiple_of(SLICE) && Instant::now() >= self.publish_at {
                return;
            }
        }
        let Some(next) = self.queue.get(self.next) else { return };
        if let Some(goal) = self.goal.take() {
            self.pacer.set(Instant::now(), goal);
            self.changed = true;
            self.publish();
        } else {
            thread::sleep(self.pacer.wait(now, next.ts).min(PATIENCE));
        }
    }

    fn publish(&mut self) {
        if !self.changed {
            return;
        }
        self.changed = false;
        let start = Instant::now();
        self.source.on_events(false);
        let ended = self.over && self.next == self.queue.len();
        if ended {
            self.engine.finish();
        }
        let mut frame = self.engine.frame();
        frame.source.total_ns = self.source.total_ns();
        frame.source.ended = ended && !self.repeat;
        frame.source.rounds = self.rounds;
        self.frames.send_replace(Arc::new(frame));
        self.source.on_events(true);
        self.publish_at = start + PUBLISH_EVERY.max(4 * start.elapsed());
    }
}
