//! What was evicted, remembered by identity so that a refault can be judged.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{model::Token, stream::event::Identity};

/// Evictions remembered: as many as folios tracked.
const MAX_GHOSTS: usize = 1 << 21;

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

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    index: FxHashMap<Identity, u64>,
    // The position of the oldest entry in `index`'s numbering.
    first: u64,
    entries: VecDeque<(Identity, Box<[Memory]>)>,
    /// Forgotten for want of room.
    pub(crate) forgotten: u64,
}

impl Ghosts {
    /// Remembers an eviction.
    pub(crate) fn put(&mut self, identity: Identity, memories: Box<[Memory]>) {
        if self.entries.len() >= MAX_GHOSTS
            && let Some((oldest, _)) = self.entries.pop_front()
        {
            if self.index.get(&oldest) == Some(&self.first) {
                self.index.remove(&oldest);
                self.forgotten += 1;
            }
            self.first += 1;
        }
        self.index.insert(identity, self.first + self.entries.len() as u64);
        self.entries.push_back((identity, memories));
    }

    /// Forgets all but those.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Identity) -> bool) {
        let (entries, first) = (&mut self.entries, self.first);
        self.index.retain(|identity, at| {
            let keeps = keeps(identity);
            if !keeps && let Some(entry) = usize::try_from(at.wrapping_sub(first)).ok().and_then(|at| entries.get_mut(at)) {
                entry.1 = Box::default();
            }
            keeps
        });
    }

    /// Takes what is remembered of an identity.
    pub(crate) fn take(&mut self, identity: &Identity) -> Option<Box<[Memory]>> {
        let at = self.index.remove(identity)?;
        let entry = self.entries.get_mut(usize::try_from(at.checked_sub(self.first)?).ok()?)?;
        Some(std::mem::take(&mut entry.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_eviction_of_an_identity_counts_and_only_once() {
        let identity = Identity { dev: 1, ino: 2, index: 3 };
        let memory = |value| -> Box<[Memory]> {
            Box::new([Memory { token: Token { value, workingset: false, bits: 64 }, would_keep: false, known: true }])
        };
        let mut ghosts = Ghosts::default();
        ghosts.put(identity, memory(1));
        ghosts.put(Identity { index: 4, ..identity }, memory(2));
        ghosts.put(identity, memory(3));
        assert_eq!(ghosts.take(&identity).map(|memories| memories[0].token.value), Some(3));
        assert!(ghosts.take(&identity).is_none());
    }
}
