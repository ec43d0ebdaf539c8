//! The folios that are followed, with what was last seen of them, so that the kernel can be asked which have changed
//! without anything being called: a page-table walk that was inlined, memory freed by a process, a split.

use std::time::{Duration, Instant};

use anyhow::Result;
use observer_common::{Known, Progress, SWAP_DEV, SWEEP_LEN, sample, sweep};

use super::split::{self, Search};
use crate::index::{Index, of_address};
use crate::stream::event::{Body, Event, FolioEvent, Kind};
use crate::stream::header::FlagLayout;

/// Folios followed at most: 8 GiB of 4 KiB pages, 120 MB here. A smaller machine has fewer.
const MAX_FOLLOWED: usize = 1 << 21;

/// All runs between two drains.
const STEP: Duration = Duration::from_millis(2);

/// Time between the end of a sweep and the beginning of the next, at least; and in multiples of what it took.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_FACTOR: u32 = 20;

/// A sweep without an occasion: memory that processes free is reported by nothing else.
const IDLE: Duration = Duration::from_secs(10);

/// Bits of a flags word whose change is news. References are not: hooks report them, and every access would be news.
pub(super) fn mask(layout: &FlagLayout, references: bool) -> u64 {
    let bit = |number: u8| 1_u64 << (number & 63);
    let named = bit(layout.lru) | bit(layout.head) | bit(layout.swapbacked) | bit(layout.unevictable) | bit(layout.active);
    let generation = layout.gen_pgoff.map_or(0, |at| 7 << (at & 63));
    let width = u32::from(layout.refs_width.unwrap_or(0).min(4));
    let field = layout.refs_pgoff.map_or(0, |at| ((1 << width) - 1) << (at & 63));
    let counted = if references { bit(layout.referenced) | bit(layout.workingset) | field } else { 0 };
    named | generation | counted
}

/// The table, and how far a sweep over it has come.
pub(super) struct Sweep {
    /// Bits of a flags word that are compared.
    pub(super) mask: u64,
    /// PG_swapbacked's bit.
    pub(super) swapbacked: u64,
    /// Bytes of a struct page, to find what a split made; 0 unknown.
    pub(super) page_bytes: u64,
    pub(super) followed: Vec<Known>,
    index: Index,
    /// Folios followed at most.
    most: usize,
    /// Something happened after which flags may have changed.
    pub(super) due: bool,
    /// Place in the table, while a sweep runs.
    at: Option<usize>,
    ended: Instant,
    took: Duration,
    /// Sweeps, folios compared, of those changed; nanoseconds.
    pub(super) sweeps: u64,
    pub(super) folios: u64,
    pub(super) written: u64,
    pub(super) ns: u64,
    /// Folios that found the table full.
    pub(super) refused: u64,
}

impl Sweep {
    /// Nothing followed yet, and no more than that at once.
    pub(super) fn new(page_bytes: u64, most: usize) -> Self {
        Self {
            mask: u64::MAX,
            swapbacked: 0,
            page_bytes,
            followed: Vec::new(),
            index: Index::default(),
            most: most.min(MAX_FOLLOWED),
            due: false,
            at: None,
            ended: Instant::now(),
            took: Duration::ZERO,
            sweeps: 0,
            folios: 0,
            written: 0,
            ns: 0,
            refused: 0,
        }
    }

    /// Takes note of an event.
    pub(super) fn saw(&mut self, event: &Event) {
        match &event.body {
            Body::Folio(folio) => self.folio(folio),
            Body::Lruvec { kind: Kind::Age | Kind::ShrinkExit, .. } => self.due = true,
            _ => {}
        }
    }

    fn folio(&mut self, event: &FolioEvent) {
        let gone = event.kind == Kind::Sweep && event.aux & sweep::FREE != 0;
        if gone || matches!(event.kind, Kind::Evict | Kind::Delete) {
            self.leaves(event, gone);
            return;
        }
        let at = self.place(event.folio).map(|at| at as usize);
        if let Some(known) = at.and_then(|at| self.followed.get_mut(at)) {
            known.flags = event.flags;
        }
        let (Some(identity), Some(home)) = (event.identity, event.home) else { return };
        if identity.dev == SWAP_DEV {
            return;
        }
        let new = Known { folio: event.folio, flags: event.flags, ino: identity.ino, index: identity.index, order: u64::from(home.order) };
        match at.and_then(|at| self.followed.get_mut(at)) {
            Some(known) => {
                let before = std::mem::replace(known, new);
                if before.order > new.order {
                    self.split(&new, before.order);
                }
            }
            None => self.follow(new),
        }
    }

    fn leaves(&mut self, event: &FolioEvent, free: bool) {
        let Some(known) = self.forget(event.folio) else {
            // A part of what is still followed as one: it was split, and the rest is to be looked at before long.
            self.due |= self.around(event.folio).is_some();
            return;
        };
        let order = event.home.map_or(0, |home| u64::from(home.order));
        if known.order <= order {
            return;
        }
        if free {
            // Whether all of it was freed or only its first part, after a split, cannot be told from here.
            self.look_below(&known, Search::OnlyThere);
        } else {
            self.split(&Known { order, ..known }, known.order);
        }
    }

    /// Where a folio is in the table.
    pub(super) fn place(&self, folio: u64) -> Option<u32> {
        self.index.find(of_address(folio), |at| self.followed[at as usize].folio == folio)
    }

    pub(super) fn follow(&mut self, known: Known) {
        if self.followed.len() >= self.most {
            self.refused += 1;
            return;
        }
        self.index.put(of_address(known.folio), u32::try_from(self.followed.len()).unwrap_or(u32::MAX), |_| false);
        self.followed.push(known);
    }

    pub(super) fn forget(&mut self, folio: u64) -> Option<Known> {
        let at = self.place(folio)?;
        self.index.remove(of_address(folio), at);
        let last = u32::try_from(self.followed.len()).unwrap_or(u32::MAX) - 1;
        let known = self.followed.swap_remove(at as usize);
        if let Some(moved) = self.followed.get(at as usize) {
            let hash = of_address(moved.folio);
            self.index.remove(hash, last);
            self.index.put(hash, at, |_| false);
        }
        Some(known)
    }

    /// Goes on following only what a sample of one in so many keeps. Lazily freed memory is taken for a file's here, and may be
    /// left out until its next event.
    pub(super) fn keep_fewer(&mut self, one_in: u32) {
        let unit = |known: &Known| {
            if known.flags & self.swapbacked != 0 { sample::of_address(known.folio) } else { sample::of_file(known.ino, known.index) }
        };
        let gone: Vec<u64> = self
            .followed
            .iter()
            .filter(|known| !split::is_search(known) && !sample::keeps(unit(known), one_in))
            .map(|known| known.folio)
            .collect();
        for folio in gone {
            self.forget(folio);
        }
        // What moved to the places of those that went is met in the next sweep.
        self.at = self.at.map(|at| at.min(self.followed.len()));
    }

    /// Compares as many as are good for one drain, if it is time. `run` has the program compare entries under a mask.
    pub(super) fn step(&mut self, mut run: impl FnMut(&[Known], u64) -> Result<Progress>) -> Result<()> {
        let Some(mut at) = self.at.or_else(|| self.begins()) else { return Ok(()) };
        let start = Instant::now();
        while at < self.followed.len() && start.elapsed() < STEP {
            let end = self.followed.len().min(at + SWEEP_LEN);
            let done = run(&self.followed[at..end], self.mask)?;
            self.folios += (end - at) as u64;
            self.written += done.written;
            split::asked(&mut self.followed[at..end]);
            at = end;
        }
        self.took += start.elapsed();
        self.at = Some(at);
        if at >= self.followed.len() {
            self.ends();
        }
        Ok(())
    }

    fn begins(&mut self) -> Option<usize> {
        let pause = PAUSE.max(self.took * PAUSE_FACTOR);
        let since = self.ended.elapsed();
        if self.followed.is_empty() || since < pause || !(self.due || since >= IDLE.max(pause)) {
            return None;
        }
        self.due = false;
        self.took = Duration::ZERO;
        // By now the records of the latest sweep have come.
        self.conclude();
        Some(0)
    }

    fn ends(&mut self) {
        self.sweeps += 1;
        self.ns += u64::try_from(self.took.as_nanos()).unwrap_or(u64::MAX);
        self.at = None;
        self.ended = Instant::now();
        self.due |= self.followed.iter().any(split::is_search);
    }

    /// Whether a sweep has ended since the count was this.
    pub(super) fn has_ended_since(&self, sweeps: u64) -> bool {
        self.sweeps != sweeps
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stream::event::{Home, Identity};
    use crate::stream::header::tests::layout;

    pub(in crate::capture) fn event(kind: Kind, folio: u64, index: u64, order: u8) -> Event {
        let cold = !matches!(kind, Kind::Mark);
        let body = Body::Folio(FolioEvent {
            kind,
            folio,
            flags: 7,
            clock: None,
            aux: 0,
            identity: cold.then_some(Identity { dev: 8, ino: 4, index }),
            home: cold.then_some(Home { cgroup: 1, memcg_id: 1, node: 0, order }),
            shadow: 0,
        });
        Event { ts: 1, cpu: 0, body }
    }

    /// Lets time for a sweep pass.
    pub(in crate::capture) fn swept(sweep: &mut Sweep) -> Vec<Known> {
        let mut asked = Vec::new();
        sweep.due = true;
        sweep.ended = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        sweep
            .step(|known, _| {
                asked.extend_from_slice(known);
                Ok(Progress::default())
            })
            .unwrap();
        asked
    }

    #[test]
    fn what_came_is_asked_about_until_it_is_gone() {
        let mut sweep = Sweep::new(64, MAX_FOLLOWED);
        for folio in 1..=5 {
            sweep.saw(&event(Kind::Insert, folio * 64, folio, 0));
        }
        sweep.saw(&event(Kind::Evict, 64, 1, 0));
        sweep.saw(&event(Kind::Delete, 128, 2, 0));
        // Nobody's birth, nobody's hot event.
        sweep.saw(&event(Kind::Mark, 6400, 0, 0));
        let mut asked: Vec<u64> = swept(&mut sweep).iter().map(|known| known.folio / 64).collect();
        asked.sort_unstable();
        assert_eq!(asked, [3, 4, 5]);
        assert_eq!((sweep.sweeps, sweep.folios), (1, 3));
        let mut free = event(Kind::Sweep, 192, 3, 0);
        if let Body::Folio(folio) = &mut free.body {
            folio.aux = sweep::FREE;
        }
        sweep.saw(&free);
        assert_eq!(swept(&mut sweep).len(), 2);
    }

    #[test]
    fn a_full_table_refuses_and_counts_until_someone_goes() {
        let mut sweep = Sweep::new(64, 100);
        for folio in 1..=250 {
            sweep.saw(&event(Kind::Insert, folio * 64, folio, 0));
        }
        assert_eq!((sweep.followed.len(), sweep.index.len(), sweep.refused), (100, 100, 150));
        for folio in (1..=100).rev().step_by(2) {
            sweep.saw(&event(Kind::Evict, folio * 64, folio, 0));
            sweep.saw(&event(Kind::Insert, (1000 + folio) * 64, folio, 0));
        }
        assert_eq!((sweep.followed.len(), sweep.index.len(), sweep.refused), (100, 100, 150));
        let mut asked: Vec<u64> = swept(&mut sweep).iter().map(|known| known.folio / 64).collect();
        asked.sort_unstable();
        let expected: Vec<u64> = (1..100).step_by(2).chain((1002..=1100).step_by(2)).collect();
        assert_eq!(asked, expected);
    }

    #[test]
    fn sweeps_are_apart_and_only_on_occasion() {
        let mut sweep = Sweep::new(64, MAX_FOLLOWED);
        sweep.saw(&event(Kind::Insert, 64, 1, 0));
        let mut runs = 0;
        let mut count = |sweep: &mut Sweep| {
            sweep
                .step(|_, _| {
                    runs += 1;
                    Ok(Progress::default())
                })
                .unwrap();
            runs
        };
        sweep.ended = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        assert_eq!(count(&mut sweep), 0, "no occasion");
        sweep.due = true;
        assert_eq!(count(&mut sweep), 1);
        sweep.due = true;
        assert_eq!(count(&mut sweep), 1, "too soon");
    }

    #[test]
    fn what_a_split_made_is_looked_for_once() {
        let mut sweep = Sweep::new(64, MAX_FOLLOWED);
        sweep.saw(&event(Kind::Insert, 0x10000, 8, 2));
        sweep.saw(&event(Kind::Sweep, 0x10000, 8, 0));
        let asked: Vec<u64> = swept(&mut sweep).iter().map(|known| known.folio).collect();
        assert_eq!(asked, [0x10000, 0x10040, 0x10080, 0x100c0]);
        assert_eq!(swept(&mut sweep).len(), 1, "none of them was there");
    }

    #[test]
    fn only_the_sample_is_followed_on() {
        let mut sweep = Sweep::new(64, MAX_FOLLOWED);
        for folio in 1..=64 {
            sweep.saw(&event(Kind::Insert, folio * 64, folio, 0));
        }
        sweep.keep_fewer(8);
        let mut asked: Vec<u64> = swept(&mut sweep).iter().map(|known| known.index).collect();
        asked.sort_unstable();
        let kept: Vec<u64> = (1..=64).filter(|index| sample::keeps(sample::of_file(4, *index), 8)).collect();
        assert!(!kept.is_empty() && kept.len() < 32, "{kept:?}");
        assert_eq!(asked, kept);
    }

    #[test]
    fn references_are_news_only_where_no_hook_reports_them() {
        let layout = layout();
        let (without, with) = (mask(&layout, false), mask(&layout, true));
        assert_eq!(with & !without, 1 << 2 | 1 << 9 | 3 << 25);
        assert_eq!(without, 7 << 27 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 17 | 1 << 18);
    }
}
