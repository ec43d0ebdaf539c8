//! Finds the entries of a table by their key. The keys stay where they are, in the table: a place here takes eight bytes, and
//! there are at most 2 2⁄3 places to an entry, whatever came and went.
//!
//! A hash map would keep every key a second time, and grow once more when what was removed from it has worn its places out
//! (both measured: memory.md).

use crate::stream::event::Identity;

/// Where an entry of a table is, with the upper half of its key's hash.
#[derive(Clone, Copy, Debug)]
struct Place {
    tag: u32,
    entry: u32,
}

const FREE: u32 = u32::MAX;

/// The index: open addressing, linear probing, removal without tombstones.
#[derive(Debug, Default)]
pub(crate) struct Index {
    // A power of two, or none.
    places: Vec<Place>,
    taken: usize,
}

/// The hash of an address.
pub(crate) fn of_address(address: u64) -> u32 {
    let mut hash = address;
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash >> 32) as u32
}

/// The hash of an identity.
pub(crate) fn of_identity(identity: &Identity) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let file = identity.ino.wrapping_add(u64::from(identity.dev) << 40);
    of_address(file.wrapping_mul(ODD).rotate_left(29) ^ identity.index)
}

impl Index {
    /// Entries in it.
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    /// All entries, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().map(|place| place.entry).filter(|entry| *entry != FREE)
    }

    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    /// The place of the entry of that hash which `is` the one.
    fn place(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<usize> {
        let mut at = hash as usize & self.mask();
        loop {
            let place = *self.places.get(at)?;
            if place.entry == FREE {
                return None;
            }
            if place.tag == hash && is(place.entry) {
                return Some(at);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// The entry of that hash which `is` the one.
    pub(crate) fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(hash, is).map(|at| self.places[at].entry)
    }

    /// Adds an entry; the other one of the same key that `is` says, if there is any, is not found any more.
    pub(crate) fn put(&mut self, hash: u32, entry: u32, is: impl Fn(u32) -> bool) {
        if let Some(at) = self.place(hash, is) {
            self.places[at].entry = entry;
            return;
        }
        if (self.taken + 1) * 4 > self.places.len() * 3 {
            let larger = vec![Place { tag: 0, entry: FREE }; (self.places.len() * 2).max(16)];
            for place in std::mem::replace(&mut self.places, larger) {
                if place.entry != FREE {
                    self.settle(place);
                }
            }
        }
        self.settle(Place { tag: hash, entry });
        self.taken += 1;
    }

    fn settle(&mut self, place: Place) {
        let mut at = place.tag as usize & self.mask();
        while self.places[at].entry != FREE {
            at = (at + 1) & self.mask();
        }
        self.places[at] = place;
    }

    /// Removes an entry; whether it was there.
    pub(crate) fn remove(&mut self, hash: u32, entry: u32) -> bool {
        let Some(mut hole) = self.place(hash, |other| other == entry) else { return false };
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place.entry == FREE {
                break;
            }
            // Who is further from home than from the hole may move into it.
            let from_home = at.wrapping_sub(place.tag as usize) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = place;
                hole = at;
            }
        }
        self.places[hole].entry = FREE;
        self.taken -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a hash map, with hashes that collide in every way.
        #[test]
        fn it_finds_what_a_map_finds(steps in proptest::collection::vec((0_u64..40, 0_u32..3), 1..400), spread in 0_u32..4) {
            let hash = |key: u64| match spread {
                0 => 7,
                1 => u32::MAX - (key as u32 % 3),
                2 => key as u32 % 16,
                _ => of_address(key * 64),
            };
            // Entries are numbered as they come; this is their table.
            let mut keys: Vec<u64> = Vec::new();
            let mut index = Index::default();
            let mut map: HashMap<u64, u32> = HashMap::new();
            for (key, what) in steps {
                if what == 2 {
                    let expected = map.remove(&key);
                    let removed = expected.is_some_and(|entry| index.remove(hash(key), entry));
                    prop_assert_eq!(removed, expected.is_some());
                } else {
                    let entry = keys.len() as u32;
                    keys.push(key);
                    index.put(hash(key), entry, |other| keys[other as usize] == key);
                    map.insert(key, entry);
                }
                prop_assert_eq!(index.len(), map.len());
                for key in 0..40 {
                    prop_assert_eq!(index.find(hash(key), |entry| keys[entry as usize] == key), map.get(&key).copied());
                }
            }
        }
    }

    #[test]
    fn what_came_and_went_does_not_make_it_grow() {
        let mut index = Index::default();
        for entry in 0..1000 {
            index.put(of_address(u64::from(entry) * 64), entry, |_| false);
        }
        let places = index.places.len();
        for entry in 0..100_000_u32 {
            assert!(index.remove(of_address(u64::from(entry) * 64), entry));
            index.put(of_address(u64::from(entry + 1000) * 64), entry + 1000, |_| false);
        }
        assert_eq!((index.len(), index.places.len()), (1000, places));
        assert!(places <= 1000 * 8 / 3);
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let mut index = Index::default();
        assert_eq!(index.find(1, |_| true), None);
        assert!(!index.remove(1, 0));
    }
}
