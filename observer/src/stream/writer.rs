//! Events to a recording.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::columns::Columns;
use super::encode::{self, BatchLabel, Encoder};
use super::event::Event;
use super::header::Header;
use super::rows;
use super::schema::{self, MAX_NAME, MAX_ROWS, MAX_VARIABLE};

/// Time between batches at most, if [`Writer::tick`] is called often enough.
pub const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// Writes a recording. What a returned call has flushed stays readable whatever happens later.
///
/// An error is returned once; later calls do nothing and succeed, so that shutting down says it no second time.
pub struct Writer<W: Write> {
    out: W,
    encoder: Encoder,
    columns: Columns,
    /// Smallest and largest `ts` of the open batch.
    ts: (u64, u64),
    header: String,
    sequence: u64,
    rows: u64,
    bytes: u64,
    interval: Duration,
    flushed: Option<Instant>,
    failed: bool,
}

impl<W: Write> Writer<W> {
    /// Starts a recording: writes the header.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        let json = schema::header_json(header)?;
        let message = encode::schema_message(&schema::schema(header, &json))?;
        out.write_all(&message)?;
        out.flush()?;
        Ok(Writer {
            out,
            encoder: Encoder::new()?,
            columns: Columns::new(),
            ts: (u64::MAX, 0),
            header: json,
            sequence: 0,
            rows: 0,
            bytes: message.len() as u64,
            interval: MAX_INTERVAL,
            flushed: None,
            failed: false,
        })
    }

    /// Writes batches more often than every second, for someone who watches at the other end of a pipe.
    pub fn with_interval(mut self, interval: Duration) -> Writer<W> {
        self.interval = interval.min(MAX_INTERVAL);
        self
    }

    /// Adds an event; writes a batch when it is full.
    pub fn push(&mut self, event: &Event) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        rows::append(&mut self.columns, event)?;
        self.ts = (self.ts.0.min(event.ts), self.ts.1.max(event.ts));
        if self.columns.rows() == MAX_ROWS || self.columns.variable_bytes() > MAX_VARIABLE - MAX_NAME {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is there if the last batch is older than the interval. To be called a few times per interval, events or not.
    pub fn tick(&mut self, now: Instant) -> io::Result<()> {
        let flushed = *self.flushed.get_or_insert(now);
        if now.saturating_duration_since(flushed) < self.interval {
            return Ok(());
        }
        self.flushed = Some(now);
        self.flush()
    }

    /// Writes what is there as a batch.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.failed || self.columns.rows() == 0 {
            return Ok(());
        }
        let label = BatchLabel {
            sequence: self.sequence,
            first_row: self.rows,
            ts: self.ts.0..=self.ts.1,
            header: (self.sequence == 0).then_some(self.header.as_str()),
        };
        let rows = self.columns.rows() as u64;
        let written = self.encoder.batch(&mut self.columns, &label).and_then(|message| {
            self.out.write_all(message)?;
            self.out.flush()?;
            Ok(message.len() as u64)
        });
        self.failed = written.is_err();
        self.bytes += written?;
        self.columns.clear();
        self.ts = (u64::MAX, 0);
        self.sequence += 1;
        self.rows += rows;
        Ok(())
    }

    /// Writes what is there and the end marker, and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        if !self.failed {
            self.out.write_all(&encode::end())?;
            self.out.flush()?;
        }
        Ok(self.out)
    }

    /// Rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.rows + self.columns.rows() as u64
    }

    /// Rows written so far: those of [`Writer::rows`] that are in a complete batch.
    pub fn written_rows(&self) -> u64 {
        self.rows
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
