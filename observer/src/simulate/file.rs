//! A file as its readers see it: `read(2)` with readahead, and mappings with fault-around (spec 3.1, 12.1; readahead windows from memory).

use crate::model::{Cache, Entering};

/// How the kernel reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readahead {
    /// Largest window, pages (128 KiB by default); 0 as after fadvise(RANDOM): single pages.
    pub pages: u32,
    /// Largest folio, log2 of its pages; 0 for a file system without large folios.
    pub max_order: u8,
    /// Above as many misses that no hit made up for, a mapping is not read around; counting ends at ten times as many.
    pub lots_of_misses: u32,
}

impl Readahead {
    /// fadvise(RANDOM).
    pub const OFF: Self = Self { pages: 0, max_order: 0, lots_of_misses: LOTS_OF_MISSES };
    /// The default window, single pages.
    pub const SMALL: Self = Self { pages: 32, ..Self::OFF };
    /// The default window with large folios up to its size.
    pub const LARGE: Self = Self { max_order: 5, ..Self::SMALL };

    /// For a file that is one in `scale` of the real one: misses are counted against its pages, and so their limit shrinks with them, or a
    /// small file would be read around whole before the kernel gave it up.
    pub const fn scaled(self, scale: u32) -> Self {
        let misses = self.lots_of_misses / if scale > 0 { scale } else { 1 };
        Self { lots_of_misses: if misses > 0 { misses } else { 1 }, ..self }
    }
}

/// Pages that a fault maps around the one it is for (`fault_around_bytes`, 64 KiB).
const FAULT_AROUND: u32 = 16;
/// The kernel's own number (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;

/// One open file of one reader. Keys are `base..base + pages`; `base` is a multiple of 512.
#[derive(Clone, Debug)]
pub struct File {
    base: u32,
    pages: u32,
    readahead: Readahead,
    /// Page in which the last read ended.
    last: Option<u32>,
    /// Window: first page, length, and the page whose read starts the next one.
    start: u32,
    size: u32,
    marker: Option<u32>,
    order: u8,
    /// Misses of the mapping less its hits.
    mmap_misses: u32,
}

impl File {
    /// A file just opened.
    pub const fn new(base: u32, pages: u32, readahead: Readahead) -> Self {
        Self { base, pages, readahead, last: None, start: 0, size: 0, marker: None, order: 0, mmap_misses: 0 }
    }

    /// Its length in pages.
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// Whether a page of it is there.
    pub fn is_resident(&self, cache: &dyn Cache, page: u32) -> bool {
        cache.is_resident(self.base + page)
    }

    /// `read(2)` of one page.
    pub fn read(&mut self, cache: &mut dyn Cache, page: u32) {
        let key = self.base + page;
        if self.readahead.pages > 0 {
            self.read_ahead(cache, page);
        }
        // The folio in which the last read ended is not marked again.
        match self.last.replace(page) {
            Some(last) if cache.same_folio(self.base + last, key) => cache.read_on(),
            _ => {
                cache.read(key);
            }
        }
    }

    /// Opens or moves the readahead window if this page asks for it.
    fn read_ahead(&mut self, cache: &mut dyn Cache, page: u32) {
        let max = self.readahead.pages;
        if self.marker == Some(page) {
            // Asynchronous: the reader has come to the marked page of the window.
            self.start += self.size;
            self.size = if self.size < max / 16 { 4 * self.size } else { (2 * self.size).min(max) };
            self.order = (self.order + 2).min(self.readahead.max_order).min(self.size.ilog2() as u8);
            // The window ends where a folio of its order ends.
            let end = self.start + self.size;
            let aligned = end - end % (1 << self.order);
            if aligned > self.start {
                self.size = aligned - self.start;
            }
            self.marker = Some(self.start);
            self.bring_window(cache);
        } else if !cache.is_resident(self.base + page) && (page == 0 || self.last == Some(page - 1)) {
            // A sequential miss: the first window is four pages for single-page reads.
            self.start = page;
            self.size = 4.min(max);
            self.order = 0;
            self.marker = Some(page + 1);
            self.bring_window(cache);
        }
    }

    fn bring_window(&mut self, cache: &mut dyn Cache) {
        let end = (self.start + self.size).min(self.pages);
        let mut at = self.start;
        while at < end {
            let mut order = self.order;
            while order > 0 && (!at.is_multiple_of(1 << order) || at + (1 << order) > end) {
                order -= 1;
            }
            cache.add(self.base + at, order, Entering::READ);
            at += 1 << order;
        }
    }

    /// An access through a mapping. `recency` is false for MADV_RANDOM and MADV_SEQUENTIAL, whose accesses the kernel does not see (spec 9.29).
    pub fn touch(&mut self, cache: &mut dyn Cache, page: u32, recency: bool) {
        let key = self.base + page;
        let how = Entering { in_fault: recency, ..Entering::READ };
        if !cache.is_resident(key) {
            self.mmap_misses = (self.mmap_misses + 1).min(10 * self.readahead.lots_of_misses);
            if self.readahead.pages > 0 && self.mmap_misses <= self.readahead.lots_of_misses {
                let half = self.readahead.pages / 2;
                for around in page.saturating_sub(half)..(page + half).min(self.pages) {
                    // The page itself comes in with its neighbours, in their order.
                    cache.add(self.base + around, 0, how);
                }
            }
        } else if !cache.is_mapped(key) {
            let first = page - page % FAULT_AROUND;
            for around in first..(first + FAULT_AROUND).min(self.pages) {
                if cache.is_resident(self.base + around) && !cache.is_mapped(self.base + around) {
                    // x86 maps them with the accessed bit set.
                    cache.map(self.base + around, recency);
                    self.mmap_misses = self.mmap_misses.saturating_sub(1);
                }
            }
        }
        if recency {
            cache.touch(key, how);
        } else {
            if !cache.is_resident(key) {
                cache.add(key, 0, how);
            }
            cache.map(key, false);
            cache.read_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rules::V7_3;
    use crate::model::{Config, Lru};

    fn cache() -> Box<dyn Cache> {
        Lru::Generations(V7_3).cache(Config::pages(1 << 16))
    }

    fn resident(cache: &dyn Cache, pages: u32) -> Vec<u32> {
        (0..pages).filter(|&page| cache.is_resident(page)).collect()
    }

    #[test]
    fn random_reads_bring_single_pages() {
        let mut cache = cache();
        for readahead in [Readahead::OFF, Readahead::SMALL] {
            File::new(0, 1000, readahead).read(&mut *cache, 500);
            assert_eq!(resident(&*cache, 1000), [500]);
        }
    }

    #[test]
    fn sequential_windows_grow_and_folios_with_them() {
        for (readahead, largest) in [(Readahead::SMALL, 1), (Readahead::LARGE, 32)] {
            let mut cache = cache();
            let mut file = File::new(0, 4096, readahead);
            let mut windows = Vec::new();
            for page in 0..1024 {
                let before = cache.resident();
                file.read(&mut *cache, page);
                if cache.resident() > before {
                    windows.push(cache.resident() - before);
                }
            }
            assert_eq!(windows[..2], [4, 8]);
            assert!(windows.iter().all(|&pages| pages <= 32) && windows.last() == Some(&32), "{windows:?}");
            assert_eq!(cache.counters().accesses, 1024);
            assert_eq!(cache.counters().misses, 0, "always ahead of the reader");
            let run = (0..1024).filter(|&page| cache.same_folio(512, page)).count();
            assert_eq!(run, largest);
        }
    }

    #[test]
    fn a_folio_is_marked_once_for_a_run_of_reads() {
        let mut cache = cache();
        let mut file = File::new(0, 64, Readahead::OFF);
        for page in [3, 3, 3, 4, 3] {
            file.read(&mut *cache, page);
        }
        cache.drain();
        let window = cache.generations().expect("generations");
        assert_eq!((cache.counters().accesses, window.by_age[2][1]), (5, 2));
    }

    #[test]
    fn a_fault_reads_around_and_maps_around() {
        let mut cache = cache();
        let mut file = File::new(0, 1000, Readahead::SMALL);
        file.touch(&mut *cache, 100, true);
        assert_eq!(resident(&*cache, 1000), (84..116).collect::<Vec<_>>());
        assert!(cache.is_mapped(100) && !cache.is_mapped(101), "a major fault maps its own page");
        file.touch(&mut *cache, 101, true);
        let mapped: Vec<_> = (0..1000).filter(|&page| cache.is_mapped(page)).collect();
        assert_eq!(mapped, (96..112).collect::<Vec<_>>());
    }

    #[test]
    fn reading_around_ends_when_it_does_not_help() {
        let mut cache = cache();
        let mut file = File::new(0, 60_000, Readahead::SMALL);
        for n in 0..LOTS_OF_MISSES + 1 {
            file.touch(&mut *cache, n * 500, true);
        }
        let last = LOTS_OF_MISSES * 500;
        assert!(cache.is_resident(last) && !cache.is_resident(last + 1));
    }

    #[test]
    fn a_smaller_file_is_given_up_as_early() {
        let mut cache = cache();
        let readahead = Readahead::SMALL.scaled(32);
        assert_eq!((readahead.lots_of_misses, Readahead::SMALL.scaled(1000).lots_of_misses), (3, 1));
        let mut file = File::new(0, 60_000, readahead);
        for n in 0..4 {
            file.touch(&mut *cache, n * 500, true);
        }
        assert!(cache.is_resident(1001) && !cache.is_resident(1501));
    }

    #[test]
    fn accesses_without_recency_leave_no_trace() {
        let mut cache = cache();
        let mut file = File::new(0, 1000, Readahead::OFF);
        file.touch(&mut *cache, 7, false);
        cache.drain();
        assert!(cache.is_mapped(7));
        assert_eq!(cache.generations().expect("generations").by_age[3][1], 1, "untouched: the oldest");
    }
}
