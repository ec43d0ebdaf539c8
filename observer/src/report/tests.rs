//! Wording of verdicts, keys of the JSON, shape of the text.

use super::known::Known;
use super::verdict::{self, Leaning};
use super::{fixture, json, text};
use crate::session::frame::{Fidelity, FileDivergence, Frame, RateChange};

/// The verdict for fg-v4 on a file with this divergence.
fn verdict_of(d: FileDivergence, change: impl FnOnce(&mut Frame)) -> verdict::Verdict {
    let mut frame = fixture::recording();
    frame.files[0].by_rules[2] = d;
    change(&mut frame);
    verdict::file(&frame, &Known::of(&frame), &frame.files[0], 2)
}

#[test]
fn verdict_names_what_was_kept_and_what_came_back() {
    let d = FileDivergence { would_keep: 1_204, avoidable: 310, ..FileDivergence::default() };
    let v = verdict_of(d, |_| ());
    assert_eq!(v.long, "fg-v4 keeps 1,204 pages the kernel evicted; 310 came back");
    assert_eq!(v.short, "keeps 1,204; 310 came back");
    assert_eq!(v.leaning, Leaning::Better);
}

#[test]
fn keeping_pages_that_nobody_wanted_is_not_called_better() {
    let d = FileDivergence { would_keep: 1_204, ..FileDivergence::default() };
    let v = verdict_of(d, |_| ());
    assert_eq!(v.long, "fg-v4 keeps 1,204 pages the kernel evicted; none came back so far");
    assert_eq!(v.leaning, Leaning::Differs);
}

#[test]
fn without_a_refault_hook_nobody_says_that_none_came_back() {
    let d = FileDivergence { would_keep: 1_204, ..FileDivergence::default() };
    let v = verdict_of(d, |f| {
        let mut h = fixture::header();
        h.hooks.retain(|h| h.name != "lru_gen_refault");
        f.header = std::sync::Arc::new(h);
    });
    assert_eq!(v.long, "fg-v4 keeps 1,204 pages the kernel evicted; whether any came back is unknown");
}

#[test]
fn promotions_are_told_apart() {
    let v = |only_predicted, only_actual, both| {
        verdict_of(FileDivergence { both, only_predicted, only_actual, ..FileDivergence::default() }, |_| ())
    };
    assert_eq!(v(594, 0, 3).long, "fg-v4 promotes 594 that the kernel leaves");
    assert_eq!(v(0, 370, 3).long, "the kernel promotes 370 that fg-v4 leaves");
    assert_eq!(v(594, 370, 0).long, "different pages promoted: 594 only by fg-v4, 370 only by the kernel");
    assert_eq!((v(0, 0, 610).long.as_str(), v(0, 0, 610).leaning), ("no difference seen; 610 promoted by both", Leaning::Same));
}

#[test]
fn few_events_are_called_few() {
    let d = FileDivergence { only_predicted: 2, ..FileDivergence::default() };
    let v = verdict_of(d, |f| f.files[0].evictions = 0);
    assert_eq!(v.long, "fg-v4 promotes 2 that the kernel leaves (few events)");
}

#[test]
fn nothing_seen_is_unknown_and_not_the_same() {
    let v = verdict_of(FileDivergence::default(), |f| f.files[0].evictions = 0);
    assert_eq!((v.leaning, v.long.as_str()), (Leaning::Unknown, "no promotion or eviction seen"));
}

#[test]
fn a_model_that_does_not_fit_gives_no_verdict() {
    let d = FileDivergence { would_keep: 1_204, avoidable: 310, ..FileDivergence::default() };
    let v = verdict_of(d, |f| f.rules[0].fidelity = Fidelity { scored: 1_000, agree: 620, unknown: 0 });
    assert_eq!((v.leaning, v.long.as_str()), (Leaning::Unknown, "no verdict: the model matches this kernel only 62.00 %"));
}

#[test]
fn an_unproven_layout_gives_no_verdict() {
    let frame = fixture::pending();
    let v = verdict::file(&frame, &Known::of(&frame), &frame.files[0], 2);
    assert_eq!(v.leaning, Leaning::Unknown);
}

#[test]
fn differences_of_the_own_rules_are_the_models_fault() {
    let mut frame = fixture::recording();
    frame.files[0].by_rules[0] = FileDivergence { both: 980, only_actual: 31, ..FileDivergence::default() };
    let v = verdict::file(&frame, &Known::of(&frame), &frame.files[0], 0);
    assert_eq!(v.long, "model of 7.3 and kernel differ on 31 promotions");
}

/// Follows `a.b.0.c`.
fn at<'a>(v: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    v.pointer(&pointer).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn json_has_the_keys_that_issue_2_prescribes() {
    let v = json(&fixture::recording());
    assert_eq!(at(&v, "schema"), "observer.summary/1");
    for path in [
        "source.kind",
        "source.duration_s",
        "source.events",
        "source.lost",
        "source.sampling",
        "kernel.release",
        "kernel.lru",
        "kernel.page_size",
        "hooks.0.name",
        "hooks.0.via",
        "hooks.0.target",
        "rules.0.name",
        "rules.0.own",
        "rules.0.fidelity.scored",
        "rules.0.fidelity.agree",
        "rules.0.fidelity.unknown",
        "rules.0.promotions.predicted",
        "rules.0.promotions.actual",
        "rules.0.promotions.both",
        "rules.0.promotions.only_predicted",
        "rules.0.promotions.only_actual",
        "rules.0.evictions.scored",
        "rules.0.evictions.agree",
        "rules.0.evictions.would_keep",
        "rules.0.refaults.actual",
        "rules.0.refaults.judged",
        "rules.0.refaults.avoidable",
        "lruvecs.0.cgroup",
        "lruvecs.0.node",
        "lruvecs.0.max_seq",
        "lruvecs.0.min_seq",
        "lruvecs.0.pages",
    ] {
        at(&v, path);
    }
    assert_eq!(at(&v, "kernel.lru"), "mglru");
    assert_eq!(at(&v, "source.duration_s"), 12.345);
    assert_eq!(at(&v, "rules.2.refaults.avoidable"), 310);
    assert_eq!(at(&v, "checks.0.kernel"), 8_020);
    assert_eq!(at(&v, "checks.0.observed"), 8_012);
    // Rule sets in order, each at every size.
    assert_eq!((at(&v, "what_if.3.rules"), at(&v, "what_if.3.pages")), (&"fg-v3".into(), &22_107.into()));
    assert_eq!((at(&v, "what_if.4.accesses"), at(&v, "what_if.4.refaults")), (&1_204_332.into(), &7_512.into()));
    assert!(at(&v, "what_if.3.observed").is_null() && at(&v, "what_if.4.observed") == 8_012);
}

#[test]
fn json_says_null_for_what_was_not_observed() {
    let v = json(&fixture::classical());
    for path in [
        "rules.1.refaults.actual",
        "rules.1.refaults.judged",
        "rules.1.refaults.avoidable",
        "rules.1.evictions.scored",
        "lruvecs.0.max_seq",
        "lruvecs.0.min_seq",
        "lruvecs.0.pages",
        "lruvecs.0.agings",
        "lruvecs.0.refaults",
        "files.0.evictions",
        "files.0.by_rules.1.would_keep",
    ] {
        assert!(at(&v, path).is_null(), "{path} is {}", at(&v, path));
    }
    assert_eq!(at(&v, "rules.1.promotions.predicted"), 1_204);

    let v = json(&fixture::pending());
    for path in ["rules.0.promotions.actual", "rules.2.promotions.predicted", "rules.2.refaults.avoidable", "lruvecs.0.tracked"] {
        assert!(at(&v, path).is_null(), "{path} is {}", at(&v, path));
    }
    assert_eq!(at(&v, "rules.2.refaults.actual"), 8_012);
    assert_eq!(at(&v, "calibration.state"), "pending");
}

#[test]
fn a_sample_tells_of_all_folios_with_an_error() {
    let v = json(&fixture::sampled());
    assert_eq!(at(&v, "sampling.evicted.value"), 768_000.0);
    assert_eq!(at(&v, "rules.2.sampling.agree_share.value"), 0.75);
    assert_eq!(at(&v, "rules.2.sampling.agree_share.error"), 0.0625);
    assert!(at(&v, "rules.2.sampling.fidelity").is_null() && !at(&v, "rules.0.sampling.fidelity").is_null());
    // Counts keep their meaning.
    assert_eq!(at(&v, "rules.2.evictions.would_keep"), 1_204);
    assert_eq!(
        at(&v, "rules.2.verdict"),
        "in the sample fg-v4 keeps 1,204 of 11,800 evictions judged; 310 of 8,000 refaults of file pages were avoidable"
    );
    assert_eq!(super::sampling::headline(&fixture::sampled()), "sample 1/64 (counts are of it), fidelity ±0.39 %");
    assert!(at(&json(&fixture::recording()), "sampling").is_null());

    let mut frame = fixture::sampled();
    frame.files[0].untraced = 3;
    frame.files[0].by_rules[2].avoidable = 0;
    let v = json(&frame);
    assert!(at(&v, "files.0.by_rules.2.avoidable").is_null());
    assert_eq!(at(&v, "files.0.by_rules.2.verdict"), "fg-v4 keeps 1,204 pages the kernel evicted; whether any came back is unknown");
}

/// The sample with a rate that was lowered twice.
fn lowered() -> Frame {
    let mut frame = fixture::sampled();
    let change = |seconds: u64, one_in| RateChange { at_ns: seconds * 1_000_000_000, one_in };
    frame.sampling.as_mut().unwrap().changes = vec![change(3, 4), change(12, 64)];
    frame
}

#[test]
fn a_rate_that_was_lowered_is_said_where_counts_are() {
    let v = json(&lowered());
    assert_eq!(*at(&v, "sampling.changes.0.seconds"), 3.0);
    assert_eq!(*at(&v, "sampling.changes.1.one_in"), 64);
    assert_eq!(super::sampling::headline(&lowered()), "sample 1/64 (counts are mixed), fidelity ±0.39 %");
    let text = text(&lowered());
    // Lines are broken as the width demands.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["1/64 of folios seen now", "is of the folios seen (all until 3.0 s, from 3.0 s on of one in 4, from 12.0 s on of one in 64)"]
    {
        assert!(words.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_sample_tells_nothing_that_was_not_observed() {
    let mut frame = fixture::pending();
    frame.sampling = fixture::sampled().sampling;
    let v = json(&frame);
    for path in ["rules.2.sampling.keeps_share", "rules.2.sampling.predicted", "rules.0.sampling.fidelity", "sampling.promoted"] {
        assert!(at(&v, path).is_null(), "{path} is {}", at(&v, path));
    }
}

#[test]
fn text_of_a_sample() {
    insta::assert_snapshot!(text(&fixture::sampled()));
}

/// Every key of the JSON is in the schema text, and the other way round is left to the reader.
#[test]
fn every_key_is_documented() {
    fn keys(v: &serde_json::Value, out: &mut std::collections::BTreeSet<String>) {
        match v {
            serde_json::Value::Object(map) => {
                for (k, v) in map {
                    out.insert(k.clone());
                    keys(v, out);
                }
            }
            serde_json::Value::Array(list) => list.iter().for_each(|v| keys(v, out)),
            _ => (),
        }
    }
    let mut all = std::collections::BTreeSet::new();
    for frame in [fixture::recording(), fixture::pending(), fixture::classical(), fixture::sampled()] {
        keys(&json(&frame), &mut all);
    }
    let missing: Vec<_> = all.iter().filter(|k| !super::SCHEMA_DOC.contains(k.as_str())).collect();
    assert!(missing.is_empty(), "not in summary-schema.md: {missing:?}");
}

#[test]
fn text_of_a_recording() {
    insta::assert_snapshot!(text(&fixture::recording()));
}

#[test]
fn text_before_the_layout_is_proven() {
    insta::assert_snapshot!(text(&fixture::pending()));
}

#[test]
fn text_of_tracepoints_only() {
    insta::assert_snapshot!(text(&fixture::classical()));
}

#[test]
fn text_of_nothing_yet() {
    insta::assert_snapshot!(text(&fixture::empty()));
}

#[test]
fn text_fits_a_mail_and_carries_no_escape() {
    let mut frame = fixture::recording();
    frame.files[0].name = "/a\x1b]0;title\x07b".into();
    frame.source.note = "a\x1b[2Jnote".into();
    frame.lruvecs[0].cgroup = "/c\x1b[0m".into();
    frame.what_if[0].cgroup = "/a/cgroup\x1b[0m/with/a/name/longer/than/any/line".into();
    let sizes = (1..9).map(|n| crate::session::frame::WhatIfFrame { percent: 25 * n, ..frame.what_if[0].clone() }).collect();
    frame.what_if = sizes;
    for frame in [frame, fixture::pending(), fixture::classical(), fixture::empty(), fixture::sampled()] {
        for line in text(&frame).lines() {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(super::num::width(line) <= 80, "{line:?}");
        }
    }
}
