//! From bytes to checked messages, and back into step after damage.
//!
//! A message is believed only when its checksum matches. Where that fails, the scan goes on at the next byte that could
//! start a message; what a hostile input can make it check again and again is bounded by [`Messages::affordable`].

use std::io::{self, Read};

use super::encode::CONTINUATION;
use super::message::{self, Bad, BatchMessage, Checked};
use super::schema::{MAX_BODY, MAX_METADATA};

/// Bytes asked of the source at once.
const CHUNK: usize = 1 << 16;

/// Length of a message's prefix: continuation and metadata length.
const PREFIX: usize = 8;

/// Bytes that failed checks may cost beyond eight times the input.
const CHECK_ALLOWANCE: u64 = 1 << 26;

/// What was skipped to find the next message.
#[derive(Debug)]
pub(crate) struct Skipped {
    /// Where in the input it began.
    pub(crate) offset: u64,
    /// What was wrong there.
    pub(crate) why: Bad,
    /// Whether the input ended where more was announced.
    pub(crate) cut: bool,
    /// Whether it followed an end marker.
    pub(crate) after_end: bool,
    /// The skipped batch's own words, if only its body is damaged.
    pub(crate) batch: Option<Box<BatchMessage>>,
}

/// What the scan came to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A schema message.
    Schema {
        /// Format version.
        format: String,
        /// The header's JSON.
        header: String,
    },
    /// A batch; [`Messages::body`] has its body until the next call.
    Batch(Box<BatchMessage>),
    /// The end marker, and nothing after it.
    Closed,
    /// The input's end without a marker.
    End,
}

/// What lies at the current position.
enum Attempt {
    Schema { format: String, header: String, len: usize },
    Batch(Box<BatchMessage>, usize),
    EndMarker,
    Nothing,
    Bad { why: Bad, cut: bool, batch: Option<(Box<BatchMessage>, usize)> },
}

impl Attempt {
    fn bad(why: Bad) -> Attempt {
        Attempt::Bad { why, cut: false, batch: None }
    }

    fn cut() -> Attempt {
        Attempt::Bad { why: Bad::Shape("it is cut off"), cut: true, batch: None }
    }
}

/// The messages of an input.
#[derive(Debug)]
pub(crate) struct Messages<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in `buffer` the current position is.
    start: usize,
    /// Where in the input the current position is.
    offset: u64,
    at_end: bool,
    /// Length of the current message, which the next call passes, and where in it the body begins.
    current: usize,
    body: usize,
    /// Bytes checked in vain.
    wasted: u64,
    /// Offset at which a search ends.
    horizon: u64,
}

impl<R: Read> Messages<R> {
    /// The messages of `source`.
    pub(crate) fn new(source: R) -> Messages<R> {
        let buffer = Vec::new();
        Messages { source, buffer, start: 0, offset: 0, at_end: false, current: 0, body: 0, wasted: 0, horizon: u64::MAX }
    }

    /// Lets searches end at that offset of the input.
    pub(crate) fn set_horizon(&mut self, offset: u64) {
        self.horizon = offset;
    }

    /// Where in the input the current message begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where in the input the current message ends.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.current as u64
    }

    /// The input's first bytes, at most so many.
    pub(crate) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        self.need(bytes)?;
        let available = self.available();
        Ok(&available[..bytes.min(available.len())])
    }

    /// The body of the batch found last.
    pub(crate) fn body(&self) -> &[u8] {
        &self.buffer[self.start + self.body..self.start + self.current]
    }

    /// The next message; of batches only those numbered `sequence` or higher. Says what it had to skip.
    pub(crate) fn next(&mut self, sequence: u64, schema_wanted: bool) -> io::Result<(Found, Option<Skipped>)> {
        self.consume(self.current);
        (self.current, self.body) = (0, 0);
        let mut skipped: Option<Skipped> = None;
        loop {
            let offset = self.offset;
            // What the attempt proves wrong, and how far to go on.
            let (bad, pass) = match self.attempt(skipped.is_some())? {
                Attempt::Schema { format, header, len } if schema_wanted => {
                    self.current = len;
                    return Ok((Found::Schema { format, header }, skipped));
                }
                Attempt::Batch(batch, len) if batch.sequence >= sequence => {
                    (self.current, self.body) = (len, len - batch.body_len);
                    return Ok((Found::Batch(batch), skipped));
                }
                // A second recording behind the first: sound, but not ours.
                Attempt::Schema { len, .. } | Attempt::Batch(_, len) => {
                    (Skipped { offset, why: Bad::OtherRecording, cut: false, after_end: false, batch: None }, len)
                }
                Attempt::EndMarker if !self.need(PREFIX + 1)? => {
                    self.consume(PREFIX);
                    return Ok((Found::Closed, skipped));
                }
                Attempt::EndMarker => {
                    (Skipped { offset, why: Bad::Shape("data follow the end marker"), cut: false, after_end: true, batch: None }, PREFIX)
                }
                Attempt::Nothing => return Ok((Found::End, skipped)),
                Attempt::Bad { why, cut, batch } => {
                    let whole = batch.as_ref().map(|(_, len)| *len);
                    let pass = match whole {
                        Some(len) if !cut && (self.boundary_at(len)? || !self.affordable()) => len,
                        _ => 1,
                    };
                    (Skipped { offset, why, cut, after_end: false, batch: batch.map(|(batch, _)| batch) }, pass)
                }
            };
            skipped.get_or_insert(bad);
            self.consume(pass);
            if !self.seek_continuation()? {
                return Ok((Found::End, skipped));
            }
        }
    }

    /// Tries to read a message at the current position, without passing it.
    fn attempt(&mut self, searching: bool) -> io::Result<Attempt> {
        if !self.need(PREFIX)? {
            return Ok(if self.available().is_empty() { Attempt::Nothing } else { Attempt::cut() });
        }
        let (prefix, _) = self.available().split_at(PREFIX);
        let (continuation, length) = prefix.split_at(4);
        if continuation != CONTINUATION {
            return Ok(Attempt::bad(Bad::Shape("no message starts where one should")));
        }
        let metadata = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
        if metadata == 0 {
            return Ok(Attempt::EndMarker);
        }
        if metadata > MAX_METADATA || metadata % 8 != 0 || searching && !self.affordable() {
            return Ok(Attempt::bad(Bad::Shape("its length is out of bounds")));
        }
        let body = PREFIX + metadata;
        if !self.need(body)? {
            return Ok(Attempt::cut());
        }
        let batch = match message::check(&self.available()[PREFIX..body]) {
            Ok(Checked::Schema { format, header }) => return Ok(Attempt::Schema { format, header, len: body }),
            Ok(Checked::Batch(batch)) => batch,
            Err(why) => {
                self.wasted += metadata as u64;
                return Ok(Attempt::bad(why));
            }
        };
        let len = body + batch.body_len;
        if !self.need(len)? {
            return Ok(Attempt::Bad { why: Bad::Shape("it is cut off"), cut: true, batch: Some((batch, len)) });
        }
        if crc32fast::hash(&self.available()[body..len]) == batch.body_crc {
            return Ok(Attempt::Batch(batch, len));
        }
        self.wasted += batch.body_len as u64;
        Ok(Attempt::Bad { why: Bad::Checksum, cut: false, batch: Some((batch, len)) })
    }

    /// Bytes checked in vain so far, and how many may have been.
    #[cfg(test)]
    pub(crate) fn work(&self) -> (u64, u64) {
        (self.wasted, CHECK_ALLOWANCE + 8 * self.offset + MAX_BODY as u64)
    }

    /// Whether another check in vain still leaves the work linear in the input.
    fn affordable(&self) -> bool {
        self.wasted <= CHECK_ALLOWANCE + 8 * self.offset
    }

    /// Whether a message, or the input's end, is at that distance.
    fn boundary_at(&mut self, distance: usize) -> io::Result<bool> {
        if self.need(distance + CONTINUATION.len())? {
            return Ok(self.available()[distance..].starts_with(&CONTINUATION));
        }
        Ok(self.available().len() <= distance)
    }

    /// Goes on to the next bytes that can start a message; false when there are none before the end or the horizon.
    fn seek_continuation(&mut self) -> io::Result<bool> {
        while self.offset < self.horizon {
            let available = self.available();
            if let Some(distance) = available.windows(CONTINUATION.len()).position(|window| window == CONTINUATION) {
                self.consume(distance);
                return Ok(true);
            }
            // The last three bytes may begin one.
            self.consume(available.len().saturating_sub(CONTINUATION.len() - 1));
            if !self.more()? {
                self.consume(self.available().len());
                return Ok(false);
            }
        }
        Ok(false)
    }

    fn available(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.available().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads until so many bytes are available; false when the input ends before.
    fn need(&mut self, bytes: usize) -> io::Result<bool> {
        debug_assert!(bytes <= PREFIX + MAX_METADATA + MAX_BODY + PREFIX);
        while self.available().len() < bytes {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads what the source has, at most a chunk; false at its end. The buffer grows by what arrives, never by what is announced.
    fn more(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        self.at_end = read? == 0;
        Ok(!self.at_end)
    }
}
