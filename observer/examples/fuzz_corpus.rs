//! Makes the fuzzer's corpus: small pieces of real recordings, each a recording of its own, some of them damaged.
//!
//! `cargo run -p observer --example fuzz_corpus -- OUT RECORDING…`; with the recordings named in tests/fuzz/README.md the
//! result is what is committed.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::mem::discriminant;
use std::path::Path;

use observer::stream::event::{Body, Event};
use observer::stream::{Reader, Writer};

/// Rows of a piece: a few of each batch's columns suffice, and small inputs are quick.
const ROWS: usize = 12;

/// What makes a row interesting: the first of its kind.
fn kind(event: &Event) -> String {
    let kind = match &event.body {
        Body::Folio(folio) => Some(folio.kind),
        Body::Lruvec { kind, .. } | Body::Range { kind, .. } => Some(*kind),
        _ => None,
    };
    format!("{:?} {kind:?}", discriminant(&event.body))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("fuzz_corpus OUT RECORDING…")?;
    let out = Path::new(&out);
    for input in arguments {
        let input = Path::new(&input);
        let name = input.file_stem().ok_or("a file name")?.to_string_lossy();
        let mut reader = Reader::new(fs::File::open(input)?)?;
        let mut events = Vec::new();
        while events.len() < 1 << 20 && reader.next_batch(&mut events)?.is_some() {}
        let mut header = (*reader.header()).clone();
        // Half of an input would be reasons for hooks.
        header.hooks.truncate(1);

        let piece = |rows: &[Event], per_batch: usize| -> Result<Vec<u8>, Box<dyn Error>> {
            let mut writer = Writer::new(Vec::new(), &header)?;
            for (number, event) in rows.iter().enumerate() {
                writer.push(event)?;
                if number % per_batch == per_batch - 1 {
                    writer.flush()?;
                }
            }
            Ok(writer.finish()?)
        };
        let mut seen = BTreeSet::new();
        let mut firsts: Vec<Event> = events.iter().filter(|event| seen.insert(kind(event))).cloned().collect();
        firsts.truncate(64);
        let start = piece(&events[..ROWS.min(events.len())], ROWS)?;
        let middle = events.len() / 2;
        let kinds = piece(&firsts, firsts.len())?;
        let batches = piece(&events[middle..(middle + ROWS).min(events.len())], ROWS / 2)?;
        fs::write(out.join(format!("{name}-start")), &start)?;
        fs::write(out.join(format!("{name}-kinds")), &kinds)?;
        fs::write(out.join(format!("{name}-batches")), &batches)?;
        fs::write(out.join(format!("{name}-cut")), &batches[..batches.len() * 3 / 4])?;
        fs::write(out.join(format!("{name}-killed")), &kinds[..kinds.len() - 8])?;
        // Without its schema message the header's copy in the first batch has to serve.
        let schema = 8 + u32::from_le_bytes(batches[4..8].try_into()?) as usize;
        fs::write(out.join(format!("{name}-headless")), &batches[schema..])?;
    }
    Ok(())
}
