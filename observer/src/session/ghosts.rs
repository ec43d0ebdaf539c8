//! What was evicted, remembered by identity so that a refault can be judged.

use crate::{
    index::{Index, of_identity},
    model::Token,
    stream::event::Identity,
};

/// One eviction, as one rule set saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What this rule set would find in its shadow entry.
    pub(crate) token: Token,
    /// It had the folio in a younger generation than its oldest.
    pub(crate) would_keep: bool,
    /// Whether its prediction stood.
    pub(crate) known: bool,
}

/// The same in sixteen bytes: there is one for every rule set of every eviction.
#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    value: u64,
    bits: u8,
    workingset: bool,
    would_keep: bool,
    known: bool,
}

impl From<Memory> for Packed {
    fn from(Memory { token, would_keep, known }: Memory) -> Self {
        Self { value: token.value, bits: token.bits, workingset: token.workingset, would_keep, known }
    }
}

impl From<Packed> for Memory {
    fn from(packed: Packed) -> Self {
        let token = Token { value: packed.value, workingset: packed.workingset, bits: packed.bits };
        Self { token, would_keep: packed.would_keep, known: packed.known }
    }
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Whose eviction, and its neighbours in time.
#[derive(Clone, Copy, Debug)]
struct Entry {
    identity: Identity,
    older: u32,
    newer: u32,
}

/// The table. What came back leaves it at once; the oldest eviction leaves it when it is full.
#[derive(Debug)]
pub(crate) struct Ghosts {
    most: usize,
    rules: usize,
    index: Index,
    entries: Vec<Entry>,
    /// Of entry n from `n * rules` on.
    memories: Vec<Packed>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// Forgotten for want of room.
    pub(crate) forgotten: u64,
}

impl Ghosts {
    /// For so many rule sets, and so many evictions at most.
    pub(crate) fn new(rules: usize, most: usize) -> Self {
        Self {
            most: most.max(1),
            rules,
            index: Index::default(),
            entries: Vec::new(),
            memories: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            forgotten: 0,
        }
    }

    /// Remembers an eviction, one memory for each rule set; the latest of an identity counts.
    pub(crate) fn put(&mut self, identity: Identity, memories: impl IntoIterator<Item = Memory>) {
        if let Some(at) = self.find(&identity) {
            self.release(at);
        }
        if self.index.len() >= self.most {
            self.forgotten += 1;
            self.release(self.oldest);
        }
        let entry = Entry { identity, older: self.newest, newer: NONE };
        let at = if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            at
        } else {
            self.entries.push(entry);
            self.memories.resize(self.entries.len() * self.rules, Packed::default());
            self.entries.len() as u32 - 1
        };
        let first = at as usize * self.rules;
        for (packed, memory) in self.memories[first..first + self.rules].iter_mut().zip(memories) {
            *packed = memory.into();
        }
        match self.entries.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
        let entries = &self.entries;
        self.index.put(of_identity(&identity), at, |other| entries[other as usize].identity == identity);
    }

    /// Takes what is remembered of an identity: a memory for each rule set.
    pub(crate) fn take(&mut self, identity: &Identity) -> Option<Vec<Memory>> {
        let at = self.find(identity)?;
        let first = at as usize * self.rules;
        let memories = self.memories[first..first + self.rules].iter().map(|packed| Memory::from(*packed)).collect();
        self.release(at);
        Some(memories)
    }

    /// Forgets all but those.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Identity) -> bool) {
        let mut at = self.oldest;
        while let Some(Entry { identity, newer, .. }) = self.entries.get(at as usize).copied() {
            if !keeps(&identity) {
                self.release(at);
            }
            at = newer;
        }
    }

    /// Evictions remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    fn find(&self, identity: &Identity) -> Option<u32> {
        self.index.find(of_identity(identity), |at| self.entries[at as usize].identity == *identity)
    }

    fn release(&mut self, at: u32) {
        let Some(Entry { identity, older, newer }) = self.entries.get(at as usize).copied() else { return };
        self.index.remove(of_identity(&identity), at);
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(index: u64) -> Identity {
        Identity { dev: 1, ino: 2, index }
    }

    fn memories(value: u64) -> [Memory; 2] {
        [value, value + 1].map(|value| Memory {
            token: Token { value, workingset: value.is_multiple_of(2), bits: 64 },
            would_keep: !value.is_multiple_of(3),
            known: value.is_multiple_of(5),
        })
    }

    #[test]
    fn the_latest_eviction_of_an_identity_counts_and_only_once() {
        let mut ghosts = Ghosts::new(2, 100);
        ghosts.put(identity(3), memories(1));
        ghosts.put(identity(4), memories(2));
        ghosts.put(identity(3), memories(30));
        assert_eq!(ghosts.take(&identity(3)), Some(memories(30).to_vec()));
        assert!(ghosts.take(&identity(3)).is_none());
        assert_eq!((ghosts.forgotten, ghosts.take(&identity(4))), (0, Some(memories(2).to_vec())));
    }

    #[test]
    fn a_full_table_forgets_the_oldest_and_counts_it() {
        let mut ghosts = Ghosts::new(2, 100);
        for index in 0..250 {
            ghosts.put(identity(index), memories(index));
            // What comes back makes room and is not forgotten.
            if index % 5 == 4 {
                assert!(ghosts.take(&identity(index)).is_some());
            }
        }
        assert_eq!((ghosts.entries.len(), ghosts.memories.len(), ghosts.index.len()), (100, 200, 99));
        assert_eq!(ghosts.forgotten, 250 - 50 - 99);
        let left: Vec<u64> = (0..250).filter(|index| ghosts.take(&identity(*index)).is_some()).collect();
        assert_eq!((left.len(), left.first(), left.last()), (99, Some(&126), Some(&248)));
    }

    #[test]
    fn what_cycles_takes_no_more_room_than_what_is_away() {
        let mut ghosts = Ghosts::new(2, 1 << 20);
        for round in 0..10_000 {
            ghosts.put(identity(round % 10), memories(round));
            assert!(ghosts.take(&identity(round % 10)).is_some());
        }
        assert_eq!(ghosts.entries.len(), 1);
    }
}
