//! Pictures made up for tests of what draws them.

use std::sync::Arc;

use crate::session::frame::{
    Calibration, CounterFrame, Estimate, Evictions, Fidelity, FidelityBy, FileDivergence, FileFrame, Frame, LruvecFrame, Promotions,
    Refaults, RuleFrame, RuleSampling, SamplingFrame, Side, Source, SourceKind, WhatIfFrame,
};
use crate::stream::event::Kind;
use crate::stream::header::{FORMAT, Header, Hook, Lru, OwnRules, Via, tests::layout};

fn hook(name: &str, via: Via, target: &str, why: &str, without: &str) -> Hook {
    Hook { name: name.into(), via, target: target.into(), why: why.into(), without: without.into() }
}

/// A startup record of a 7.3 kernel.
pub(crate) fn header() -> Header {
    Header {
        format: FORMAT,
        tool: "0.1.0".into(),
        kernel: "7.3.4+deb13-cloud-amd64".into(),
        machine: "x86_64".into(),
        host: "testbox".into(),
        page_size: 4096,
        cpus: 2,
        lru: Lru::Mglru,
        own_rules: OwnRules::V7_3,
        own_rules_because: "lru_gen_folio has no folio_inc_lru_refs, PG_dropbehind at bit 19".into(),
        layout: layout(),
        hooks: vec![
            hook("folio_add_lru", Via::Fentry, "folio_add_lru", "", ""),
            hook("mm_lru_insertion", Via::TpBtf, "mm_lru_insertion", "", ""),
            hook("folio_mark_accessed", Via::Fentry, "folio_mark_accessed", "", ""),
            hook("lru_gen_refault", Via::Fentry, "workingset_refault", "lru_gen_refault is inlined", ""),
            hook("workingset_eviction", Via::Fexit, "workingset_eviction", "", ""),
            hook("try_to_shrink_lruvec", Via::Fentry, "try_to_shrink_lruvec", "", ""),
            hook("inc_max_seq", Via::Fexit, "inc_max_seq", "", ""),
            hook("folio_inc_gen", Via::None, "", "the compiler renamed it", "which folios reclaim protected, and when"),
        ],
        sample: 1,
        filter: String::new(),
        start_boottime: 1_000_000_000,
        start_realtime: 1_788_000_000_000_000_000,
        command: "zipf-read --file /data/hot.db".into(),
        part: None,
    }
}

/// A side with a recognisable shape.
fn side(young: u64, ages: [u64; 4], wave: f64) -> Side {
    let mut s = Side::default();
    for (age, n) in ages.into_iter().enumerate() {
        s.by_age[age] = [n / 10, n - n / 10];
    }
    s.by_tier = [[120, 30_000], [4, 6_100], [0, 1_250], [0, young]];
    s.by_refs = [[100, 28_000], [24, 2_000], [0, 3_100], [0, 3_000], [0, 900], [0, 350], [0, 80], [0, 12]];
    s.promotions_per_s = (0..60u32).map(|i| (wave * (1.0 + (f64::from(i) / 5.0).sin())).round()).collect();
    s
}

/// A lruvec with predictions for three rule sets.
fn lruvec(key: u64, cgroup: &str, node: u8, scale: u64) -> LruvecFrame {
    LruvecFrame {
        key,
        cgroup: cgroup.into(),
        node,
        max_seq: Some(41),
        min_seq: Some([38, 38]),
        pages: Some([[12, 10_100 / scale], [0, 9_101 / scale], [3, 3_000 / scale], [0, 22_001 / scale]]),
        agings: 12,
        refaults: 8_012 / scale,
        evictions: 12_000 / scale,
        actual: side(400 / scale, [10_112 / scale, 9_101 / scale, 3_003 / scale, 22_001 / scale], 90.0),
        predicted: vec![
            side(400 / scale, [10_112 / scale, 9_101 / scale, 3_003 / scale, 22_001 / scale], 90.0),
            side(700 / scale, [12_300 / scale, 8_000 / scale, 2_900 / scale, 21_017 / scale], 130.0),
            side(900 / scale, [14_003 / scale, 7_100 / scale, 2_500 / scale, 20_614 / scale], 160.0),
        ],
    }
}

fn divergence(scale: u64) -> Vec<FileDivergence> {
    vec![
        FileDivergence { both: 980 / scale, only_predicted: 0, only_actual: 1 / scale, would_keep: 0, avoidable: 0 },
        FileDivergence {
            both: 700 / scale,
            only_predicted: 410 / scale,
            only_actual: 280 / scale,
            would_keep: 800 / scale,
            avoidable: 90 / scale,
        },
        FileDivergence {
            both: 610 / scale,
            only_predicted: 594 / scale,
            only_actual: 370 / scale,
            would_keep: 1_204 / scale,
            avoidable: 310 / scale,
        },
    ]
}

fn file(key: u64, name: &str, cgroup: &str, lruvec: u64, scale: u64) -> FileFrame {
    FileFrame {
        key,
        name: name.into(),
        cgroup: cgroup.into(),
        lruvec,
        pages: 40_960 / scale,
        accesses: 1_204_332 / scale,
        by_rules: divergence(scale),
        evictions: 1_830 / scale,
        refaults: 700 / scale,
        untraced: 0,
    }
}

fn rule(name: &str, own: bool, promotions: Promotions, would_keep: u64, avoidable: u64) -> RuleFrame {
    RuleFrame {
        name: name.into(),
        own,
        fidelity: Fidelity { scored: 48_203, agree: if own { 48_112 } else { 31_000 }, unknown: 1_204 },
        promotions,
        evictions: Evictions { scored: 11_800, agree: 11_800 - would_keep, would_keep },
        refaults: Refaults { actual: 8_012, judged: 7_904, avoidable },
    }
}

/// A recording of a 7.3 kernel half way through.
pub(crate) fn recording() -> Frame {
    Frame {
        source: Source {
            kind: SourceKind::Recording,
            name: "run.arrows".into(),
            note: String::new(),
            duration_ns: 12_345_000_000,
            total_ns: Some(60_000_000_000),
            events: 1_204_332,
            events_per_s: 12_345.0,
            lost: 0,
            lost_per_cpu: vec![0, 0],
            sample: 1,
            ended: false,
            rounds: 0,
            table_evictions: 0,
        },
        header: Arc::new(header()),
        lru: Lru::Mglru,
        calibration: Calibration::Confirmed { samples: 1_204 },
        rules: vec![
            rule("7.3", true, Promotions { predicted: 981, actual: 980, both: 980, only_predicted: 1, only_actual: 0 }, 0, 0),
            rule("fg-v3", false, Promotions { predicted: 1_110, actual: 980, both: 700, only_predicted: 410, only_actual: 280 }, 800, 90),
            rule(
                "fg-v4",
                false,
                Promotions { predicted: 1_204, actual: 980, both: 610, only_predicted: 594, only_actual: 370 },
                1_204,
                310,
            ),
        ],
        fidelity_by_type: [Fidelity { scored: 100, agree: 98, unknown: 1 }, Fidelity { scored: 9900, agree: 9890, unknown: 3 }],
        fidelity_by: vec![FidelityBy { kind: Kind::Mark, file: true, fidelity: Fidelity { scored: 9900, agree: 9890, unknown: 3 } }],
        lruvecs: vec![
            lruvec(1, "/workload", 0, 1),
            lruvec(2, "/system.slice/systemd-journald.service", 0, 5),
            lruvec(3, "/", 0, 40),
            lruvec(4, "/", 1, 90),
        ],
        files: vec![
            file(11, "/data/hot.db", "/workload", 1, 1),
            file(12, "/data/cold/archive-2025-11.parquet", "/workload", 1, 4),
            file(13, "/usr/lib/x86_64-linux-gnu/libc.so.6", "/", 3, 60),
            file(14, "anon", "/workload", 1, 700),
            file(15, "inode 12 on 8:1", "/system.slice/systemd-journald.service", 2, 2_000),
        ],
        window_s: 0.5,
        counters: vec![
            CounterFrame { cgroup: "/workload".into(), name: "workingset_refault_file".into(), delta: 8_020 },
            CounterFrame { cgroup: "/workload".into(), name: "workingset_refault_anon".into(), delta: 0 },
            CounterFrame { cgroup: "/workload".into(), name: "pgsteal".into(), delta: 12_004 },
        ],
        what_if: what_if(),
        sampling: None,
    }
}

fn what_if() -> Vec<WhatIfFrame> {
    let refaults = [("7.3", [31_020, 8_040, 12]), ("fg-v3", [29_800, 7_512, 12]), ("fg-v4", [28_811, 7_301, 12])];
    let sizes = [(50, 22_107), (100, 44_214), (200, 88_428)];
    let row = |rules: &str, (percent, pages), refaults| WhatIfFrame {
        rules: rules.into(),
        own: rules == "7.3",
        cgroup: "/workload".into(),
        percent,
        pages,
        accesses: 1_204_332,
        refaults,
        observed: (percent == 100).then_some(8_012),
    };
    refaults.into_iter().flat_map(|(rules, refaults)| sizes.into_iter().zip(refaults).map(move |(size, n)| row(rules, size, n))).collect()
}

/// The same kernel live, before its layout is proven.
pub(crate) fn pending() -> Frame {
    let mut f = recording();
    f.source.kind = SourceKind::Live;
    f.source.name = "testbox".into();
    f.source.total_ns = None;
    f.what_if.clear();
    f.calibration = Calibration::Pending { seen: 12, need: 64 };
    f
}

/// A live kernel without MGLRU that refuses fentry: tracepoints only, events lost.
pub(crate) fn classical() -> Frame {
    let mut f = recording();
    let mut h = header();
    h.kernel = "6.18.5-custom".into();
    h.lru = Lru::Classical;
    h.own_rules = OwnRules::Classical;
    h.own_rules_because = "no lru_gen in struct lruvec".into();
    for hook in &mut h.hooks {
        if hook.name != "mm_lru_insertion" {
            hook.via = Via::None;
            hook.target.clear();
            hook.why = "lockdown: fentry refused (EPERM)".into();
            hook.without = format!("what {} tells", hook.name);
        }
    }
    f.header = Arc::new(h);
    f.lru = Lru::Classical;
    f.calibration = Calibration::NotNeeded;
    f.source.kind = SourceKind::Live;
    f.source.name = "testbox".into();
    f.source.total_ns = None;
    f.source.lost = 12_345;
    f.source.lost_per_cpu = vec![12_000, 345];
    f.rules.truncate(1);
    f.rules.extend(recording().rules.into_iter().skip(2));
    f.rules[0].name = "classical".into();
    for r in &mut f.rules {
        r.evictions = Evictions::default();
        r.refaults = Refaults::default();
    }
    for l in &mut f.lruvecs {
        (l.max_seq, l.min_seq, l.pages) = (None, None, None);
        (l.agings, l.refaults, l.evictions) = (0, 0, 0);
        l.predicted.remove(1);
        l.actual.by_age[1] = [0, 0];
        l.actual.by_age[2] = [0, 0];
        l.actual.by_tier = Default::default();
        l.actual.by_refs = Default::default();
    }
    for file in &mut f.files {
        file.by_rules.remove(1);
        (file.evictions, file.refaults) = (0, 0);
        for d in &mut file.by_rules {
            (d.would_keep, d.avoidable) = (0, 0);
        }
    }
    f.counters.clear();
    f.counters.push(CounterFrame { cgroup: "whole machine".into(), name: crate::stream::counter_names::ALL_MISSED.into(), delta: 17 });
    f.what_if.clear();
    f
}

/// Before the first event.
pub(crate) fn empty() -> Frame {
    let mut f = recording();
    f.source.duration_ns = 0;
    f.source.events = 0;
    f.source.events_per_s = 0.0;
    f.rules.clear();
    f.lruvecs.clear();
    f.files.clear();
    f.what_if.clear();
    f.counters.clear();
    f
}

/// The recording as if it were of one folio in 64.
pub(crate) fn sampled() -> Frame {
    let mut f = recording();
    let total = |seen: u64| Some(Estimate { value: 64.0 * seen as f64, error: 64.0 * (seen as f64).sqrt() });
    let share = |value, error| Some(Estimate { value, error });
    let rule = |r: &RuleFrame| RuleSampling {
        predicted: total(r.promotions.predicted),
        both: total(r.promotions.both),
        only_predicted: total(r.promotions.only_predicted),
        only_actual: total(r.promotions.only_actual),
        judged: total(r.evictions.scored),
        would_keep: total(r.evictions.would_keep),
        keeps: share(0.25, 0.0625),
        avoidable: total(r.refaults.avoidable),
        avoidable_share: share(0.125, 0.03125),
    };
    f.sampling = Some(SamplingFrame {
        one_in: 64,
        units: 1_234,
        fidelity: share(0.998, 0.003_9),
        fidelity_by_type: [share(0.98, 0.012), share(0.999, 0.002)],
        promoted: total(980),
        evicted: total(12_000),
        refaulted: total(8_012),
        refaults_per_eviction: share(0.6677, 0.0125),
        traced: 8_000,
        changes: Vec::new(),
        rules: f.rules.iter().map(rule).collect(),
    });
    f.source.sample = 64;
    f
}
