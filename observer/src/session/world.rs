//! Who is who: folios by address while they live, files, cgroups, lruvecs. All tables are bounded; what they refuse or
//! forget is counted.

use rustc_hash::FxHashMap;

use crate::{
    index::{Index, of_address, of_identity},
    session::{clock::Lruvec, files::Files, shmem::FirstWrite},
    stream::event::{Home, Identity},
};

/// Folios tracked at once, unless less is asked for: 16 GiB of 4 KiB pages.
pub(crate) const MAX_FOLIOS: usize = 1 << 22;

/// Lruvecs remembered: 10 KB each with six rule sets.
const MAX_LRUVECS: usize = 1 << 12;

/// Names of cgroups remembered.
const MAX_NAMES: usize = 1 << 16;

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
    /// Whether a first write to it is still to be seen.
    pub(crate) first_write: FirstWrite,
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

/// Whether this names anonymous memory: an anon_vma's address with bit 0 set.
pub(crate) fn is_anon(identity: &Identity) -> bool {
    identity.dev == 0 && identity.ino & 3 != 0
}

/// The tables.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Folios tracked at most.
    most: usize,
    by_address: Index,
    /// Where accesses name file and index only; kept when [`World::index_by_identity`] is set.
    by_identity: Index,
    /// Whether identities are looked up.
    index_by_identity: bool,
    folios: Vec<Folio>,
    free: Vec<Slot>,
    pub(crate) files: Files,
    lruvecs: Vec<Lruvec>,
    lruvec_index: FxHashMap<(u64, u8), u32>,
    cgroup_names: FxHashMap<u64, String>,
    /// Folios, lruvecs and names that found their table full.
    pub(crate) refused: u64,
}

impl World {
    /// Empty; with `index_by_identity` folios are also found by file and page.
    pub(crate) fn new(index_by_identity: bool) -> Self {
        Self { index_by_identity, most: MAX_FOLIOS, ..Self::default() }
    }

    /// Tracks no more folios than that at once.
    pub(crate) fn track_at_most(&mut self, folios: usize) {
        self.most = folios.min(MAX_FOLIOS);
    }

    /// All folios tracked.
    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> + '_ {
        self.by_address.entries()
    }

    /// The slot of a living folio.
    pub(crate) fn slot(&self, address: u64) -> Option<Slot> {
        self.by_address.find(of_address(address), |slot| self.folios[slot as usize].address == address)
    }

    /// The slot that holds a page of a file: its own folio, or a large one around it.
    pub(crate) fn slot_of(&self, dev: u32, ino: u64, index: u64) -> Option<Slot> {
        const MAX_ORDER: u32 = 11;
        (0..=MAX_ORDER).find_map(|order| {
            let head = index & !((1 << order) - 1);
            let slot = self.identified(&Identity { dev, ino, index: head })?;
            (index - head < u64::from(self.folios[slot as usize].pages())).then_some(slot)
        })
    }

    fn identified(&self, identity: &Identity) -> Option<Slot> {
        self.by_identity.find(of_identity(identity), |slot| self.folios[slot as usize].identity == *identity)
    }

    fn index_identity(&mut self, slot: Slot) {
        if self.index_by_identity {
            let (folios, identity) = (&self.folios, self.folios[slot as usize].identity);
            self.by_identity.put(of_identity(&identity), slot, |other| folios[other as usize].identity == identity);
        }
    }

    /// A folio.
    pub(crate) fn folio(&self, slot: Slot) -> &Folio {
        &self.folios[slot as usize]
    }

    /// Folios tracked.
    #[cfg(test)]
    pub(crate) fn tracked(&self) -> usize {
        self.by_address.len()
    }

    /// Of those, how many are found by file and page.
    #[cfg(test)]
    pub(crate) fn identities(&self) -> usize {
        self.by_identity.len()
    }

    /// Slots in use and free.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> usize {
        self.folios.len()
    }

    /// A folio, to change.
    pub(crate) fn folio_mut(&mut self, slot: Slot) -> &mut Folio {
        &mut self.folios[slot as usize]
    }

    /// Begins a residency; `None` when the table is full.
    pub(crate) fn begin(&mut self, folio: Folio) -> Option<Slot> {
        if self.by_address.len() >= self.most {
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
        let folios = &self.folios;
        self.by_address.put(of_address(folio.address), slot, |other| folios[other as usize].address == folio.address);
        self.index_identity(slot);
        self.files.arrives(folio.file, folio.pages());
        Some(slot)
    }

    /// A folio whose identity was not known at its birth has one now.
    pub(crate) fn identify(&mut self, slot: Slot, identity: Identity) {
        // What it was known by before would lead to it for ever.
        self.by_identity.remove(of_identity(&self.folios[slot as usize].identity), slot);
        self.folios[slot as usize].identity = identity;
        self.index_identity(slot);
    }

    /// A folio has another size now.
    pub(crate) fn resize(&mut self, slot: Slot, order: u8) {
        let folio = &mut self.folios[slot as usize];
        let before = u64::from(folio.pages());
        folio.order = order;
        let file = self.files.file_mut(folio.file);
        file.pages = (file.pages + u64::from(folio.pages())).saturating_sub(before);
    }

    /// Ends a residency.
    pub(crate) fn end(&mut self, slot: Slot) {
        let folio = self.folios[slot as usize];
        self.by_address.remove(of_address(folio.address), slot);
        self.by_identity.remove(of_identity(&folio.identity), slot);
        self.files.leaves(folio.file, folio.pages());
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

    /// A cgroup's path was told.
    pub(crate) fn name_cgroup(&mut self, cgroup: u64, name: &str) {
        if self.cgroup_names.len() < MAX_NAMES || self.cgroup_names.contains_key(&cgroup) {
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
