//! Events into one recording, or into one file after another.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::names::Names;
use super::parts::{Limits, Parts};
use super::referee::Referee;
use crate::stream::header::Part;
use crate::stream::{Body, Event, Header, Writer};

/// Event time that one batch spans at most: what a killed recorder loses, however fast its events come.
const SPAN: u64 = 1_000_000_000;

/// One file after another.
pub struct Rotation {
    /// The files.
    pub parts: Parts,
    /// When the next begins.
    pub limits: Limits,
}

/// What is known about the files so far.
struct Files {
    rotation: Rotation,
    header: Header,
    run: u64,
    names: Names,
    /// CLOCK_BOOTTIME and CLOCK_REALTIME as last read together.
    clocks: (u64, u64),
    /// First and largest `ts` in the current file.
    span: Option<(u64, u64)>,
    /// Rows and bytes of the files before it.
    rows: u64,
    bytes: u64,
    count: u32,
}

/// Takes events.
pub(super) struct Sink {
    writer: Writer<Box<dyn Write>>,
    files: Option<Box<Files>>,
    /// `ts` of the open batch's first row.
    open_since: u64,
    before: Vec<Event>,
}

impl Sink {
    /// Into one output; batches are at most `interval` apart.
    pub(super) fn one(write: Box<dyn Write>, header: &Header, interval: Option<Duration>) -> io::Result<Sink> {
        let mut writer = Writer::new(write, header)?;
        if let Some(interval) = interval {
            writer = writer.with_interval(interval);
        }
        Ok(Sink { writer, files: None, open_since: 0, before: Vec::new() })
    }

    /// Into files.
    pub(super) fn many(mut rotation: Rotation, header: &Header) -> io::Result<Sink> {
        let run = header.start_boottime;
        let part = Part { run, number: 1, first_row: 0 };
        let header = Header { part: Some(part), ..header.clone() };
        let writer = rotation.parts.begin(&header)?;
        let clocks = (header.start_boottime, header.start_realtime);
        let files = Files { rotation, header, run, names: Names::new(), clocks, span: None, rows: 0, bytes: 0, count: 1 };
        Ok(Sink { writer, files: Some(Box::new(files)), open_since: 0, before: Vec::new() })
    }

    /// Adds an event; begins a new file before it when it is time, closing the old one with the referee's word.
    pub(super) fn push(&mut self, event: &Event, referee: Option<&Referee>) -> io::Result<()> {
        if self.files.as_ref().is_some_and(|files| files.is_due(event.ts, &self.writer)) {
            self.next_file(referee)?;
        }
        if let Some(files) = &mut self.files {
            files.names.pass(event, &mut self.before);
            if let Body::ClockSnapshot { boottime, realtime } = event.body {
                files.clocks = (boottime, realtime);
            }
            let (first, last) = files.span.unwrap_or((event.ts, event.ts));
            files.span = Some((first, last.max(event.ts)));
            for name in self.before.drain(..) {
                // Told before, in another file: its time is now.
                write(&mut self.writer, &mut self.open_since, &Event { ts: event.ts, ..name })?;
            }
        }
        write(&mut self.writer, &mut self.open_since, event)
    }

    fn next_file(&mut self, referee: Option<&Referee>) -> io::Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        for reading in referee.map(Referee::read).unwrap_or_default() {
            files.names.pass(&reading, &mut self.before);
            self.writer.push(&reading)?;
        }
        self.before.clear();
        self.writer.flush()?;
        let (boottime, realtime) = files.clocks;
        let now = files.span.map_or(boottime, |(_, last)| last);
        let part = Part { run: files.run, number: files.count + 1, first_row: files.rows + self.writer.written_rows() };
        files.header.start_boottime = now;
        files.header.start_realtime = realtime.saturating_add(now.saturating_sub(boottime));
        files.header.part = Some(part);
        let next = files.rotation.parts.begin(&files.header)?;
        (files.rows, files.count, files.span) = (part.first_row, part.number, None);
        files.bytes += self.writer.bytes();
        std::mem::replace(&mut self.writer, next).finish()?;
        for reading in files.names.next_file() {
            self.writer.push(&reading)?;
        }
        Ok(())
    }

    /// As [`Writer::tick`].
    pub(super) fn tick(&mut self, now: Instant) -> io::Result<()> {
        self.writer.tick(now)
    }

    /// As [`Writer::flush`].
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// As [`Writer::finish`].
    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish().map(drop)
    }

    /// Rows pushed, in all files.
    pub(super) fn rows(&self) -> u64 {
        self.writer.rows() + self.files.as_ref().map_or(0, |files| files.rows)
    }

    /// Rows written, in all files.
    pub(super) fn written_rows(&self) -> u64 {
        self.writer.written_rows() + self.files.as_ref().map_or(0, |files| files.rows)
    }

    /// Bytes written, in all files.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes() + self.files.as_ref().map_or(0, |files| files.bytes)
    }

    /// How many files were begun, and the last one's name; none for one output.
    pub(super) fn files(&self) -> Option<(u32, String)> {
        self.files.as_ref().map(|files| (files.count, files.rotation.parts.current().display().to_string()))
    }
}

impl Files {
    fn is_due(&self, ts: u64, writer: &Writer<Box<dyn Write>>) -> bool {
        let Limits { bytes, nanoseconds } = self.rotation.limits;
        let Some((first, _)) = self.span else { return false };
        writer.written_rows() > 0 && bytes.is_some_and(|bytes| writer.bytes() >= bytes)
            || nanoseconds.is_some_and(|nanoseconds| ts.saturating_sub(first) >= nanoseconds)
    }
}

fn write(writer: &mut Writer<Box<dyn Write>>, open_since: &mut u64, event: &Event) -> io::Result<()> {
    if writer.rows() == writer.written_rows() {
        *open_since = event.ts;
    } else if event.ts.saturating_sub(*open_since) >= SPAN {
        writer.flush()?;
        *open_since = event.ts;
    }
    writer.push(event)
}
