//! Columns to one Arrow IPC message.
//!
//! arrow-ipc's own writer cannot put metadata on a record batch, and that is where the sequence number and the checksums
//! belong: other readers skip them, and no row or column is spent. So the message is built here, on arrow-ipc's
//! flatbuffer types; the tests read it back with arrow-ipc's own reader.

use std::io;
use std::ops::RangeInclusive;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{
    BodyCompressionBuilder, BodyCompressionMethod, Buffer, CompressionType, FieldNode, KeyValue, KeyValueBuilder, MessageBuilder,
    MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use arrow_schema::Schema;
use flatbuffers::{FlatBufferBuilder, WIPOffset};

use super::columns::Columns;
use super::message;
use super::schema::{
    Cell, Col, KEY_BODY_CRC, KEY_CRC, KEY_FIRST_ROW, KEY_FIRST_TS, KEY_HEADER, KEY_LAST_TS, KEY_SEQUENCE, MAX_METADATA, MAX_ROWS, NO_CRC,
};

/// zstd's level for full batches; "Why this encoding" in recording-format.md has the figures.
const LEVEL: i32 = 3;

/// Its level for a batch that time ended before it was full: a stream that slow leaves the time for it.
const SLOW_STREAM_LEVEL: i32 = 6;

/// What starts every message.
pub(crate) const CONTINUATION: [u8; 4] = [0xff; 4];

/// A buffer's length prefix that says it is not compressed.
pub(crate) const NOT_COMPRESSED: i64 = -1;

/// What a batch says of itself.
#[derive(Clone, Debug)]
pub(crate) struct BatchLabel<'a> {
    /// Its number.
    pub(crate) sequence: u64,
    /// The number of its first row.
    pub(crate) first_row: u64,
    /// Smallest and largest `ts`.
    pub(crate) ts: RangeInclusive<u64>,
    /// A copy of the header, so that it survives damage to the schema message.
    pub(crate) header: Option<&'a str>,
}

/// Builds messages, keeping its memory between them.
pub(crate) struct Encoder {
    zstd: zstd::bulk::Compressor<'static>,
    compressed: Vec<u8>,
    body: Vec<u8>,
    message: Vec<u8>,
}

impl Encoder {
    /// An encoder.
    pub(crate) fn new() -> io::Result<Encoder> {
        let zstd = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(Encoder { zstd, compressed: Vec::new(), body: Vec::new(), message: Vec::new() })
    }

    /// One batch, ready to be written.
    pub(crate) fn batch(&mut self, columns: &mut Columns, label: &BatchLabel<'_>) -> io::Result<&[u8]> {
        self.body.clear();
        self.zstd.set_compression_level(if columns.rows() < MAX_ROWS { SLOW_STREAM_LEVEL } else { LEVEL })?;
        let rows = columns.rows() as i64;
        let mut nodes = Vec::with_capacity(Col::COUNT + 1);
        let mut buffers = Vec::with_capacity(3 * Col::COUNT);
        for (&col, column) in Col::ALL.iter().zip(columns.complete()) {
            nodes.push(FieldNode::new(rows, column.nulls() as i64));
            buffers.push(self.buffer(column.validity())?);
            match col.cell() {
                Cell::Uint(_) => {}
                Cell::Utf8 => buffers.push(self.buffer(column.offsets())?),
                Cell::List => {
                    buffers.push(self.buffer(column.offsets())?);
                    nodes.push(FieldNode::new((column.data().len() / 8) as i64, 0));
                    buffers.push(self.buffer(&[])?);
                }
            }
            buffers.push(self.buffer(column.data())?);
        }
        let metadata = batch_metadata(rows, &nodes, &buffers, &self.body, label);
        frame(&mut self.message, metadata)?;
        self.message.extend_from_slice(&self.body);
        Ok(&self.message)
    }

    /// Appends a buffer to the body, compressed if that makes it smaller.
    fn buffer(&mut self, content: &[u8]) -> io::Result<Buffer> {
        let start = self.body.len();
        if !content.is_empty() {
            self.compressed.clear();
            self.compressed.reserve(zstd::zstd_safe::compress_bound(content.len()));
            self.zstd.compress_to_buffer(content, &mut self.compressed)?;
            let (length, stored) = if self.compressed.len() < content.len() {
                (content.len() as i64, self.compressed.as_slice())
            } else {
                (NOT_COMPRESSED, content)
            };
            self.body.extend_from_slice(&length.to_le_bytes());
            self.body.extend_from_slice(stored);
        }
        let length = self.body.len() - start;
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        Ok(Buffer::new(start as i64, length as i64))
    }
}

/// The schema message, ready to be written.
pub(crate) fn schema_message(schema: &Schema) -> io::Result<Vec<u8>> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(true);
    let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options);
    let mut message = Vec::new();
    frame(&mut message, encoded.ipc_message)?;
    Ok(message)
}

/// The end-of-stream marker.
pub(crate) fn end() -> [u8; 8] {
    let mut marker = [0; 8];
    marker[..4].copy_from_slice(&CONTINUATION);
    marker
}

fn batch_metadata(rows: i64, nodes: &[FieldNode], buffers: &[Buffer], body: &[u8], label: &BatchLabel<'_>) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::with_capacity(8192);
    let nodes = fbb.create_vector(nodes);
    let buffers = fbb.create_vector(buffers);
    let compression = {
        let mut builder = BodyCompressionBuilder::new(&mut fbb);
        builder.add_codec(CompressionType::ZSTD);
        builder.add_method(BodyCompressionMethod::BUFFER);
        builder.finish()
    };
    let header = {
        let mut builder = RecordBatchBuilder::new(&mut fbb);
        builder.add_length(rows);
        builder.add_nodes(nodes);
        builder.add_buffers(buffers);
        builder.add_compression(compression);
        builder.finish()
    };
    let mut entries = vec![
        (KEY_SEQUENCE, label.sequence.to_string()),
        (KEY_FIRST_ROW, label.first_row.to_string()),
        (KEY_FIRST_TS, label.ts.start().to_string()),
        (KEY_LAST_TS, label.ts.end().to_string()),
        (KEY_BODY_CRC, format!("{:08x}", crc32fast::hash(body))),
        (KEY_CRC, NO_CRC.to_owned()),
    ];
    entries.extend(label.header.map(|json| (KEY_HEADER, json.to_owned())));
    let entries: Vec<_> = entries.iter().map(|(key, value)| key_value(&mut fbb, key, value)).collect();
    let entries = fbb.create_vector(&entries);
    let mut builder = MessageBuilder::new(&mut fbb);
    builder.add_version(MetadataVersion::V5);
    builder.add_header_type(MessageHeader::RecordBatch);
    builder.add_header(header.as_union_value());
    builder.add_bodyLength(body.len() as i64);
    builder.add_custom_metadata(entries);
    let message = builder.finish();
    fbb.finish(message, None);
    fbb.finished_data().to_vec()
}

fn key_value<'f>(fbb: &mut FlatBufferBuilder<'f>, key: &str, value: &str) -> WIPOffset<KeyValue<'f>> {
    let (key, value) = (fbb.create_string(key), fbb.create_string(value));
    let mut builder = KeyValueBuilder::new(fbb);
    builder.add_key(key);
    builder.add_value(value);
    builder.finish()
}

/// Puts a message's metadata, padded and with its checksum filled in, behind the length prefix.
fn frame(out: &mut Vec<u8>, mut metadata: Vec<u8>) -> io::Result<()> {
    metadata.resize(metadata.len().next_multiple_of(8), 0);
    if metadata.len() > MAX_METADATA {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the recording's header is too large"));
    }
    let digits = message::crc_digits(&metadata).map_err(io::Error::other)?;
    // The digits are still zeros, as they count in the checksum.
    let crc = format!("{:08x}", crc32fast::hash(&metadata));
    metadata[digits].copy_from_slice(crc.as_bytes());
    out.clear();
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    out.extend_from_slice(&metadata);
    Ok(())
}
