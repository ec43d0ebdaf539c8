//! What is written is what is read, by us and by arrow-ipc's own reader.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_ipc::reader::StreamReader;

use super::*;
use crate::stream::schema::{MAX_NAME, MAX_ROWS};

proptest! {
    #[test]
    fn events_survive(events in prop::collection::vec(an_event(), 0..200), flush_every in 1..60usize) {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for (number, event) in events.iter().enumerate() {
            writer.push(event).unwrap();
            if number % flush_every == 0 {
                writer.flush().unwrap();
            }
        }
        let rows = writer.rows();
        let bytes = writer.finish().unwrap();
        let read = read(bytes.as_slice()).unwrap();
        prop_assert_eq!(rows, events.len() as u64);
        prop_assert_eq!(&read.events, &events);
        prop_assert_eq!(read.header, header());
        prop_assert_eq!(read.damage, vec![]);
        prop_assert_eq!(read.batches.iter().map(|batch| batch.rows.end - batch.rows.start).sum::<u64>(), rows);

        // Arrow's own reader accepts the same bytes.
        let arrow: Vec<_> = StreamReader::try_new(bytes.as_slice(), None).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(arrow.len(), read.batches.len());
        let ts: Vec<u64> = arrow.iter().flat_map(|batch| batch["ts"].as_primitive::<UInt64Type>().values().to_vec()).collect();
        prop_assert_eq!(ts, events.iter().map(|event| event.ts).collect::<Vec<_>>());
        for batch in &arrow {
            for column in batch.columns() {
                column.to_data().validate_full().unwrap();
            }
        }
    }
}

#[test]
fn arrow_reads_cells_where_the_format_says() {
    let (_, bytes) = recording(2);
    let mut batches = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let schema = batches.schema();
    assert_eq!(schema.metadata()["observer.format"], "1");
    assert_eq!(schema.metadata()["observer.kernel"], "7.3.1-amd64");
    let batch = batches.next().unwrap().unwrap();
    assert_eq!(batch["kind"].as_primitive::<UInt8Type>().values().to_vec(), [3, 3, 16]);
    let folio = batch["folio"].as_primitive::<UInt64Type>();
    assert_eq!(folio.iter().collect::<Vec<_>>(), [Some(0xffff_ea00_0400_0000), Some(0xffff_ea00_0400_0040), None]);
    assert_eq!(batch["name"].as_string::<i32>().iter().collect::<Vec<_>>(), [None, None, Some("/srv/data/0")]);
    assert_eq!(batch["values"].null_count(), 3);
}

#[test]
fn batches_are_bounded_and_numbered() {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for row in 0..MAX_ROWS as u64 + 10 {
        writer.push(&mark(row, row)).unwrap();
    }
    let read = read(writer.finish().unwrap().as_slice()).unwrap();
    let rows: Vec<_> = read.batches.iter().map(|batch| (batch.sequence, batch.rows.clone(), batch.ts.clone())).collect();
    let limit = MAX_ROWS as u64;
    assert_eq!(rows, [(0, 0..limit, 0..=limit - 1), (1, limit..limit + 10, limit..=limit + 9)]);
}

#[test]
fn many_long_names_make_batches_a_reader_accepts() {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    let name = "é".repeat(MAX_NAME);
    for cgroup in 0..1000 {
        writer.push(&Event { ts: 0, cpu: 0, body: Body::CgroupName { cgroup, name: name.clone() } }).unwrap();
    }
    let read = read(writer.finish().unwrap().as_slice()).unwrap();
    assert_eq!((read.events.len(), read.damage), (1000, vec![]));
    let Body::CgroupName { name: cut, .. } = &read.events[0].body else { panic!("{:?}", read.events[0]) };
    assert_eq!(*cut, "é".repeat(MAX_NAME / 2));
}

#[test]
fn a_header_with_endless_texts_is_cut_and_read() {
    let endless = Header { command: "x".repeat(5_000_000), ..header() };
    let bytes = Writer::new(Vec::new(), &endless).unwrap().finish().unwrap();
    let read = read(bytes.as_slice()).unwrap();
    assert_eq!(read.header, Header { command: "x".repeat(4096), ..header() });
}

#[test]
fn an_event_that_contradicts_itself_is_refused() {
    let mut event = mark(1, 1);
    if let Body::Folio(folio) = &mut event.body {
        folio.kind = Kind::Age;
    }
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    assert_eq!(writer.push(&event).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    writer.push(&mark(2, 2)).unwrap();
    assert_eq!(read(writer.finish().unwrap().as_slice()).unwrap().events, [mark(2, 2)]);
}

#[test]
fn a_batch_is_written_every_interval() {
    let start = Instant::now();
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    let empty = writer.bytes();
    writer.tick(start).unwrap();
    writer.push(&mark(1, 1)).unwrap();
    writer.tick(start + Duration::from_millis(999)).unwrap();
    assert_eq!(writer.bytes(), empty);
    writer.tick(start + Duration::from_millis(1000)).unwrap();
    assert!(writer.bytes() > empty);
}

/// Writes so many bytes, then fails.
struct Full {
    left: usize,
    written: Vec<u8>,
    error: io::ErrorKind,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(self.error.into());
        }
        let bytes = &bytes[..bytes.len().min(self.left)];
        self.written.extend_from_slice(bytes);
        self.left -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_once_and_spares_what_was_written() {
    let (events, whole) = recording(4);
    let third = boundaries(&whole)[3];
    for (left, error) in [(third + 100, io::ErrorKind::StorageFull), (third, io::ErrorKind::BrokenPipe)] {
        let mut writer = Writer::new(Full { left, written: Vec::new(), error }, &header()).unwrap();
        let results: Vec<_> = events.chunks(3).map(|rows| rows.iter().try_for_each(|row| writer.push(row)).and(writer.flush())).collect();
        let errors: Vec<_> = results.iter().map(|result| result.as_ref().err().map(io::Error::kind)).collect();
        assert_eq!(errors, [None, None, Some(error), None]);
        let read = read(writer.finish().unwrap().written.as_slice()).unwrap();
        assert_eq!(read.events, events[..6]);
    }
}

/// Hands out a few bytes at a time, then panics if asked for more than was needed.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!self.0.is_empty(), "asked for more before handing out what had arrived");
        let take = into.len().min(self.0.len()).min(7);
        let (now, later) = self.0.split_at(take);
        into[..take].copy_from_slice(now);
        self.0 = later;
        Ok(take)
    }
}

#[test]
fn a_batch_is_delivered_as_soon_as_it_has_arrived() {
    let (events, bytes) = recording(3);
    let arrived = boundaries(&bytes)[3];
    let mut reader = Reader::new(Trickle(&bytes[..arrived])).unwrap();
    let mut out = Vec::new();
    reader.next_batch(&mut out).unwrap();
    reader.next_batch(&mut out).unwrap();
    assert_eq!(out, events[..6]);
}
