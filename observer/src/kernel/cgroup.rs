//! Memory cgroups: where they are mounted, their ids, levels and names.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// A cgroup as the programs filter it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// kernfs id: the directory's inode number.
    pub id: u64,
    /// Depth below the root (0 = root).
    pub level: u32,
    /// Its directory.
    pub path: PathBuf,
}

/// The mount that has the memory controller, from the text of /proc/self/mounts: cgroup2 if its root offers "memory",
/// else a cgroup (v1) mount with the memory option.
pub fn memory_mount(mounts: &str, offers_memory: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut v1 = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(target), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let target = PathBuf::from(target.replace("\\040", " "));
        match kind {
            "cgroup2" if offers_memory(&target) => return Some(target),
            "cgroup" if options.split(',').any(|option| option == "memory") => v1 = Some(target),
            _ => {}
        }
    }
    v1
}

/// [`memory_mount`] of this machine.
pub fn running_memory_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    memory_mount(&mounts, |root| {
        fs::read_to_string(root.join("cgroup.controllers")).is_ok_and(|text| text.split_ascii_whitespace().any(|name| name == "memory"))
    })
}

/// Finds a cgroup by directory, or by path below the memory controller's mount.
///
/// # Errors
/// When there is no such cgroup, or no memory controller.
pub fn resolve(path: &Path) -> Result<Cgroup> {
    let mount = running_memory_mount().context("no cgroup mount with the memory controller found: mount cgroup2")?;
    let directory = if path.starts_with(&mount) { path.to_owned() } else { mount.join(path.strip_prefix("/").unwrap_or(path)) };
    let data = fs::metadata(&directory).with_context(|| format!("no cgroup {} (looked for {})", path.display(), directory.display()))?;
    ensure!(data.is_dir(), "{} is no cgroup", directory.display());
    let below = directory.strip_prefix(&mount).unwrap_or(Path::new(""));
    let level = u32::try_from(below.components().count())?;
    if level > 255 {
        bail!("{} is too deep in the hierarchy", directory.display());
    }
    Ok(Cgroup { id: data.ino(), level, path: directory })
}

/// Names of cgroups by id. Looks again when an unknown id turns up, not too often.
#[derive(Debug)]
pub struct CgroupNames {
    mount: Option<PathBuf>,
    names: HashMap<u64, String>,
    walked: Option<Instant>,
}

/// Directory walks are at least this far apart.
const WALK_EVERY: Duration = Duration::from_millis(200);

/// Cgroups remembered; a machine with more shows ids for the rest.
const MAX_CGROUPS: usize = 65_536;

impl CgroupNames {
    /// Of this machine.
    pub fn new() -> Self {
        Self { mount: running_memory_mount(), names: HashMap::new(), walked: None }
    }

    /// Path below the mount ("/" for the root).
    pub fn name(&mut self, id: u64) -> Option<String> {
        if !self.names.contains_key(&id) && self.walked.is_none_or(|walked| walked.elapsed() >= WALK_EVERY) {
            self.walk();
        }
        self.names.get(&id).cloned()
    }

    fn walk(&mut self) {
        self.walked = Some(Instant::now());
        let Some(mount) = self.mount.clone() else { return };
        let mut queue = vec![mount.clone()];
        while let Some(directory) = queue.pop() {
            if self.names.len() >= MAX_CGROUPS {
                return;
            }
            let Ok(data) = fs::metadata(&directory) else { continue };
            let below = directory.strip_prefix(&mount).unwrap_or(Path::new(""));
            self.names.insert(data.ino(), format!("/{}", below.display()));
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            queue.extend(entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
        }
    }
}

impl Default for CgroupNames {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn a_hybrid_machine_has_memory_in_the_old_hierarchy() {
        assert_eq!(memory_mount(HYBRID, |_| false), Some(PathBuf::from("/sys/fs/cgroup/memory")));
        assert_eq!(memory_mount(HYBRID, |_| true), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(memory_mount("proc /proc proc rw 0 0\n", |_| true), None);
    }
}
