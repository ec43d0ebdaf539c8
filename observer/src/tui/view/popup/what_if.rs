//! What if: each rule set alone with the accesses, at each size.

use super::super::Ctx;
use super::{Lines, wrap};
use crate::report::num::{clean, cut_end, cut_start, grouped, grouped_or, pad_end, pad_start};
use crate::session::frame::SourceKind;

/// Columns of the names, and of each size.
const NAME: usize = 24;
const CELL: usize = 12;

/// Refaults by rule set and size, the kernel's own below.
pub(super) fn lines(ctx: &Ctx<'_>, columns: usize) -> Lines {
    let t = ctx.theme;
    let rows = &ctx.frame.what_if;
    let Some(first) = rows.first() else {
        let why = match ctx.frame.source.kind {
            SourceKind::Live => "Live these caches do not run, since they cost more than all the rest: record, and replay the recording.",
            _ => "They start when a cgroup has filled its memory, or at the end of the recording, and need accesses to file pages.",
        };
        return wrap(why, columns, "", "").into_iter().map(|line| vec![(line, t.plain)]).collect();
    };
    let sizes = rows.iter().take_while(|row| row.rules == first.rules).count();
    let shown = sizes.min(columns.saturating_sub(NAME) / CELL).max(1);
    let line = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.take(shown).map(|cell| pad_start(&cell, CELL)).collect();
        format!("{}{cells}", pad_end(&cut_end(name, NAME), NAME))
    };
    let mut out: Lines = Vec::new();
    let about = format!("{} accesses of {}", grouped(first.accesses), cut_start(&clean(&first.cgroup), columns.saturating_sub(30)));
    out.push(vec![(about, t.plain)]);
    out.push(vec![(line("refaults at", &mut rows[..sizes].iter().map(|row| format!("{} %", row.percent))), t.dim)]);
    out.push(vec![(line("pages", &mut rows[..sizes].iter().map(|row| grouped(row.pages))), t.dim)]);
    for (index, rows) in rows.chunks(sizes).enumerate() {
        let name = if rows[0].own { format!("{} *", rows[0].rules) } else { rows[0].rules.clone() };
        let style = if ctx.rule == Some(index) { t.strong } else { t.predicted };
        out.push(vec![(line(&name, &mut rows.iter().map(|row| grouped(row.refaults))), style)]);
    }
    let observed = |row: &crate::session::frame::WhatIfFrame| if row.percent == 100 { grouped_or(row.observed) } else { String::new() };
    out.push(vec![(line("the kernel, observed", &mut rows[..sizes].iter().map(observed)), t.actual)]);
    if sizes > shown {
        out.push(vec![(format!("{} more sizes on a wider screen, or in --json", sizes - shown), t.dim)]);
    }
    out.push(Vec::new());
    for text in wrap(
        "Each rule set does its own aging and eviction here. The own rules (*) beside what was observed say how far to trust the others.",
        columns,
        "",
        "",
    ) {
        out.push(vec![(text, t.dim)]);
    }
    out
}
