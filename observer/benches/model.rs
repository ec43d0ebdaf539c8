//! What the model costs: a whole session on the embedded recording, lock step per rule set, and what-if caches beside a
//! plain LRU (the `lru` crate) on the same access stream.
//!
//! `cargo bench -p observer --bench model [-- --accesses N]`

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use observer::replay::EMBEDDED;
use observer::session::{Session, frame::SourceKind};
use observer::simulate::bench::{lock_step_all, stream, what_if_all};
use observer::stream::Reader;

/// Cache sizes, pages: one that a processor's caches hold, and the simulator's smallest (spec 12.1).
const PAGES: [u32; 2] = [1 << 14, 1 << 17];

fn main() {
    let accesses = argument("--accesses").unwrap_or(4_000_000);
    session();
    println!("\nlock step, one rule set, 2^17 folios");
    for row in lock_step_all(1 << 17, accesses as u64) {
        println!(
            "{:32} {:7.1} M events/s  {:5.1} bytes per folio",
            row.name,
            row.millions_per_second(),
            row.bytes_per_folio.unwrap_or(0.0)
        );
    }
    for pages in PAGES {
        let stream = stream(pages, 0.9, accesses, 1);
        let peer = plain_lru(pages, &stream);
        println!("\nwhat-if, {pages} pages, zipf 0.9 over 2.5 times as many\n{:32} {peer:7.1} M accesses/s", "plain LRU (crate lru)");
        for row in what_if_all(pages, &stream) {
            let speed = row.millions_per_second();
            println!(
                "{:32} {speed:7.1} M accesses/s  {:4.2} of plain  {:5.1} bytes per folio",
                row.name,
                speed / peer,
                row.bytes_per_folio.unwrap_or(0.0)
            );
        }
    }
}

fn argument(name: &str) -> Option<usize> {
    std::env::args().skip_while(|word| word != name).nth(1)?.parse().ok()
}

/// Million accesses per second of a cache that only keeps recency.
fn plain_lru(pages: u32, stream: &[u32]) -> f64 {
    let mut cache = lru::LruCache::new(NonZeroUsize::new(pages as usize).unwrap_or(NonZeroUsize::MIN));
    let started = Instant::now();
    for key in stream {
        if cache.get(key).is_none() {
            cache.put(*key, ());
        }
    }
    black_box(cache.len());
    stream.len() as f64 / started.elapsed().as_secs_f64() / 1e6
}

/// The embedded recording through sessions with more and more rule sets.
fn session() {
    let mut reader = Reader::new(EMBEDDED).expect("the embedded recording is one");
    let mut events = Vec::new();
    while reader.next_batch(&mut events).expect("the embedded recording is whole").is_some() {}
    println!("session on the embedded recording, {} events", events.len());
    for rules in [0, 1, 5] {
        let mut sets = Session::default_rules();
        sets.truncate(rules);
        let mut session = Session::new(reader.header(), SourceKind::Embedded, String::new(), sets);
        let started = Instant::now();
        for event in &events {
            session.apply(event);
        }
        let seconds = started.elapsed().as_secs_f64();
        black_box(session.frame());
        println!("{:32} {:7.1} M events/s", format!("own rules and {rules} others"), events.len() as f64 / seconds / 1e6);
    }
}
