//! Below: where the rule set and the kernel disagree, file by file, with a verdict in words.

use super::Ctx;
use super::pen::{Pen, first_row};
use crate::report::known::Known;
use crate::report::num::{clean, cut_start, pad_start, short_or};
use crate::report::verdict::{self, Leaning};
use crate::session::frame::{FileDivergence, FileFrame};
use crate::tui::state::{FileSort, Pane};

/// One column of numbers.
struct Column {
    head: &'static str,
    width: usize,
    /// Shown from this width of screen on.
    from: usize,
    sort: Option<FileSort>,
    number: fn(&Known, &FileFrame, FileDivergence) -> Option<u64>,
}

const COLUMNS: [Column; 9] = [
    Column { head: "pages", width: 7, from: 100, sort: Some(FileSort::Pages), number: |_, f, _| Some(f.pages) },
    Column { head: "access", width: 8, from: 100, sort: Some(FileSort::Accesses), number: |_, f, _| Some(f.accesses) },
    Column { head: "both", width: 6, from: 90, sort: Some(FileSort::Both), number: |k, _, d| k.predicted(d.both) },
    Column { head: "only it", width: 8, from: 0, sort: Some(FileSort::OnlyPredicted), number: |k, _, d| k.predicted(d.only_predicted) },
    Column { head: "only krn", width: 9, from: 0, sort: Some(FileSort::OnlyActual), number: |k, _, d| k.predicted(d.only_actual) },
    Column { head: "evicted", width: 8, from: 120, sort: None, number: |k, f, _| k.evicted(f.evictions) },
    Column { head: "keeps", width: 6, from: 0, sort: Some(FileSort::WouldKeep), number: |k, _, d| k.judged(d.would_keep) },
    Column { head: "refaults", width: 9, from: 120, sort: None, number: |k, f, _| k.refaulted(f.refaults) },
    Column { head: "avoid", width: 6, from: 0, sort: Some(FileSort::Avoidable), number: |k, f, d| k.avoidable_of(f, d.avoidable) },
];

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let state = ctx.state;
    let focus = state.pane == Pane::Files;
    let list = state.files(ctx.frame, ctx.known);
    let rule = ctx.rule.unwrap_or(0);
    let rule_name = ctx.rule.and_then(|r| ctx.frame.rules.get(r)).map_or("a rule set", |r| r.name.as_str());
    let mut name = format!("where {rule_name} and the kernel differ");
    if let Some(l) = state.lruvec(ctx.frame) {
        name.push_str(&format!(" · {}", clean(&l.cgroup)));
    }
    if !state.file_filter.is_empty() {
        name.push_str(&format!(" · /{}", state.file_filter));
    }
    let sampled = if ctx.frame.source.sample > 1 { format!("1/{} sample · ", ctx.frame.source.sample) } else { String::new() };
    pen.title(0, &name, &format!("{sampled}{} by {}", list.len(), state.file_sort.name()), focus, t.dim, t.strong);

    let width = pen.width();
    let columns: Vec<&Column> = COLUMNS.iter().filter(|c| width >= c.from).collect();
    let numbers: usize = columns.iter().map(|c| c.width).sum();
    let rest = width.saturating_sub(numbers + 3);
    let cgroup_width = if width >= 150 { (rest / 5).min(32) } else { 0 };
    let rest = rest - cgroup_width;
    // The verdict's short form takes thirty columns, the long one about sixty; names have what it leaves. On the narrowest
    // screens its symbol has to do.
    let name_width = match rest {
        0..30 => rest.saturating_sub(2),
        30..50 => (rest - 30).max(15),
        50..100 => rest * 2 / 5,
        _ => rest - 64,
    };
    let at_numbers = 1 + name_width + cgroup_width;
    let at_verdict = at_numbers + numbers + 2;

    let name_mark = if state.file_sort == FileSort::Name { "▾" } else { "" };
    pen.text(1, 1, &format!("{name_mark}file"), t.dim);
    if cgroup_width > 0 {
        pen.text(1 + name_width + 1, 1, "cgroup", t.dim);
    }
    let mut x = at_numbers;
    for c in &columns {
        let mark = if c.sort == Some(state.file_sort) { "▾" } else { "" };
        pen.text(x, 1, &pad_start(&format!("{mark}{}", c.head), c.width), t.dim);
        x += c.width;
    }
    if rest >= 30 {
        pen.text(at_verdict, 1, "verdict", t.dim);
    }

    let rows = pen.height().saturating_sub(2);
    let selected = state.file.and_then(|key| list.iter().position(|f| f.key == key)).unwrap_or(0);
    let first = first_row(selected, list.len(), rows);
    for (y, file) in list.iter().skip(first).take(rows).enumerate() {
        let row = first + y;
        let y = y + 2;
        let file_name = clean(&file.name);
        pen.text(1, y, &cut_start(&file_name, name_width.saturating_sub(1)), t.plain);
        if cgroup_width > 0 {
            pen.text(1 + name_width + 1, y, &cut_start(&clean(&file.cgroup), cgroup_width.saturating_sub(2)), t.dim);
        }
        let d = file.by_rules.get(rule).copied().unwrap_or_default();
        let mut x = at_numbers;
        for c in &columns {
            pen.text(x, y, &pad_start(&short_or((c.number)(ctx.known, file, d)), c.width), t.plain);
            x += c.width;
        }
        let v = verdict::file(ctx.frame, ctx.known, file, rule);
        let style = match v.leaning {
            Leaning::Better => t.strong,
            Leaning::Differs => t.plain,
            Leaning::Same | Leaning::Unknown => t.dim,
        };
        let words = v.fit(width.saturating_sub(at_verdict + 2));
        pen.text(at_verdict, y, &format!("{} {}", v.leaning.symbol(), if rest < 30 { "" } else { &words }), style);
        if row == selected {
            pen.text(0, y, "▸", t.strong);
            if focus {
                pen.row_style(y, t.selected);
            }
        }
    }
    if list.is_empty() {
        let why = if state.file_filter.is_empty() { "no file seen yet" } else { "no file matches the filter (esc clears it)" };
        pen.text(1, 2, why, t.dim);
    }
}
