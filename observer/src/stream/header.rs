//! What a stream says of itself before its first event: everything that is needed to read it later, elsewhere.

use serde::{Deserialize, Serialize};

/// Version of the recording format. Readers accept this and older ones.
pub const FORMAT: u32 = 1;

/// How a hook was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// fentry.
    Fentry,
    /// fexit.
    Fexit,
    /// kprobe, for symbols that the compiler renamed.
    Kprobe,
    /// BTF-typed tracepoint.
    TpBtf,
    /// Run by user space, attached to nothing. In no recording: only what `observer doctor` says of a machine has it.
    Run,
    /// Not reached.
    None,
}

impl Via {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fentry => "fentry",
            Self::Fexit => "fexit",
            Self::Kprobe => "kprobe",
            Self::TpBtf => "tp_btf",
            Self::Run => "run",
            Self::None => "none",
        }
    }
}

/// One hook: what was wanted and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// What it is for, the name used throughout ("lru_gen_refault").
    pub name: String,
    /// How it was reached.
    pub via: Via,
    /// The kernel symbol or tracepoint it is attached to ("workingset_refault"), empty when not reached.
    pub target: String,
    /// Why it was not reached or only by a detour; empty otherwise.
    pub why: String,
    /// What is unknown without it.
    pub without: String,
}

/// Which LRU the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lru {
    /// Multi-gen LRU, enabled.
    Mglru,
    /// Active/inactive lists.
    Classical,
}

/// Positions in a folio's flags word (spec 1.2, 1.3). Bit numbers count from the least significant bit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagLayout {
    /// PG_referenced.
    pub referenced: u8,
    /// PG_uptodate; None in recordings made before it was asked for.
    #[serde(default)]
    pub uptodate: Option<u8>,
    /// PG_active.
    pub active: u8,
    /// PG_workingset.
    pub workingset: u8,
    /// PG_swapbacked.
    pub swapbacked: u8,
    /// PG_swapcache.
    pub swapcache: u8,
    /// PG_unevictable.
    pub unevictable: u8,
    /// PG_reclaim (the same bit as PG_readahead).
    pub reclaim: u8,
    /// PG_dirty.
    pub dirty: u8,
    /// PG_writeback.
    pub writeback: u8,
    /// PG_lru.
    pub lru: u8,
    /// PG_head.
    pub head: u8,
    /// PG_dropbehind; None before 6.18.
    pub dropbehind: Option<u8>,
    /// `__NR_PAGEFLAGS`: bits below it are flags.
    pub nr_pageflags: u8,
    /// LRU_GEN_PGOFF; None when it could not be derived (calibration must find it).
    pub gen_pgoff: Option<u8>,
    /// LRU_REFS_PGOFF.
    pub refs_pgoff: Option<u8>,
    /// LRU_REFS_WIDTH.
    pub refs_width: Option<u8>,
    /// How the three were derived ("pff", "config"), empty when not.
    pub derived_from: String,
    /// NODES_SHIFT, needed to decode shadow entries; None when unknown.
    pub nodes_shift: Option<u8>,
}

/// Which rule set the running kernel has, found by what it contains (spec 1.3, 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnRules {
    /// Active/inactive.
    #[serde(rename = "classical")]
    Classical,
    /// 6.1 to 6.13.
    #[serde(rename = "6.12")]
    V6_12,
    /// 6.14 to 7.1.
    #[serde(rename = "6.18")]
    V6_18,
    /// 7.2 and later.
    #[serde(rename = "7.3")]
    V7_3,
    /// Frequency guided.
    #[serde(rename = "fg-v3")]
    FgV3,
}

impl OwnRules {
    /// Name of the preset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classical => "classical",
            Self::V6_12 => "6.12",
            Self::V6_18 => "6.18",
            Self::V7_3 => "7.3",
            Self::FgV3 => "fg-v3",
        }
    }
}

/// Which part of a recording a file holds, where a new file was begun from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// CLOCK_BOOTTIME at the start of the first part: the same in all of them.
    pub run: u64,
    /// Its number, from 1.
    pub number: u32,
    /// Rows in the parts before it.
    pub first_row: u64,
}

/// The startup record, stored as the schema's metadata of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the tool that wrote it.
    pub tool: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// Host name.
    pub host: String,
    /// Bytes per page.
    pub page_size: u32,
    /// CPUs that can report.
    pub cpus: u32,
    /// LRU in use when the stream began.
    pub lru: Lru,
    /// The kernel's own rules.
    pub own_rules: OwnRules,
    /// What made us choose them.
    pub own_rules_because: String,
    /// Flag positions.
    pub layout: FlagLayout,
    /// Hooks, reached or not.
    pub hooks: Vec<Hook>,
    /// One in this many identities is kept (1 = all).
    pub sample: u32,
    /// Cgroup filter, empty for none.
    pub filter: String,
    /// CLOCK_BOOTTIME at the start, nanoseconds.
    pub start_boottime: u64,
    /// CLOCK_REALTIME at the start, nanoseconds since the epoch.
    pub start_realtime: u64,
    /// Command that was run under observation, empty for none.
    pub command: String,
    /// Which part of a recording this is; None for a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Flag bits of Debian's 7.3 cloud kernel (spec 1.2, 1.3).
    pub(crate) fn layout() -> FlagLayout {
        FlagLayout {
            referenced: 2,
            uptodate: Some(3),
            active: 8,
            workingset: 9,
            swapbacked: 17,
            swapcache: 10,
            unevictable: 18,
            reclaim: 16,
            dirty: 4,
            writeback: 1,
            lru: 5,
            head: 6,
            dropbehind: Some(19),
            nr_pageflags: 25,
            gen_pgoff: Some(27),
            refs_pgoff: Some(25),
            refs_width: Some(2),
            derived_from: "pff".to_owned(),
            nodes_shift: Some(10),
        }
    }
}
