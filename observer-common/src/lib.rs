//! The records that cross from kernel to user space.
//!
//! Every record starts with [`Head`], 32 bytes, so that the hot ones are nothing else. A record's length follows from
//! its [`Kind`]; user space refuses a record whose length does not fit. All integers are the machine's own byte order.
//! Kernel pointers are identities only: user space never dereferences them.
#![no_std]

pub mod layout;
pub mod sample;

/// Version of these records; the object and the loader must agree (both carry it).
pub const ABI: u32 = 2;

/// `Head::clock` when the hook could not reach the folio's lruvec.
pub const CLOCK_UNKNOWN: u32 = u32::MAX;

/// What a record reports. The number is the wire value; never reuse one.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `folio_add_lru` entered: flags *before* it touches them. Body: [`Cold`]; `aux`: [`task`] bits.
    Add = 1,
    /// `mm_lru_insertion`: flags *after* the folio was put on a list. Body: [`Cold`].
    Insert = 2,
    /// `folio_mark_accessed` entered: flags *before*. Head only.
    Mark = 3,
    /// `lru_gen_refault` or `workingset_refault` entered: flags *before*. Body: [`Cold`], `arg` = shadow entry.
    Refault = 4,
    /// `workingset_eviction` returned: flags at eviction. Body: [`Cold`], `arg` = shadow entry.
    Evict = 5,
    /// `mm_filemap_delete_from_page_cache`: the folio leaves the page cache (reclaimed or not). Body: [`Cold`].
    Delete = 6,
    /// `folio_inc_gen`: the scan (or `inc_min_seq`) moves this folio one generation up. `aux`: [`inc_gen`]. Head only.
    IncGen = 7,
    /// `mm_lru_activate`: flags after activation. Head only.
    Activate = 8,
    /// `walk_update_folio` / `folio_update_gen` entered: a young page-table entry was found. Flags *before*; `aux`: [`walk`]. Head only.
    Walk = 9,
    /// `lru_gen_set_refs` entered: look-around or reclaim candidate with a young page-table entry. Flags *before*. Head only.
    SetRefs = 10,
    /// `lru_gen_look_around` returned: `folio` = the candidate around whose mapping it looked. Head only.
    LookAround = 11,
    /// `try_to_shrink_lruvec` entered. Body: [`Shrink`].
    ShrinkEnter = 12,
    /// `try_to_shrink_lruvec` returned. Body: [`Shrink`].
    ShrinkExit = 13,
    /// `max_seq` moved. Body: [`Shrink`].
    Age = 14,
    /// Controller counters of a lruvec. Body: [`Controller`].
    Controller = 15,
    /// First sight of a file: its name. Body: [`FileName`].
    FileName = 16,
    /// Tracepoints tier: `mm_filemap_get_pages`, a read of a range of a file. Body: [`Range`].
    ReadRange = 17,
    /// Tracepoints tier: `mm_filemap_fault`, a fault on one page of a file. Body: [`Range`].
    FaultRange = 18,
    /// Tracepoints tier: `mm_filemap_map_pages`, fault-around of a range. Body: [`Range`].
    MapRange = 19,
    /// Tracepoints tier: `mm_filemap_add_to_page_cache`. Body: [`Cold`].
    CacheAdd = 20,
    /// A folio that was on a list when observer attached: flags *now*; nothing is known of how it came there. Body: [`Cold`].
    Census = 21,
    /// A followed folio whose flags or identity changed without an event: flags *now*; `aux`: [`sweep`]. Body: [`Cold`].
    Sweep = 22,
    /// `swap_read_folio` entered: the swap entry that fills this folio. Body: [`Cold`], identity is the swap entry ([`SWAP_DEV`]).
    SwapRead = 23,
}

/// Bits of `Head::aux` for [`Kind::Add`].
pub mod task {
    /// `current->in_lru_fault` was set.
    pub const IN_LRU_FAULT: u8 = 1;
    /// `current` had PF_MEMALLOC.
    pub const MEMALLOC: u8 = 2;
    /// The task bits could not be read.
    pub const UNKNOWN: u8 = 4;
}

/// Bits of `Head::aux` for [`Kind::IncGen`].
pub mod inc_gen {
    /// The flags were read after the move, not before it.
    pub const DONE: u8 = 1;
}

/// Bits of `Head::aux` for [`Kind::Walk`].
pub mod walk {
    /// Under a walk object, so that the aging rule applies; without one the look-around rule does (spec 3.2).
    pub const AGING: u8 = 1;
}

/// Bits of `Head::aux` for [`Kind::Sweep`].
pub mod sweep {
    /// The followed folio is gone: nobody holds what is there, or that is another one, which is not of the sample or not
    /// charged to what is observed.
    pub const FREE: u8 = 1;
}

/// `Cold::dev` where the identity is a swap entry: `index` holds it, `ino` is 0. No device has this number.
pub const SWAP_DEV: u32 = u32::MAX;

/// The start of every record, and the whole of a hot one.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// `bpf_ktime_get_boot_ns`.
    pub ts: u64,
    /// Address of the `struct folio` (or of the lruvec, or mapping, where the kind says so).
    pub folio: u64,
    /// The folio's raw flags word.
    pub flags: u64,
    /// The folio's lruvec's clock at this moment, packed by [`pack_clock`], or [`CLOCK_UNKNOWN`].
    pub clock: u32,
    /// A [`Kind`].
    pub kind: u8,
    /// Kind specific bits.
    pub aux: u8,
    /// The CPU that reported.
    pub cpu: u16,
}

/// A head with the folio's identity.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// Common part.
    pub head: Head,
    /// Inode number of the file; for anon the address of the anon_vma with bit 0 set as in `folio->mapping`.
    pub ino: u64,
    /// Index in the file in pages (anon: in the anon_vma; with [`SWAP_DEV`]: the swap entry).
    pub index: u64,
    /// Identity of the memory cgroup as user space sees it (`kernfs` node id), 0 when unknown.
    pub cgroup: u64,
    /// Kind specific: the shadow entry.
    pub arg: u64,
    /// `s_dev` of the file (kernel encoding: major << 20 | minor); 0 for anon, [`SWAP_DEV`] for a swap entry.
    pub dev: u32,
    /// The memory cgroup's private id as stored in shadow entries; 0 when unknown.
    pub memcg_id: u16,
    /// NUMA node of the lruvec.
    pub node: u8,
    /// log2 of the pages in the folio.
    pub order: u8,
}

/// Progress of a reclaim or aging call on one lruvec. `head.folio` is the lruvec's address.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrink {
    /// Common part; `flags` holds nothing.
    pub head: Head,
    /// `lrugen.max_seq`.
    pub max_seq: u64,
    /// `lrugen.min_seq[anon, file]`.
    pub min_seq: [u64; 2],
    /// Identity of the memory cgroup, 0 when unknown.
    pub cgroup: u64,
    /// `scan_control.nr_reclaimed` (0 for [`Kind::Age`]).
    pub nr_reclaimed: u64,
    /// Pages by generation index (seq % 4) × type (anon, file), summed over zones, negative counts read as 0.
    pub pages: [[u32; 2]; 4],
    /// `scan_control.priority`.
    pub priority: u8,
    /// NUMA node.
    pub node: u8,
    /// `lrugen.enabled`.
    pub enabled: u8,
    /// Zero.
    pub pad: [u8; 5],
}

/// The tier controller's counters of one lruvec (spec 4.1), indexed `[type][tier]`, hist slot of `min_seq[type]`.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Common part; `folio` is the lruvec's address.
    pub head: Head,
    /// `avg_refaulted`.
    pub avg_refaulted: [[u64; 4]; 2],
    /// `avg_total`.
    pub avg_total: [[u64; 4]; 2],
    /// `refaulted`.
    pub refaulted: [[u64; 4]; 2],
    /// `evicted`.
    pub evicted: [[u64; 4]; 2],
    /// `protected` (on 6.12 and older three tiers, shifted so that index = tier, tier 0 reads 0).
    pub protected: [[u64; 4]; 2],
}

/// Components of a path that fit a [`FileName`].
pub const NAME_PARTS: usize = 6;
/// Bytes of one component, its terminating zero included.
pub const NAME_LEN: usize = 48;

/// A file's name: its last components, innermost first, each zero terminated (cut when longer).
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Common part; `folio` is the inode's address.
    pub head: Head,
    /// Inode number.
    pub ino: u64,
    /// `s_dev`.
    pub dev: u32,
    /// Components filled.
    pub parts: u32,
    /// The components.
    pub name: [[u8; NAME_LEN]; NAME_PARTS],
}

/// An access known by file and page range only (tracepoints tier). `head.folio` is the inode's address.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Common part.
    pub head: Head,
    /// Inode number.
    pub ino: u64,
    /// First page.
    pub first: u64,
    /// Last page, inclusive.
    pub last: u64,
    /// `s_dev`.
    pub dev: u32,
    /// Zero.
    pub pad: u32,
}

/// A followed folio as it was last seen, for a sweep to compare.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Address of the folio.
    pub folio: u64,
    /// Its flags word.
    pub flags: u64,
    /// As [`Cold::ino`].
    pub ino: u64,
    /// As [`Cold::index`].
    pub index: u64,
    /// As [`Cold::order`].
    pub order: u64,
}

impl Known {
    /// `flags` of a folio that may be there and was never seen: no folio has them.
    pub const UNSEEN: u64 = u64::MAX;
}

/// Folios that one run of a sweep compares at most.
pub const SWEEP_LEN: usize = 4096;

/// What a run of a census or a sweep did.
#[repr(C)]
#[cfg_attr(feature = "user", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Page frame (census) or entry (sweep) at which the next run goes on.
    pub next: u64,
    /// Folios looked at: on a list (census), readable (sweep).
    pub folios: u64,
    /// Records written.
    pub written: u64,
    /// Places that could not be read: no memory there, or an address that is none.
    pub unreadable: u64,
}

/// Packs a lruvec's clock: the low 24 bits of max_seq and the two window sizes (max_seq - min_seq, spec: 1..=3).
#[inline(always)]
pub fn pack_clock(max_seq: u64, min_anon: u64, min_file: u64) -> u32 {
    let anon = max_seq.wrapping_sub(min_anon) & 15;
    let file = max_seq.wrapping_sub(min_file) & 15;
    ((max_seq as u32) << 8) | ((anon as u32) << 4) | file as u32
}

/// The wire value as a [`Kind`]; `None` for a number this version does not know.
pub fn kind(wire: u8) -> Option<Kind> {
    const KINDS: [Kind; 23] = [
        Kind::Add,
        Kind::Insert,
        Kind::Mark,
        Kind::Refault,
        Kind::Evict,
        Kind::Delete,
        Kind::IncGen,
        Kind::Activate,
        Kind::Walk,
        Kind::SetRefs,
        Kind::LookAround,
        Kind::ShrinkEnter,
        Kind::ShrinkExit,
        Kind::Age,
        Kind::Controller,
        Kind::FileName,
        Kind::ReadRange,
        Kind::FaultRange,
        Kind::MapRange,
        Kind::CacheAdd,
        Kind::Census,
        Kind::Sweep,
        Kind::SwapRead,
    ];
    KINDS.get((wire as usize).wrapping_sub(1)).copied()
}
