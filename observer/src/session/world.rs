//! Who is who: folios by address while they live, files, cgroups, lruvecs. All tables are bounded; what they refuse or
//! forget is counted.

use rustc_hash::FxHashMap;

use crate::{
    session::clock::Lruvec,
    stream::event::{Home, Identity},
};

/// Folios tracked at once: 16 GiB of 4 KiB pages.
const MAX_FOLIOS: usize = 1 << 22;

/// Files and lruvecs remembered.
const MAX_FILES: usize = 1 << 16;
const MAX_LRUVECS: usize = 1 << 12;

/// Index of a folio in every per-folio table.
pub(crate) type Slot = u32;

/// One residency of a folio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folio {
    /// Address.
    pub(crate) address: u64,
    /// What it holds.
    pub(crate) identity: Identity,
    /// Index of its lruvec.
    pub(crate) lruvec: u32,
    /// Index of its file.
    pub(crate) file: u32,
    /// log2 of its pages.
    pub(crate) order: u8,
    /// PG_swapbacked clear.
    pub(crate) is_file: bool,
    /// Loss epoch in which its flags were last seen.
    pub(crate) epoch: u32,
    /// CPU on which the kernel itself is about to mark it accessed, as part of what the latest event reported; [`NOBODY`] for none.
    pub(crate) nested: u16,
    /// Sides that promoted it in the current window: bit 0 the kernel, bit n + 1 rule set n.
    pub(crate) promoted: u16,
}

/// No CPU.
pub(crate) const NOBODY: u16 = u16::MAX;

impl Folio {
    /// Base pages.
    pub(crate) fn pages(&self) -> u32 {
        1 << u32::from(self.order).min(20)
    }
}

/// A file, or the anonymous memory of a cgroup.
#[derive(Clone, Debug)]
pub(crate) struct File {
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

/// Whether this names anonymous memory: an anon_vma's address with bit 0 set.
pub(crate) fn is_anon(identity: &Identity) -> bool {
    identity.dev == 0 && identity.ino & 3 != 0
}

/// The tables.
#[derive(Debug, Default)]
pub(crate) struct World {
    by_address: FxHashMap<u64, Slot>,
    /// Where accesses name file and index only; kept when [`World::index_by_identity`] is set.
    by_identity: FxHashMap<Identity, Slot>,
    /// Whether identities are looked up.
    index_by_identity: bool,
    folios: Vec<Folio>,
    free: Vec<Slot>,
    files: Vec<File>,
    file_index: FxHashMap<(u32, u64), u32>,
    lruvecs: Vec<Lruvec>,
    lruvec_index: FxHashMap<(u64, u8), u32>,
    cgroup_names: FxHashMap<u64, String>,
    /// Folios, files and lruvecs that found their table full.
    pub(crate) refused: u64,
}

impl World {
    /// Empty; with `index_by_identity` folios are also found by file and page.
    pub(crate) fn new(index_by_identity: bool) -> Self {
        Self { index_by_identity, ..Self::default() }
    }

    /// The slots of all living folios.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.by_address.values().copied()
    }

    /// The slot of a living folio.
    pub(crate) fn slot(&self, address: u64) -> Option<Slot> {
        self.by_address.get(&address).copied()
    }

    /// The slot that holds a page of a file: its own folio, or a large one around it.
    pub(crate) fn slot_of(&self, dev: u32, ino: u64, index: u64) -> Option<Slot> {
        const MAX_ORDER: u32 = 11;
        (0..=MAX_ORDER).find_map(|order| {
            let head = index & !((1 << order) - 1);
            let slot = *self.by_identity.get(&Identity { dev, ino, index: head })?;
            (index - head < u64::from(self.folios[slot as usize].pages())).then_some(slot)
        })
    }

    /// A folio.
    pub(crate) fn folio(&self, slot: Slot) -> &Folio {
        &self.folios[slot as usize]
    }

    /// A folio, to change.
    pub(crate) fn folio_mut(&mut self, slot: Slot) -> &mut Folio {
        &mut self.folios[slot as usize]
    }

    /// Begins a residency; `None` when the table is full.
    pub(crate) fn begin(&mut self, folio: Folio) -> Option<Slot> {
        if self.by_address.len() >= MAX_FOLIOS {
            self.refused += 1;
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.folios[slot as usize] = folio;
                slot
            }
            None => {
                self.folios.push(folio);
                Slot::try_from(self.folios.len() - 1).ok()?
            }
        };
        self.by_address.insert(folio.address, slot);
        if self.index_by_identity {
            self.by_identity.insert(folio.identity, slot);
        }
        self.files[folio.file as usize].pages += u64::from(folio.pages());
        Some(slot)
    }

    /// A folio whose identity was not known at its birth has one now.
    pub(crate) fn identify(&mut self, slot: Slot, identity: Identity) {
        self.folios[slot as usize].identity = identity;
        if self.index_by_identity {
            self.by_identity.insert(identity, slot);
        }
    }

    /// A folio has another size now.
    pub(crate) fn resize(&mut self, slot: Slot, order: u8) {
        let folio = &mut self.folios[slot as usize];
        let before = u64::from(folio.pages());
        folio.order = order;
        let file = &mut self.files[folio.file as usize];
        file.pages = (file.pages + u64::from(folio.pages())).saturating_sub(before);
    }

    /// Ends a residency.
    pub(crate) fn end(&mut self, slot: Slot) {
        let folio = self.folios[slot as usize];
        self.by_address.remove(&folio.address);
        if self.by_identity.get(&folio.identity) == Some(&slot) {
            self.by_identity.remove(&folio.identity);
        }
        let file = &mut self.files[folio.file as usize];
        file.pages = file.pages.saturating_sub(u64::from(folio.pages()));
        self.free.push(slot);
    }

    /// The lruvec of a home; the last one stands for all that do not fit.
    pub(crate) fn lruvec_of(&mut self, cgroup: u64, node: u8, memcg_id: u16) -> u32 {
        if let Some(index) = self.lruvec_index.get(&(cgroup, node)) {
            if memcg_id != 0 {
                self.lruvecs[*index as usize].memcg_id = memcg_id;
            }
            return *index;
        }
        if self.lruvecs.len() >= MAX_LRUVECS {
            self.refused += 1;
            return u32::try_from(MAX_LRUVECS - 1).unwrap_or(0);
        }
        self.lruvecs.push(Lruvec::new(cgroup, node, memcg_id));
        let index = u32::try_from(self.lruvecs.len() - 1).unwrap_or(0);
        self.lruvec_index.insert((cgroup, node), index);
        index
    }

    /// The lruvec of a folio's home.
    pub(crate) fn home(&mut self, home: &Home) -> u32 {
        self.lruvec_of(home.cgroup, home.node, home.memcg_id)
    }

    /// A lruvec.
    pub(crate) fn lruvec(&self, index: u32) -> &Lruvec {
        &self.lruvecs[index as usize]
    }

    /// A lruvec, to change.
    pub(crate) fn lruvec_mut(&mut self, index: u32) -> &mut Lruvec {
        &mut self.lruvecs[index as usize]
    }

    /// All lruvecs.
    pub(crate) fn lruvecs(&self) -> &[Lruvec] {
        &self.lruvecs
    }

    /// The file of an identity; anonymous memory is one "file" per cgroup.
    pub(crate) fn file_of(&mut self, identity: &Identity, cgroup: u64, lruvec: u32) -> u32 {
        // Or no mapping at all, which a swap entry's folio has not either.
        let anon = is_anon(identity) || identity.ino == 0;
        let key = if anon { (u32::MAX, cgroup) } else { (identity.dev, identity.ino) };
        if let Some(index) = self.file_index.get(&key) {
            self.files[*index as usize].lruvec = lruvec;
            return *index;
        }
        if self.files.len() >= MAX_FILES {
            self.refused += 1;
            return u32::try_from(MAX_FILES - 1).unwrap_or(0);
        }
        self.files.push(File {
            dev: if anon { 0 } else { identity.dev },
            ino: key.1,
            name: None,
            anon,
            lruvec,
            pages: 0,
            accesses: 0,
            evictions: 0,
            refaults: 0,
            untraced: 0,
            last_read: None,
        });
        let index = u32::try_from(self.files.len() - 1).unwrap_or(0);
        self.file_index.insert(key, index);
        index
    }

    /// Page in which the previous read of a file ended; this one ends in `last`.
    pub(crate) fn last_read(&mut self, dev: u32, ino: u64, last: u64) -> Option<u64> {
        let index = *self.file_index.get(&(dev, ino))?;
        self.files[index as usize].last_read.replace(last)
    }

    /// All files.
    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// A file, to change.
    pub(crate) fn file_mut(&mut self, index: u32) -> &mut File {
        &mut self.files[index as usize]
    }

    /// A file's path was told; `lruvec` stands for a home that nothing was heard of yet.
    pub(crate) fn name_file(&mut self, dev: u32, ino: u64, name: &str, lruvec: u32) {
        // Told again of a file that has a home, it keeps that.
        let known = self.file_index.get(&(dev, ino)).copied();
        let index = known.unwrap_or_else(|| self.file_of(&Identity { dev, ino, index: 0 }, 0, lruvec));
        self.files[index as usize].name = Some(name.to_owned());
    }

    /// A cgroup's path was told.
    pub(crate) fn name_cgroup(&mut self, cgroup: u64, name: &str) {
        if self.cgroup_names.len() < MAX_FILES {
            self.cgroup_names.insert(cgroup, name.to_owned());
        } else {
            self.refused += 1;
        }
    }

    /// A cgroup's path, or a name for an unknown one.
    pub(crate) fn cgroup_name(&self, cgroup: u64) -> String {
        match self.cgroup_names.get(&cgroup) {
            Some(name) => name.clone(),
            None if cgroup == 0 => "unknown cgroup".to_owned(),
            None => format!("cgroup {cgroup}"),
        }
    }
}
