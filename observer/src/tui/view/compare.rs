//! Centre: predicted and actual, row by row on one scale.

use super::pen::Pen;
use super::scope::{self, Scope};
use super::{Ctx, bar, promotions};
use crate::report::known;
use crate::report::num::{UNKNOWN, grouped, short};
use crate::session::frame::Side;
use crate::stream::header::Lru;
use crate::tui::state::{Places, sum};
use ratatui::style::Style;

/// Columns of the panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// Where each side begins and how wide it is.
    pub(super) predicted: usize,
    pub(super) actual: usize,
    pub(super) width: usize,
    /// End of the column of differences, when there is room for it.
    pub(super) delta: Option<usize>,
}

const LABEL: usize = 8;
const NUMBER: usize = 6;
const DELTA: usize = 9;
/// Room for the name of a list, "inactive".
const LIST: usize = 9;

impl Columns {
    pub(super) fn of(width: usize) -> Self {
        let delta = width >= 64;
        let sides = width.saturating_sub(LABEL + 3 + if delta { DELTA } else { 0 });
        let each = sides / 2;
        Self { predicted: LABEL, actual: LABEL + each + 3, width: each, delta: delta.then_some(width.saturating_sub(1)) }
    }
}

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let scope = scope::of(ctx);
    let cols = Columns::of(pen.width());
    let order = if cols.delta.is_some() { ", youngest first" } else { "" };
    pen.title(0, &format!("tracked pages{order} · {}", scope.name), "▒ anon █ file", false, t.dim, t.strong);
    heads(ctx, pen, cols);
    let rows = Rows::of(pen.height());
    let mut y = 2;
    table(ctx, pen, cols, y, &generations(ctx, &scope));
    y += 4;
    if rows.tiers {
        y += usize::from(rows.gaps);
        let by_refs = ctx.state.places == Places::Refs && !rows.refs;
        let list = if by_refs { references(&scope, 4) } else { tiers(&scope) };
        table(ctx, pen, cols, y, &list);
        y += 4;
    }
    if rows.refs {
        y += usize::from(rows.gaps);
        table(ctx, pen, cols, y, &references(&scope, 8));
        y += 8;
    }
    y += usize::from(rows.gaps);
    promotions::draw(ctx, pen, cols, &scope, y);
    if let Some(why) = &ctx.known.hidden {
        placeholder(pen, cols, why, t.strong);
    }
    // The line between the sides.
    let end = pen.height();
    for y in 1..end {
        pen.text(cols.actual.saturating_sub(2), y, "│", t.dim);
    }
}

/// Which tables fit above the chart of promotions.
#[derive(Clone, Copy, Debug)]
struct Rows {
    tiers: bool,
    refs: bool,
    gaps: bool,
}

impl Rows {
    fn of(height: usize) -> Self {
        // Title, heads, four generations, and a chart of at least one row.
        let free = height.saturating_sub(7);
        Self { tiers: free >= 5, refs: free >= 18, gaps: free >= 22 || (9..18).contains(&free) }
    }
}

fn heads(ctx: &Ctx<'_>, pen: &mut Pen<'_>, cols: Columns) {
    let t = ctx.theme;
    let rule = ctx.rule.and_then(|r| ctx.frame.rules.get(r));
    let predicted = match rule {
        Some(r) if r.own => format!("predicted {} (own)", r.name),
        Some(r) => format!("predicted {}", r.name),
        None => "predicted".to_owned(),
    };
    let actual = match (ctx.frame.lru, known::own(ctx.frame)) {
        (Lru::Classical, _) => "actual classical LRU".to_owned(),
        (Lru::Mglru, Some(own)) => format!("actual kernel {}", own.name),
        (Lru::Mglru, None) => "actual kernel".to_owned(),
    };
    let bold = ratatui::style::Modifier::BOLD;
    pen.text(cols.predicted, 1, &fitting(&predicted, cols.width), t.predicted.add_modifier(bold));
    pen.text(cols.actual, 1, &fitting(&actual, cols.width), t.actual.add_modifier(bold));
    if let Some(end) = cols.delta {
        pen.right(end, 1, "pred−act", t.dim);
    }
}

/// The words, without the first if there is no room for all.
fn fitting(words: &str, width: usize) -> String {
    let rest = words.split_once(' ').map_or(words, |(_, rest)| rest);
    crate::report::num::cut_end(if crate::report::num::width(words) <= width { words } else { rest }, width)
}

/// One row of both sides. None is unknown; a missing row on one side is blank.
struct Row {
    label: String,
    predicted: Cell,
    actual: Cell,
    /// Begins the actual cell: the lists of a classical LRU have names.
    actual_label: &'static str,
}

/// What one side has in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Pages([u64; 2]),
    Unknown,
    Blank,
}

impl Cell {
    fn total(self) -> Option<u64> {
        match self {
            Self::Pages([anon, file]) => Some(anon.saturating_add(file)),
            _ => None,
        }
    }
}

/// `gen 41` where the clock is known, else `age 0`; at most six columns for any clock a kernel reaches.
pub(super) fn age_label(age: usize, max_seq: Option<u64>) -> String {
    match max_seq.and_then(|m| m.checked_sub(age as u64)) {
        Some(seq @ 0..100) => format!("gen {seq}"),
        Some(seq @ 100..10_000) => format!("g {seq}"),
        Some(seq) => format!("{seq}"),
        None => format!("age {age}"),
    }
}

fn cells<const N: usize>(side: Option<&Side>, table: impl Fn(&Side) -> [[u64; 2]; N]) -> Vec<Cell> {
    match side.map(&table) {
        Some(t) if sum(&t) > 0 => t.iter().map(|n| Cell::Pages(*n)).collect(),
        // Nothing tracked is not the same as nothing there.
        _ => vec![Cell::Unknown; N],
    }
}

fn rows<const N: usize>(scope: &Scope, label: impl Fn(usize) -> String, table: impl Fn(&Side) -> [[u64; 2]; N]) -> Vec<Row> {
    let predicted = cells(scope.predicted.as_ref(), &table);
    let actual = cells(scope.actual.as_ref(), &table);
    predicted
        .into_iter()
        .zip(actual)
        .enumerate()
        .map(|(i, (predicted, actual))| Row { label: label(i), predicted, actual, actual_label: "" })
        .collect()
}

fn generations(ctx: &Ctx<'_>, scope: &Scope) -> Vec<Row> {
    let mut list = rows(scope, |age| age_label(age, scope.max_seq), |s| s.by_age);
    if ctx.frame.lru == Lru::Classical {
        for (row, name) in list.iter_mut().zip(["active", "", "", "inactive"]) {
            row.actual_label = name;
            if name.is_empty() {
                row.actual = Cell::Blank;
            }
        }
    }
    list
}

fn tiers(scope: &Scope) -> Vec<Row> {
    rows(scope, |tier| format!("tier {tier}"), |s| s.by_tier)
}

/// By references; with fewer rows than eight the last takes the rest.
fn references(scope: &Scope, n: usize) -> Vec<Row> {
    let mut list = rows(scope, |refs| format!("refs {refs}"), |s| s.by_refs);
    while list.len() > n.max(1) {
        let Some(last) = list.pop() else { break };
        let Some(into) = list.last_mut() else { break };
        let add = |a: Cell, b: Cell| match (a, b) {
            (Cell::Pages(a), Cell::Pages(b)) => Cell::Pages([a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]),
            _ => a,
        };
        into.predicted = add(into.predicted, last.predicted);
        into.actual = add(into.actual, last.actual);
        into.label = format!("refs {}+", n - 1);
    }
    list
}

fn table(ctx: &Ctx<'_>, pen: &mut Pen<'_>, cols: Columns, y: usize, list: &[Row]) {
    let t = ctx.theme;
    let max = list.iter().flat_map(|r| [r.predicted, r.actual]).filter_map(Cell::total).max().unwrap_or(0);
    // Names of lists take room from both sides' bars: a cell must stand for the same number of pages on either.
    let named = list.iter().any(|r| !r.actual_label.is_empty());
    let indent = if named { LIST } else { 0 };
    let cells = cols.width.saturating_sub(NUMBER + indent);
    for (i, row) in list.iter().enumerate() {
        let y = y + i;
        pen.text(1, y, &row.label, t.dim);
        // Otherwise the place is for the words that say why.
        if ctx.known.predictions() {
            side(pen, (cols.predicted, y), cells, row.predicted, max, (t.plain, t.predicted));
        }
        pen.text(cols.actual, y, row.actual_label, t.plain);
        side(pen, (cols.actual + indent, y), cells, row.actual, max, (t.plain, t.actual));
        // Active is not the youngest generation: between lists and generations there is no difference to take.
        if let (Some(end), Some(p), Some(a), false) = (cols.delta, row.predicted.total(), row.actual.total(), named) {
            pen.right(end, y, &difference(p, a), if p == a { t.dim } else { t.plain });
        }
    }
}

fn side(pen: &mut Pen<'_>, (x, y): (usize, usize), width: usize, cell: Cell, max: u64, (plain, colour): (Style, Style)) {
    match cell {
        Cell::Blank => (),
        Cell::Unknown => pen.right(x + NUMBER - 1, y, UNKNOWN, plain),
        Cell::Pages(n) => {
            pen.right(x + NUMBER - 1, y, &short(n[0].saturating_add(n[1])), plain);
            pen.text(x + NUMBER, y, &bar::stacked(n, max, width), colour);
        }
    }
}

/// `+1,204`, `−984`, `=`.
fn difference(predicted: u64, actual: u64) -> String {
    let sign = if predicted > actual { '+' } else { '−' };
    match predicted.abs_diff(actual) {
        0 => "=".to_owned(),
        n @ 1..100_000 => format!("{sign}{}", grouped(n)),
        n => format!("{sign}{}", short(n)),
    }
}

/// Why there is no prediction, where it would be.
fn placeholder(pen: &mut Pen<'_>, cols: Columns, why: &str, style: Style) {
    let mut y = 2;
    let mut line = String::new();
    for word in why.split(' ') {
        if !line.is_empty() && crate::report::num::width(&line) + 1 + crate::report::num::width(word) > cols.width {
            pen.part(0, 0, cols.predicted + cols.width, usize::MAX).text(cols.predicted, y, &line, style);
            y += 1;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    pen.part(0, 0, cols.predicted + cols.width, usize::MAX).text(cols.predicted, y, &line, style);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_signed() {
        assert_eq!(difference(5, 5), "=");
        assert_eq!(difference(1_205, 1), "+1,204");
        assert_eq!(difference(1, 985), "−984");
        assert_eq!(difference(u64::MAX, 0), "+18.4E");
    }

    #[test]
    fn labels_follow_the_clock() {
        assert_eq!(age_label(3, Some(41)), "gen 38");
        assert_eq!(age_label(3, None), "age 3");
        assert_eq!(age_label(3, Some(1)), "age 3");
    }
}
