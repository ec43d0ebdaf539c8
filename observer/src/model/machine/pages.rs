//! The page index: what each page holds, a folio or the shadow of one, as the kernel's page cache and swap table do.

use super::folios::Slot;
use crate::model::shadow_entry::Token;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing: never read, or removed by truncation.
    Empty,
    /// A resident folio.
    Folio(Slot),
    /// What eviction left.
    Shadow(Shadow),
}

/// A token in 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shadow(u32);

/// Bits of a token that a shadow keeps; the kernel keeps 36 with 1024 nodes (spec 7.1).
pub(crate) const TOKEN_BITS: u8 = 30;

impl Shadow {
    pub(crate) const fn new(value: u64, workingset: bool) -> Self {
        Self((value as u32) << 1 & (u32::MAX >> 1) | workingset as u32)
    }

    pub(crate) const fn token(self) -> Token {
        Token { value: (self.0 >> 1) as u64, workingset: self.0 & 1 != 0, bits: TOKEN_BITS }
    }
}

/// Entries by page key; odd words are shadows, as in an xarray.
#[derive(Debug, Default)]
pub(crate) struct PageIndex {
    words: Vec<u32>,
}

impl PageIndex {
    pub(crate) fn get(&self, key: u32) -> Entry {
        match self.words.get(key as usize) {
            None | Some(0) => Entry::Empty,
            Some(word) if word & 1 == 0 => Entry::Folio(word >> 1),
            Some(word) => Entry::Shadow(Shadow(word >> 1)),
        }
    }

    /// The resident folio of a page.
    pub(crate) fn folio(&self, key: u32) -> Option<Slot> {
        match self.words.get(key as usize) {
            Some(&word) if word != 0 && word & 1 == 0 => Some(word >> 1),
            _ => None,
        }
    }

    /// Sets the entries of `pages` pages.
    pub(crate) fn set(&mut self, first: u32, pages: u32, entry: Entry) {
        let (first, end) = (first as usize, first as usize + pages as usize);
        if end > self.words.len() {
            self.words.resize(end, 0);
        }
        let word = match entry {
            Entry::Empty => 0,
            Entry::Folio(slot) => slot << 1,
            Entry::Shadow(Shadow(shadow)) => shadow << 1 | 1,
        };
        self.words[first..end].fill(word);
    }

    /// Makes room for keys below `keys`, so that no event allocates.
    pub(crate) fn reserve(&mut self, keys: usize) {
        if keys > self.words.len() {
            self.words.resize(keys, 0);
        }
    }

    /// Keys that have room.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back() {
        let mut pages = PageIndex::default();
        assert_eq!(pages.get(1000), Entry::Empty);
        pages.set(4, 4, Entry::Folio(9));
        assert_eq!([pages.get(3), pages.get(4), pages.get(7)], [Entry::Empty, Entry::Folio(9), Entry::Folio(9)]);
        let shadow = Shadow::new(u64::MAX, true);
        assert_eq!(shadow.token(), Token { value: (1 << TOKEN_BITS) - 1, workingset: true, bits: TOKEN_BITS });
        pages.set(4, 4, Entry::Shadow(shadow));
        assert_eq!((pages.get(5), pages.folio(5)), (Entry::Shadow(shadow), None));
        let zero = Shadow::new(0, false);
        pages.set(5, 1, Entry::Shadow(zero));
        assert_eq!(pages.get(5), Entry::Shadow(zero), "a shadow of nothing is not nothing");
    }
}
