//! Samples of a real recording beside the whole of it: every ratio must be as far off as its error says, no more and no less.

use std::sync::Arc;

use observer_common::{SWAP_DEV, sample};
use rustc_hash::FxHashMap;

use super::*;
use crate::{
    replay::{EMBEDDED, Input, Recorded, Source},
    session::frame::{Estimate, SamplingFrame},
};

/// The recording, each event with the hashes by which a kernel could choose: by what it holds, by where it is. None of what is no folio's.
struct Recording {
    header: Arc<Header>,
    events: Vec<(Event, Option<[u32; 2]>)>,
}

impl Recording {
    fn read() -> Self {
        let mut source = Recorded::open(Input::Embedded(EMBEDDED)).unwrap();
        let header = source.header();
        let decoder = Decoder::new(&header.layout);
        let mut held = FxHashMap::default();
        let (mut events, mut batch) = (Vec::new(), Vec::new());
        while source.fill(&mut batch, std::time::Duration::from_secs(1)).unwrap() {
            for event in batch.drain(..) {
                let Body::Folio(folio) = &event.body else {
                    events.push((event, None));
                    continue;
                };
                let address = sample::of_address(folio.folio);
                // As `observer-ebpf/src/sample.rs` does; events without identity are of what the folio last held.
                if let Some(identity) = folio.identity.filter(|identity| identity.dev != SWAP_DEV) {
                    let file = decoder.read(folio.flags, 1).traits.file && identity.ino != 0 && !world::is_anon(&identity);
                    held.insert(folio.folio, if file { sample::of_file(identity.ino, identity.index) } else { address });
                }
                let hash = held.get(&folio.folio).copied().unwrap_or(address);
                events.push((event, Some([hash, address])));
            }
        }
        Self { header, events }
    }

    /// Estimates from those events about folios that `keeps` keeps.
    fn replay(&self, one_in: u32, keeps: impl Fn([u32; 2]) -> bool) -> SamplingFrame {
        let header = Header { sample: one_in, ..(*self.header).clone() };
        let mut session = Session::new(Arc::new(header), SourceKind::Recording, String::new(), Session::default_rules());
        for (event, hashes) in &self.events {
            if hashes.is_none_or(&keeps) {
                session.apply(event);
            }
        }
        let frame = session.sampling.frame();
        // At one rate throughout, the estimate is what the scores say.
        for (estimate, scores) in frame.fidelity_by_type.iter().zip(session.tally.by_type()) {
            let share = scores.agree as f64 / scores.scored as f64;
            assert!(estimate.map_or(scores.scored == 0, |e| (e.value - share).abs() < 1e-9), "{estimate:?}, {scores:?}");
        }
        frame
    }

    /// Estimates where the rate is lowered at each of these shares of the stream. `late`: the programs learn of a rate only when the
    /// next one is due, and go on reporting what it leaves out.
    fn thinned(&self, lowered: &[(f64, u32)], late: bool) -> Frame {
        let mut session = Session::new(Arc::clone(&self.header), SourceKind::Recording, String::new(), Session::default_rules());
        session.what_if(&[100]);
        let (mut left, mut rates) = (lowered, (1, 1));
        for (at, (event, hashes)) in self.events.iter().enumerate() {
            if let [(share, one_in), rest @ ..] = left
                && at as f64 >= share * self.events.len() as f64
            {
                let body = Body::Counter { cgroup: 0, name: SAMPLE.to_owned(), value: u64::from(*one_in) };
                session.apply(&Event { ts: event.ts, cpu: 0, body });
                (left, rates) = (rest, (rates.1, *one_in));
            }
            let one_in = if late { rates.0 } else { rates.1 };
            if hashes.is_none_or(|[hash, _]| sample::keeps(hash, one_in)) {
                session.apply(event);
            }
        }
        session.finish();
        session.frame()
    }

    /// The whole of a share of it, from its beginning.
    fn until(&self, share: f64) -> Frame {
        let end = share * self.events.len() as f64;
        let events = self.events.iter().enumerate().filter(|(at, _)| (*at as f64) < end).map(|(_, event)| event.clone());
        Self { header: Arc::clone(&self.header), events: events.collect() }.thinned(&[], false)
    }

    /// One of the disjoint samples of one in so many; the first is the kernel's.
    fn sampled(&self, one_in: u32, which: u32) -> SamplingFrame {
        let shift = (u64::from(which) << 32) / u64::from(one_in);
        self.replay(one_in, |[hash, _]| sample::keeps(hash.wrapping_sub(shift as u32), one_in))
    }
}

/// All ratios, with names.
fn ratios(frame: &SamplingFrame) -> Vec<(String, Estimate)> {
    let [_, file] = frame.fidelity_by_type;
    let all = [("fidelity", frame.fidelity), ("fidelity of file", file), ("refaults per eviction", frame.refaults_per_eviction)];
    let all = all.map(|(name, estimate)| (name.to_owned(), estimate));
    let rules =
        frame.rules.iter().enumerate().flat_map(|(at, rule)| {
            [(format!("rule set {at} keeps"), rule.keeps), (format!("rule set {at} avoidable"), rule.avoidable_share)]
        });
    all.into_iter().chain(rules).map(|(name, estimate)| (name, estimate.unwrap())).collect()
}

/// All totals of the kernel and of rule sets.
fn totals(frame: &SamplingFrame) -> Vec<(String, Estimate)> {
    let all = [("promoted", frame.promoted), ("evicted", frame.evicted), ("refaulted", frame.refaulted)];
    let all = all.map(|(name, estimate)| (name.to_owned(), estimate));
    let rules = frame.rules.iter().enumerate().flat_map(|(at, rule)| {
        let named = [
            ("predicted", rule.predicted),
            ("both", rule.both),
            ("only predicted", rule.only_predicted),
            ("only actual", rule.only_actual),
            ("judged", rule.judged),
            ("would keep", rule.would_keep),
            ("avoidable", rule.avoidable),
        ];
        named.map(|(name, estimate)| (format!("rule set {at} {name}"), estimate))
    });
    all.into_iter().chain(rules).map(|(name, estimate)| (name, estimate.unwrap())).collect()
}

type Named = fn(&SamplingFrame) -> Vec<(String, Estimate)>;

/// By how many of its errors each estimate is off.
fn off(sampled: &SamplingFrame, whole: &SamplingFrame, what: Named) -> Vec<(String, f64)> {
    let pairs = what(sampled).into_iter().zip(what(whole));
    pairs.map(|((name, estimate), (_, truth))| (name, (estimate.value - truth.value) / estimate.error)).collect()
}

/// Root mean square of errors off by name of the estimate, and the share beyond three.
fn spread(samples: &[SamplingFrame], whole: &SamplingFrame, what: Named) -> (Vec<(String, f64)>, f64) {
    let all: Vec<Vec<(String, f64)>> = samples.iter().map(|sample| off(sample, whole, what)).collect();
    let count = samples.len() as f64;
    let mean = |at: usize| (all.iter().map(|row| row[at].1 * row[at].1).sum::<f64>() / count).sqrt();
    let spread = all[0].iter().enumerate().map(|(at, (name, _))| (name.clone(), mean(at))).collect();
    let beyond = all.iter().flatten().filter(|(_, errors)| errors.abs() > 3.0).count();
    (spread, beyond as f64 / (count * all[0].len() as f64))
}

#[test]
fn samples_are_as_far_off_as_their_errors_say() {
    let recording = Recording::read();
    let whole = recording.replay(1, |_| true);
    let whole_ratios = ratios(&whole);
    assert!(whole_ratios.iter().any(|(_, estimate)| (0.05..0.95).contains(&estimate.value)), "nothing to estimate: {whole_ratios:?}");
    for one_in in [8, 64] {
        let samples: Vec<SamplingFrame> = (0..one_in).map(|which| recording.sampled(one_in, which)).collect();
        // What a user of this kernel would have been shown.
        let shown = off(&samples[0], &whole, ratios);
        println!("1/{one_in}, errors off: {shown:.2?}");
        assert!(shown.iter().all(|(_, errors)| errors.abs() <= 3.0), "1/{one_in}: {shown:.2?}");
        // Every folio is in one of these samples.
        for (kind, what, most) in [("ratios", ratios as Named, 0.01), ("totals", totals, 0.02)] {
            let (spread, beyond) = spread(&samples, &whole, what);
            println!("1/{one_in} {kind}: {:.2} % beyond three errors, root mean square {spread:.2?}", 100.0 * beyond);
            assert!(beyond <= most, "1/{one_in} {kind}: {beyond} are beyond three errors");
            for (name, square) in &spread {
                // Eight samples leave the mean itself uncertain; more than one for each sample is an error that is too small.
                assert!(*square < if one_in == 8 { 2.0 } else { 1.5 }, "1/{one_in} {name}: {square}");
            }
        }
        // Anon is rare in this recording: not every sample has any.
        let truth = whole.fidelity_by_type[0].unwrap();
        let anon: Vec<Estimate> = samples.iter().filter_map(|sample| sample.fidelity_by_type[0]).collect();
        assert!(
            anon.iter().all(|estimate| (estimate.value - truth.value).abs() <= 3.0 * estimate.error),
            "1/{one_in}: {anon:?}, {truth:?}"
        );
        assert!(anon.len() * 2 >= one_in as usize, "1/{one_in}: anon in {} samples", anon.len());
        // Nor may an error be so large that anything lies within it.
        let errors = ratios(&samples[0]);
        println!("1/{one_in}: {errors:.4?}");
        for (name, estimate) in errors.iter().filter(|(_, estimate)| estimate.value > 0.05) {
            let relative = estimate.error / estimate.value;
            assert!(relative < if one_in == 8 { 0.1 } else { 0.3 }, "1/{one_in} {name}: {estimate:?}");
        }
    }
}

/// A refaulted page is somewhere else: its eviction is in such a sample by chance only.
#[test]
fn a_sample_by_address_is_found_out() {
    let recording = Recording::read();
    let whole = recording.replay(1, |_| true);
    let sampled = recording.replay(8, |[_, address]| sample::keeps(address, 8));
    let off = off(&sampled, &whole, ratios);
    println!("{off:.2?}");
    assert!(off.iter().any(|(_, errors)| errors.abs() > 3.0), "{off:.2?}");
}

#[test]
fn a_rate_lowered_on_the_way_is_as_far_off_as_its_errors_say() {
    let recording = Recording::read();
    let whole = recording.replay(1, |_| true);
    for lowered in [&[(0.3, 8)][..], &[(0.05, 64)], &[(0.1, 2), (0.2, 8), (0.6, 64)], &[(0.0, 16), (0.9, 256)]] {
        let frame = recording.thinned(lowered, false);
        let sampling = frame.sampling.unwrap();
        assert_eq!(frame.source.sample, lowered.last().unwrap().1);
        assert_eq!(sampling.changes.len(), lowered.len());
        for (kind, what) in [("ratios", ratios as Named), ("totals", totals)] {
            let off = off(&sampling, &whole, what);
            println!("{lowered:?} {kind}, errors off: {off:.2?}");
            assert!(off.iter().all(|(_, errors)| errors.abs() <= 3.5), "{lowered:?} {kind}: {off:.2?}");
            assert!(off.iter().any(|(_, errors)| errors.abs() > 0.1), "{lowered:?} {kind}: nothing was sampled");
        }
    }
    // What is exact needs no sample: the later the rate falls, the smaller the error.
    let error = |share| recording.thinned(&[(share, 64)], false).sampling.unwrap().refaults_per_eviction.unwrap().error;
    assert!(error(0.9) < error(0.1), "{} {}", error(0.9), error(0.1));
}

#[test]
fn what_is_left_out_leaves_no_trace_however_late_the_programs_learn_of_it() {
    let recording = Recording::read();
    let lowered = [(0.2, 4), (0.6, 16)];
    let (soon, late) = (recording.thinned(&lowered, false), recording.thinned(&lowered, true));
    assert!(late.source.events > soon.source.events);
    assert_eq!(soon.sampling, late.sampling);
    let counts = |frame: &Frame| frame.rules.iter().map(|r| (r.fidelity, r.promotions, r.evictions, r.refaults)).collect::<Vec<_>>();
    assert_eq!(counts(&soon), counts(&late));
    assert_eq!(soon.fidelity_by_type, late.fidelity_by_type);
    let pages = |frame: &Frame| frame.lruvecs.iter().map(|lruvec| lruvec.actual.by_age).collect::<Vec<_>>();
    assert_eq!(pages(&soon), pages(&late));
    let total = |frame: &Frame| pages(frame).iter().flatten().flatten().sum::<u64>() as f64;
    let all = total(&recording.thinned(&[], false));
    assert!(total(&soon) < 0.15 * all, "{} of {all}", total(&soon));
}

#[test]
fn what_if_caches_begin_anew_at_a_lowered_rate() {
    let recording = Recording::read();
    let whole = recording.thinned(&[], false).what_if;
    for (share, one_in) in [(0.1, 4), (0.3, 8), (0.3, 32)] {
        let before = recording.until(share).what_if;
        let thinned = recording.thinned(&[(share, one_in)], false).what_if;
        assert_eq!(thinned.len(), whole.len());
        for ((thinned, whole), before) in thinned.iter().zip(&whole).zip(&before) {
            let (scaled, truth) = (thinned.refaults * u64::from(one_in), whole.refaults - before.refaults);
            println!("{} from {share} on 1/{one_in}: {scaled} refaults estimated, {truth} of all", whole.rules);
            assert!(scaled.abs_diff(truth) * 100 < 15 * truth, "{} from {share} on 1/{one_in}: {scaled}, {truth}", whole.rules);
            let pages = thinned.pages * u64::from(one_in);
            assert!(pages.abs_diff(whole.pages) * 100 < 10 * whole.pages, "{pages} of {}", whole.pages);
        }
    }
}

#[test]
fn rates_that_no_recorder_chooses_change_nothing() {
    let recording = Recording::read();
    let mut session = Session::new(Arc::clone(&recording.header), SourceKind::Recording, String::new(), Vec::new());
    let mut rate = |value| {
        let body = Body::Counter { cgroup: 0, name: SAMPLE.to_owned(), value };
        session.apply(&Event { ts: 1, cpu: 0, body });
        session.frame().sampling.map_or(1, |sampling| sampling.one_in)
    };
    let chosen = [0, 1, 3, 8, 4, 8, 1 << 16, 1 << 17, 1 << 40, u64::MAX].map(&mut rate);
    assert_eq!(chosen, [1, 1, 1, 8, 8, 8, 1 << 16, 1 << 16, 1 << 16, 1 << 16]);
    assert_eq!(session.frame().sampling.unwrap().changes.len(), 2);
}
