//! The kernel's own counters, read beside the events: what observer counts must agree with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::capture::live::boottime;
use crate::kernel::cgroup;
use crate::replay::Source;
use crate::session::frame::SourceKind;
use crate::stream::counter_names::LIMIT;
use crate::stream::{Body, Event, Header};

/// Readings are this far apart, between the first and the last.
const EVERY: Duration = Duration::from_secs(1);

/// Beginnings of the names that are kept.
const KEPT: [&str; 8] = ["workingset_", "pgscan", "pgsteal", "pgactivate", "pgdeactivate", "pgrefill", "pgfault", "pgmajfault"];

/// Reads the counters of one cgroup, or of the machine.
#[derive(Clone, Debug)]
pub struct Referee {
    file: PathBuf,
    cgroup: u64,
}

impl Referee {
    /// Of a cgroup as `--cgroup` names it; of the machine without one.
    ///
    /// # Errors
    /// When there is no such cgroup.
    pub fn new(path: Option<&Path>) -> Result<Referee> {
        Ok(match path {
            Some(path) => {
                let found = cgroup::resolve(path)?;
                Referee { file: found.path.join("memory.stat"), cgroup: found.id }
            }
            None => Referee { file: PathBuf::from("/proc/vmstat"), cgroup: 0 },
        })
    }

    /// The counters now, and the limit of a cgroup that has one; none when they cannot be read (the cgroup was removed).
    pub fn read(&self) -> Vec<Event> {
        let ts = boottime();
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let limit = fs::read_to_string(self.file.with_file_name(LIMIT)).ok().and_then(|text| text.trim().parse().ok());
        // "max" is no number, and no limit.
        let limit = limit.map(|bytes| (LIMIT, bytes));
        counters(&text).chain(limit).map(|(name, value)| self.event(ts, name, value)).collect()
    }

    fn event(&self, ts: u64, name: &str, value: u64) -> Event {
        Event { ts, cpu: 0, body: Body::Counter { cgroup: self.cgroup, name: name.to_owned(), value } }
    }
}

/// The counters that are kept, from the text of memory.stat or vmstat.
fn counters(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let kept = KEPT.iter().any(|beginning| name.starts_with(beginning));
        Some((name, value.trim().parse().ok()?)).filter(|_| kept)
    })
}

/// A source with the referee's readings in it.
pub struct Refereed<S> {
    source: S,
    referee: Referee,
    next: Option<Instant>,
}

impl<S> Refereed<S> {
    /// Adds readings to `source`: at once, and every second.
    pub fn new(source: S, referee: Referee) -> Refereed<S> {
        Refereed { source, referee, next: None }
    }
}

impl<S: Source> Source for Refereed<S> {
    fn header(&self) -> Arc<Header> {
        self.source.header()
    }

    fn kind(&self) -> SourceKind {
        self.source.kind()
    }

    fn name(&self) -> String {
        self.source.name()
    }

    fn fill(&mut self, out: &mut Vec<Event>, patience: Duration) -> Result<bool> {
        let now = Instant::now();
        if self.next.is_none_or(|next| now >= next) {
            self.next = Some(now + EVERY);
            out.append(&mut self.referee.read());
        }
        self.source.fill(out, patience)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.source.rewind()
    }

    fn total_ns(&self) -> Option<u64> {
        self.source.total_ns()
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.source.take_notes()
    }

    fn is_damaged(&self) -> bool {
        self.source.is_damaged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY_STAT: &str = "\
anon 8192
file 1048576
workingset_refault_anon 0
workingset_refault_file 1234
pgscan 99
pgsteal_kswapd 7
pgfault 3
thp_fault_alloc 0
pgscan_direct not-a-number
";

    #[test]
    fn counters_of_reclaim_are_kept() {
        let expected =
            [("workingset_refault_anon", 0), ("workingset_refault_file", 1234), ("pgscan", 99), ("pgsteal_kswapd", 7), ("pgfault", 3)];
        assert_eq!(counters(MEMORY_STAT).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cgroup_s_limit_is_read_beside_its_counters() {
        let folder = tempfile::tempdir().expect("a folder");
        let referee = Referee { file: folder.path().join("memory.stat"), cgroup: 7 };
        fs::write(&referee.file, MEMORY_STAT).expect("written");
        let limit = |referee: &Referee| {
            referee.read().into_iter().find_map(|event| match event.body {
                Body::Counter { cgroup: 7, name, value } if name == "memory.max" => Some(value),
                _ => None,
            })
        };
        for (text, expected) in [("67108864\n", Some(67_108_864)), ("max\n", None)] {
            fs::write(folder.path().join("memory.max"), text).expect("written");
            assert_eq!(limit(&referee), expected, "{text}");
        }
    }

    #[test]
    fn the_machine_has_counters() {
        let events = Referee::new(None).expect("a machine").read();
        assert!(
            events.iter().any(|event| matches!(&event.body, Body::Counter { cgroup: 0, name, .. } if name == "workingset_refault_file"))
        );
    }
}
