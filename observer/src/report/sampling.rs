//! What a sampled stream says about all folios, in the summary and in the text. How the errors come about is told in
//! `session/sampling.rs`.

use serde::Serialize;

use super::known::Known;
use super::num::{short, to_u64};
use crate::session::frame::{self, Frame};

/// A number about all folios and its standard error.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl From<frame::Estimate> for Estimate {
    fn from(frame::Estimate { value, error }: frame::Estimate) -> Self {
        Self { value, error }
    }
}

/// From where on fewer were seen.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Change {
    pub(super) seconds: f64,
    pub(super) one_in: u32,
}

/// What does not depend on a rule set.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sampling {
    pub(super) one_in: u32,
    pub(super) units: u64,
    pub(super) changes: Vec<Change>,
    pub(super) promoted: Option<Estimate>,
    pub(super) evicted: Option<Estimate>,
    pub(super) refaulted: Option<Estimate>,
    pub(super) refaults_per_eviction: Option<Estimate>,
}

/// One rule set.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RuleSampling {
    pub(super) fidelity: Option<Estimate>,
    pub(super) predicted: Option<Estimate>,
    pub(super) both: Option<Estimate>,
    pub(super) only_predicted: Option<Estimate>,
    pub(super) only_actual: Option<Estimate>,
    pub(super) judged: Option<Estimate>,
    pub(super) would_keep: Option<Estimate>,
    pub(super) keeps_share: Option<Estimate>,
    pub(super) agree_share: Option<Estimate>,
    pub(super) avoidable: Option<Estimate>,
    pub(super) avoidable_share: Option<Estimate>,
}

/// An estimate, if what it is about was observed.
fn told(estimate: Option<frame::Estimate>, observed: Option<u64>) -> Option<Estimate> {
    estimate.filter(|_| observed.is_some()).map(Estimate::from)
}

/// What of the picture is about all folios; none where all were seen.
pub(super) fn of(frame: &Frame, known: &Known) -> Option<Sampling> {
    let s = frame.sampling.as_ref()?;
    let (evicted, refaulted) = (known.evicted(0), known.refaulted(0));
    Some(Sampling {
        one_in: s.one_in,
        units: s.units,
        changes: s.changes.iter().map(|change| Change { seconds: change.at_ns as f64 / 1e9, one_in: change.one_in }).collect(),
        promoted: told(s.promoted, known.promoted(0)),
        evicted: told(s.evicted, evicted),
        refaulted: told(s.refaulted, refaulted),
        refaults_per_eviction: told(s.refaults_per_eviction, evicted.and(refaulted)),
    })
}

/// The own rules' fidelity for one type.
pub(super) fn fidelity_of(frame: &Frame, file: bool) -> Option<Estimate> {
    frame.sampling.as_ref()?.fidelity_by_type[usize::from(file)].map(Estimate::from)
}

/// The same of the rule set with this index.
pub(super) fn of_rules(frame: &Frame, known: &Known, index: usize) -> Option<RuleSampling> {
    let s = frame.sampling.as_ref()?;
    let r = s.rules.get(index)?;
    let own = frame.rules.get(index).is_some_and(|rules| rules.own);
    let (predicted, judged, avoidable) = (known.predicted(0), known.judged(0), known.avoidable(0));
    let keeps_share = told(r.keeps, judged);
    Some(RuleSampling {
        fidelity: told(s.fidelity.filter(|_| own), predicted),
        predicted: told(r.predicted, predicted),
        both: told(r.both, predicted),
        only_predicted: told(r.only_predicted, predicted),
        only_actual: told(r.only_actual, predicted),
        judged: told(r.judged, judged),
        would_keep: told(r.would_keep, judged),
        keeps_share,
        agree_share: keeps_share.map(|keeps| Estimate { value: 1.0 - keeps.value, ..keeps }),
        avoidable: told(r.avoidable, avoidable),
        avoidable_share: told(r.avoidable_share, avoidable),
    })
}

/// `sample 1/64`, and what that means for the figures beside it.
#[must_use]
pub fn headline(frame: &Frame) -> String {
    let n = frame.source.sample;
    let error = frame.sampling.as_ref().and_then(|s| s.fidelity).map(|f| format!(", fidelity ±{:.2} %", 100.0 * f.error));
    let counts = match &frame.sampling {
        // Since when is told in the note.
        Some(s) if !s.changes.is_empty() => " (counts are mixed)",
        _ if n > 1 => " (counts are of it)",
        _ => "",
    };
    format!("sample 1/{n}{counts}{}", error.unwrap_or_default())
}

impl Sampling {
    /// Whether the rate was lowered, so that counts are of more than one sample.
    pub(super) fn is_mixed(&self) -> bool {
        !self.changes.is_empty()
    }
}

/// Which folios the counts of a summary are of.
pub(super) fn seen(sampling: &Sampling) -> String {
    let Some(first) = sampling.changes.first().map(|change| change.seconds) else {
        return format!("of one folio in {}", sampling.one_in);
    };
    let changes: Vec<String> =
        sampling.changes.iter().map(|change| format!("from {:.1} s on of one in {}", change.seconds, change.one_in)).collect();
    format!("of the folios seen (all until {first:.1} s, {})", changes.join(", "))
}

/// `38.0k ± 1,020 evicted`; nothing for what is not known.
pub(super) fn count(estimate: Option<Estimate>, what: &str) -> Option<String> {
    estimate.map(|e| format!("{} ± {} {what}", short(to_u64(e.value.round())), short(to_u64(e.error.ceil()))))
}

/// `8.70 % ± 1.42 %`.
pub(super) fn share(e: Estimate) -> String {
    format!("{:.2} % ± {:.2} %", 100.0 * e.value, 100.0 * e.error)
}
