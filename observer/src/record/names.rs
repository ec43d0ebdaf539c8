//! What later files of a recording need to be told again: who is who, and what the kernel's counters were.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::stream::{Body, Event};

/// Names of each sort remembered; a machine with more shows numbers for the rest in later files.
const MAX_NAMES: usize = 1 << 17;

/// Counters remembered.
const MAX_COUNTERS: usize = 4096;

/// A name, and the file it was told in last.
#[derive(Debug)]
struct Told {
    event: Event,
    file: u32,
}

/// Names told so far, by what they name.
#[derive(Debug)]
struct Sort<K>(FxHashMap<K, Told>);

impl<K: std::hash::Hash + Eq> Sort<K> {
    fn learn(&mut self, key: K, event: &Event, file: u32) {
        if self.0.len() < MAX_NAMES || self.0.contains_key(&key) {
            self.0.insert(key, Told { event: event.clone(), file });
        }
    }

    /// The name, if this file does not have it yet.
    fn missing(&mut self, key: &K, file: u32) -> Option<Event> {
        let told = self.0.get_mut(key).filter(|told| told.file != file)?;
        told.file = file;
        Some(told.event.clone())
    }
}

/// Remembers names and counters as they pass.
#[derive(Debug)]
pub(super) struct Names {
    file: u32,
    files: Sort<(u32, u64)>,
    cgroups: Sort<u64>,
    counters: BTreeMap<(u64, String), Event>,
}

impl Names {
    pub(super) fn new() -> Names {
        Names { file: 0, files: Sort(FxHashMap::default()), cgroups: Sort(FxHashMap::default()), counters: BTreeMap::new() }
    }

    /// Learns from an event about to be written; names that must go before it are appended to `out`.
    pub(super) fn pass(&mut self, event: &Event, out: &mut Vec<Event>) {
        let (mut file, mut cgroup) = (None, None);
        match &event.body {
            Body::Folio(folio) => {
                file = folio.identity.map(|identity| (identity.dev, identity.ino));
                cgroup = folio.home.map(|home| home.cgroup);
            }
            Body::Range { dev, ino, .. } => file = Some((*dev, *ino)),
            Body::Lruvec { state, .. } => cgroup = Some(state.cgroup),
            Body::FileName { dev, ino, .. } => self.files.learn((*dev, *ino), event, self.file),
            Body::CgroupName { cgroup, .. } => self.cgroups.learn(*cgroup, event, self.file),
            Body::Counter { cgroup: of, name, .. } => {
                cgroup = Some(*of);
                let key = (*of, name.clone());
                if self.counters.len() < MAX_COUNTERS || self.counters.contains_key(&key) {
                    self.counters.insert(key, event.clone());
                }
            }
            _ => {}
        }
        if self.file == 0 {
            // The first file has them all where they were told.
            return;
        }
        out.extend(file.and_then(|file| self.files.missing(&file, self.file)));
        out.extend(cgroup.and_then(|cgroup| self.cgroups.missing(&cgroup, self.file)));
    }

    /// A new file begins: the latest reading of every counter, so that differences in it start where the last file ended.
    pub(super) fn next_file(&mut self) -> Vec<Event> {
        self.file += 1;
        self.counters.values().cloned().collect()
    }
}
