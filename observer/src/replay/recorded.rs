//! A recording as a source: read and unpacked by its own thread, a bounded distance ahead.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::source::Source;
use crate::session::frame::SourceKind;
use crate::stream::damage::{Damage, NO_CPU};
use crate::stream::reader::{self, Reader};
use crate::stream::{Body, Event, Header};

/// Batches waiting at most: one being played, one to follow at once.
const AHEAD: usize = 2;

/// Where a recording is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file; anything but a regular one is read as a pipe.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// Inside the binary.
    Embedded(&'static [u8]),
}

/// Opened for reading.
struct Opened {
    read: Box<dyn Read + Send>,
    kind: SourceKind,
    last_ts: Option<u64>,
}

impl Input {
    /// `-` is standard input, everything else a file.
    pub fn from_argument(argument: PathBuf) -> Input {
        if argument.as_os_str() == "-" { Input::Stdin } else { Input::File(argument) }
    }

    fn open(&self) -> Result<Opened> {
        Ok(match self {
            Input::Embedded(bytes) => {
                let last_ts = reader::last_ts(&mut Cursor::new(bytes))?;
                Opened { read: Box::new(*bytes), kind: SourceKind::Embedded, last_ts }
            }
            Input::Stdin if io::stdin().is_terminal() => {
                bail!("standard input is a terminal: pipe a recording into it (ssh box sudo observer record -o - | observer replay -)")
            }
            Input::Stdin => Opened { read: Box::new(io::stdin()), kind: SourceKind::Pipe, last_ts: None },
            Input::File(path) => {
                let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    bail!("{} is a directory: give the recording itself", path.display());
                }
                if !metadata.is_file() {
                    return Ok(Opened { read: Box::new(file), kind: SourceKind::Pipe, last_ts: None });
                }
                let last_ts = reader::last_ts(&mut file).with_context(|| format!("cannot read {}", path.display()))?;
                file.seek(SeekFrom::Start(0))?;
                Opened { read: Box::new(file), kind: SourceKind::Recording, last_ts }
            }
        })
    }

    fn name(&self) -> String {
        match self {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "standard input".to_owned(),
            Input::Embedded(_) => "embedded recording".to_owned(),
        }
    }
}

/// What the reader's thread hands over.
#[derive(Default)]
struct Delivery {
    events: Vec<Event>,
    notes: Vec<String>,
    damaged: bool,
}

/// A recording.
pub struct Recorded {
    input: Input,
    kind: SourceKind,
    header: Arc<Header>,
    last_ts: Option<u64>,
    deliveries: Receiver<io::Result<Delivery>>,
    /// Emptied vectors on their way back to the reader.
    emptied: SyncSender<Vec<Event>>,
    notes: Vec<String>,
    damaged: bool,
}

impl Recorded {
    /// Opens a recording; for a pipe this waits for its header.
    ///
    /// # Errors
    /// One line that says why it cannot be read.
    pub fn open(input: Input) -> Result<Recorded> {
        let Opened { read, kind, last_ts } = input.open()?;
        let reader = Reader::new(read).with_context(|| input.name())?;
        let header = reader.header();
        let (deliveries, emptied) = start(reader)?;
        Ok(Recorded { input, kind, header, last_ts, deliveries, emptied, notes: Vec::new(), damaged: false })
    }
}

type Channels = (Receiver<io::Result<Delivery>>, SyncSender<Vec<Event>>);

/// Starts the reader's thread, which ends when nobody takes its deliveries any more.
fn start(mut reader: Reader<Box<dyn Read + Send>>) -> Result<Channels> {
    let (deliver, deliveries) = sync_channel(AHEAD);
    let (emptied, empty) = sync_channel::<Vec<Event>>(AHEAD + 1);
    let read = move || {
        let mut told = 0;
        loop {
            let mut delivery = Delivery { events: empty.try_recv().unwrap_or_default(), ..Delivery::default() };
            let batch = reader.next_batch(&mut delivery.events);
            let damage = reader.damage();
            delivery.notes = damage[told..].iter().map(ToString::to_string).collect();
            delivery.damaged = damage[told..].iter().any(Damage::is_loss);
            told = damage.len();
            let (delivery, last) = match batch {
                Ok(Some(info)) => {
                    if info.missing > 0 {
                        delivery.events.insert(0, gap(*info.ts.start(), info.missing));
                    }
                    (Ok(delivery), false)
                }
                Ok(None) => {
                    if reader.more_damage() > 0 {
                        delivery.notes.push(format!("{} more flaws", reader.more_damage()));
                    }
                    (Ok(delivery), true)
                }
                Err(error) => (Err(error), true),
            };
            if deliver.send(delivery).is_err() || last {
                return;
            }
        }
    };
    thread::Builder::new().name("reader".to_owned()).spawn(read).context("cannot start the reader's thread")?;
    Ok((deliveries, emptied))
}

/// Missing rows are lost events to everyone downstream: folios that they may have been about become unknown.
fn gap(ts: u64, rows: u64) -> Event {
    Event { ts, cpu: 0, body: Body::Lost { cpu: NO_CPU, count: rows } }
}

impl Source for Recorded {
    fn header(&self) -> Arc<Header> {
        self.header.clone()
    }

    fn kind(&self) -> SourceKind {
        self.kind
    }

    fn name(&self) -> String {
        self.input.name()
    }

    fn fill(&mut self, out: &mut Vec<Event>, patience: Duration) -> Result<bool> {
        let mut delivery = match self.deliveries.recv_timeout(patience) {
            Ok(Ok(delivery)) => delivery,
            Ok(Err(error)) => return Err(anyhow!(error).context(format!("cannot read {}", self.name()))),
            Err(RecvTimeoutError::Timeout) => return Ok(true),
            // The last delivery has been taken.
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        };
        self.notes.append(&mut delivery.notes);
        self.damaged |= delivery.damaged;
        if out.is_empty() {
            std::mem::swap(out, &mut delivery.events);
        } else {
            out.append(&mut delivery.events);
        }
        delivery.events.clear();
        // A full channel or an ended reader has no use for it.
        let _ = self.emptied.try_send(delivery.events);
        Ok(true)
    }

    fn rewind(&mut self) -> Result<bool> {
        if self.kind == SourceKind::Pipe {
            return Ok(false);
        }
        let reader = Reader::new(self.input.open()?.read).with_context(|| self.name())?;
        (self.deliveries, self.emptied) = start(reader)?;
        self.notes.clear();
        Ok(true)
    }

    fn total_ns(&self) -> Option<u64> {
        Some(self.last_ts?.saturating_sub(self.header.start_boottime))
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn is_damaged(&self) -> bool {
        self.damaged
    }
}
