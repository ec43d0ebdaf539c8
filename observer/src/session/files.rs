//! Files, and the anonymous memory of cgroups. When the table is full, a file that nothing is tracked of any more makes room.

use rustc_hash::FxHashMap;

use crate::{session::world::is_anon, stream::event::Identity};

/// Files remembered: 300 bytes each with six rule sets, and the path.
pub(crate) const MAX_FILES: usize = 1 << 16;

/// Where everything goes that finds no room.
const OTHERS: u32 = MAX_FILES as u32 - 1;

/// Entries looked at for one that may go, for each file that needs room.
const LOOK_AT: u32 = 256;

/// A file, or the anonymous memory of a cgroup.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Never the same for two files.
    pub(crate) serial: u64,
    /// Device (0 for anon).
    pub(crate) dev: u32,
    /// Inode number (the cgroup's id for anon).
    pub(crate) ino: u64,
    /// Path, when told.
    pub(crate) name: Option<String>,
    /// Anonymous memory.
    pub(crate) anon: bool,
    /// Lruvec of its latest folio.
    pub(crate) lruvec: u32,
    /// Tracked folios.
    pub(crate) folios: u32,
    /// Tracked pages.
    pub(crate) pages: u64,
    /// Accesses seen.
    pub(crate) accesses: u64,
    /// Pages evicted.
    pub(crate) evictions: u64,
    /// Pages refaulted.
    pub(crate) refaults: u64,
    /// Of those, pages whose eviction a sample does not hold.
    pub(crate) untraced: u64,
    /// Page in which the latest read ended, where reads are known by range.
    last_read: Option<u64>,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Files {
    all: Vec<File>,
    index: FxHashMap<(u32, u64), u32>,
    serial: u64,
    /// Where the search for one that may go goes on.
    hand: u32,
    /// An entry that has become another file's: what others count for it begins anew.
    reused: Option<u32>,
    /// Files that were forgotten, and files that found no room.
    pub(crate) forgotten: u64,
}

impl Files {
    /// The file of an identity; anonymous memory is one "file" per cgroup.
    pub(crate) fn of(&mut self, identity: &Identity, cgroup: u64, lruvec: u32) -> u32 {
        // Or no mapping at all, which a swap entry's folio has not either.
        let anon = is_anon(identity) || identity.ino == 0;
        let key = if anon { (u32::MAX, cgroup) } else { (identity.dev, identity.ino) };
        if let Some(index) = self.index.get(&key) {
            self.all[*index as usize].lruvec = lruvec;
            return *index;
        }
        self.serial += 1;
        let new = File {
            serial: self.serial,
            dev: if anon { 0 } else { identity.dev },
            ino: key.1,
            name: None,
            anon,
            lruvec,
            folios: 0,
            pages: 0,
            accesses: 0,
            evictions: 0,
            refaults: 0,
            untraced: 0,
            last_read: None,
        };
        let index = self.all.len() as u32;
        if index < OTHERS {
            self.all.push(new);
            self.index.insert(key, index);
            return index;
        }
        self.forgotten += 1;
        if let Some(index) = self.room() {
            let old = std::mem::replace(&mut self.all[index as usize], new);
            self.index.remove(&(if old.anon { u32::MAX } else { old.dev }, old.ino));
            self.index.insert(key, index);
            self.reused = Some(index);
            return index;
        }
        if index == OTHERS {
            self.all.push(File { dev: 0, ino: 0, name: Some("files beyond the table".to_owned()), anon: false, ..new });
        }
        OTHERS
    }

    /// An entry of which nothing is tracked.
    fn room(&mut self) -> Option<u32> {
        for _ in 0..LOOK_AT {
            let at = self.hand;
            self.hand = (at + 1) % OTHERS;
            if self.all[at as usize].folios == 0 {
                return Some(at);
            }
        }
        None
    }

    /// An entry that has become another file's since the last call.
    pub(crate) fn take_reused(&mut self) -> Option<u32> {
        self.reused.take()
    }

    /// Page in which the previous read of a file ended; this one ends in `last`.
    pub(crate) fn last_read(&mut self, dev: u32, ino: u64, last: u64) -> Option<u64> {
        let index = *self.index.get(&(dev, ino))?;
        self.all[index as usize].last_read.replace(last)
    }

    /// A file's path was told; `lruvec` stands for a home that nothing was heard of yet.
    pub(crate) fn name(&mut self, dev: u32, ino: u64, name: &str, lruvec: u32) {
        // Told again of a file that has a home, it keeps that.
        let known = self.index.get(&(dev, ino)).copied();
        let index = known.unwrap_or_else(|| self.of(&Identity { dev, ino, index: 0 }, 0, lruvec));
        if index != OTHERS {
            self.all[index as usize].name = Some(name.to_owned());
        }
    }

    /// All files.
    pub(crate) fn all(&self) -> &[File] {
        &self.all
    }

    /// A file, to change.
    pub(crate) fn file_mut(&mut self, index: u32) -> &mut File {
        &mut self.all[index as usize]
    }

    /// A folio of so many pages is tracked now.
    pub(crate) fn arrives(&mut self, index: u32, pages: u32) {
        let file = self.file_mut(index);
        file.folios += 1;
        file.pages += u64::from(pages);
    }

    /// A folio of so many pages is not tracked any more.
    pub(crate) fn leaves(&mut self, index: u32, pages: u32) {
        let file = self.file_mut(index);
        file.folios = file.folios.saturating_sub(1);
        file.pages = file.pages.saturating_sub(u64::from(pages));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(ino: u64) -> Identity {
        // An inode number: anonymous mappings are told by their lowest bits, on device 0 only.
        Identity { dev: 8, ino, index: 0 }
    }

    #[test]
    fn a_full_table_makes_room_where_nothing_is_tracked() {
        let mut files = Files::default();
        for ino in 1..=u64::from(OTHERS) {
            let at = files.of(&identity(ino), 1, 0);
            files.name(8, ino, "name", 0);
            if ino != 5 && ino != 6 {
                files.arrives(at, 1);
            }
        }
        assert_eq!((files.all().len(), files.forgotten, files.take_reused()), (OTHERS as usize, 0, None));
        let at = files.of(&identity(1 << 40), 1, 0);
        assert_eq!((at, files.take_reused(), files.forgotten), (4, Some(4), 1));
        let file = &files.all()[4];
        assert_eq!((file.ino, file.name.as_deref(), file.serial), (1 << 40, None, u64::from(OTHERS) + 1));
        // Told of again, it is where it was, and the one before is not there any more.
        assert_eq!(files.of(&identity(1 << 40), 1, 0), 4);
        assert_eq!(files.last_read(8, 5, 1), None);
    }

    #[test]
    fn what_finds_no_room_is_nobody_else_s() {
        let mut files = Files::default();
        for ino in 1..=u64::from(OTHERS) {
            let at = files.of(&identity(ino), 1, 0);
            files.arrives(at, 1);
        }
        for ino in 0..100 {
            assert_eq!(files.of(&identity((1 << 40) + ino), 1, 0), OTHERS);
            files.name(8, (1 << 40) + ino, "mine", 0);
        }
        assert_eq!((files.all().len(), files.index.len(), files.take_reused()), (MAX_FILES, OTHERS as usize, None));
        assert_eq!(files.all()[OTHERS as usize].name.as_deref(), Some("files beyond the table"));
        assert!(files.forgotten >= 100);
    }
}
