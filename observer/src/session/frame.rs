//! What is known at one moment: an immutable picture that the TUI, the text and the JSON summaries all draw from.

use crate::stream::{
    event::Kind,
    header::{Header, Lru},
};

/// Where the events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// This kernel, now.
    Live,
    /// A recording in a file.
    Recording,
    /// A recording that arrives through a pipe.
    Pipe,
    /// The recording inside the binary.
    Embedded,
}

/// The source and how far it has come.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// File name, or the kernel's host name.
    pub name: String,
    /// A line the user should see (why this is not live, what was damaged), empty for none.
    pub note: String,
    /// Nanoseconds of events seen.
    pub duration_ns: u64,
    /// Length of the recording in nanoseconds, when known.
    pub total_ns: Option<u64>,
    /// Rows seen.
    pub events: u64,
    /// Rows per second over the last window of event time.
    pub events_per_s: f64,
    /// Events lost.
    pub lost: u64,
    /// Lost by CPU (index = CPU).
    pub lost_per_cpu: Vec<u64>,
    /// One in this many identities is seen.
    pub sample: u32,
    /// No more events will come.
    pub ended: bool,
    /// Times it was played through, where it begins again at its end.
    pub rounds: u64,
    /// Entries evicted from observer's own bounded tables.
    pub table_evictions: u64,
}

/// Whether the flag positions are proven on this kernel's own insertions (spec 1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// The kernel's LRU has no generations to calibrate.
    NotNeeded,
    /// Not enough insertions yet.
    Pending {
        /// Samples that agree so far.
        seen: u32,
        /// Samples needed.
        need: u32,
    },
    /// Proven.
    Confirmed {
        /// Samples that agreed.
        samples: u64,
    },
    /// The flags contradict the derived positions: nothing is predicted.
    Contradicted {
        /// What was seen.
        why: String,
    },
}

/// Own prediction against the kernel's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Folio events at which a prediction stood.
    pub scored: u64,
    /// Of those, predicted equal to the flags.
    pub agree: u64,
    /// Folio events at which none stood (first sight, gap, unobserved path).
    pub unknown: u64,
}

impl Fidelity {
    /// Both.
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self { scored: self.scored + other.scored, agree: self.agree + other.agree, unknown: self.unknown + other.unknown }
    }
}

/// The own rules' scores at one kind of event and type of folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FidelityBy {
    /// What told.
    pub kind: Kind,
    /// Type file; else anon.
    pub file: bool,
    /// The scores.
    pub fidelity: Fidelity,
}

/// Promotions: rises of a folio's seq while on a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promotions {
    /// By the rule set.
    pub predicted: u64,
    /// By the kernel.
    pub actual: u64,
    /// Folio × window promoted by both.
    pub both: u64,
    /// Folio × window promoted by the rule set only.
    pub only_predicted: u64,
    /// Folio × window promoted by the kernel only.
    pub only_actual: u64,
}

/// What the rule set thought of the kernel's evictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    /// Evictions of folios whose predicted place was known.
    pub scored: u64,
    /// It had the folio in its oldest generation too.
    pub agree: u64,
    /// It had the folio in a younger one.
    pub would_keep: u64,
}

/// Refaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refaults {
    /// Pages the kernel counted as refaulted.
    pub actual: u64,
    /// Of those, pages whose eviction was met and judged: only of these can it be said whether they were avoidable.
    pub judged: u64,
    /// Of those, pages that the rule set would have kept.
    pub avoidable: u64,
}

/// One rule set's standing.
#[derive(Clone, Debug)]
pub struct RuleFrame {
    /// Its name ("fg-v4").
    pub name: String,
    /// Whether it is the running kernel's own.
    pub own: bool,
    /// Scores; only meaningful for the own rules, where it is the tool's proof.
    pub fidelity: Fidelity,
    /// Promotions.
    pub promotions: Promotions,
    /// Evictions.
    pub evictions: Evictions,
    /// Refaults.
    pub refaults: Refaults,
}

/// Folios of one lruvec by place, for one side (the kernel's flags, or one rule set). All counts are pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// By age (0 = youngest, seq max_seq - age) × type (anon, file). Classical LRU: age 0 = active, 3 = inactive.
    pub by_age: [[u64; 2]; 4],
    /// By tier × type.
    pub by_tier: [[u64; 2]; 4],
    /// By number of references × type.
    pub by_refs: [[u64; 2]; 8],
    /// Promotions per second in the latest windows, oldest first.
    pub promotions_per_s: Vec<f64>,
}

/// One lruvec: a memory cgroup on a node.
#[derive(Clone, Debug)]
pub struct LruvecFrame {
    /// Stable key for selection.
    pub key: u64,
    /// cgroup path, or "cgroup 1234" when its name is unknown.
    pub cgroup: String,
    /// NUMA node.
    pub node: u8,
    /// `max_seq`; None when not observed.
    pub max_seq: Option<u64>,
    /// `min_seq` of anon and file.
    pub min_seq: Option<[u64; 2]>,
    /// Pages that the kernel itself counts, by age (0 = youngest) × type; None until reclaim or aging reported.
    pub pages: Option<[[u64; 2]; 4]>,
    /// Times max_seq moved while observed.
    pub agings: u64,
    /// Pages refaulted.
    pub refaults: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Tracked folios as the kernel's flags last showed them.
    pub actual: Side,
    /// The same folios in each rule set, same order as [`Frame::rules`].
    pub predicted: Vec<Side>,
}

/// What observer says about one file (or the anon memory of one cgroup).
#[derive(Clone, Debug)]
pub struct FileFrame {
    /// Stable key for selection.
    pub key: u64,
    /// Path as far as known, or "anon", or "inode 12 on 8:1".
    pub name: String,
    /// cgroup path that most of it is charged to.
    pub cgroup: String,
    /// Key of that lruvec.
    pub lruvec: u64,
    /// Tracked pages now.
    pub pages: u64,
    /// Accesses seen.
    pub accesses: u64,
    /// By rule set (order of [`Frame::rules`]): where that rule set and the kernel disagreed.
    pub by_rules: Vec<FileDivergence>,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages refaulted.
    pub refaults: u64,
    /// Of those, pages whose eviction a sampled stream cannot show: nobody knows whether they were avoidable.
    pub untraced: u64,
}

/// Divergence of one rule set on one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileDivergence {
    /// Promotions by both, in the same window.
    pub both: u64,
    /// Promotions by the rule set only.
    pub only_predicted: u64,
    /// Promotions by the kernel only.
    pub only_actual: u64,
    /// Evictions it would not have made.
    pub would_keep: u64,
    /// Refaulted pages it would have kept.
    pub avoidable: u64,
}

/// A counter that the kernel keeps itself, read by the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterFrame {
    /// cgroup path.
    pub cgroup: String,
    /// The kernel's name of it.
    pub name: String,
    /// Change between the first and the last reading.
    pub delta: u64,
}

/// What a rule set alone with the access stream would have done, in a cache of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIfFrame {
    /// The rule set's name.
    pub rules: String,
    /// Whether it is the running kernel's own.
    pub own: bool,
    /// cgroup whose accesses these are: the busiest.
    pub cgroup: String,
    /// Size in percent of the observed one.
    pub percent: u32,
    /// Size in pages.
    pub pages: u64,
    /// Accesses to file pages.
    pub accesses: u64,
    /// File pages refaulted.
    pub refaults: u64,
    /// File pages that the kernel refaulted in that cgroup, where the size is the observed one and its refaults were seen.
    pub observed: Option<u64>,
}

/// Something about all folios as a sample tells it, with the standard error of sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// One standard error.
    pub error: f64,
}

/// What a sampled stream says about all folios under one rule set; nothing where it cannot be told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RuleSampling {
    /// Promotions by the rule set.
    pub predicted: Option<Estimate>,
    /// Folio × window promoted by both.
    pub both: Option<Estimate>,
    /// Folio × window promoted by the rule set only.
    pub only_predicted: Option<Estimate>,
    /// Folio × window promoted by the kernel only.
    pub only_actual: Option<Estimate>,
    /// Evictions judged.
    pub judged: Option<Estimate>,
    /// Of those, kept by the rule set.
    pub would_keep: Option<Estimate>,
    /// The share of those; what agrees is the rest, with the same error.
    pub keeps: Option<Estimate>,
    /// Refaulted pages of files that it would have kept.
    pub avoidable: Option<Estimate>,
    /// Their share of all refaulted pages of files.
    pub avoidable_share: Option<Estimate>,
}

/// The sampling rate was lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// Nanoseconds since the stream began.
    pub at_ns: u64,
    /// One in this many is seen from there on.
    pub one_in: u32,
}

/// What a sampled stream says about all folios.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingFrame {
    /// One in this many was seen.
    pub one_in: u32,
    /// Folios drawn of which anything was counted: pages of files, or else addresses.
    pub units: u64,
    /// Share of own predictions that agree.
    pub fidelity: Option<Estimate>,
    /// The same by type (anon, file).
    pub fidelity_by_type: [Option<Estimate>; 2],
    /// Promotions by the kernel.
    pub promoted: Option<Estimate>,
    /// Pages evicted.
    pub evicted: Option<Estimate>,
    /// Pages refaulted.
    pub refaulted: Option<Estimate>,
    /// One of the other.
    pub refaults_per_eviction: Option<Estimate>,
    /// Refaulted pages seen whose eviction could be found again: in a sample, those of files.
    pub traced: u64,
    /// When fewer began to be seen; empty where the rate was the same throughout.
    pub changes: Vec<RateChange>,
    /// By rule set, order of [`Frame::rules`].
    pub rules: Vec<RuleSampling>,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Source.
    pub source: Source,
    /// The stream's own startup record: kernel, hooks, layout, filter.
    pub header: std::sync::Arc<Header>,
    /// LRU in use now (may be switched while observed).
    pub lru: Lru,
    /// Proof of the flag positions.
    pub calibration: Calibration,
    /// Rule sets; the kernel's own first.
    pub rules: Vec<RuleFrame>,
    /// The own rules' scores by type (anon, file).
    pub fidelity_by_type: [Fidelity; 2],
    /// The same by what told and by type; only what came.
    pub fidelity_by: Vec<FidelityBy>,
    /// Lruvecs, most tracked pages first.
    pub lruvecs: Vec<LruvecFrame>,
    /// Files, most divergence first, at most [`MAX_FILES`].
    pub files: Vec<FileFrame>,
    /// Seconds of event time per entry of `promotions_per_s`.
    pub window_s: f64,
    /// The kernel's own counters, for comparison.
    pub counters: Vec<CounterFrame>,
    /// What-if caches, rule set by rule set, sizes in the order asked for; empty where they are off or have not begun.
    pub what_if: Vec<WhatIfFrame>,
    /// Estimates for all folios, where only a sample of them is seen.
    pub sampling: Option<SamplingFrame>,
}

/// Files in a frame.
pub const MAX_FILES: usize = 200;
