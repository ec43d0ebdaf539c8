//! What the comparison is about: one lruvec, or all of them added up.

use super::Ctx;
use crate::report::num;
use crate::session::frame::{LruvecFrame, Side};

/// Both sides of the comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) name: String,
    /// The youngest generation, when all of these share a clock and it was seen.
    pub(super) max_seq: Option<u64>,
    /// None while the generation bits are not proven.
    pub(super) actual: Option<Side>,
    /// None while predictions may not be shown, or there is no rule set.
    pub(super) predicted: Option<Side>,
}

/// Of the state's selection.
pub(super) fn of(ctx: &Ctx<'_>) -> Scope {
    let rule = if ctx.known.predictions() { ctx.rule } else { None };
    let add = |lruvecs: &[LruvecFrame]| Scope {
        name: String::new(),
        max_seq: None,
        actual: ctx.known.predictions().then(|| lruvecs.iter().fold(Side::default(), |sum, l| added(sum, &l.actual))),
        predicted: rule.map(|r| lruvecs.iter().filter_map(|l| l.predicted.get(r)).fold(Side::default(), added)),
    };
    match ctx.state.lruvec(ctx.frame) {
        Some(l) => Scope { name: name(l), max_seq: l.max_seq, ..add(std::slice::from_ref(l)) },
        None => Scope { name: "all lruvecs".to_owned(), ..add(&ctx.frame.lruvecs) },
    }
}

/// `/workload node 0`.
pub(super) fn name(l: &LruvecFrame) -> String {
    format!("{} node {}", num::clean(&l.cgroup), l.node)
}

fn added(mut sum: Side, side: &Side) -> Side {
    add_table(&mut sum.by_age, &side.by_age);
    add_table(&mut sum.by_tier, &side.by_tier);
    add_table(&mut sum.by_refs, &side.by_refs);
    // The newest windows are the same time; an lruvec that was born later has fewer.
    let (mine, theirs) = (&mut sum.promotions_per_s, &side.promotions_per_s);
    if mine.len() < theirs.len() {
        mine.splice(0..0, std::iter::repeat_n(0.0, theirs.len() - mine.len()));
    }
    for (a, b) in mine.iter_mut().rev().zip(theirs.iter().rev()) {
        *a += b;
    }
    sum
}

fn add_table<const N: usize>(sum: &mut [[u64; 2]; N], more: &[[u64; 2]; N]) {
    for (a, b) in sum.iter_mut().flatten().zip(more.iter().flatten()) {
        *a = a.saturating_add(*b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_aligned_at_the_newest() {
        let side = |v: &[f64]| Side { promotions_per_s: v.to_vec(), ..Side::default() };
        let sum = [side(&[1.0]), side(&[1.0, 2.0, 3.0]), side(&[10.0, 20.0])].iter().fold(Side::default(), added);
        assert_eq!(sum.promotions_per_s, [1.0, 12.0, 24.0]);
    }
}
