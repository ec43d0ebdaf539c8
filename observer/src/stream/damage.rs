//! What a recording lacks, in words.

use std::fmt;
use std::ops::Range;

/// The CPU of a `Body::Lost` that stands for missing rows: nobody knows whose they were.
pub const NO_CPU: u16 = u16::MAX;

/// What is wrong with a stretch of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The schema message is damaged; the copy in a batch was used.
    Header,
    /// One or more batches are damaged.
    Damaged {
        /// What was found.
        why: String,
    },
    /// The input ends inside a batch.
    Truncated,
    /// The input ends between batches, without the end marker: the recorder was killed.
    NotClosed,
    /// Something that is not part of the recording follows its end.
    Trailing,
    /// Rows of kinds that this version does not know.
    UnknownKinds {
        /// How many.
        rows: u64,
    },
}

/// One flaw of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What it is.
    pub what: What,
    /// Where in the input it was noticed, bytes.
    pub offset: u64,
    /// Numbers of the missing rows, as far as known; for a damaged end, from where on.
    pub rows: Range<u64>,
    /// Event time of the last row before and the first row after it, nanoseconds since the recording's start.
    pub time: (Option<u64>, Option<u64>),
}

impl Damage {
    /// Whether rows that were recorded are missing (a recorder that was killed is not counted).
    pub fn is_loss(&self) -> bool {
        matches!(self.what, What::Damaged { .. } | What::Truncated)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.rows;
        match &self.what {
            What::Header => write!(f, "the recording's header is damaged; its copy was used"),
            What::Damaged { why } => {
                if end > start {
                    write!(f, "rows {start} to {} are missing", end - 1)?;
                } else {
                    write!(f, "the rows from {start} on are missing")?;
                }
                match self.time {
                    (Some(after), Some(before)) => write!(f, " ({} to {})", Seconds(after), Seconds(before))?,
                    (Some(after), None) => write!(f, " (from {} on)", Seconds(after))?,
                    (None, Some(before)) => write!(f, " (before {})", Seconds(before))?,
                    (None, None) => {}
                }
                write!(f, ": the recording is damaged at byte {}: {why}", self.offset)
            }
            What::Truncated => write!(f, "the recording is cut off at byte {}; {}", self.offset, Complete(start, self.time.0)),
            What::NotClosed => write!(f, "the recording has no end marker (recorder killed?); {}", Complete(start, self.time.0)),
            What::Trailing => write!(f, "what follows the recording's end at byte {} is not part of it and was ignored", self.offset),
            What::UnknownKinds { rows } => write!(f, "{rows} rows are of kinds that this version of observer does not know"),
        }
    }
}

/// Nanoseconds since the start as people read them.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0 as f64 / 1e9)
    }
}

/// What was read before a bad end: number of rows, and time of the last.
struct Complete(u64, Option<u64>);

impl fmt::Display for Complete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Complete(0, _) => write!(f, "it holds no rows"),
            Complete(rows, None) => write!(f, "all {rows} rows before that are there"),
            Complete(rows, Some(time)) => write!(f, "all {rows} rows before that are there, up to {}", Seconds(time)),
        }
    }
}
