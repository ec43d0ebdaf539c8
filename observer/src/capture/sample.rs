//! Which folios the programs keep ([`observer_common::sample`]), and when it must be fewer.
//!
//! Unless a rate is given, all folios are kept to begin with. Events that come faster than they are taken show in the ring: it
//! overflows, or more than half of it waits to be taken. Then one folio in two of those kept so far goes on being observed, or
//! one in four where events were lost. The same when there are more folios than observer has room for: a sample is chosen
//! fairly, a full table keeps who came first. And when observing takes more than its share of the processors' time
//! ([`Meter`]). Samples are nested, so that who stays has a whole history; the rate never rises again, since who was left out
//! has none.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use aya::{
    Ebpf,
    maps::{Array, MapData},
};

use super::{meter::Meter, object::take_map};

/// Which folios to observe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// All, and fewer once their events are too many or observing takes more than a share of all processors' time.
    Within(Share),
    /// One in so many, whatever happens.
    OneIn(u32),
}

impl Default for Sample {
    fn default() -> Self {
        Self::Within(Share::DEFAULT)
    }
}

/// A part of the whole, from 0.01 % to all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// What observing may take where nothing else is said (anchors 7.1: less than 2 % at the default).
    const DEFAULT: Self = Self(0.02);

    /// So many percent.
    pub fn percent(percent: f64) -> Option<Self> {
        // What is no number is in no range.
        (0.01..=100.0).contains(&percent).then_some(Self(percent / 100.0))
    }

    /// Of one.
    pub fn of_one(self) -> f64 {
        self.0
    }
}

/// Why fewer are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// There are more folios than can be followed.
    Full,
    /// Events come faster than they can be taken.
    Fast,
    /// It takes more than it may.
    Dear,
}

/// Fewer than this one in so many are never chosen automatically.
const MOST: u32 = 1024;

/// After a change the ring first has to be emptied of what the former rate left in it.
const SETTLE: Duration = Duration::from_secs(1);

/// What the programs keep now.
pub(super) struct Sampler {
    map: Array<MapData, u32>,
    load: Load,
    meter: Option<Meter>,
}

impl Sampler {
    /// Tells the programs what to keep: to be done before the first hook and the census, since a folio belongs to the
    /// sample for its whole life or not at all.
    pub(super) fn new(ebpf: &mut Ebpf, sample: Sample, ring_bytes: u32) -> Result<Self> {
        let mut map = Array::try_from(take_map(ebpf, "SAMPLE")?)?;
        let load = Load::new(sample, ring_bytes, Instant::now());
        keep(&mut map, load.one_in)?;
        let meter = match sample {
            Sample::Within(share) => Some(Meter::new(share, aya::util::nr_cpus().map_or(1, |cpus| cpus as u32))),
            Sample::OneIn(_) => None,
        };
        Ok(Self { map, load, meter })
    }

    /// One in this many folios is kept.
    pub(super) fn one_in(&self) -> u32 {
        self.load.one_in
    }

    /// Takes note of a drain; the new rate when there has to be one, and why. It is in force from [`Sampler::keep_fewer`] on.
    pub(super) fn drained(&mut self, drain: &Drain) -> Option<(u32, Why)> {
        let now = Instant::now();
        if let Some(meter) = &mut self.meter {
            meter.drained(processor_time(), drain.taken);
        }
        let why = if drain.full { Why::Full } else { Why::Fast };
        if let Some(one_in) = self.load.drained(drain, now) {
            self.start_anew();
            return Some((one_in, why));
        }
        let times = self.meter.as_mut()?.excess(now)?;
        Some((self.load.lower(times, now)?, Why::Dear))
    }

    /// What came so far is not what the rate makes more or less.
    pub(super) fn start_anew(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.start_anew(Instant::now());
        }
    }

    /// What follows is no work on events, until [`Sampler::resume`].
    pub(super) fn pause(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.pause(processor_time());
        }
    }

    /// What follows is work on events.
    pub(super) fn resume(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.resume(processor_time());
        }
    }

    /// Tells the programs the rate that [`Sampler::drained`] returned.
    pub(super) fn keep_fewer(&mut self) -> Result<()> {
        keep(&mut self.map, self.load.one_in)
    }
}

/// This thread's.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn keep(map: &mut Array<MapData, u32>, one_in: u32) -> Result<()> {
    map.set(0, one_in, 0).context("cannot say which folios to sample")
}

/// Events taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) all: u64,
    /// Of those: of folios, and of files' ranges. Clocks, sizes and names are told whatever the rate.
    pub(super) sampled: u64,
}

/// What came of one drain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    /// Bytes taken.
    pub(super) bytes: u64,
    /// The same as events.
    pub(super) taken: Taken,
    /// Events lost since the drain before.
    pub(super) lost: u64,
    /// Folios were met that found the table of followed folios full.
    pub(super) full: bool,
    /// Age of the last event taken, where the ring was not found empty after it.
    pub(super) lag: Option<Duration>,
}

/// How well the events are kept up with.
#[derive(Debug)]
struct Load {
    one_in: u32,
    automatic: bool,
    ring_bytes: u64,
    /// When the ring was last empty, and bytes taken since.
    empty: Instant,
    taken: u64,
    changed: Instant,
}

impl Load {
    fn new(sample: Sample, ring_bytes: u32, now: Instant) -> Self {
        let (one_in, automatic) = match sample {
            Sample::Within(_) => (1, true),
            Sample::OneIn(n) => (n.max(1), false),
        };
        Self { one_in, automatic, ring_bytes: u64::from(ring_bytes), empty: now, taken: 0, changed: now }
    }

    fn drained(&mut self, drain: &Drain, now: Instant) -> Option<u32> {
        self.taken += drain.bytes;
        let behind = drain.lag.is_some_and(|lag| self.waiting(lag, now) >= self.ring_bytes as f64 / 2.0);
        if drain.lag.is_none() {
            (self.empty, self.taken) = (now, 0);
        }
        let settled = now.duration_since(self.changed) >= SETTLE;
        let factor = match (drain.lost > 0 && settled, behind && settled || drain.full) {
            (true, _) => 4,
            (false, true) => 2,
            (false, false) => return None,
        };
        self.lower(factor, now)
    }

    /// So many times fewer, where that is possible.
    fn lower(&mut self, times: u32, now: Instant) -> Option<u32> {
        if !self.automatic || self.one_in >= MOST {
            return None;
        }
        self.one_in = (self.one_in * times).min(MOST);
        self.changed = now;
        Some(self.one_in)
    }

    /// Bytes in the ring: what came since the last event taken, at the pace of what came between the empty ring and that.
    fn waiting(&self, lag: Duration, now: Instant) -> f64 {
        let came_in = now.duration_since(self.empty).saturating_sub(lag).as_secs_f64();
        self.taken as f64 * lag.as_secs_f64() / came_in
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: u32 = 1 << 20;
    const QUIET: Drain = Drain { bytes: 1000, taken: Taken { all: 9, sampled: 9 }, lost: 0, full: false, lag: None };
    const LOSSES: Drain = Drain { lost: 7, ..QUIET };
    const FULL: Drain = Drain { full: true, ..QUIET };

    /// A drain that leaves something, the last of which came so long ago.
    fn lagging(bytes: u32, ms: u64) -> Drain {
        Drain { bytes: bytes.into(), lag: Some(Duration::from_millis(ms)), ..QUIET }
    }

    /// Rates chosen at drains two seconds apart.
    fn rates(sample: Sample, drains: &[Drain]) -> Vec<Option<u32>> {
        let start = Instant::now();
        let mut load = Load::new(sample, RING, start);
        let after = |at: usize| start + Duration::from_secs(2) * u32::try_from(at + 1).unwrap();
        drains.iter().enumerate().map(|(at, drain)| load.drained(drain, after(at))).collect()
    }

    #[test]
    fn fewer_are_kept_where_events_come_too_fast() {
        let half = lagging(RING, 700);
        assert_eq!(rates(Sample::default(), &[QUIET, half, QUIET, LOSSES, QUIET]), [None, Some(2), None, Some(8), None]);
        let last = rates(Sample::default(), &[LOSSES; 7]);
        assert_eq!(last, [Some(4), Some(16), Some(64), Some(256), Some(1024), None, None]);
    }

    #[test]
    fn what_waits_is_judged_by_its_age_and_the_pace_at_which_it_came() {
        // Two seconds since the ring was empty, a ring's worth taken in the first of them: another one waits.
        assert_eq!(rates(Sample::default(), &[lagging(RING, 1000)]), [Some(2)]);
        assert_eq!(rates(Sample::default(), &[lagging(RING / 4, 1000)]), [None]);
        // However long the ring is not found empty, as long as little waits in it.
        assert_eq!(rates(Sample::default(), &[lagging(RING, 100); 5]), [None; 5]);
        // As old as the empty ring: nothing that was taken came in no time.
        assert_eq!(rates(Sample::default(), &[lagging(RING, 2000)]), [Some(2)]);
        assert_eq!(rates(Sample::default(), &[lagging(0, 0)]), [None]);
    }

    #[test]
    fn fewer_are_kept_where_there_is_no_room_for_more() {
        assert_eq!(rates(Sample::default(), &[FULL, QUIET, FULL, QUIET]), [Some(2), None, Some(4), None]);
        assert_eq!(rates(Sample::OneIn(1), &[FULL]), [None]);
    }

    #[test]
    fn a_rate_that_was_asked_for_stays() {
        assert_eq!(rates(Sample::OneIn(1), &[LOSSES, lagging(RING, 1000)]), [None, None]);
        assert_eq!(rates(Sample::OneIn(8), &[LOSSES, lagging(RING, 1000)]), [None, None]);
    }

    #[test]
    fn what_the_former_rate_left_in_the_ring_does_not_count() {
        let start = Instant::now();
        let mut load = Load::new(Sample::default(), RING, start);
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(load.drained(&LOSSES, after(500)), None, "the start is a change too");
        assert_eq!(load.drained(&LOSSES, after(1500)), Some(4));
        assert_eq!(load.drained(&LOSSES, after(2400)), None);
        assert_eq!(load.drained(&LOSSES, after(2600)), Some(16));
        assert_eq!(load.drained(&FULL, after(2700)), Some(32), "a table is as full as it is");
        assert_eq!(load.drained(&FULL, after(2701)), Some(64));
    }
}
