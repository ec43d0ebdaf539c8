//! How far a replay may have come by now.

use std::time::{Duration, Instant};

/// Maps wall time to event time at the chosen speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// A moment and the event time that belongs to it; none until the first event.
    anchor: Option<(Instant, u64)>,
    speed: f64,
}

impl Pacer {
    /// As recorded at 1; as fast as it goes at infinity.
    pub(super) fn new(speed: f64) -> Pacer {
        Pacer { anchor: None, speed }
    }

    /// Declares that it is `ts` at `now`.
    pub(super) fn set(&mut self, now: Instant, ts: u64) {
        self.anchor = Some((now, ts));
    }

    /// Forgets what time it is: the next event sets it.
    pub(super) fn clear(&mut self) {
        self.anchor = None;
    }

    /// Changes the speed from `now` and `ts` on. A speed that is none is ignored.
    pub(super) fn set_speed(&mut self, now: Instant, ts: Option<u64>, speed: f64) {
        if speed > 0.0 {
            self.speed = speed;
            self.anchor = ts.map(|ts| (now, ts));
        }
    }

    /// Event time at `now`; events up to it are due. `None` until the first event sets it.
    pub(super) fn due(&self, now: Instant) -> Option<u64> {
        let (then, ts) = self.anchor?;
        // Beyond what can be represented (an infinite speed included) everything is due.
        let elapsed = now.saturating_duration_since(then).as_secs_f64() * self.speed;
        let elapsed =
            Duration::try_from_secs_f64(elapsed).map_or(u64::MAX, |elapsed| u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        Some(ts.saturating_add(elapsed))
    }

    /// How long until `ts` is due.
    pub(super) fn wait(&self, now: Instant, ts: u64) -> Duration {
        let missing = self.due(now).map_or(0, |due| ts.saturating_sub(due));
        Duration::try_from_secs_f64(missing as f64 / 1e9 / self.speed).unwrap_or(Duration::MAX)
    }
}
