//! The workload's own control group: entering one, and reading what the kernel counted for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where cgroup v2 is mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The counters of `memory.stat` that tell how reclaim went.
const COUNTERS: [&str; 12] = [
    "workingset_refault_file",
    "workingset_refault_anon",
    "workingset_activate_file",
    "workingset_activate_anon",
    "workingset_restore_file",
    "workingset_restore_anon",
    "pgscan",
    "pgsteal",
    "pgmajfault",
    "pgactivate",
    "pswpin",
    "pswpout",
];

/// A control group with a memory controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    folder: PathBuf,
}

/// Counters by name; one the kernel does not have is absent.
pub type Counters = BTreeMap<String, u64>;

impl Cgroup {
    /// Makes the group, limits it and moves this process in. The path is the group's, below the mount or absolute.
    pub fn enter(path: &Path, memory_max: Option<u64>) -> Result<Self> {
        let below = path.strip_prefix(MOUNT).unwrap_or(path);
        let folder = Path::new(MOUNT).join(below.strip_prefix("/").unwrap_or(below));
        fs::create_dir_all(&folder).with_context(|| format!("make the control group {}", folder.display()))?;
        if let Some(bytes) = memory_max {
            write(&folder.join("memory.max"), &bytes.to_string())
                .context("is the memory controller enabled in the parent's cgroup.subtree_control?")?;
        }
        write(&folder.join("cgroup.procs"), &std::process::id().to_string())?;
        Ok(Self { folder })
    }

    /// The group this process is in, when the kernel counts memory for it. The root group has no counters of its own.
    #[must_use]
    pub fn current() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let folder = Path::new(MOUNT).join(path);
        (!path.is_empty() && folder.join("memory.stat").is_file()).then_some(Self { folder })
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its path below the mount.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.folder.strip_prefix(MOUNT).unwrap_or(&self.folder).display())
    }

    /// Its limit in bytes; absent when unlimited.
    #[must_use]
    pub fn memory_max(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join("memory.max")).ok()?.trim().parse().ok()
    }

    /// What the kernel counted so far.
    pub fn counters(&self) -> Result<Counters> {
        let path = self.folder.join("memory.stat");
        Ok(parse(&fs::read_to_string(&path).with_context(|| path.display().to_string())?))
    }
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("write {value} to {}", path.display()))
}

fn parse(text: &str) -> Counters {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let wanted = pairs.filter(|(name, _)| COUNTERS.contains(name));
    wanted.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// How far the counters moved from `before` to `after`.
#[must_use]
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    let moved = |(name, value): (&String, &u64)| (name.clone(), value.saturating_sub(before.get(name).copied().unwrap_or(0)));
    after.iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_picked_and_subtracted() {
        let before = parse("anon 4096\npgscan 10\nworkingset_refault_file 3\n");
        let after = parse("anon 0\npgscan 25\nworkingset_refault_file 3\npgsteal 7\n");
        let moved = difference(&before, &after);
        let expected = [("pgscan", 15), ("pgsteal", 7), ("workingset_refault_file", 0)];
        assert_eq!(moved, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
