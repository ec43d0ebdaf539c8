//! What of a picture may be believed: which numbers were observed, and whether a prediction may be shown.

use crate::session::frame::{Calibration, FileFrame, Frame, LruvecFrame, RuleFrame};
use crate::stream::header::Via;

/// Below this share of agreement the tool's own model does not describe this kernel, and nothing is concluded from it.
pub const TRUSTED: f64 = 0.9;

/// Which kinds of number were observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Why no prediction may be shown; None when they may.
    pub hidden: Option<String>,
    /// A refault hook is attached.
    pub refaults: bool,
    /// An eviction hook is attached.
    pub evictions: bool,
    /// Folio events were seen, so a promotion would have been.
    pub folios: bool,
}

impl Known {
    /// Reads it off a picture.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        let reached =
            |names: &[&str]| frame.header.hooks.iter().any(|h| h.via != Via::None && names.iter().any(|n| h.name == *n || h.target == *n));
        Self {
            hidden: hidden(&frame.calibration),
            refaults: reached(&["lru_gen_refault", "workingset_refault"]),
            evictions: reached(&["workingset_eviction"]),
            folios: frame.rules.iter().any(|r| r.fidelity.scored + r.fidelity.unknown > 0),
        }
    }

    /// Whether predictions may be shown.
    #[must_use]
    pub fn predictions(&self) -> bool {
        self.hidden.is_none()
    }

    /// A number that only a prediction gives.
    #[must_use]
    pub fn predicted(&self, n: u64) -> Option<u64> {
        (self.predictions() && (self.folios || n > 0)).then_some(n)
    }

    /// Promotions by the kernel: they are read off the generation bits, which are proven or not like a prediction.
    #[must_use]
    pub fn promoted(&self, n: u64) -> Option<u64> {
        self.predicted(n)
    }

    /// Pages evicted.
    #[must_use]
    pub fn evicted(&self, n: u64) -> Option<u64> {
        (self.evictions || n > 0).then_some(n)
    }

    /// A judgement about evictions.
    #[must_use]
    pub fn judged(&self, n: u64) -> Option<u64> {
        if self.predictions() { self.evicted(n) } else { None }
    }

    /// Pages refaulted.
    #[must_use]
    pub fn refaulted(&self, n: u64) -> Option<u64> {
        (self.refaults || n > 0).then_some(n)
    }

    /// Avoidable refaults need both a refault and a judged eviction.
    #[must_use]
    pub fn avoidable(&self, n: u64) -> Option<u64> {
        if self.predictions() && (self.evictions || n > 0) { self.refaulted(n) } else { None }
    }

    /// The same of a file, none of whose refaults a sample may hide.
    #[must_use]
    pub fn avoidable_of(&self, file: &FileFrame, n: u64) -> Option<u64> {
        self.avoidable(n).filter(|_| file.untraced == 0)
    }
}

fn hidden(calibration: &Calibration) -> Option<String> {
    match calibration {
        Calibration::NotNeeded | Calibration::Confirmed { .. } => None,
        Calibration::Pending { seen, need } => {
            Some(format!("no prediction yet: the position of the generation bits is proven on {seen} of {need} insertions"))
        }
        Calibration::Contradicted { why } => Some(format!("no prediction: this kernel's flags contradict the layout derived ({why})")),
    }
}

/// The kernel's own rule set.
#[must_use]
pub fn own(frame: &Frame) -> Option<&RuleFrame> {
    frame.rules.iter().find(|r| r.own)
}

/// Index of the rule set that is shown first: FG v4, or the newest other FG, or the last in the list.
#[must_use]
pub fn featured(frame: &Frame) -> Option<usize> {
    let rules = &frame.rules;
    rules
        .iter()
        .position(|r| r.name == "fg-v4")
        .or_else(|| rules.iter().rposition(|r| r.name.starts_with("fg")))
        .or_else(|| rules.len().checked_sub(1))
}

/// Whether the tool's model of this kernel fits well enough to conclude anything from it. True while nothing is scored:
/// then there is nothing to conclude from either, and the verdict says that.
#[must_use]
pub fn trusted(frame: &Frame) -> bool {
    own(frame).is_none_or(|r| {
        let f = r.fidelity;
        f.scored == 0 || f.agree as f64 >= TRUSTED * f.scored as f64
    })
}

/// Pages of a lruvec by age × type, and whether the kernel counted them itself: otherwise they are the folios tracked, which
/// have an age only if the generation bits are proven.
#[must_use]
pub fn pages(lruvec: &LruvecFrame, known: &Known) -> Option<([[u64; 2]; 4], bool)> {
    let tracked = (known.predictions() && lruvec.actual.by_age.iter().flatten().any(|n| *n > 0)).then_some((lruvec.actual.by_age, false));
    lruvec.pages.map(|pages| (pages, true)).or(tracked)
}

/// All divergence of one rule set on a file in one number, for sorting.
#[must_use]
pub fn divergence(file: &FileFrame, rule: usize) -> u64 {
    file.by_rules.get(rule).map_or(0, |d| d.only_predicted + d.only_actual + d.would_keep + d.avoidable)
}
