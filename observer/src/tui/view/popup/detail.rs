//! One lruvec or one file, with every number there is.

use super::super::{Ctx, scope};
use super::Lines;
use crate::report::known;
use crate::report::num::{UNKNOWN, clean, grouped, grouped_or, pad_end, pad_start, short, short_or};
use crate::report::verdict;
use crate::session::frame::{LruvecFrame, Side};
use crate::stream::header::Lru;
use crate::tui::state::sum;

/// Of a lruvec, or of each in turn.
pub(super) fn lruvec(ctx: &Ctx<'_>, key: Option<u64>) -> (String, Lines) {
    let mut out: Lines = Vec::new();
    let Some(key) = key else {
        for l in ctx.state.lruvecs(ctx.frame) {
            out.push(vec![(scope::name(l), ctx.theme.strong)]);
            facts(ctx, l, &mut out);
            out.push(Vec::new());
        }
        if out.is_empty() {
            out.push(vec![("none seen yet".to_owned(), ctx.theme.plain)]);
        }
        return ("all lruvecs".to_owned(), out);
    };
    let Some(l) = ctx.frame.lruvecs.iter().find(|l| l.key == key) else {
        return ("lruvec".to_owned(), vec![vec![("it is gone".to_owned(), ctx.theme.plain)]]);
    };
    facts(ctx, l, &mut out);
    out.push(Vec::new());
    places(ctx, l, &mut out);
    (scope::name(l), out)
}

fn facts(ctx: &Ctx<'_>, l: &LruvecFrame, out: &mut Lines) {
    let plain = ctx.theme.plain;
    let min = l.min_seq.map_or_else(|| UNKNOWN.to_owned(), |[anon, file]| format!("anon {anon}, file {file}"));
    out.push(vec![(
        format!(
            "max_seq {}  min_seq {min}  aged {}",
            l.max_seq.map_or_else(|| UNKNOWN.to_owned(), |m| m.to_string()),
            grouped_or(l.max_seq.map(|_| l.agings))
        ),
        plain,
    )]);
    out.push(vec![(
        format!("evicted {}  refaulted {}", grouped_or(ctx.known.evicted(l.evictions)), grouped_or(ctx.known.refaulted(l.refaults))),
        plain,
    )]);
    if let Some(pages) = l.pages {
        out.push(vec![(format!("the kernel counts {} pages", grouped(sum(&pages))), plain)]);
    }
}

/// Every side by age, tier and references: a column per side.
fn places(ctx: &Ctx<'_>, l: &LruvecFrame, out: &mut Lines) {
    let t = ctx.theme;
    let mut head = vec![(pad_end("pages", 12), t.dim), (pad_start("kernel", 13), t.actual)];
    let predicted: &[Side] = if ctx.known.predictions() { &l.predicted } else { &[] };
    let shown: Vec<usize> = by_interest(ctx, predicted.len());
    for i in &shown {
        let name = ctx.frame.rules.get(*i).map_or("", |r| r.name.as_str());
        head.push((pad_start(&crate::report::num::cut_end(name, 12), 13), t.predicted));
    }
    out.push(head);
    let mut group = |label: &dyn Fn(usize) -> String, n: usize, table: &dyn Fn(&Side) -> Vec<[u64; 2]>| {
        for i in 0..n {
            let mut line = vec![(pad_end(&label(i), 12), t.dim), (pad_start(&cell(&table(&l.actual), i), 13), t.plain)];
            for r in &shown {
                line.push((pad_start(&cell(&table(&predicted[*r]), i), 13), t.plain));
            }
            out.push(line);
        }
    };
    let age = |i: usize| match (ctx.frame.lru, i) {
        (Lru::Classical, 0) => "active/0".to_owned(),
        (Lru::Classical, 3) => "inactive/3".to_owned(),
        _ => super::super::compare::age_label(i, l.max_seq),
    };
    group(&age, 4, &|s| s.by_age.to_vec());
    group(&|i| format!("tier {i}"), 4, &|s| s.by_tier.to_vec());
    group(&|i| format!("refs {i}"), 8, &|s| s.by_refs.to_vec());
    out.push(vec![("each anon/file, of the folios tracked".to_owned(), t.dim)]);
}

/// The rule sets that a popup has columns for, the chosen one first.
fn by_interest(ctx: &Ctx<'_>, n: usize) -> Vec<usize> {
    let chosen = ctx.rule.filter(|r| *r < n);
    chosen.into_iter().chain((0..n).filter(|i| Some(*i) != chosen)).take(5).collect()
}

fn cell(table: &[[u64; 2]], i: usize) -> String {
    let all: u64 = table.iter().flatten().fold(0, |a, b| a.saturating_add(*b));
    match table.get(i) {
        Some([anon, file]) if all > 0 => format!("{}/{}", short(*anon), short(*file)),
        _ => UNKNOWN.to_owned(),
    }
}

/// Of a file.
pub(super) fn file(ctx: &Ctx<'_>, key: u64) -> (String, Lines) {
    let t = ctx.theme;
    let Some(f) = ctx.frame.files.iter().find(|f| f.key == key) else {
        return ("file".to_owned(), vec![vec![("it is no longer among the files shown".to_owned(), t.plain)]]);
    };
    let mut out: Lines = Vec::new();
    out.push(vec![("charged to  ".to_owned(), t.dim), (clean(&f.cgroup), t.plain)]);
    out.push(vec![(
        format!(
            "{} pages tracked, {} accesses, {} evicted, {} refaulted",
            grouped(f.pages),
            grouped(f.accesses),
            grouped_or(ctx.known.evicted(f.evictions)),
            grouped_or(ctx.known.refaulted(f.refaults))
        ),
        t.plain,
    )]);
    out.push(Vec::new());
    out.push(vec![(format!("{} both only it only kernel  keeps avoidable", pad_end("rules", 17)), t.dim)]);
    for (i, (r, d)) in ctx.frame.rules.iter().zip(&f.by_rules).enumerate() {
        let style = if ctx.rule == Some(i) { t.strong } else { t.plain };
        let k = ctx.known;
        let name = if r.own { format!("{} *", r.name) } else { r.name.clone() };
        let numbers = [
            (k.predicted(d.both), 7),
            (k.predicted(d.only_predicted), 8),
            (k.predicted(d.only_actual), 12),
            (k.judged(d.would_keep), 7),
            (k.avoidable_of(f, d.avoidable), 10),
        ];
        let mut line = pad_end(&crate::report::num::cut_end(&name, 15), 15);
        for (n, width) in numbers {
            line.push_str(&pad_start(&short_or(n), width));
        }
        out.push(vec![(line, style)]);
        let v = verdict::file(ctx.frame, ctx.known, f, i);
        out.push(vec![(format!("  {} {}", v.leaning.symbol(), v.long), style)]);
    }
    if !known::trusted(ctx.frame) {
        out.push(vec![("the fidelity is too low to conclude anything".to_owned(), t.strong)]);
    }
    (clean(&f.name), out)
}
