//! Inputs made to hurt: no panic, no hang, no memory beyond what arrives.

use super::*;
use crate::stream::columns::Columns;
use crate::stream::decode::{Cells, Invalid};
use crate::stream::encode::{BatchLabel, CONTINUATION, Encoder};
use crate::stream::message::{Checked, check};
use crate::stream::rows;
use crate::stream::scan::{Found, Messages};
use crate::stream::schema::{Col, MAX_VARIABLE};

/// Reads to the end; only that it ends matters.
fn survive(bytes: &[u8]) {
    let _ = read(bytes);
}

proptest! {
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        survive(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_sound_start(bytes in prop::collection::vec(any::<u8>(), 0..4096), prefixed in any::<bool>()) {
        let (events, mut recording) = recording(2);
        recording.truncate(recording.len() - 8);
        if prefixed {
            recording.extend_from_slice(&CONTINUATION);
            recording.extend_from_slice(&((bytes.len() / 8 * 8) as u32).to_le_bytes());
        }
        recording.extend_from_slice(&bytes);
        prop_assert_eq!(read(recording.as_slice()).unwrap().events, events);
    }

    /// Damage behind the checksums: what a hostile writer can do, who computes them too.
    #[test]
    fn damage_with_matching_checksums(
        batch in 0..2usize, flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..6), in_body in any::<bool>(),
    ) {
        let (_, mut bytes) = recording(2);
        let starts = boundaries(&bytes);
        let message = &mut bytes[starts[batch + 1]..starts[batch + 2]];
        forge(message, |message, body| {
            let target = if in_body { &mut message[body..] } else { &mut message[8..body] };
            for (at, flip) in flips {
                let at = at.index(target.len());
                target[at] ^= flip;
            }
        });
        survive(&bytes);
    }
}

/// Changes a message, then makes both its checksums right again, if it is still a message.
fn forge(message: &mut [u8], change: impl FnOnce(&mut [u8], usize)) {
    let body = 8 + u32::from_le_bytes(message[4..8].try_into().unwrap()) as usize;
    let digits = |bytes: &[u8]| format!("{:08x}", crc32fast::hash(bytes)).into_bytes();
    let old = digits(&message[body..]);
    change(message, body);
    let new = digits(&message[body..]);
    if let Some(at) = message[..body].windows(8).position(|window| window == old) {
        message[at..at + 8].copy_from_slice(&new);
    }
    let metadata = &mut message[8..body];
    if let Ok(place) = crate::stream::message::crc_digits(metadata) {
        metadata[place.clone()].copy_from_slice(b"00000000");
        let new = digits(metadata);
        metadata[place].copy_from_slice(&new);
    }
}

#[test]
fn forged_checksums_are_accepted() {
    // Guards the test above: it must get past the checksums.
    let (events, mut bytes) = recording(2);
    let starts = boundaries(&bytes);
    let message = &mut bytes[starts[1]..starts[2]];
    // Padding of the last buffer, covered by the checksum only.
    forge(message, |message, _| *message.last_mut().unwrap() ^= 1);
    assert_eq!(read(bytes.as_slice()).unwrap().events, events);
}

/// Announces far more than it sends.
fn announcing(metadata: u32) -> Vec<u8> {
    let (_, bytes) = recording(1);
    let mut hostile = bytes[..boundaries(&bytes)[1]].to_vec();
    hostile.extend_from_slice(&CONTINUATION);
    hostile.extend_from_slice(&metadata.to_le_bytes());
    hostile.extend_from_slice(&[0; 64]);
    hostile
}

#[test]
fn announced_lengths_are_not_believed() {
    for metadata in [u32::MAX, i32::MAX as u32, 1 << 20, (1 << 20) + 8, 9, 8] {
        survive(&announcing(metadata));
    }
}

#[test]
fn more_list_entries_than_a_batch_may_have_are_refused() {
    let mut columns = Columns::new();
    columns.set(Col::Ts, [0; 8]);
    columns.set(Col::Kind, [0]);
    columns.set(Col::Cpu, [0; 2]);
    columns.set(Col::Aux, [0]);
    columns.set_list(Col::Values, vec![0; MAX_VARIABLE / 8 + 1]);
    columns.end_row();
    let label = BatchLabel { sequence: 0, first_row: 0, ts: 0..=0, header: None };
    let message = Encoder::new().unwrap().batch(&mut columns, &label).unwrap().to_vec();
    let body = 8 + u32::from_le_bytes(message[4..8].try_into().unwrap()) as usize;
    let Checked::Batch(batch) = check(&message[8..body]).unwrap() else { panic!() };
    assert_eq!(Cells::new().unwrap().load(&batch, &message[body..]), Err(Invalid::Buffer(Col::Values)));
}

#[test]
fn searching_a_minefield_is_linear() {
    // Sound metadata that announce a body of a megabyte, thousands of times in a row.
    let mut columns = Columns::new();
    let mut noise = 1u64;
    for _ in 0..60_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rows::append(&mut columns, &mark(noise, noise.rotate_left(32))).unwrap();
    }
    let label = BatchLabel { sequence: 0, first_row: 0, ts: 0..=1, header: None };
    let message = Encoder::new().unwrap().batch(&mut columns, &label).unwrap().to_vec();
    let metadata = 8 + u32::from_le_bytes(message[4..8].try_into().unwrap()) as usize;
    let (_, bytes) = recording(1);
    let mut hostile = bytes[..boundaries(&bytes)[1]].to_vec();
    while hostile.len() < 4 << 20 {
        hostile.extend_from_slice(&message[..metadata]);
    }
    survive(&hostile);
    let mut messages = Messages::new(hostile.as_slice());
    while !matches!(messages.next(0, true).unwrap().0, Found::End) {}
    let (done, allowed) = messages.work();
    assert!(done <= allowed, "{done} bytes were checked, {allowed} are allowed");
}
