//! The summary: one definition behind the text and the JSON. Keys are documented in `summary-schema.md`.

use serde::Serialize;

use super::cost::{self, Cost};
use super::known::{self, Known};
use super::sampling::{self, Estimate, RuleSampling, Sampling};
use super::verdict;
use crate::session::frame::{self, Calibration, CounterFrame, FileFrame, Frame, LruvecFrame, RuleFrame, Side, SourceKind, WhatIfFrame};
use crate::stream::header::{Hook, Lru, OwnRules};
use crate::stream::schema::kind_name;

/// Name and version of the schema. Keys may be added under the same version; none changes its meaning or goes away.
pub const SCHEMA: &str = "observer.summary/1";

/// Files in a summary.
const FILES: usize = 20;

/// The summary.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: &'static str,
    pub(super) tool: Tool,
    pub(super) source: Source,
    pub(super) kernel: Kernel,
    pub(super) calibration: CalibrationState,
    pub(super) hooks: Vec<Hook>,
    pub(super) rules: Vec<Rules>,
    pub(super) featured: Option<String>,
    pub(super) fidelity_by: Vec<FidelityBy>,
    pub(super) lruvecs: Vec<Lruvec>,
    pub(super) files: Vec<File>,
    pub(super) counters: Vec<Counter>,
    pub(super) checks: Vec<Check>,
    pub(super) cost: Option<Cost>,
    pub(super) what_if: Vec<WhatIf>,
    pub(super) sampling: Option<Sampling>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) recorded_by: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Source {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) note: String,
    pub(super) duration_s: f64,
    pub(super) total_s: Option<f64>,
    pub(super) events: u64,
    pub(super) events_per_s: Option<f64>,
    pub(super) lost: u64,
    pub(super) lost_per_cpu: Vec<u64>,
    pub(super) missed: Option<u64>,
    pub(super) sampling: u32,
    pub(super) filter: String,
    pub(super) command: String,
    pub(super) ended: bool,
    pub(super) table_evictions: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) lru: Lru,
    pub(super) page_size: u32,
    pub(super) machine: String,
    pub(super) host: String,
    pub(super) own_rules: OwnRules,
    pub(super) own_rules_because: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum CalibrationState {
    #[serde(rename = "not-needed")]
    NotNeeded,
    Pending {
        seen: u32,
        need: u32,
    },
    Confirmed {
        samples: u64,
    },
    Contradicted {
        why: String,
    },
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Rules {
    pub(super) name: String,
    pub(super) own: bool,
    pub(super) fidelity: Fidelity,
    pub(super) promotions: Promotions,
    pub(super) evictions: Evictions,
    pub(super) refaults: Refaults,
    pub(super) verdict: String,
    pub(super) sampling: Option<RuleSampling>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Fidelity {
    pub(super) scored: u64,
    pub(super) agree: u64,
    pub(super) unknown: u64,
}

/// The own rules' scores at one kind of event (`all`: together) and one type.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FidelityBy {
    pub(super) kind: &'static str,
    #[serde(rename = "type")]
    pub(super) of: &'static str,
    #[serde(flatten)]
    pub(super) fidelity: Fidelity,
    /// Of a type in a sample: what share of all folios' events agrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<Estimate>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Promotions {
    pub(super) predicted: Option<u64>,
    pub(super) actual: Option<u64>,
    pub(super) both: Option<u64>,
    pub(super) only_predicted: Option<u64>,
    pub(super) only_actual: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Evictions {
    pub(super) scored: Option<u64>,
    pub(super) agree: Option<u64>,
    pub(super) would_keep: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Refaults {
    pub(super) actual: Option<u64>,
    pub(super) judged: Option<u64>,
    pub(super) avoidable: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Lruvec {
    pub(super) cgroup: String,
    pub(super) node: u8,
    pub(super) max_seq: Option<u64>,
    pub(super) min_seq: Option<[u64; 2]>,
    pub(super) pages: Option<[[u64; 2]; 4]>,
    pub(super) agings: Option<u64>,
    pub(super) refaults: Option<u64>,
    pub(super) evictions: Option<u64>,
    pub(super) tracked: Option<Places>,
    pub(super) predicted: Vec<Predicted>,
}

/// Tracked pages by place.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Places {
    pub(super) by_age: [[u64; 2]; 4],
    pub(super) by_tier: [[u64; 2]; 4],
    pub(super) by_refs: [[u64; 2]; 8],
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Predicted {
    pub(super) rules: String,
    #[serde(flatten)]
    pub(super) places: Places,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) cgroup: String,
    pub(super) pages: u64,
    pub(super) accesses: u64,
    pub(super) evictions: Option<u64>,
    pub(super) refaults: Option<u64>,
    pub(super) by_rules: Vec<Divergence>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Divergence {
    pub(super) rules: String,
    pub(super) both: Option<u64>,
    pub(super) only_predicted: Option<u64>,
    pub(super) only_actual: Option<u64>,
    pub(super) would_keep: Option<u64>,
    pub(super) avoidable: Option<u64>,
    pub(super) leaning: &'static str,
    pub(super) verdict: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Counter {
    pub(super) cgroup: String,
    pub(super) name: String,
    pub(super) delta: u64,
}

/// A sum of the kernel's own counters beside the same thing as counted from events.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) cgroup: String,
    pub(super) what: &'static str,
    pub(super) kernel: u64,
    pub(super) observed: Option<u64>,
}

/// A rule set alone with the access stream, at one size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WhatIf {
    pub(super) rules: String,
    pub(super) own: bool,
    pub(super) cgroup: String,
    pub(super) percent: u32,
    pub(super) pages: u64,
    pub(super) accesses: u64,
    pub(super) refaults: u64,
    pub(super) observed: Option<u64>,
}

impl Summary {
    /// Of a picture.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        let known = Known::of(frame);
        let (s, h) = (&frame.source, &frame.header);
        Self {
            schema: SCHEMA,
            tool: Tool { name: "observer", version: env!("CARGO_PKG_VERSION"), recorded_by: h.tool.clone() },
            source: Source {
                kind: kind(s.kind),
                name: s.name.clone(),
                note: s.note.clone(),
                duration_s: in_seconds(s.duration_ns),
                total_s: s.total_ns.map(in_seconds),
                events: s.events,
                events_per_s: s.events_per_s.is_finite().then_some(s.events_per_s),
                lost: s.lost,
                lost_per_cpu: s.lost_per_cpu.clone(),
                missed: cost::missed(frame),
                sampling: s.sample,
                filter: h.filter.clone(),
                command: h.command.clone(),
                ended: s.ended,
                table_evictions: s.table_evictions,
            },
            kernel: Kernel {
                release: h.kernel.clone(),
                lru: frame.lru,
                page_size: h.page_size,
                machine: h.machine.clone(),
                host: h.host.clone(),
                own_rules: h.own_rules,
                own_rules_because: h.own_rules_because.clone(),
            },
            calibration: calibration(&frame.calibration),
            hooks: h.hooks.clone(),
            rules: frame.rules.iter().enumerate().map(|(index, r)| rules(frame, &known, index, r)).collect(),
            featured: known::featured(frame).map(|i| frame.rules[i].name.clone()),
            fidelity_by: fidelity_by(frame),
            lruvecs: frame.lruvecs.iter().map(|l| lruvec(frame, &known, l)).collect(),
            files: frame.files.iter().take(FILES).map(|f| file(frame, &known, f)).collect(),
            counters: frame.counters.iter().filter(|c| !cost::is_cost(&c.name)).map(counter).collect(),
            checks: checks(frame, &known),
            cost: cost::of(frame),
            what_if: frame.what_if.iter().map(what_if).collect(),
            sampling: sampling::of(frame, &known),
        }
    }
}

/// The word for a kind of source.
pub(super) fn kind(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Live => "live",
        SourceKind::Recording => "recording",
        SourceKind::Pipe => "pipe",
        SourceKind::Embedded => "embedded",
    }
}

fn fidelity(f: frame::Fidelity) -> Fidelity {
    Fidelity { scored: f.scored, agree: f.agree, unknown: f.unknown }
}

/// By type, then by kind of event and type.
fn fidelity_by(frame: &Frame) -> Vec<FidelityBy> {
    let of = |file| if file { "file" } else { "anon" };
    let types = [false, true].into_iter().zip(frame.fidelity_by_type).filter(|(_, f)| *f != frame::Fidelity::default());
    let types = types.map(|(file, f)| {
        let share = sampling::fidelity_of(frame, file);
        FidelityBy { kind: "all", of: of(file), fidelity: fidelity(f), share }
    });
    let kinds = frame.fidelity_by.iter().map(|row| FidelityBy {
        kind: kind_name(row.kind),
        of: of(row.file),
        fidelity: fidelity(row.fidelity),
        share: None,
    });
    types.chain(kinds).collect()
}

fn what_if(w: &WhatIfFrame) -> WhatIf {
    WhatIf {
        rules: w.rules.clone(),
        own: w.own,
        cgroup: w.cgroup.clone(),
        percent: w.percent,
        pages: w.pages,
        accesses: w.accesses,
        refaults: w.refaults,
        observed: w.observed,
    }
}

fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn calibration(c: &Calibration) -> CalibrationState {
    match c {
        Calibration::NotNeeded => CalibrationState::NotNeeded,
        Calibration::Pending { seen, need } => CalibrationState::Pending { seen: *seen, need: *need },
        Calibration::Confirmed { samples } => CalibrationState::Confirmed { samples: *samples },
        Calibration::Contradicted { why } => CalibrationState::Contradicted { why: why.clone() },
    }
}

fn rules(frame: &Frame, known: &Known, index: usize, r: &RuleFrame) -> Rules {
    let (f, p, e) = (r.fidelity, r.promotions, r.evictions);
    Rules {
        name: r.name.clone(),
        own: r.own,
        fidelity: fidelity(f),
        promotions: Promotions {
            predicted: known.predicted(p.predicted),
            actual: known.promoted(p.actual),
            both: known.predicted(p.both),
            only_predicted: known.predicted(p.only_predicted),
            only_actual: known.predicted(p.only_actual),
        },
        evictions: Evictions { scored: known.judged(e.scored), agree: known.judged(e.agree), would_keep: known.judged(e.would_keep) },
        refaults: Refaults {
            actual: known.refaulted(r.refaults.actual),
            judged: known.avoidable(r.refaults.judged),
            avoidable: known.avoidable(r.refaults.avoidable),
        },
        verdict: verdict::rules(frame, known, r).long,
        sampling: sampling::of_rules(frame, known, index),
    }
}

fn lruvec(frame: &Frame, known: &Known, l: &LruvecFrame) -> Lruvec {
    let predicted = if known.predictions() {
        let named = frame.rules.iter().zip(&l.predicted);
        named.map(|(r, side)| Predicted { rules: r.name.clone(), places: places(side) }).collect()
    } else {
        Vec::new()
    };
    Lruvec {
        cgroup: l.cgroup.clone(),
        node: l.node,
        max_seq: l.max_seq,
        min_seq: l.min_seq,
        pages: l.pages,
        agings: l.max_seq.map(|_| l.agings),
        refaults: known.refaulted(l.refaults),
        evictions: known.evicted(l.evictions),
        tracked: known.predictions().then(|| places(&l.actual)),
        predicted,
    }
}

fn places(side: &Side) -> Places {
    Places { by_age: side.by_age, by_tier: side.by_tier, by_refs: side.by_refs }
}

fn file(frame: &Frame, known: &Known, f: &FileFrame) -> File {
    let divergence = |(i, r): (usize, &RuleFrame)| {
        let d = f.by_rules.get(i)?;
        let verdict = verdict::file(frame, known, f, i);
        Some(Divergence {
            rules: r.name.clone(),
            both: known.predicted(d.both),
            only_predicted: known.predicted(d.only_predicted),
            only_actual: known.predicted(d.only_actual),
            would_keep: known.judged(d.would_keep),
            avoidable: known.avoidable_of(f, d.avoidable),
            leaning: verdict.leaning.word(),
            verdict: verdict.long,
        })
    };
    File {
        name: f.name.clone(),
        cgroup: f.cgroup.clone(),
        pages: f.pages,
        accesses: f.accesses,
        evictions: known.evicted(f.evictions),
        refaults: known.refaulted(f.refaults),
        by_rules: frame.rules.iter().enumerate().filter_map(divergence).collect(),
    }
}

fn counter(c: &CounterFrame) -> Counter {
    Counter { cgroup: c.cgroup.clone(), name: c.name.clone(), delta: c.delta }
}

/// The kernel's `workingset_refault_*` of each cgroup against the refaults seen in it and below it: cgroup v2's counters
/// are hierarchical.
fn checks(frame: &Frame, known: &Known) -> Vec<Check> {
    let mut out: Vec<Check> = Vec::new();
    for c in frame.counters.iter().filter(|c| c.name == "workingset_refault_file" || c.name == "workingset_refault_anon") {
        if let Some(check) = out.iter_mut().find(|o| o.cgroup == c.cgroup) {
            check.kernel += c.delta;
            continue;
        }
        let below = if c.cgroup == "/" { "/".to_owned() } else { format!("{}/", c.cgroup) };
        let inside = |l: &&LruvecFrame| l.cgroup == c.cgroup || l.cgroup.starts_with(&below);
        let observed = frame.lruvecs.iter().filter(inside).map(|l| l.refaults).sum();
        out.push(Check { cgroup: c.cgroup.clone(), what: "pages refaulted", kernel: c.delta, observed: known.refaulted(observed) });
    }
    out
}
