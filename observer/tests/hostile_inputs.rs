//! The fuzzer's inputs as a plain test: the corpus, what once went wrong, and a few thousand mutations of both.
//!
//! Memory is counted: no input may make the reader take more than a bound.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(unsafe_code, reason = "an allocator can only be counted by standing in front of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use observer::stream::hostile::{Taken, take};

/// What the reader may hold at once for these inputs of a few kilobytes: two chunks of 64 KiB, a decompressor, a few rows. What
/// a batch of 65,536 rows unpacks to would be above it, and none of them announces that much honestly.
const BOUND: usize = 1 << 20;

/// Mutations of each input.
const MUTATIONS: u64 = 60;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged; only sizes are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the system allocator's promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller got it from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Files of a folder beside the fuzz targets, in order.
fn inputs(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// The same numbers in every run.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Some bytes changed, some taken out, some repeated.
fn mutate(bytes: &[u8], state: &mut u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random(state) % 4 {
        if bytes.is_empty() {
            break;
        }
        let at = random(state) % bytes.len();
        let end = (at + 1 + random(state) % 64).min(bytes.len());
        match random(state) % 5 {
            0 => bytes[at] ^= 1 << (random(state) % 8),
            1 => bytes[at..end].fill([0, 0xff, 0x7f, 0x80][random(state) % 4]),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// What one input took, and the most memory it held at once.
fn measured(bytes: &[u8]) -> (Taken, usize) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let taken = take(bytes);
    (taken, MOST.load(Relaxed).saturating_sub(before))
}

// One test only: others would allocate meanwhile.
#[test]
fn no_input_of_the_fuzzer_hurts() {
    let corpus = inputs("corpus/reader");
    assert!(corpus.len() >= 10, "the corpus is gone");
    let mut most = 0;
    let mut taken = Vec::new();
    let mut state = 7;
    for (name, bytes) in corpus.iter().chain(&inputs("regressions")) {
        for mutation in 0..=MUTATIONS {
            let input = if mutation == 0 { bytes.clone() } else { mutate(bytes, &mut state) };
            let (took, memory) = measured(&input);
            assert!(memory <= BOUND, "{} mutation {mutation} held {memory} bytes", name.display());
            most = most.max(memory);
            taken.push(took);
        }
    }
    // The corpus is what it says: sound and damaged, and mutations get behind the checksums.
    assert!(taken.iter().any(|taken| taken.events > 10 && taken.flaws == 0));
    assert!(taken.iter().filter(|taken| taken.forged && taken.flaws > 0).count() > 100);
    println!("{} inputs, at most {most} bytes held", taken.len());
}
