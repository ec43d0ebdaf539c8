//! Speed of the model, for `cargo xtask bench`: measured, never asserted.

use std::hint::black_box;
use std::time::Instant;

use super::random::Random;
use super::zipf::Zipf;
use crate::model::rules::PRESETS;
use crate::model::{Add, Config, FolioState, Lru, Rules, Traits, Window};

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub name: String,
    /// Events or accesses.
    pub events: u64,
    /// Seconds they took.
    pub seconds: f64,
    /// Bytes per resident folio, page index included; none where nothing is resident.
    pub bytes_per_folio: Option<f64>,
}

impl Measured {
    /// Million events per second.
    pub fn millions_per_second(&self) -> f64 {
        self.events as f64 / self.seconds.max(f64::MIN_POSITIVE) / 1e6
    }
}

/// The access stream that what-if is measured on, also for other caches: zipf over a file two and a half times the cache.
pub fn stream(cache_pages: u32, theta: f64, accesses: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let zipf = Zipf::new(cache_pages / 2 * 5, theta, &mut random);
    (0..accesses).map(|_| zipf.next(&mut random)).collect()
}

/// What happens to one folio in lock step: mostly reads; now and then it leaves and another comes; the clock moves.
fn lock_step(rules: &Rules, folios: u32, events: u64) -> Measured {
    let mut random = Random::new(1);
    let zipf = Zipf::new(folios, 0.9, &mut random);
    let order: Vec<u32> = (0..1 << 20).map(|_| zipf.next(&mut random)).collect();
    let mut window = Window::INITIAL;
    let mut states = vec![FolioState::default(); folios as usize];
    for state in &mut states {
        rules.on_insert(state, &Traits::FILE, &window, false);
    }
    let mut promoted = 0u64;
    let started = Instant::now();
    for n in 0..events {
        let state = &mut states[order[(n % (1 << 20)) as usize] as usize];
        rules.catch_up(state, true, &window);
        match n % 16 {
            0 => {
                let token = rules.evict(state, &window, true);
                *state = FolioState::default();
                promoted += u64::from(rules.is_recent(token, &window, true) && rules.on_refault(state, token, false).restore);
                rules.on_add(state, &Traits::FILE, Add::default());
                rules.on_insert(state, &Traits::FILE, &window, false);
            }
            1 => promoted += u64::from(rules.on_walk(state, &Traits::FILE, &window).promoted()),
            _ => promoted += u64::from(rules.on_mark(state, &Traits::FILE, &window).promoted()),
        }
        if n % 65_536 == 0 {
            window.max_seq += 1;
            window.min_seq = [window.max_seq - 2; 2];
        }
    }
    black_box(promoted);
    Measured {
        name: format!("lock step {}", rules.name),
        events,
        seconds: started.elapsed().as_secs_f64(),
        bytes_per_folio: Some(size_of::<FolioState>() as f64),
    }
}

/// Lock step of every preset over so many folios.
pub fn lock_step_all(folios: u32, events: u64) -> Vec<Measured> {
    PRESETS.into_iter().map(|rules| lock_step(rules, folios, events)).collect()
}

/// What-if of every LRU on a stream (see [`stream`]).
pub fn what_if_all(cache_pages: u32, stream: &[u32]) -> Vec<Measured> {
    let lrus = PRESETS.into_iter().map(|rules| Lru::Generations(*rules)).chain([Lru::Classical]);
    lrus.map(|lru| {
        let mut cache = lru.cache(Config::pages(u64::from(cache_pages)));
        cache.reserve(stream.iter().max().map_or(0, |&key| key as usize + 1));
        let started = Instant::now();
        for &key in stream {
            black_box(cache.read(key));
        }
        Measured {
            name: format!("what-if {}", lru.label()),
            events: stream.len() as u64,
            seconds: started.elapsed().as_secs_f64(),
            bytes_per_folio: Some(cache.memory() as f64 / f64::from(cache.folios().max(1))),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_once() {
        let stream = stream(1000, 0.9, 5000, 1);
        assert_eq!((stream.len(), stream.iter().all(|&key| key < 2500)), (5000, true));
        let rows: Vec<_> = lock_step_all(1000, 5000).into_iter().chain(what_if_all(1000, &stream)).collect();
        assert_eq!(rows.len(), 2 * PRESETS.len() + 1);
        assert!(rows.iter().all(|row| row.events == 5000 && row.bytes_per_folio.is_some_and(|bytes| bytes <= 48.0)), "{rows:?}");
    }
}
