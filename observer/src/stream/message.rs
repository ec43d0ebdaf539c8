//! A message's metadata, checked before anything in it is believed.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use arrow_ipc::{BodyCompressionMethod, CompressionType, KeyValue, Message, MessageHeader, MetadataVersion, root_as_message_with_opts};
use flatbuffers::{ForwardsUOffset, Vector, VerifierOptions};

use super::schema::{
    Cell, Col, KEY_BODY_CRC, KEY_CRC, KEY_FIRST_ROW, KEY_FIRST_TS, KEY_FORMAT, KEY_HEADER, KEY_LAST_TS, KEY_SEQUENCE, MAX_BODY,
    MAX_METADATA, MAX_ROWS, NO_CRC,
};

/// Flatbuffer limits: a schema message of ours has about two hundred tables, a few levels deep.
const VERIFIER: VerifierOptions =
    VerifierOptions { max_depth: 16, max_tables: 4096, max_apparent_size: 4 * MAX_METADATA, ignore_missing_null_terminator: false };

/// Nodes of a batch: one per column, one for the list's entries.
pub(crate) const NODES: usize = Col::COUNT + 1;

/// Buffers of a batch.
pub(crate) const BUFFERS: usize = {
    let mut buffers = 0;
    let mut col = 0;
    while col < Col::COUNT {
        buffers += match Col::ALL[col].cell() {
            Cell::Uint(_) => 2,
            Cell::Utf8 => 3,
            Cell::List => 4,
        };
        col += 1;
    }
    buffers
};

/// Why bytes are not a message of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// No flatbuffer, or not of this shape.
    Shape(&'static str),
    /// Its checksum is wrong.
    Checksum,
    /// Arrow, but without our keys.
    Foreign,
    /// Sound, but numbered as in another recording.
    OtherRecording,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::Shape(what) => f.write_str(what),
            Bad::Checksum => f.write_str("its checksum does not match"),
            Bad::Foreign => f.write_str("it was not written by observer"),
            Bad::OtherRecording => f.write_str("it belongs to another recording"),
        }
    }
}

impl std::error::Error for Bad {}

/// A checked message.
#[derive(Debug)]
pub(crate) enum Checked {
    /// The first message: what the recording says of itself.
    Schema {
        /// Format version.
        format: String,
        /// The header's JSON.
        header: String,
    },
    /// A batch; its body is not read yet.
    Batch(Box<BatchMessage>),
}

/// A batch's metadata.
#[derive(Debug)]
pub(crate) struct BatchMessage {
    /// Its number.
    pub(crate) sequence: u64,
    /// The number of its first row.
    pub(crate) first_row: u64,
    /// Its rows.
    pub(crate) rows: usize,
    /// Smallest and largest `ts`.
    pub(crate) ts: RangeInclusive<u64>,
    /// Checksum of the body.
    pub(crate) body_crc: u32,
    /// Length of the body.
    pub(crate) body_len: usize,
    /// Length and nulls of each node.
    pub(crate) nodes: [(usize, usize); NODES],
    /// Where in the body each buffer lies; within `body_len`.
    pub(crate) buffers: [(usize, usize); BUFFERS],
    /// The header's JSON, in batches that carry a copy.
    pub(crate) header: Option<String>,
}

impl BatchMessage {
    /// Numbers of its rows.
    pub(crate) fn row_range(&self) -> Range<u64> {
        self.first_row..self.first_row.saturating_add(self.rows as u64)
    }
}

type Entries<'a> = Vector<'a, ForwardsUOffset<KeyValue<'a>>>;

/// Checks a message's metadata: shape, checksum and limits.
pub(crate) fn check(metadata: &[u8]) -> Result<Checked, Bad> {
    let message = verified(metadata)?;
    let digits = crc_digits(metadata)?;
    let said = metadata.get(digits.clone()).and_then(hex).ok_or(Bad::Shape("its checksum is not a number"))?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&metadata[..digits.start]);
    crc.update(NO_CRC.as_bytes());
    crc.update(&metadata[digits.end..]);
    if crc.finalize() != said {
        return Err(Bad::Checksum);
    }
    match message.header_type() {
        MessageHeader::Schema => schema(&message),
        MessageHeader::RecordBatch => batch(&message).map(|batch| Checked::Batch(Box::new(batch))),
        _ => Err(Bad::Shape("it is neither a schema nor a batch")),
    }
}

/// Where the digits of [`KEY_CRC`] are in a message's metadata.
pub(crate) fn crc_digits(metadata: &[u8]) -> Result<Range<usize>, Bad> {
    digits_of(&verified(metadata)?, metadata, KEY_CRC)
}

/// Where the digits of [`KEY_BODY_CRC`] are, and how long the body is; `None` where the message has no body to check.
pub(crate) fn body_crc_digits(metadata: &[u8]) -> Option<(Range<usize>, usize)> {
    let message = verified(metadata).ok()?;
    let digits = digits_of(&message, metadata, KEY_BODY_CRC).ok()?;
    Some((digits, bounded(message.bodyLength(), MAX_BODY)?))
}

fn digits_of(message: &Message<'_>, metadata: &[u8], key: &str) -> Result<Range<usize>, Bad> {
    let value = match message.header_type() {
        MessageHeader::Schema => get(message.header_as_schema().and_then(|schema| schema.custom_metadata()), key),
        _ => get(message.custom_metadata(), key),
    };
    let value = value.ok_or(Bad::Foreign)?;
    // Both are slices of the same allocation: the difference is the value's place in it.
    let start = value.as_ptr() as usize - metadata.as_ptr() as usize;
    if value.len() == NO_CRC.len() { Ok(start..start + value.len()) } else { Err(Bad::Shape("its checksum has the wrong length")) }
}

fn verified(metadata: &[u8]) -> Result<Message<'_>, Bad> {
    let message = root_as_message_with_opts(&VERIFIER, metadata).map_err(|_| Bad::Shape("it is not an Arrow message"))?;
    if message.version() == MetadataVersion::V5 { Ok(message) } else { Err(Bad::Shape("it is of another Arrow version")) }
}

fn get<'a>(entries: Option<Entries<'a>>, key: &str) -> Option<&'a str> {
    entries?.iter().find(|entry| entry.key() == Some(key))?.value()
}

fn schema(message: &Message<'_>) -> Result<Checked, Bad> {
    let schema = message.header_as_schema().ok_or(Bad::Shape("it has no schema"))?;
    let metadata = schema.custom_metadata();
    let format = get(metadata, KEY_FORMAT).ok_or(Bad::Foreign)?;
    let header = get(metadata, KEY_HEADER).ok_or(Bad::Foreign)?;
    Ok(Checked::Schema { format: format.to_owned(), header: header.to_owned() })
}

fn batch(message: &Message<'_>) -> Result<BatchMessage, Bad> {
    let batch = message.header_as_record_batch().ok_or(Bad::Shape("it has no batch"))?;
    let entries = message.custom_metadata();
    let number = |key| get(entries, key).and_then(|value| value.parse::<u64>().ok()).ok_or(Bad::Foreign);
    let body_crc = get(entries, KEY_BODY_CRC).and_then(|digits| hex(digits.as_bytes())).ok_or(Bad::Foreign)?;

    let compression = batch.compression().ok_or(Bad::Shape("it is not compressed"))?;
    if compression.codec() != CompressionType::ZSTD || compression.method() != BodyCompressionMethod::BUFFER {
        return Err(Bad::Shape("it is compressed another way"));
    }
    let body_len = bounded(message.bodyLength(), MAX_BODY).ok_or(Bad::Shape("its body is too long"))?;
    let rows = bounded(batch.length(), MAX_ROWS).filter(|&rows| rows > 0).ok_or(Bad::Shape("its number of rows is out of bounds"))?;
    let first_row = number(KEY_FIRST_ROW)?;
    first_row.checked_add(rows as u64).ok_or(Bad::Shape("its rows' numbers are out of bounds"))?;

    let mut nodes = [(0, 0); NODES];
    let stored = batch.nodes().filter(|stored| stored.len() == NODES).ok_or(Bad::Shape("it has other columns"))?;
    for (node, stored) in nodes.iter_mut().zip(stored.iter()) {
        let length = bounded(stored.length(), MAX_BODY);
        let nulls = bounded(stored.null_count(), rows);
        *node = length.zip(nulls).ok_or(Bad::Shape("a column's length is out of bounds"))?;
    }
    let mut buffers = [(0, 0); BUFFERS];
    let stored = batch.buffers().filter(|stored| stored.len() == BUFFERS).ok_or(Bad::Shape("it has other columns"))?;
    for (buffer, stored) in buffers.iter_mut().zip(stored.iter()) {
        let place = bounded(stored.offset(), body_len).zip(bounded(stored.length(), body_len));
        *buffer = place.filter(|(start, len)| start + len <= body_len).ok_or(Bad::Shape("a column lies outside of it"))?;
    }
    Ok(BatchMessage {
        sequence: number(KEY_SEQUENCE)?,
        first_row,
        rows,
        ts: number(KEY_FIRST_TS)?..=number(KEY_LAST_TS)?,
        body_crc,
        body_len,
        nodes,
        buffers,
        header: get(entries, KEY_HEADER).map(str::to_owned),
    })
}

/// A length that is not negative and at most `limit`.
fn bounded(length: i64, limit: usize) -> Option<usize> {
    usize::try_from(length).ok().filter(|&length| length <= limit)
}

/// Eight hexadecimal digits as the writer has them: capitals would be a flipped bit.
fn hex(digits: &[u8]) -> Option<u32> {
    if digits.len() != 8 || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
