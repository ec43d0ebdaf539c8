//! Which page frames the census has still to look at. The programs do the looking (`observer-ebpf/src/census.rs`).
#![doc = include_str!("census.md")]

use std::time::{Duration, Instant};

use anyhow::Result;
use observer_common::Progress;

use crate::kernel::frames::Frames;

/// One run of the program should take this long: it cannot be preempted on every kernel.
const RUN: Duration = Duration::from_micros(500);

/// All runs between two drains: less than half of the time, on one CPU, until it is over.
const STEP: Duration = Duration::from_millis(8);

/// Page frames of the first run; later ones follow from what it took.
const FIRST: u64 = 1024;

/// Records of one run, and of all between two drains: a few per cent of the ring.
const RUN_RECORDS: u64 = 2048;
const STEP_RECORDS: u64 = 8192;

/// The walk over all page frames.
#[derive(Debug)]
pub(super) struct Census {
    frames: Frames,
    range: usize,
    next: u64,
    batch: u64,
    /// Frames passed, folios found on lists, records written; nanoseconds.
    pub(super) passed: u64,
    pub(super) folios: u64,
    pub(super) written: u64,
    pub(super) ns: u64,
}

impl Census {
    /// Over these frames, from the first.
    pub(super) fn new(frames: Frames) -> Self {
        let next = frames.ranges.first().map_or(0, |range| range.start);
        Self { frames, range: 0, next, batch: FIRST, passed: 0, folios: 0, written: 0, ns: 0 }
    }

    /// All frames.
    pub(super) fn count(&self) -> u64 {
        self.frames.count()
    }

    /// Whether every frame was looked at.
    pub(super) fn is_over(&self) -> bool {
        self.range >= self.frames.ranges.len()
    }

    /// Looks at as many as are good for one drain. `run` has the program look: arguments vmemmap, bytes of a struct page, first
    /// frame, end, records at most.
    pub(super) fn step(&mut self, mut run: impl FnMut([u64; 5]) -> Result<Progress>) -> Result<()> {
        let (start, before) = (Instant::now(), self.written);
        while !self.is_over() && start.elapsed() < STEP && self.written - before < STEP_RECORDS {
            let range = self.frames.ranges[self.range].clone();
            let end = range.end.min(self.next + self.batch);
            let run_start = Instant::now();
            let done = run([self.frames.vmemmap, self.frames.page_bytes, self.next, end, RUN_RECORDS])?;
            self.follow(&done, end, run_start.elapsed());
        }
        Ok(())
    }

    fn follow(&mut self, done: &Progress, end: u64, took: Duration) {
        // A program that does not move on would be asked for ever.
        let next = if done.next > self.next { done.next } else { end };
        let passed = next - self.next;
        self.passed += passed;
        self.folios += done.folios;
        self.written += done.written;
        self.ns += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Towards the wanted time, at most twice as many at once.
        let fitting =
            passed.saturating_mul(u64::try_from(RUN.as_nanos()).unwrap_or(0)) / u64::try_from(took.as_nanos()).unwrap_or(0).max(1);
        self.batch = fitting.clamp(256, (self.batch * 2).min(1 << 18));
        self.next = next;
        // A folio at the end of a range, or a hole, may reach into the next one.
        while let Some(range) = self.frames.ranges.get(self.range)
            && self.next >= range.end
        {
            self.range += 1;
            self.next = self.next.max(self.frames.ranges.get(self.range).map_or(0, |range| range.start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        Frames { vmemmap: 0xffff_ea00_0000_0000, page_bytes: 64, ranges: vec![1..5000, 8192..100_000] }
    }

    #[test]
    fn every_frame_is_looked_at_once_and_the_records_are_bounded() {
        let mut census = Census::new(frames());
        let mut seen = vec![0_u8; 100_000];
        let mut steps = 0;
        while !census.is_over() {
            let mut records = 0;
            census
                .step(|[_, _, first, end, limit]| {
                    let end = end.min(first + limit);
                    (first..end).for_each(|frame| seen[frame as usize] += 1);
                    records += end - first;
                    Ok(Progress { next: end, folios: end - first, written: end - first, unreadable: 0 })
                })
                .unwrap();
            assert!(records < STEP_RECORDS + RUN_RECORDS);
            steps += 1;
        }
        assert!(steps > 5);
        let wanted = |frame: &usize| frames().ranges.iter().any(|range| range.contains(&(*frame as u64)));
        assert!((0..seen.len()).all(|frame| seen[frame] == u8::from(wanted(&frame))));
        assert_eq!(census.passed, frames().count());
    }

    #[test]
    fn it_ends_whatever_the_program_says() {
        let mut census = Census::new(frames());
        let mut runs = 0;
        while !census.is_over() && runs < 10_000 {
            census.step(|_| Ok(Progress { next: if runs % 2 == 0 { 0 } else { u64::MAX / 2 }, ..Progress::default() })).unwrap();
            runs += 1;
        }
        assert!(census.is_over());
    }
}
