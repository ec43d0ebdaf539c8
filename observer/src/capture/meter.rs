//! What observing takes of this machine's processors that fewer events would make less: the time of the thread that takes events
//! and works on them, as far as it is more than what a look into an empty ring takes, and in proportion to the events that a sample
//! has fewer of. Census, sweeps and the screen's pictures are left out.
//!
//! The programs themselves are not in it (the kernel counts them only where it is asked to, which costs some itself). They take
//! about half of what this thread does (cost.md), on the processors of those that are observed.

use std::{
    mem,
    time::{Duration, Instant},
};

use super::sample::{Share, Taken};

/// One look at the cost is over this long.
const WINDOW: Duration = Duration::from_secs(5);

/// So many times fewer at once.
const TIMES: [u32; 3] = [2, 4, 8];

/// The time of one thread, look by look.
#[derive(Debug)]
pub(super) struct Meter {
    /// Processor time that may be used, of each second.
    limit: f64,
    /// The thread's clock where the latest stretch that counts began.
    mark: Option<Duration>,
    /// Spent since the drain before.
    spent: Duration,
    window: Window,
    /// What a drain takes that has nothing to take, in the latest window with such.
    empty: Duration,
}

/// What came since the latest look.
#[derive(Debug, Default)]
pub(super) struct Window {
    begun: Option<Instant>,
    spent: Duration,
    drains: u32,
    taken: Taken,
    /// Time spent for each drain that had nothing to take.
    empty: Vec<Duration>,
}

impl Meter {
    /// May use a share of these processors.
    pub(super) fn new(share: Share, processors: u32) -> Self {
        let limit = share.of_one() * f64::from(processors);
        Self { limit, mark: None, spent: Duration::ZERO, window: Window::default(), empty: Duration::ZERO }
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

    /// So much was taken at once. What was taken before was worked on since then.
    pub(super) fn drained(&mut self, clock: Duration, taken: Taken) {
        self.pause(clock);
        self.resume(clock);
        let spent = mem::take(&mut self.spent);
        self.window.spent += spent;
        self.window.drains += 1;
        self.window.taken.all += taken.all;
        self.window.taken.sampled += taken.sampled;
        if taken.all == 0 {
            self.window.empty.push(spent);
        }
    }

    /// By how many times fewer folios are to be observed, where it took too much since the last answer.
    pub(super) fn excess(&mut self, now: Instant) -> Option<u32> {
        let begun = *self.window.begun.get_or_insert(now);
        let elapsed = now.duration_since(begun);
        if elapsed < WINDOW {
            return None;
        }
        let Window { spent, drains, taken, mut empty, .. } = self.start_anew(now);
        if !empty.is_empty() {
            let middle = empty.len() / 2;
            self.empty = *empty.select_nth_unstable(middle).1;
        }
        if taken.sampled == 0 {
            return None;
        }
        let of_events = spent.saturating_sub(self.empty.saturating_mul(drains)).as_secs_f64();
        let cost = of_events * taken.sampled as f64 / taken.all as f64 / elapsed.as_secs_f64();
        if cost <= self.limit {
            return None;
        }
        TIMES.into_iter().find(|times| cost <= self.limit * f64::from(*times)).or(TIMES.last().copied())
    }

    /// What came so far does not count in the next answer: the rate is another one now, or it was answered for.
    pub(super) fn start_anew(&mut self, now: Instant) -> Window {
        mem::replace(&mut self.window, Window { begun: Some(now), ..Window::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_SAMPLED: Taken = Taken { all: 100, sampled: 100 };

    /// Answers to drains, one a second, before each of which the thread ran for so many milliseconds, of two processors' 2 %.
    fn answers(drains: impl IntoIterator<Item = (u64, Taken)>) -> Vec<Option<u32>> {
        let mut meter = Meter::new(Share::percent(2.0).unwrap(), 2);
        let (start, mut clock) = (Instant::now(), Duration::ZERO);
        meter.resume(clock);
        meter.excess(start);
        let answer = |(second, (ms, taken)): (u32, (u64, Taken))| {
            clock += Duration::from_millis(ms);
            meter.drained(clock, taken);
            meter.pause(clock);
            // What runs between two stretches is not counted.
            clock += Duration::from_millis(300);
            meter.resume(clock);
            meter.excess(start + Duration::from_secs(1) * second)
        };
        (1..).zip(drains).map(answer).collect()
    }

    fn all_sampled(ms: [u64; 5]) -> Option<u32> {
        answers(ms.map(|ms| (ms, ALL_SAMPLED)))[4]
    }

    #[test]
    fn what_takes_too_much_is_made_less_by_as_much() {
        assert_eq!(answers([(40, ALL_SAMPLED); 10]), [None; 10]);
        assert_eq!(all_sampled([0, 0, 0, 0, 201]), Some(2));
        assert_eq!(all_sampled([41; 5]), Some(2));
        assert_eq!(all_sampled([150; 5]), Some(4));
        assert_eq!(all_sampled([900; 5]), Some(8), "never all at once");
        assert_eq!(answers([(150, ALL_SAMPLED); 15]).into_iter().flatten().collect::<Vec<_>>(), [4; 3], "as long as it does");
    }

    #[test]
    fn what_fewer_events_do_not_make_less_is_left_alone() {
        let nothing = Taken::default();
        assert_eq!(answers([(900, nothing); 10]), [None; 10]);
        // Of 150 ms 120 are what each drain takes, known from the window before.
        assert_eq!(answers([(120, nothing); 5].into_iter().chain([(150, ALL_SAMPLED); 5])), [None; 10]);
        assert_eq!(answers([(80, nothing); 5].into_iter().chain([(150, ALL_SAMPLED); 5]))[9], Some(2));
        // A drain after which there is still something to do is the exception.
        let ends = [(150, ALL_SAMPLED), (120, nothing), (900, nothing), (120, nothing), (150, ALL_SAMPLED)];
        assert_eq!(answers(ends)[4], Some(8));
        // Most of the events are of what is never sampled.
        assert_eq!(answers([(150, Taken { all: 100, sampled: 25 }); 5]), [None; 5]);
        assert_eq!(answers([(150, Taken { all: 100, sampled: 50 }); 5])[4], Some(2));
    }
}
