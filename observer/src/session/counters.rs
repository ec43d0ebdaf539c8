//! The kernel's own counters as the recorder read them, and where lruvecs are.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Counters kept; a recording with more is not ours.
const MAX_COUNTERS: usize = 4096;

/// Lruvec addresses remembered.
const MAX_ADDRESSES: usize = 1 << 12;

/// Readings, and lruvecs by address.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By cgroup and name: first and last value.
    pub(crate) readings: BTreeMap<(u64, String), (u64, u64)>,
    lruvecs: FxHashMap<u64, u32>,
    /// Counters and addresses that found no room.
    pub(crate) refused: u64,
}

impl Counters {
    /// A reading.
    pub(crate) fn read(&mut self, cgroup: u64, name: &str, value: u64) {
        if let Some(reading) = self.readings.get_mut(&(cgroup, name.to_owned())) {
            reading.1 = value;
        } else if self.readings.len() < MAX_COUNTERS {
            self.readings.insert((cgroup, name.to_owned()), (value, value));
        } else {
            self.refused += 1;
        }
    }

    /// A lruvec's address was told.
    pub(crate) fn lruvec_is(&mut self, address: u64, index: u32) {
        if self.lruvecs.len() < MAX_ADDRESSES || self.lruvecs.contains_key(&address) {
            self.lruvecs.insert(address, index);
        } else {
            self.refused += 1;
        }
    }

    /// The lruvec at an address.
    pub(crate) fn lruvec_at(&self, address: u64) -> Option<u32> {
        self.lruvecs.get(&address).copied()
    }
}
