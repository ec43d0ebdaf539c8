//! The folios of one lruvec as a struct of arrays, on intrusive circular lists by index.

use crate::model::flags::{FolioFlags, Traits};

/// Index of a folio, or of a list head when below [`HEADS`].
pub(crate) type Slot = u32;

/// List heads at the front of the link arrays: four generations × two types.
pub(crate) const HEADS: u32 = 8;

/// No folio.
pub(crate) const NONE: Slot = u32::MAX;

/// What a folio is and what its mappings say, packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr(u16);

impl Attr {
    pub(crate) const FILE: u16 = 1;
    pub(crate) const SWAPCACHE: u16 = 1 << 1;
    pub(crate) const RECLAIM: u16 = 1 << 2;
    pub(crate) const DIRTY: u16 = 1 << 3;
    pub(crate) const WRITEBACK: u16 = 1 << 4;
    pub(crate) const UNEVICTABLE: u16 = 1 << 5;
    pub(crate) const DROPBEHIND: u16 = 1 << 6;
    pub(crate) const EXEC: u16 = 1 << 7;
    pub(crate) const MAPPED: u16 = 1 << 8;
    /// A PTE has the accessed bit, where the kernel would look.
    pub(crate) const YOUNG: u16 = 1 << 9;
    /// Waits in an `activate` batch.
    pub(crate) const ACTIVATING: u16 = 1 << 10;
    const ORDER_SHIFT: u16 = 12;

    pub(crate) const fn new(bits: u16, order: u8) -> Self {
        Self(bits | (order as u16) << Self::ORDER_SHIFT)
    }

    pub(crate) const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    pub(crate) const fn has_all(self, bits: u16) -> bool {
        self.0 & bits == bits
    }

    pub(crate) const fn set(&mut self, bits: u16) {
        self.0 |= bits;
    }

    pub(crate) const fn clear(&mut self, bits: u16) {
        self.0 &= !bits;
    }

    pub(crate) const fn pages(self) -> u32 {
        1 << (self.0 >> Self::ORDER_SHIFT)
    }

    pub(crate) const fn file(self) -> bool {
        self.has(Self::FILE)
    }

    pub(crate) const fn traits(self) -> Traits {
        Traits {
            file: self.has(Self::FILE),
            swapcache: self.has(Self::SWAPCACHE),
            reclaim: self.has(Self::RECLAIM),
            dirty: self.has(Self::DIRTY),
            writeback: self.has(Self::WRITEBACK),
            unevictable: self.has(Self::UNEVICTABLE),
            dropbehind: self.has(Self::DROPBEHIND),
            exec: self.has(Self::EXEC),
            mapped: self.has(Self::MAPPED),
            pages: self.pages(),
        }
    }
}

/// What the flags word shows: gen field (0 off the lists) and LRU bits. The classical LRU keeps 1 for "on a list".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) flags: FolioFlags,
    pub(crate) gen_field: u8,
}

/// All folios; 16 bytes each.
#[derive(Debug)]
pub(crate) struct Folios {
    next: Vec<Slot>,
    prev: Vec<Slot>,
    key: Vec<u32>,
    word: Vec<Word>,
    attr: Vec<Attr>,
    /// First of the free folios, linked by `next`.
    free: Slot,
    live: u32,
}

impl Folios {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut folios = Self {
            next: Vec::with_capacity(capacity),
            prev: Vec::with_capacity(capacity),
            key: Vec::with_capacity(capacity),
            word: Vec::with_capacity(capacity),
            attr: Vec::with_capacity(capacity),
            free: NONE,
            live: 0,
        };
        for head in 0..HEADS {
            folios.push(0, Attr::default(), head);
        }
        folios
    }

    fn push(&mut self, key: u32, attr: Attr, link: Slot) {
        self.next.push(link);
        self.prev.push(link);
        self.key.push(key);
        self.word.push(Word::default());
        self.attr.push(attr);
    }

    /// A new folio, off the lists, without flags.
    pub(crate) fn allocate(&mut self, key: u32, attr: Attr) -> Slot {
        self.live += 1;
        if self.free == NONE {
            self.push(key, attr, NONE);
            return self.key.len() as Slot - 1;
        }
        let slot = self.free;
        let at = slot as usize;
        self.free = self.next[at];
        self.key[at] = key;
        self.word[at] = Word::default();
        self.attr[at] = attr;
        slot
    }

    /// Gives an unlinked folio back.
    pub(crate) fn release(&mut self, slot: Slot) {
        let at = slot as usize;
        self.live -= 1;
        self.attr[at] = Attr::default();
        self.word[at] = Word::default();
        self.next[at] = self.free;
        self.free = slot;
    }

    /// Folios in use.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// All slots ever used; free ones have neither flags nor attributes.
    pub(crate) fn slots(&self) -> std::ops::Range<Slot> {
        HEADS..self.key.len() as Slot
    }

    pub(crate) fn key(&self, slot: Slot) -> u32 {
        self.key[slot as usize]
    }

    pub(crate) fn word(&self, slot: Slot) -> Word {
        self.word[slot as usize]
    }

    pub(crate) fn word_mut(&mut self, slot: Slot) -> &mut Word {
        &mut self.word[slot as usize]
    }

    pub(crate) fn attr(&self, slot: Slot) -> Attr {
        self.attr[slot as usize]
    }

    pub(crate) fn attr_mut(&mut self, slot: Slot) -> &mut Attr {
        &mut self.attr[slot as usize]
    }

    /// Links behind the head: the young end.
    pub(crate) fn push_head(&mut self, head: Slot, slot: Slot) {
        self.link(head, slot, self.next[head as usize]);
    }

    /// Links before the head: the end that reclaim scans.
    pub(crate) fn push_tail(&mut self, head: Slot, slot: Slot) {
        self.link(self.prev[head as usize], slot, head);
    }

    fn link(&mut self, before: Slot, slot: Slot, after: Slot) {
        self.next[before as usize] = slot;
        self.prev[slot as usize] = before;
        self.next[slot as usize] = after;
        self.prev[after as usize] = slot;
    }

    pub(crate) fn unlink(&mut self, slot: Slot) {
        let (before, after) = (self.prev[slot as usize], self.next[slot as usize]);
        self.next[before as usize] = after;
        self.prev[after as usize] = before;
    }

    /// The folio that reclaim would look at first.
    pub(crate) fn tail(&self, head: Slot) -> Option<Slot> {
        Some(self.prev[head as usize]).filter(|&slot| slot != head)
    }

    /// The next folio from the tail on.
    pub(crate) fn younger(&self, head: Slot, slot: Slot) -> Option<Slot> {
        Some(self.prev[slot as usize]).filter(|&slot| slot != head)
    }

    pub(crate) fn is_empty(&self, head: Slot) -> bool {
        self.next[head as usize] == head
    }

    /// Moves a whole list, in its order, to the tail of another.
    pub(crate) fn splice_tail(&mut self, from: Slot, to: Slot) {
        if self.is_empty(from) {
            return;
        }
        let (first, last) = (self.next[from as usize], self.prev[from as usize]);
        let before = self.prev[to as usize];
        self.next[before as usize] = first;
        self.prev[first as usize] = before;
        self.next[last as usize] = to;
        self.prev[to as usize] = last;
        self.next[from as usize] = from;
        self.prev[from as usize] = from;
    }

    /// From tail to head.
    #[cfg(test)]
    pub(crate) fn iter_from_tail(&self, head: Slot) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(self.tail(head), move |&slot| self.younger(head, slot))
    }

    /// Bytes that the arrays hold for each folio.
    pub(crate) const BYTES_PER_FOLIO: usize = 3 * size_of::<u32>() + size_of::<Word>() + size_of::<Attr>();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_tail(folios: &Folios, head: Slot) -> Vec<u32> {
        folios.iter_from_tail(head).map(|slot| folios.key(slot)).collect()
    }

    #[test]
    fn lists_keep_their_order() {
        let mut folios = Folios::new(16);
        let slots: Vec<_> = (0..5).map(|key| folios.allocate(key, Attr::default())).collect();
        for &slot in &slots[..3] {
            folios.push_head(0, slot);
        }
        folios.push_tail(0, slots[3]);
        assert_eq!(from_tail(&folios, 0), [3, 0, 1, 2]);
        folios.unlink(slots[1]);
        assert_eq!(from_tail(&folios, 0), [3, 0, 2]);
        folios.push_head(1, slots[4]);
        folios.splice_tail(0, 1);
        assert_eq!(from_tail(&folios, 1), [3, 0, 2, 4]);
        assert!(folios.is_empty(0));
        folios.splice_tail(0, 1);
        assert_eq!(from_tail(&folios, 1).len(), 4);
    }

    #[test]
    fn slots_are_used_again() {
        let mut folios = Folios::new(2);
        let a = folios.allocate(1, Attr::new(Attr::FILE, 3));
        assert_eq!((folios.attr(a).pages(), folios.attr(a).file()), (8, true));
        folios.release(a);
        assert_eq!(folios.len(), 0);
        let b = folios.allocate(2, Attr::default());
        assert_eq!((a, folios.key(b), folios.len()), (b, 2, 1));
    }

    #[test]
    fn a_folio_takes_at_most_48_bytes() {
        assert_eq!(Folios::BYTES_PER_FOLIO, 16);
    }
}
