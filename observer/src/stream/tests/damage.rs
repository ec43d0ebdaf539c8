//! Damaged recordings: what is sound is read, what is missing is said.

use super::*;
use crate::stream::damage::What;

/// The flaws' words.
fn words(damage: &[Damage]) -> Vec<String> {
    damage.iter().map(Damage::to_string).collect()
}

/// Whether `part` is `whole` with some batches (of three rows) left out.
fn is_whole_batches_of(part: &[Event], whole: &[Event]) -> bool {
    let mut rest = whole.chunks(3);
    part.chunks(3).all(|batch| rest.any(|candidate| candidate == batch))
}

#[test]
fn every_single_bit_flip_costs_at_most_its_batch_and_is_noted() {
    let (events, bytes) = recording(2);
    let starts = boundaries(&bytes);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let read = read(flipped.as_slice()).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        let hit = starts.iter().rposition(|&start| start <= bit / 8).unwrap();
        let expected: Vec<Event> = match hit {
            // The schema, whose copy is used, or the end marker.
            0 => events.clone(),
            hit if hit == starts.len() - 1 => events.clone(),
            hit => events.chunks(3).enumerate().filter(|(batch, _)| batch + 1 != hit).flat_map(|(_, rows)| rows.to_vec()).collect(),
        };
        assert!(read.events == expected, "bit {bit} of byte {} in message {hit}: {:?}", bit / 8, words(&read.damage));
        assert_eq!(read.header, header(), "bit {bit}");
        assert!(!read.damage.is_empty(), "bit {bit} of byte {} in message {hit} went unnoticed", bit / 8);
    }
}

#[test]
fn every_truncation_keeps_what_was_complete_and_says_one_line() {
    let (events, bytes) = recording(3);
    let starts = boundaries(&bytes);
    for len in 0..bytes.len() {
        let complete = starts.iter().filter(|&&start| start <= len).count();
        let read = match read(&bytes[..len]) {
            Err(OpenError::Empty) if len == 0 => continue,
            Err(error @ (OpenError::Header(_) | OpenError::NotARecording(_))) if len < starts[1] => {
                assert!(!error.to_string().contains('\n'));
                continue;
            }
            other => other.unwrap(),
        };
        assert_eq!(read.events, events[..3 * (complete - 2)], "{len} bytes");
        assert_eq!(read.damage.len(), 1, "{len} bytes: {:?}", words(&read.damage));
        let expected = if starts.contains(&len) { What::NotClosed } else { What::Truncated };
        assert_eq!(read.damage[0].what, expected, "{len} bytes");
    }
}

#[test]
fn damage_is_told_with_rows_and_times() {
    let (_, bytes) = recording(4);
    let starts = boundaries(&bytes);
    let damaged = |at: usize| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        damaged
    };
    // Where exactly depends on how well zstd compresses.
    let place = |flaw: &Damage| flaw.to_string().replace(&format!("byte {}", flaw.offset), "byte N");
    let told = |bytes: &[u8]| read(bytes).unwrap().damage.iter().map(place).collect::<Vec<_>>();
    let body_of_second = starts[3] - 8;
    insta::assert_debug_snapshot!([
        told(&damaged(body_of_second)),
        told(&damaged(starts[1] + 20)),
        told(&damaged(starts[4] + 1)),
        told(&damaged(20)),
        told(&bytes[..starts[3] + 100]),
        told(&bytes[..starts[3]]),
        told(&bytes[..starts[1]]),
        told(&[&bytes[..starts[2]], &bytes[starts[4]..]].concat()),
        told(&[&bytes[..], b"tail"].concat()),
        told(&[&bytes[..], &bytes[..]].concat()),
        told(&[&bytes[..starts[2] + 50], &bytes[..]].concat()),
    ]);
}

#[test]
fn missing_rows_are_counted_at_the_batch_after_them() {
    let (events, bytes) = recording(5);
    let starts = boundaries(&bytes);
    let cut = [&bytes[..starts[2]], &bytes[starts[4]..]].concat();
    let read = read(cut.as_slice()).unwrap();
    assert_eq!(read.batches.iter().map(|batch| batch.missing).collect::<Vec<_>>(), [0, 6, 0]);
    assert!(is_whole_batches_of(&read.events, &events));
}

#[test]
fn bytes_lost_or_added_inside_a_batch_cost_that_batch_only() {
    let (events, bytes) = recording(4);
    let starts = boundaries(&bytes);
    // In the metadata, and in the body.
    for at in [starts[2] + 700, starts[3] - 100] {
        for damaged in [[&bytes[..at], &bytes[at + 13..]].concat(), [&bytes[..at], b"noise", &bytes[at..]].concat()] {
            let read = read(damaged.as_slice()).unwrap();
            assert_eq!(read.events, [&events[..3], &events[6..]].concat());
            assert_eq!(read.damage.len(), 1, "{:?}", words(&read.damage));
        }
    }
}

#[test]
fn what_is_no_recording_is_refused_in_one_line() {
    let (_, bytes) = recording(1);
    let told = |bytes: &[u8]| read(bytes).map(|_| ()).unwrap_err().to_string();
    let arrow = {
        let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("a", arrow_schema::DataType::Int32, true)]);
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    };
    insta::assert_debug_snapshot!([
        told(b""),
        told(b"#!/bin/sh\necho hello\n"),
        told(b"text\n"),
        told(b"\xff\xff"),
        told(b"PAR1xxxxxxxxxxx"),
        told(b"ARROW1\0\0"),
        told(&[0x1f, 0x8b, 0, 0]),
        told(&arrow),
        told(&bytes[..100]),
        told(&[0; 5000]),
    ]);
}

#[test]
fn a_newer_format_is_refused_by_number() {
    let (_, bytes) = recording(1);
    let schema = crate::stream::schema::schema(&header(), "{\"unknown\": 1}");
    let metadata = schema.metadata().clone().into_iter().map(|(key, value)| {
        let value = if key == "observer.format" { "2".to_owned() } else { value.to_string() };
        (key.to_string(), value)
    });
    let schema = arrow_schema::Schema::new_with_metadata(schema.fields().clone(), metadata.collect::<std::collections::HashMap<_, _>>());
    let newer = crate::stream::encode::schema_message(&schema).unwrap();
    let error = read([&newer, &bytes[boundaries(&bytes)[1]..]].concat().as_slice()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Newer(2)), "{error}");
}
