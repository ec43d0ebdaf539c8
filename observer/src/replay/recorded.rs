//! A recording as a source: read and unpacked by its own thread, a bounded distance ahead.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::series::{self, Series, Step};
use super::source::Source;
use crate::exit::{Code, Failure};
use crate::session::frame::SourceKind;
use crate::stream::damage::NO_CPU;
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

/// Opened, not read yet: from here on nothing needs a permission any more.
#[derive(Clone)]
pub(super) struct Opened {
    /// What to call it.
    pub(super) name: String,
    kind: SourceKind,
    place: Place,
}

/// Where it is read.
#[derive(Clone)]
enum Place {
    Bytes(&'static [u8]),
    Stdin,
    /// Read from wherever it stands.
    Pipe(Arc<File>),
    /// Read from any place, by several readers.
    File(Arc<File>),
}

/// A file and where its reader is; others have their own places.
struct At(Arc<File>, u64);

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

impl Seek for At {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let base = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.1.checked_add_signed(by),
            SeekFrom::End(by) => self.0.metadata()?.len().checked_add_signed(by),
        };
        self.1 = base.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.1)
    }
}

impl Opened {
    /// Reads it from its start.
    pub(super) fn read(&self) -> Box<dyn Read + Send> {
        match &self.place {
            Place::Bytes(bytes) => Box::new(*bytes),
            Place::Stdin => Box::new(io::stdin()),
            Place::Pipe(file) => Box::new(Stream(Arc::clone(file))),
            Place::File(file) => Box::new(At(Arc::clone(file), 0)),
        }
    }

    fn last_ts(&self) -> Result<Option<u64>> {
        let last = match &self.place {
            Place::Bytes(bytes) => reader::last_ts(&mut Cursor::new(bytes)),
            Place::File(file) => reader::last_ts(&mut At(Arc::clone(file), 0)),
            Place::Stdin | Place::Pipe(_) => Ok(None),
        };
        last.with_context(|| format!("cannot read {}", self.name))
    }

    /// Whether it is a file, which can be read more than once.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }
}

/// A pipe.
struct Stream(Arc<File>);

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Input {
    /// `-` is standard input, everything else a file.
    pub fn from_argument(argument: PathBuf) -> Input {
        if argument.as_os_str() == "-" { Input::Stdin } else { Input::File(argument) }
    }

    fn open(&self) -> Result<Opened> {
        let name = match self {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "standard input".to_owned(),
            Input::Embedded(_) => "embedded recording".to_owned(),
        };
        let (kind, place) = match self {
            Input::Embedded(bytes) => (SourceKind::Embedded, Place::Bytes(bytes)),
            Input::Stdin if io::stdin().is_terminal() => {
                let line = "standard input is a terminal: pipe a recording into it (ssh box sudo observer record -o - | observer replay -)";
                return Err(Failure::new(Code::Usage, line).into());
            }
            Input::Stdin => (SourceKind::Pipe, Place::Stdin),
            Input::File(path) => {
                let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    bail!("{name} is a directory: give the recording itself");
                }
                match metadata.is_file() {
                    true => (SourceKind::Recording, Place::File(Arc::new(file))),
                    false => (SourceKind::Pipe, Place::Pipe(Arc::new(file))),
                }
            }
        };
        Ok(Opened { name, kind, place })
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
    /// Its files in order, at least one.
    files: Vec<Opened>,
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
        Inputs::open(&[input])?.read()
    }
}

/// Recordings that are open and not read yet.
pub struct Inputs(Vec<Opened>);

impl Inputs {
    /// Opens one, or the files of one.
    ///
    /// # Errors
    /// One line that says why.
    pub fn open(inputs: &[Input]) -> Result<Inputs> {
        inputs.iter().map(Input::open).collect::<Result<_>>().map(Inputs)
    }

    /// Begins to read; for a pipe this waits for its header. Files may stand in any order.
    ///
    /// # Errors
    /// As [`Recorded::open`], or when the files do not belong together.
    pub fn read(self) -> Result<Recorded> {
        let files = series::sort(self.0)?;
        let [first, rest @ ..] = files.as_slice() else { bail!("no recording is given") };
        let last_ts = rest.last().unwrap_or(first).last_ts()?;
        let reader = Reader::new(first.read()).with_context(|| first.name.clone())?;
        let (header, kind) = (reader.header(), first.kind);
        let (deliveries, emptied) = start(Series::new(reader, first.name.clone(), rest.iter().cloned()))?;
        Ok(Recorded { files, kind, header, last_ts, deliveries, emptied, notes: Vec::new(), damaged: false })
    }
}

type Channels = (Receiver<io::Result<Delivery>>, SyncSender<Vec<Event>>);

/// Starts the reader's thread, which ends when nobody takes its deliveries any more.
fn start(mut series: Series) -> Result<Channels> {
    let (deliver, deliveries) = sync_channel(AHEAD);
    let (emptied, empty) = sync_channel::<Vec<Event>>(AHEAD + 1);
    let read = move || {
        loop {
            let mut events = empty.try_recv().unwrap_or_default();
            let (delivery, last) = match series.next(&mut events) {
                Ok(Step { gap: missing, notes, damaged, ended }) => {
                    if let Some((ts, rows)) = missing {
                        events.insert(0, gap(ts, rows));
                    }
                    (Ok(Delivery { events, notes, damaged }), ended)
                }
                Err(error) => (Err(series::into_io(error)), true),
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
        let first = self.files.first().map(|file| file.name.clone()).unwrap_or_default();
        match self.files.len() {
            1 => first,
            files => format!("{first} and {} more", files - 1),
        }
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
        let [first, rest @ ..] = self.files.as_slice() else { return Ok(false) };
        let reader = Reader::new(first.read()).with_context(|| first.name.clone())?;
        (self.deliveries, self.emptied) = start(Series::new(reader, first.name.clone(), rest.iter().cloned()))?;
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
