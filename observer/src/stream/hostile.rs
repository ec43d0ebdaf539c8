//! Any bytes into the reader: the entry that fuzzing uses, and the tests that replay its inputs.
//!
//! Nearly every change to a recording ends at a checksum. So what the reader makes of the bytes as they are is only half of
//! it: the other half has its checksums made right first, as someone would who wants to hurt.

use std::io::Cursor;

use super::encode::CONTINUATION;
use super::message;
use super::reader::{Reader, last_ts};
use super::schema::NO_CRC;

/// What came of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Events, of both readings.
    pub events: usize,
    /// Flaws listed, of both readings.
    pub flaws: usize,
    /// Whether there were checksums to make right.
    pub forged: bool,
}

/// Reads `bytes` to the end as they are, then again with matching checksums if that changes them.
///
/// # Panics
/// When the reader contradicts itself.
pub fn take(bytes: &[u8]) -> Taken {
    let (events, flaws) = read(bytes);
    let mut forged = bytes.to_vec();
    if !forge(&mut forged) {
        return Taken { events, flaws, forged: false };
    }
    let (more_events, more_flaws) = read(&forged);
    Taken { events: events + more_events, flaws: flaws + more_flaws, forged: true }
}

/// Events and flaws of one reading.
fn read(bytes: &[u8]) -> (usize, usize) {
    // Whatever it says must not depend on luck; an input in memory cannot fail to be read.
    let _ = last_ts(&mut Cursor::new(bytes));
    let Ok(mut reader) = Reader::new(bytes) else { return (0, 0) };
    let (mut batch, mut events, mut rows) = (Vec::new(), 0, 0);
    while let Ok(Some(info)) = reader.next_batch(&mut batch) {
        assert!(info.rows.start >= rows && batch.len() as u64 <= info.rows.end - info.rows.start, "{info:?} after {rows} rows");
        rows = info.rows.end;
        events += batch.len();
        batch.clear();
    }
    assert!(batch.is_empty() && reader.position() <= bytes.len() as u64, "at {} of {}", reader.position(), bytes.len());
    let told: usize = reader.damage().iter().map(|flaw| flaw.to_string().len().min(1)).sum();
    (events, told)
}

/// Makes the checksums of everything that looks like a message right; whether that changed anything.
fn forge(bytes: &mut [u8]) -> bool {
    let mut changed = false;
    let mut at = 0;
    while let Some(distance) = bytes[at..].windows(CONTINUATION.len()).position(|window| window == CONTINUATION) {
        at += distance + CONTINUATION.len();
        let Some(length) = bytes[at..].first_chunk::<4>().copied() else { break };
        let (start, length) = (at + 4, u32::from_le_bytes(length) as usize);
        if let Some((metadata, body)) = bytes[start..].split_at_mut_checked(length) {
            changed |= forge_message(metadata, body);
        }
    }
    changed
}

/// The same for one message; `after` is everything behind its metadata.
fn forge_message(metadata: &mut [u8], after: &[u8]) -> bool {
    // What verifies before still does afterwards: digits are no structure.
    let Ok(own) = message::crc_digits(metadata) else { return false };
    let before = metadata.to_vec();
    if let Some((place, length)) = message::body_crc_digits(metadata) {
        let body = &after[..length.min(after.len())];
        metadata[place].copy_from_slice(&digits(body));
    }
    metadata[own.clone()].copy_from_slice(NO_CRC.as_bytes());
    let right = digits(metadata);
    metadata[own].copy_from_slice(&right);
    before != metadata
}

/// A checksum as it is stored.
fn digits(bytes: &[u8]) -> [u8; 8] {
    let value = crc32fast::hash(bytes);
    std::array::from_fn(|digit| b"0123456789abcdef"[(value >> (28 - 4 * digit) & 15) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Writer;
    use crate::stream::tests::{header, mark};

    fn recording() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for second in 0..3 {
            writer.push(&mark(second, 64)).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_sound_recording_needs_no_forging() {
        assert_eq!(take(&recording()), Taken { events: 3, flaws: 0, forged: false });
    }

    #[test]
    fn damage_gets_past_the_checksums_once_they_are_made_right() {
        let mut bytes = recording();
        // The last batch's padding: unpacking does not need it, the checksum covers it.
        let last = bytes.len() - 8 - 1;
        bytes[last] ^= 1;
        assert_eq!(take(&bytes), Taken { events: 2 + 3, flaws: 1, forged: true });
    }
}
