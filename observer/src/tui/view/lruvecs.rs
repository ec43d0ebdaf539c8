//! Left: the lruvecs, and of the chosen one the generations as the kernel counts them.

use super::pen::{Pen, first_row};
use super::{Ctx, bar};
use crate::report::known;
use crate::report::num::{clean, cut_start, grouped_or, short_or};
use crate::session::frame::LruvecFrame;
use crate::stream::header::Lru;
use crate::tui::state::{Pane, sum};

/// Rows of the part about the chosen one.
const DETAIL: usize = 8;

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let focus = ctx.state.pane == Pane::Lruvecs;
    let list = ctx.state.lruvecs(ctx.frame);
    let filter = &ctx.state.lruvec_filter;
    let name = if filter.is_empty() { format!("lruvecs {}", list.len()) } else { format!("lruvecs /{filter}") };
    let note = format!("by {}", ctx.state.lruvec_sort.name());
    pen.title(0, &name, &note, focus, t.dim, t.strong);
    let body = pen.height().saturating_sub(1);
    // Where rows are few, the list has them.
    let detail = if body >= DETAIL + 4 { DETAIL } else { 0 };
    // The chosen one's part follows the list, so that the eye need not jump on a tall screen.
    let rows = (body - detail).min(list.len() + 2);
    let selected = ctx.state.lruvec.and_then(|key| list.iter().position(|l| l.key == key)).map_or(0, |i| i + 1);
    let first = first_row(selected, list.len() + 1, rows);
    let nodes = ctx.frame.lruvecs.iter().any(|l| l.node != ctx.frame.lruvecs[0].node);
    let width = pen.width();
    for y in 0..rows.min(list.len() + 1 - first) {
        let row = first + y;
        let at = y + 1;
        match row.checked_sub(1).and_then(|i| list.get(i)) {
            None => all(ctx, pen, at),
            Some(l) => one(pen, at, l, ctx, nodes),
        }
        if row == selected {
            pen.text(0, at, "▸", t.strong);
            if focus {
                pen.row_style(at, t.selected);
            }
        }
    }
    if detail > 0 {
        let part = &mut pen.part(0, 1 + rows, width, detail);
        generations(ctx, part);
    }
}

fn all(ctx: &Ctx<'_>, pen: &mut Pen<'_>, y: usize) {
    pen.text(1, y, "all", ctx.theme.plain);
    numbers(pen, y, total(ctx, &ctx.frame.lruvecs).map(|t| t.0), ctx);
}

fn one(pen: &mut Pen<'_>, y: usize, l: &LruvecFrame, ctx: &Ctx<'_>, nodes: bool) {
    // A node says something only where there are several.
    let room = pen.width().saturating_sub(if nodes { 16 } else { 13 });
    pen.text(1, y, &cut_start(&clean(&l.cgroup), room), ctx.theme.plain);
    if nodes {
        pen.right(pen.width().saturating_sub(12), y, &format!("n{}", l.node), ctx.theme.dim);
    }
    numbers(pen, y, known::pages(l, ctx.known).map(|p| p.0), ctx);
}

fn numbers(pen: &mut Pen<'_>, y: usize, pages: Option<[[u64; 2]; 4]>, ctx: &Ctx<'_>) {
    let end = pen.width();
    pen.right(end.saturating_sub(6), y, &short_or(pages.map(|p| sum(&p))), ctx.theme.plain);
    if let Some(pages) = pages {
        pen.right(end.saturating_sub(1), y, &bar::by_age(&pages), ctx.theme.actual);
    }
}

/// Pages of several, and whether all of them are the kernel's own count; None if nothing is known.
fn total<'a>(ctx: &Ctx<'_>, lruvecs: impl IntoIterator<Item = &'a LruvecFrame>) -> Option<([[u64; 2]; 4], bool)> {
    let known = lruvecs.into_iter().filter_map(|l| known::pages(l, ctx.known));
    known.reduce(|(mut sum, all_counted), (pages, counted)| {
        for (a, b) in sum.iter_mut().flatten().zip(pages.iter().flatten()) {
            *a = a.saturating_add(*b);
        }
        (sum, all_counted && counted)
    })
}

fn generations(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let chosen = ctx.state.lruvec(ctx.frame);
    let of: Vec<&LruvecFrame> = chosen.map_or_else(|| ctx.frame.lruvecs.iter().collect(), |l| vec![l]);
    let pages = total(ctx, of.iter().copied());
    let whose = if pages.is_none_or(|p| p.1) { "kernel's count" } else { "tracked only" };
    pen.title(0, whose, "▒ anon █ file", false, t.dim, t.plain);
    let max = pages.iter().flat_map(|p| p.0).map(|p| p[0].saturating_add(p[1])).max().unwrap_or(0);
    let seq = chosen.and_then(|l| l.max_seq);
    for age in 0..4 {
        let y = age + 1;
        let label = match ctx.frame.lru {
            Lru::Mglru => super::compare::age_label(age, seq),
            Lru::Classical => ["active", "", "", "inactive"][age].to_owned(),
        };
        if label.is_empty() {
            continue;
        }
        pen.text(1, y, &label, t.dim);
        let n = pages.map(|p| p.0[age]);
        pen.right(15, y, &short_or(n.map(|n| n[0].saturating_add(n[1]))), t.plain);
        let width = pen.width().saturating_sub(17);
        pen.text(16, y, &bar::stacked(n.unwrap_or_default(), max, width), t.actual);
    }
    let clocked = of.iter().any(|l| l.max_seq.is_some());
    let agings = clocked.then(|| of.iter().map(|l| l.agings).sum());
    let refaults = ctx.known.refaulted(of.iter().map(|l| l.refaults).sum());
    let evictions = ctx.known.evicted(of.iter().map(|l| l.evictions).sum());
    if let Some([anon, file]) = chosen.and_then(|l| l.min_seq) {
        let min = if anon == file { format!("min {file}") } else { format!("min {anon}/{file}") };
        pen.text(1, 5, &min, t.dim);
        pen.right(pen.width().saturating_sub(1), 5, &format!("aged {}", short_or(agings)), t.plain);
    } else {
        pen.text(1, 5, &format!("aged {}", grouped_or(agings)), t.plain);
    }
    pen.text(1, 6, &format!("evicted {}", grouped_or(evictions)), t.plain);
    pen.text(1, 7, &format!("refaulted {}", grouped_or(refaults)), t.plain);
}
