//! One thing that happened, as every part of observer sees it, wherever it came from.

pub use observer_common::Kind;

/// A lruvec's clock as a hook read it beside the folio's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Low 24 bits of `max_seq`; the session widens it.
    pub max_seq: u32,
    /// `max_seq - min_seq` of anon and file (1..=3 outside the lock, spec 9.1).
    pub window: [u8; 2],
}

/// What a folio holds: the identity that survives eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device as the kernel encodes it (major << 20 | minor); 0 for anon.
    pub dev: u32,
    /// Inode number (anon: the anon_vma's address with bit 0 set).
    pub ino: u64,
    /// Index in pages.
    pub index: u64,
}

/// Where a folio is charged and accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Memory cgroup as user space sees it (kernfs node id); 0 unknown.
    pub cgroup: u64,
    /// The memory cgroup's private id, as in shadow entries; 0 unknown.
    pub memcg_id: u16,
    /// NUMA node.
    pub node: u8,
    /// log2 of the folio's pages.
    pub order: u8,
}

/// A lruvec as reclaim or aging saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LruvecState {
    /// Memory cgroup; 0 unknown.
    pub cgroup: u64,
    /// NUMA node.
    pub node: u8,
    /// `lrugen.enabled`.
    pub enabled: bool,
    /// Reclaim priority, 12 (gentle) to 0.
    pub priority: u8,
    /// `lrugen.max_seq`.
    pub max_seq: u64,
    /// `lrugen.min_seq[anon, file]`.
    pub min_seq: [u64; 2],
    /// `scan_control.nr_reclaimed`, pages.
    pub nr_reclaimed: u64,
    /// Pages by generation index (seq % 4) × type (anon, file).
    pub pages: [[u32; 2]; 4],
}

/// The tier controller's counters (spec 4.1), `[type][tier]`, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerState {
    /// Moving average of refaults.
    pub avg_refaulted: [[u64; 4]; 2],
    /// Moving average of evictions and protections.
    pub avg_total: [[u64; 4]; 2],
    /// Refaults since `min_seq` moved.
    pub refaulted: [[u64; 4]; 2],
    /// Evictions since `min_seq` moved.
    pub evicted: [[u64; 4]; 2],
    /// Protections since `min_seq` moved.
    pub protected: [[u64; 4]; 2],
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Something happened to a folio: kinds Add, Insert, Mark, Refault, Evict, Delete, IncGen, Activate, Walk, SetRefs, LookAround, CacheAdd.
    Folio(FolioEvent),
    /// A reclaim or aging step of a lruvec: ShrinkEnter, ShrinkExit, Age.
    Lruvec {
        /// Which of them.
        kind: Kind,
        /// The lruvec's address: its identity.
        lruvec: u64,
        /// What it looked like.
        state: LruvecState,
    },
    /// A lruvec's controller counters.
    Controller {
        /// The lruvec's address.
        lruvec: u64,
        /// Its counters.
        state: Box<ControllerState>,
    },
    /// An access known by file and range only: ReadRange, FaultRange, MapRange.
    Range {
        /// Which of them.
        kind: Kind,
        /// Device.
        dev: u32,
        /// Inode number.
        ino: u64,
        /// First page.
        first: u64,
        /// Last page, inclusive.
        last: u64,
    },
    /// A file's path, as far as the kernel told.
    FileName {
        /// Device.
        dev: u32,
        /// Inode number.
        ino: u64,
        /// Path, at least the file's own name.
        name: String,
    },
    /// A cgroup's path below the cgroup mount ("/" for the root).
    CgroupName {
        /// kernfs node id.
        cgroup: u64,
        /// Path.
        name: String,
    },
    /// Events lost at this point of the stream.
    Lost {
        /// CPU whose events were lost.
        cpu: u16,
        /// How many since the last such row of this CPU.
        count: u64,
    },
    /// The clocks read together (nanoseconds).
    ClockSnapshot {
        /// CLOCK_BOOTTIME, the clock of `Event::ts`.
        boottime: u64,
        /// CLOCK_REALTIME, since the Unix epoch.
        realtime: u64,
    },
    /// A counter of the kernel's own, read by the recorder: the referee.
    Counter {
        /// Memory cgroup it belongs to; 0 for the whole machine.
        cgroup: u64,
        /// The kernel's name of it (`workingset_refault_file`).
        name: String,
        /// Its value.
        value: u64,
    },
}

/// Something that happened to one folio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FolioEvent {
    /// What.
    pub kind: Kind,
    /// The folio's address: an identity while it lives, nothing more.
    pub folio: u64,
    /// Raw flags word; before the effect or after it as [`Kind`] says.
    pub flags: u64,
    /// The lruvec's clock, if the hook could reach it.
    pub clock: Option<Clock>,
    /// Kind specific bits ([`observer_common::task`] for Add).
    pub aux: u8,
    /// Identity, in the kinds that carry it.
    pub identity: Option<Identity>,
    /// Where it is charged, in the kinds that carry identity.
    pub home: Option<Home>,
    /// The raw shadow entry of Refault and Evict.
    pub shadow: u64,
}

/// One row of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// CLOCK_BOOTTIME, nanoseconds.
    pub ts: u64,
    /// CPU that reported.
    pub cpu: u16,
    /// What happened.
    pub body: Body,
}
