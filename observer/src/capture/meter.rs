//! What observing takes of this machine's processors: the time of the thread that takes events and works on them, and not what
//! the census, the sweeps and the screen's pictures take, which fewer events do not make less.
//!
//! The programs themselves are not in it (the kernel counts them only where it is asked to, which costs some itself). They take
//! about half of what this thread does (cost.md), on the processors of those that are observed.

use std::time::{Duration, Instant};

use super::sample::Share;

/// One look at the cost is over this long.
const WINDOW: Duration = Duration::from_secs(5);

/// So many times fewer at once.
const TIMES: [u32; 3] = [2, 4, 8];

/// Fewer folios must leave no more than this of the cost: otherwise it is not the events that cost.
const HELPED: f64 = 0.9;

/// The time of one thread, look by look.
#[derive(Debug)]
pub(super) struct Meter {
    /// Processor time that may be used, of each second.
    limit: f64,
    /// The thread's clock where the latest stretch that counts began.
    mark: Option<Duration>,
    spent: Duration,
    begun: Option<Instant>,
    /// The cost at which it was last said that fewer must be observed.
    before: Option<f64>,
}

impl Meter {
    /// May use a share of these processors.
    pub(super) fn new(share: Share, processors: u32) -> Self {
        Self { limit: share.of_one() * f64::from(processors), mark: None, spent: Duration::ZERO, begun: None, before: None }
    }

    /// A stretch that counts ends: from the latest [`Meter::resume`] on.
    pub(super) fn pause(&mut self, clock: Duration) {
        if let Some(mark) = self.mark.take() {
            self.spent += clock.saturating_sub(mark);
        }
    }

    /// A stretch that counts begins.
    pub(super) fn resume(&mut self, clock: Duration) {
        self.mark = Some(clock);
    }

    /// By how many times fewer folios are to be observed, where it took too much since the last answer.
    pub(super) fn excess(&mut self, now: Instant) -> Option<u32> {
        let begun = *self.begun.get_or_insert(now);
        let elapsed = now.duration_since(begun);
        if elapsed < WINDOW {
            return None;
        }
        let cost = self.spent.as_secs_f64() / elapsed.as_secs_f64();
        self.start_anew(now);
        if cost <= self.limit || self.before.is_some_and(|before| cost > HELPED * before) {
            return None;
        }
        self.before = Some(cost);
        TIMES.into_iter().find(|times| cost <= self.limit * f64::from(*times)).or(TIMES.last().copied())
    }

    /// What was spent so far does not count: the rate is another one now.
    pub(super) fn start_anew(&mut self, now: Instant) {
        (self.spent, self.begun) = (Duration::ZERO, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers to seconds in each of which the thread ran for so many milliseconds, of two processors' 2 %.
    fn answers(seconds: &[u64]) -> Vec<Option<u32>> {
        let mut meter = Meter::new(Share::percent(2.0).unwrap(), 2);
        let (start, mut clock) = (Instant::now(), Duration::ZERO);
        meter.excess(start);
        let answer = |(second, ms): (u32, &u64)| {
            meter.resume(clock);
            clock += Duration::from_millis(*ms);
            meter.pause(clock);
            // What runs between two stretches is not counted.
            clock += Duration::from_millis(300);
            meter.excess(start + Duration::from_secs(1) * second)
        };
        (1..).zip(seconds).map(answer).collect()
    }

    #[test]
    fn what_takes_too_much_is_made_less_by_as_much() {
        assert_eq!(answers(&[40; 10]), [None; 10]);
        assert_eq!(answers(&[0, 0, 0, 0, 201])[4], Some(2));
        assert_eq!(answers(&[41, 41, 41, 41, 41])[4], Some(2));
        assert_eq!(answers(&[150, 150, 150, 150, 150])[4], Some(4));
        assert_eq!(answers(&[900, 900, 900, 900, 900])[4], Some(8), "never all at once");
    }

    #[test]
    fn what_fewer_events_do_not_make_less_is_left_alone() {
        let left = |after: u64| {
            let seconds: Vec<u64> = [150; 5].into_iter().chain([after; 10]).collect();
            answers(&seconds).into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(left(140), [4]);
        assert_eq!(left(100), [4, 4], "and then the same again is");
        assert_eq!(left(40), [4]);
    }
}
