//! Verdicts in words: what the numbers of one file say about one rule set, and no more than that.
//!
//! "Keeps" is short for: at the moment the kernel evicted the page, the rule set had it in a generation younger than its
//! oldest. "Came back" is an observed refault of such a page.

use super::known::{self, Known};
use super::num::{grouped, percent, short};
use crate::session::frame::{FileDivergence, FileFrame, Frame, RuleFrame};

/// "1 page", "1,204 pages".
fn pages(n: u64) -> String {
    if n == 1 { "1 page".to_owned() } else { format!("{} pages", grouped(n)) }
}

/// With fewer promotions and evictions than this a difference is chance as likely as not.
pub const FEW: u64 = 20;

/// Which way a verdict points. Each has a symbol, so that no meaning hangs on colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaning {
    /// Pages that the rule set would have kept came back.
    Better,
    /// They differ, and it is not known whether that matters.
    Differs,
    /// No difference was seen.
    Same,
    /// Nothing can be said.
    Unknown,
}

impl Leaning {
    /// One column.
    #[must_use]
    pub fn symbol(self) -> char {
        match self {
            Self::Better => '+',
            Self::Differs => '~',
            Self::Same => '=',
            Self::Unknown => '?',
        }
    }

    /// For JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Differs => "differs",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which way.
    pub leaning: Leaning,
    /// A sentence that stands alone.
    pub long: String,
    /// The same for a narrow column under a heading that names the rule set.
    pub short: String,
}

impl Verdict {
    fn new(leaning: Leaning, long: impl Into<String>, short: impl Into<String>) -> Self {
        Self { leaning, long: long.into(), short: short.into() }
    }

    fn unknown(long: impl Into<String>, short: impl Into<String>) -> Self {
        Self::new(Leaning::Unknown, long, short)
    }

    /// The longest form that fits, cut if none does.
    #[must_use]
    pub fn fit(&self, columns: usize) -> String {
        if super::num::width(&self.long) <= columns { self.long.clone() } else { super::num::cut_end(&self.short, columns) }
    }
}

/// The verdict on one file for the rule set with index `rule`.
#[must_use]
pub fn file(frame: &Frame, known: &Known, file: &FileFrame, rule: usize) -> Verdict {
    let (Some(rules), Some(d)) = (frame.rules.get(rule), file.by_rules.get(rule)) else {
        return Verdict::unknown("not compared", "not compared");
    };
    if !known.predictions() {
        return Verdict::unknown("no prediction to compare with", "no prediction");
    }
    if let Some(weak) = weak(frame) {
        return weak;
    }
    let few = d.both + d.only_predicted + d.only_actual + file.evictions < FEW;
    let mut verdict = if rules.own { of_own(rules, d, file) } else { of_other(rules, d, file, known) };
    if few && matches!(verdict.leaning, Leaning::Better | Leaning::Differs) {
        verdict.long.push_str(" (few events)");
        verdict.short.push_str(" (few)");
    }
    verdict
}

/// A model that does not describe this kernel supports no verdict.
fn weak(frame: &Frame) -> Option<Verdict> {
    if known::trusted(frame) {
        return None;
    }
    let f = known::own(frame)?.fidelity;
    let fits = percent(f.agree, f.scored);
    Some(Verdict::unknown(format!("no verdict: the model matches this kernel only {fits}"), format!("no verdict: fidelity {fits}")))
}

/// Differences of the kernel's own rules are errors of the model, and called so.
fn of_own(rules: &RuleFrame, d: &FileDivergence, file: &FileFrame) -> Verdict {
    let misses = d.only_predicted + d.only_actual;
    if misses > 0 {
        return Verdict::new(
            Leaning::Differs,
            format!("model of {} and kernel differ on {} promotions", rules.name, grouped(misses)),
            format!("model misses {}", short(misses)),
        );
    }
    if d.would_keep > 0 {
        return Verdict::new(
            Leaning::Differs,
            format!("model of {} had {} younger when the kernel evicted", rules.name, pages(d.would_keep)),
            format!("model had {} younger", short(d.would_keep)),
        );
    }
    same(d, file)
}

fn of_other(rules: &RuleFrame, d: &FileDivergence, file: &FileFrame, known: &Known) -> Verdict {
    let name = &rules.name;
    // A page that came back counts even if its eviction fell out of the window of what was kept.
    if d.avoidable > 0 && d.would_keep == 0 {
        return Verdict::new(
            Leaning::Better,
            format!("{} came back that {name} keeps", pages(d.avoidable)),
            format!("{} back, it keeps them", short(d.avoidable)),
        );
    }
    if d.would_keep > 0 {
        let (kept, kept_short) = (pages(d.would_keep), short(d.would_keep));
        let (leaning, back, back_short) = if d.avoidable > 0 {
            (Leaning::Better, format!("; {} came back", grouped(d.avoidable)), format!("; {} came back", short(d.avoidable)))
        } else if known.refaults && file.untraced == 0 {
            (Leaning::Differs, "; none came back so far".to_owned(), "; none came back".to_owned())
        } else {
            (Leaning::Differs, "; whether any came back is unknown".to_owned(), String::new())
        };
        return Verdict::new(leaning, format!("{name} keeps {kept} the kernel evicted{back}"), format!("keeps {kept_short}{back_short}"));
    }
    match (d.only_predicted, d.only_actual) {
        (0, 0) => same(d, file),
        (p, 0) => Verdict::new(
            Leaning::Differs,
            format!("{name} promotes {} that the kernel leaves", grouped(p)),
            format!("promotes {} more", short(p)),
        ),
        (0, a) => Verdict::new(
            Leaning::Differs,
            format!("the kernel promotes {} that {name} leaves", grouped(a)),
            format!("kernel promotes {} more", short(a)),
        ),
        (p, a) => Verdict::new(
            Leaning::Differs,
            format!("different pages promoted: {} only by {name}, {} only by the kernel", grouped(p), grouped(a)),
            format!("{} only it, {} only kernel", short(p), short(a)),
        ),
    }
}

fn same(d: &FileDivergence, file: &FileFrame) -> Verdict {
    if d.both > 0 {
        let long = format!("no difference seen; {} promoted by both", grouped(d.both));
        Verdict::new(Leaning::Same, long, format!("same, {} by both", short(d.both)))
    } else if file.evictions > 0 {
        Verdict::new(Leaning::Same, "no difference seen", "no difference seen")
    } else {
        Verdict::unknown("no promotion or eviction seen", "nothing to compare")
    }
}

/// One sentence on a rule set as a whole.
#[must_use]
pub fn rules(frame: &Frame, known: &Known, rule: &RuleFrame) -> Verdict {
    if let Some(why) = &known.hidden {
        return Verdict::unknown(why.clone(), "no prediction");
    }
    if let Some(weak) = weak(frame) {
        return weak;
    }
    if rule.own {
        let f = rule.fidelity;
        if f.scored == 0 {
            return Verdict::unknown("no event scored yet", "not scored yet");
        }
        let fits = percent(f.agree, f.scored);
        let leaning = if f.agree == f.scored { Leaning::Same } else { Leaning::Differs };
        let long = format!("the model of this kernel matches {fits} of {} events", grouped(f.scored));
        return Verdict::new(leaning, long, format!("matches {fits}"));
    }
    let (e, r, name) = (rule.evictions, rule.refaults, &rule.name);
    if !known.evictions && e.scored == 0 {
        return Verdict::unknown("evictions are not seen here, so none is judged", "evictions unseen");
    }
    if e.scored == 0 {
        return Verdict::unknown("no eviction to judge yet", "no eviction yet");
    }
    if e.would_keep == 0 {
        let long = format!("{name} keeps none of the {} evictions judged", grouped(e.scored));
        return Verdict::new(Leaning::Same, long, "keeps none more");
    }
    // Of a sample only pages of files are found again after their eviction.
    let (sample, refaulted, of) = match &frame.sampling {
        Some(s) => ("in the sample ", s.traced, "refaults of file pages"),
        None => ("", r.actual, "refaults"),
    };
    let kept = format!("{sample}{name} keeps {} of {} evictions judged", grouped(e.would_keep), grouped(e.scored));
    match (known.refaults || r.actual > 0, r.avoidable) {
        (false, _) => Verdict::new(
            Leaning::Differs,
            format!("{kept}; refaults are not seen here"),
            format!("keeps {} of {} evicted; refaults unseen", short(e.would_keep), short(e.scored)),
        ),
        (true, 0) if frame.sampling.is_some() => Verdict::new(
            Leaning::Differs,
            format!("{kept}; none of {} {of} were avoidable so far", grouped(refaulted)),
            format!("keeps {} of {} evicted; no refault avoidable", short(e.would_keep), short(e.scored)),
        ),
        (true, 0) => Verdict::new(
            Leaning::Differs,
            format!("{kept}; none came back so far"),
            format!("keeps {} of {} evicted; none came back", short(e.would_keep), short(e.scored)),
        ),
        (true, n) => Verdict::new(
            Leaning::Better,
            format!("{kept}; {} of {} {of} were avoidable", grouped(n), grouped(refaulted)),
            format!(
                "keeps {} of {} evicted; {} of {} refaults avoidable",
                short(e.would_keep),
                short(e.scored),
                short(n),
                short(refaulted)
            ),
        ),
    }
}
