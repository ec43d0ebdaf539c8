//! Recordings to events.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::damage::{Damage, What};
use super::decode::Cells;
use super::encode::CONTINUATION;
use super::event::Event;
use super::header::{FORMAT, Header};
use super::message::{Bad, BatchMessage};
use super::rows;
use super::scan::{Found, Messages, Skipped};
use super::schema::{MAX_BODY, MAX_METADATA};

/// Bytes searched for a recording when the input does not start with one.
const SEARCH: u64 = 1 << 25;

/// Flaws listed at most; [`Reader::more_damage`] counts the rest.
const MAX_DAMAGE: usize = 100;

/// Why an input is not read at all.
#[derive(Debug)]
pub enum OpenError {
    /// It cannot be read.
    Io(io::Error),
    /// There is not a single byte.
    Empty,
    /// It is something else; says what, as far as known.
    NotARecording(&'static str),
    /// A newer observer wrote it, in this format.
    Newer(u32),
    /// It is a recording, but what it says of itself is lost.
    Header(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "{error}"),
            OpenError::Empty => f.write_str("the recording is empty: the recorder ended before it wrote anything"),
            OpenError::NotARecording(what) => write!(f, "not a recording: {what}"),
            OpenError::Newer(format) => {
                write!(f, "the recording has format {format}, this observer reads up to {FORMAT}: use a newer observer")
            }
            OpenError::Header(why) => write!(f, "the recording's header is damaged, nothing can be read: {why}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

/// A batch that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchInfo {
    /// Its number.
    pub sequence: u64,
    /// The numbers of its rows.
    pub rows: Range<u64>,
    /// Smallest and largest `ts`.
    pub ts: RangeInclusive<u64>,
    /// Rows missing between the batch before and this one.
    pub missing: u64,
}

/// Reads a recording batch by batch, as soon as a batch has arrived. Damage is passed over and noted.
pub struct Reader<R> {
    messages: Messages<R>,
    header: Arc<Header>,
    cells: Cells,
    /// The first batch, when it had to be read for the header's copy.
    pending: Option<Box<BatchMessage>>,
    /// A skipped stretch that the next batch must bound.
    open: Option<Skipped>,
    next_sequence: u64,
    next_row: u64,
    last_ts: Option<u64>,
    unknown_rows: u64,
    ended: bool,
    damage: Vec<Damage>,
    more_damage: u64,
}

impl<R: Read> Reader<R> {
    /// Reads what the recording says of itself.
    pub fn new(source: R) -> Result<Reader<R>, OpenError> {
        let mut messages = Messages::new(source);
        let start = messages.peek(8)?;
        let what = foreign_format(start);
        if start.is_empty() {
            return Err(OpenError::Empty);
        }
        messages.set_horizon(SEARCH);
        let mut first_flaw: Option<Skipped> = None;
        let (header, pending) = loop {
            let (found, skipped) = messages.next(0, true)?;
            if let (None, Some(skipped)) = (&first_flaw, skipped) {
                first_flaw = Some(skipped);
            }
            match found {
                Found::Schema { format, header } => break (parse_header(&format, &header)?, None),
                Found::Batch(mut batch) => {
                    if let Some(json) = batch.header.take() {
                        // Only writers of this format put copies into batches.
                        break (parse_header(&FORMAT.to_string(), &json)?, Some(batch));
                    }
                }
                Found::Closed | Found::End => return Err(refusal(what, first_flaw)),
            }
        };
        messages.set_horizon(u64::MAX);
        let mut reader = Reader {
            messages,
            header: Arc::new(header),
            cells: Cells::new()?,
            pending,
            open: None,
            next_sequence: 0,
            next_row: 0,
            last_ts: None,
            unknown_rows: 0,
            ended: false,
            damage: Vec::new(),
            more_damage: 0,
        };
        if let Some(flaw) = first_flaw {
            reader.note(What::Header, flaw.offset, 0..0, None);
        }
        Ok(reader)
    }

    /// What the recording says of itself.
    pub fn header(&self) -> Arc<Header> {
        self.header.clone()
    }

    /// Appends the next batch's events; `None` at the end. Blocks only until a whole batch has arrived.
    pub fn next_batch(&mut self, out: &mut Vec<Event>) -> io::Result<Option<BatchInfo>> {
        while !self.ended {
            let (found, skipped) = match self.pending.take() {
                Some(batch) => (Found::Batch(batch), None),
                None => self.messages.next(self.next_sequence, false)?,
            };
            if let (None, Some(skipped)) = (&self.open, skipped) {
                self.open = Some(skipped);
            }
            let Found::Batch(batch) = found else {
                self.end(matches!(found, Found::Closed));
                break;
            };
            if let Some(info) = self.load(batch, out) {
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    /// The flaws found so far, at most a hundred.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Flaws beyond those listed.
    pub fn more_damage(&self) -> u64 {
        self.more_damage
    }

    /// Rows read so far or known to be missing.
    pub fn rows(&self) -> u64 {
        self.next_row
    }

    /// Bytes of the input up to the end of the batch read last.
    pub fn position(&self) -> u64 {
        self.messages.end()
    }

    /// Unpacks a batch; `None` if that fails.
    fn load(&mut self, batch: Box<BatchMessage>, out: &mut Vec<Event>) -> Option<BatchInfo> {
        if batch.first_row < self.next_row {
            // Checksums are right, so it was written like that: these rows, or those before, are not what they say.
            let rows = self.next_row..self.next_row;
            self.note(What::Damaged { why: "its rows are numbered like others".to_owned() }, self.messages.offset(), rows, None);
            self.next_sequence = batch.sequence.saturating_add(1);
            return None;
        }
        let before = out.len();
        if let Err(invalid) = self.append(&batch, out) {
            out.truncate(before);
            let why = invalid.to_string();
            self.close_gap(&batch);
            let rows = batch.row_range();
            self.note(What::Damaged { why }, self.messages.offset(), rows.clone(), Some(*batch.ts.end()));
            self.advance(&batch);
            return None;
        }
        let missing = self.close_gap(&batch);
        self.advance(&batch);
        Some(BatchInfo { sequence: batch.sequence, rows: batch.row_range(), ts: batch.ts.clone(), missing })
    }

    fn append(&mut self, batch: &BatchMessage, out: &mut Vec<Event>) -> Result<(), super::decode::Invalid> {
        self.cells.load(batch, self.messages.body())?;
        out.reserve(batch.rows);
        let mut unknown = 0;
        for row in 0..batch.rows {
            match rows::event(&self.cells, row)? {
                Some(event) => out.push(event),
                None => unknown += 1,
            }
        }
        self.unknown_rows += unknown;
        Ok(())
    }

    /// Notes what is missing before `batch`; returns how many rows.
    fn close_gap(&mut self, batch: &BatchMessage) -> u64 {
        let missing = self.next_row..batch.first_row;
        let skipped = self.open.take();
        if let Some(skipped) = &skipped {
            self.note(What::Damaged { why: skipped.why.to_string() }, skipped.offset, missing.clone(), Some(*batch.ts.start()));
        } else if !missing.is_empty() {
            let why = "batches are missing between two sound ones".to_owned();
            self.note(What::Damaged { why }, self.messages.offset(), missing.clone(), Some(*batch.ts.start()));
        }
        missing.end.saturating_sub(missing.start)
    }

    fn advance(&mut self, batch: &BatchMessage) {
        self.next_sequence = batch.sequence.saturating_add(1);
        self.next_row = batch.row_range().end;
        self.last_ts = Some(*batch.ts.end());
    }

    /// Notes how the recording ended.
    fn end(&mut self, closed: bool) {
        self.ended = true;
        let rows = self.next_row..self.next_row;
        match self.open.take() {
            Some(Skipped { offset, after_end: true, .. } | Skipped { offset, why: Bad::OtherRecording, .. }) => {
                self.note(What::Trailing, offset, rows, None);
            }
            // Cut batches can end in what looks like an end marker.
            Some(Skipped { offset, cut: true, .. }) => self.note(What::Truncated, offset, rows, None),
            Some(skipped) => {
                let end = skipped.batch.map_or(self.next_row, |batch| batch.row_range().end);
                self.note(What::Damaged { why: skipped.why.to_string() }, skipped.offset, self.next_row..end, None);
            }
            None if !closed => self.note(What::NotClosed, self.messages.offset(), rows, None),
            None => {}
        }
        if self.unknown_rows > 0 {
            let what = What::UnknownKinds { rows: self.unknown_rows };
            self.note(what, self.messages.offset(), self.next_row..self.next_row, None);
        }
    }

    fn note(&mut self, what: What, offset: u64, rows: Range<u64>, before: Option<u64>) {
        if self.damage.len() == MAX_DAMAGE {
            self.more_damage += 1;
            return;
        }
        let since_start = |ts: u64| ts.saturating_sub(self.header.start_boottime);
        let time = (self.last_ts.map(since_start), before.map(since_start));
        self.damage.push(Damage { what, offset, rows, time });
    }
}

/// The largest `ts` of a recording's last sound batch, found without reading what is before it; leaves the position anywhere.
pub fn last_ts(recording: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let len = recording.seek(SeekFrom::End(0))?;
    // Whatever the last batch is, it begins within its greatest length; twice that, in case the last one is damaged.
    let tail = 2 * (MAX_METADATA + MAX_BODY) as u64;
    recording.seek(SeekFrom::Start(len.saturating_sub(tail)))?;
    let mut messages = Messages::new(recording);
    let mut last = None;
    loop {
        match messages.next(0, true)?.0 {
            Found::Batch(batch) => last = last.max(Some(*batch.ts.end())),
            Found::Schema { .. } => {}
            Found::Closed | Found::End => return Ok(last),
        }
    }
}

/// The header of any format that was ever written, as this version has it.
fn parse_header(format: &str, json: &str) -> Result<Header, OpenError> {
    match format.parse::<u32>() {
        // The first format. When the header or the columns change, the older ones are read and upgraded here, by number.
        Ok(1) => serde_json::from_str(json).map_err(|error| OpenError::Header(error.to_string())),
        Ok(format) if format > FORMAT => Err(OpenError::Newer(format)),
        _ => Err(OpenError::Header(format!("{format:?} is not a format"))),
    }
}

/// What to say of an input without a recording in it.
fn refusal(what: Option<&'static str>, flaw: Option<Skipped>) -> OpenError {
    if let Some(what) = what {
        return OpenError::NotARecording(what);
    }
    match flaw {
        Some(Skipped { why: Bad::Foreign, .. }) => OpenError::NotARecording("an Arrow stream that observer did not write"),
        Some(Skipped { offset: 0, cut: true, .. }) => OpenError::Header("the recording is cut off within it".to_owned()),
        Some(Skipped { offset: 0, why: Bad::Checksum, .. }) => OpenError::Header(Bad::Checksum.to_string()),
        _ => OpenError::NotARecording("it does not start as one (observer record writes .arrows files)"),
    }
}

/// Names what people mistake for a recording, by its first bytes.
fn foreign_format(start: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 5] = [
        (b"ARROW1", "an Arrow file, where an Arrow stream is expected"),
        (b"PAR1", "a Parquet file (observer export writes those, it does not read them)"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "compressed by zstd: unpack it first (zstd -dc FILE | observer replay -)"),
        (&[0x1f, 0x8b], "compressed by gzip: unpack it first (zcat FILE | observer replay -)"),
        (b"\xfd7zXZ", "compressed by xz: unpack it first (xzcat FILE | observer replay -)"),
    ];
    let known = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)).map(|&(_, what)| what);
    // Even cut off within its first bytes a recording starts like one.
    let marker = start.iter().zip(CONTINUATION).all(|(&byte, wanted)| byte == wanted);
    known.or((start.len() < 8 && !marker).then_some("it is a few bytes of something else"))
}
