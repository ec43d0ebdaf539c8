//! What a split made: the kernel says nothing of it. The first folio shows at its next event that it is smaller than it was,
//! and the others are looked for where they must be, by the sweep.
//!
//! A split need not be even (7.x): cutting 16 pages at the sixth leaves folios of 4, 1, 1, 2 and 8 pages, each at a multiple of its
//! size. So an entry that looks for a folio says how many pages may hang on it. Found smaller, the rest of these is looked
//! for in turn; not found, because that part is gone or is inside a larger folio, so are the parts that follow it.

use observer_common::Known;

use super::sweep::Sweep;

/// The largest folio whose parts are looked for: 8 MiB in pages of 4 KiB.
const MAX_ORDER: u64 = 11;

/// How far a search goes where nothing is found. In [`Known::index`] of what was never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Not further: nobody knows that there was a split.
    OnlyThere = 0,
    /// Down to single pages.
    Further = 1,
}

/// [`Known::ino`] of what was never seen, once the program has looked.
const ASKED: u64 = 1;

/// Whether an entry is no folio but the search for one.
pub(super) fn is_search(known: &Known) -> bool {
    known.flags == Known::UNSEEN
}

/// The program has looked at these.
pub(super) fn asked(entries: &mut [Known]) {
    entries.iter_mut().filter(|known| is_search(known)).for_each(|known| known.ino = ASKED);
}

impl Sweep {
    /// A large folio of `order` became several, and this is the first of them.
    pub(super) fn split(&mut self, first: &Known, order: u64) {
        if order > MAX_ORDER || first.order >= order {
            return;
        }
        for part in 1..1_u64 << (order - first.order) {
            self.look_for(first.folio, part << first.order, first.order, Search::Further);
        }
    }

    /// Looks for folios behind the first page of what was a folio: at each place where a part of half the size, a quarter and so on may be.
    pub(super) fn look_below(&mut self, gone: &Known, search: Search) {
        if gone.order <= MAX_ORDER {
            (0..gone.order).for_each(|order| self.look_for(gone.folio, 1 << order, order, search));
        }
    }

    fn look_for(&mut self, first: u64, page: u64, order: u64, search: Search) {
        let folio = first.wrapping_add(page.wrapping_mul(self.page_bytes));
        if self.page_bytes != 0 && self.place(folio).is_none() {
            self.follow(Known { folio, flags: Known::UNSEEN, ino: 0, index: search as u64, order });
            self.due = true;
        }
    }

    /// Ends the searches that found nothing. Who never was there is not looked for again.
    pub(super) fn conclude(&mut self) {
        let over: Vec<Known> = self.followed.iter().filter(|known| is_search(known) && known.ino == ASKED).copied().collect();
        for known in over {
            self.forget(known.folio);
            if known.index == Search::Further as u64 && self.around(known.folio).is_none() {
                self.look_below(&known, Search::Further);
            }
        }
    }

    /// The followed folio that an address is inside of, and not the first page of.
    pub(super) fn around(&self, folio: u64) -> Option<&Known> {
        if !self.page_bytes.is_power_of_two() {
            return None;
        }
        // The map of struct pages begins at a multiple of every folio's, so an address is aligned as its page frame is.
        (1..=MAX_ORDER).find_map(|order| {
            let first = folio & !((self.page_bytes << order) - 1);
            let known = self.followed.get(self.place(first)? as usize)?;
            (first != folio && !is_search(known) && known.order >= order).then_some(known)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::capture::sweep::tests::{event, swept};
    use crate::stream::event::{Body, Event, Kind};

    const BYTES: u64 = 64;
    const BASE: u64 = 0xffff_ea00_0000_0000;

    /// The kernel's side: order by page.
    type Folios = BTreeMap<u64, u8>;

    /// One sweep over what really is there, with its records.
    fn sweep_over(sweep: &mut Sweep, folios: &Folios) -> usize {
        let asked = swept(sweep);
        for known in &asked {
            let page = (known.folio - BASE) / BYTES;
            match folios.get(&page) {
                Some(order) if is_search(known) || u64::from(*order) != known.order => {
                    sweep.saw(&event(Kind::Sweep, known.folio, page, *order));
                }
                Some(_) => {}
                // What was split is free if it is no folio any more; a search finds nothing to tell of.
                None if is_search(known) => {}
                None => sweep.saw(&free(known.folio, page)),
            }
        }
        asked.len()
    }

    fn free(folio: u64, page: u64) -> Event {
        let mut event = event(Kind::Sweep, folio, page, 0);
        if let Body::Folio(folio) = &mut event.body {
            folio.aux = observer_common::sweep::FREE;
        }
        event
    }

    /// Sweeps until nothing is looked for; the pages followed, and how many entries were asked about.
    fn found(mut sweep: Sweep, folios: &Folios) -> (BTreeSet<(u64, u64)>, usize) {
        let mut asked = 0;
        for _ in 0..20 {
            asked += sweep_over(&mut sweep, folios);
        }
        assert!(sweep.followed.iter().all(|known| !is_search(known)));
        (sweep.followed.iter().map(|known| ((known.folio - BASE) / BYTES, known.order)).collect(), asked)
    }

    fn one_folio(page: u64, order: u8) -> Sweep {
        let mut sweep = Sweep::new(BYTES, usize::MAX);
        sweep.saw(&event(Kind::Insert, BASE + page * BYTES, page, order));
        sweep
    }

    /// As 7.x splits 2^order pages so that one page stands alone (the parts of it are each at a multiple of their size).
    fn cut(first: u64, order: u8, page: u64) -> Folios {
        let mut folios = Folios::new();
        let mut inside = first;
        for order in (0..order).rev() {
            let (left, right) = (inside, inside + (1 << order));
            let (rest, next) = if page < right { (right, left) } else { (left, right) };
            folios.insert(rest, order);
            inside = next;
        }
        folios.insert(page, 0);
        folios
    }

    #[test]
    fn every_part_of_an_uneven_split_is_found_whichever_is_gone() {
        for page in 32..64 {
            let whole = cut(32, 5, page);
            for gone in whole.keys().copied().chain([u64::MAX]) {
                // The first part goes with an event that tells its size; another goes unseen.
                let mut sweep = one_folio(32, 5);
                let mut folios = whole.clone();
                let order = folios.remove(&gone);
                if let (32, Some(order)) = (gone, order) {
                    sweep.saw(&event(Kind::Delete, BASE + 32 * BYTES, 32, order));
                }
                let wanted: BTreeSet<(u64, u64)> = folios.iter().map(|(page, order)| (*page, u64::from(*order))).collect();
                let (found, asked) = found(sweep, &folios);
                assert_eq!(found, wanted, "cut at {page}, {gone} gone");
                assert!(asked < 20 * wanted.len() + 64, "{asked} asked");
            }
        }
    }

    #[test]
    fn what_is_freed_as_a_whole_is_asked_about_at_few_places() {
        let (found, asked) = found(one_folio(512, 9), &Folios::new());
        assert!(found.is_empty());
        assert_eq!(asked, 1 + 9);
    }

    #[test]
    fn the_end_of_a_part_tells_that_there_was_a_split() {
        let mut sweep = one_folio(32, 4);
        sweep.due = false;
        sweep.saw(&event(Kind::Delete, BASE + 31 * BYTES, 31, 0));
        sweep.saw(&event(Kind::Evict, BASE + 48 * BYTES, 48, 0));
        assert!(!sweep.due, "both are outside");
        sweep.saw(&event(Kind::Delete, BASE + 37 * BYTES, 37, 0));
        assert!(sweep.due);
    }
}
