//! What the proposals of spec D2 and D3 promise: prefaulted file folios live longer while refaults say that it matters, and a scan gains nothing.

use super::file::{File, Readahead};
use crate::model::{Cache, Config, Entering, Lru};

const MEMORY: u64 = 4096;
/// A file a quarter larger than memory: read over and over, it refaults within the window of generations.
const REFAULTING: u32 = 5120;
/// A file that is never finished.
const SCAN: u32 = 1_000_000;

fn cache(rules: &str) -> Box<dyn Cache> {
    Lru::parse(rules).expect("parses").cache(Config::pages(MEMORY))
}

/// A sequential reader of a mapped file.
struct Reader {
    file: File,
    page: u32,
}

impl Reader {
    fn new(pages: u32) -> Self {
        Self { file: File::new(0, pages, Readahead::SMALL), page: 0 }
    }

    fn advance(&mut self, cache: &mut dyn Cache, accesses: u32) {
        for _ in 0..accesses {
            self.file.touch(cache, self.page % self.file.pages(), true);
            self.page += 1;
        }
    }
}

/// Accesses after which half of the folios that a fault brought in ahead of their use are gone; a mean over phases of the generations.
fn half_life(rules: &str, pages: u32) -> f64 {
    const AHEAD: u32 = 128;
    const PHASES: u32 = 8;
    let total: u32 = (0..PHASES)
        .map(|phase| {
            let (mut cache, mut reader) = (cache(rules), Reader::new(pages));
            reader.advance(&mut *cache, 40_000 + phase * 1777);
            let base = (pages + 1023) / 512 * 512;
            for key in base..base + AHEAD {
                cache.add(key, 0, Entering::FAULT);
            }
            let mut accesses = 0;
            while (base..base + AHEAD).filter(|&key| cache.is_resident(key)).count() > 64 {
                reader.advance(&mut *cache, 16);
                accesses += 16;
            }
            accesses
        })
        .sum();
    f64::from(total) / f64::from(PHASES)
}

/// Median of how many accesses a scanned folio stays.
fn scanned_life(rules: &str) -> u32 {
    let (mut cache, mut reader) = (cache(rules), Reader::new(SCAN));
    let mut since = vec![None; 40_000];
    let mut lives = Vec::new();
    for now in (0..32_000).step_by(64) {
        reader.advance(&mut *cache, 64);
        for (key, since) in since.iter_mut().enumerate() {
            match (cache.is_resident(key as u32), *since) {
                (true, None) => *since = Some(now),
                (false, Some(then)) => {
                    lives.push(now - then);
                    *since = None;
                }
                _ => {}
            }
        }
    }
    lives.sort_unstable();
    lives[lives.len() / 2]
}

#[test]
fn d2_and_d3_keep_prefaulted_folios_longer_than_7_3_on_refaulting_maps() {
    let before = half_life("7.3", REFAULTING);
    for rules in ["readahead-credit", "quick-fix"] {
        let after = half_life(rules, REFAULTING);
        assert!(after > 1.2 * before, "{rules}: {after} accesses instead of {before}");
    }
}

#[test]
fn d2_gives_no_credit_to_a_scan() {
    let (before, after) = (half_life("7.3", SCAN), half_life("readahead-credit", SCAN));
    assert!(after < 1.1 * before, "{after} accesses instead of {before}");
}

#[test]
fn d2_and_d3_keep_scanned_folios_no_longer_than_7_3() {
    let before = scanned_life("7.3");
    for rules in ["readahead-credit", "quick-fix"] {
        let after = scanned_life(rules);
        assert!(f64::from(after) < 1.05 * f64::from(before), "{rules}: {after} accesses instead of {before}");
    }
}

#[test]
fn d4_treats_faulted_file_folios_as_untouched() {
    let enters = |rules: &str| {
        let mut cache = cache(rules);
        cache.add(0, 0, Entering::FAULT);
        cache.add(512, 0, Entering::ANON);
        cache.drain();
        let by_age = cache.generations().expect("generations").by_age;
        (by_age.map(|pages| pages[1]), by_age.map(|pages| pages[0]))
    };
    assert_eq!(enters("revert-swapbacked"), ([0, 0, 0, 1], [0, 1, 0, 0]));
    assert_eq!(enters("6.18"), ([0, 1, 0, 0], [0, 1, 0, 0]));
    assert_eq!(enters("7.3"), ([0, 0, 1, 0], [0, 1, 0, 0]));
}
