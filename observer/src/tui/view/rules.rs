//! The rule sets side by side: a table, or two lines about the chosen one.

use super::Ctx;
use super::pen::{Pen, Piece};
use crate::report::num::{cut_end, grouped_or, pad_end, pad_start, short_or};
use crate::report::verdict;
use crate::session::frame::RuleFrame;

/// One or two lines: promotions, and the verdict.
pub(super) fn strip(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let Some(rule) = ctx.rule.and_then(|r| ctx.frame.rules.get(r)) else {
        pen.text(1, 0, "no rule set to compare with", t.dim);
        return;
    };
    let (p, k, name) = (rule.promotions, ctx.known, &rule.name);
    let mut pieces = vec![
        Piece::new(0, "promotions", t.strong),
        Piece::new(0, format!("{name} {}", grouped_or(k.predicted(p.predicted))), t.predicted),
        Piece::new(0, format!("kernel {}", grouped_or(k.promoted(p.actual))), t.actual),
        Piece::new(3, format!("both {}", grouped_or(k.predicted(p.both))), t.plain),
        Piece::new(1, format!("only {name} {}", grouped_or(k.predicted(p.only_predicted))), t.plain),
        Piece::new(2, format!("only kernel {}", grouped_or(k.predicted(p.only_actual))), t.plain),
    ];
    if pen.height() < 2 {
        let back = k.avoidable(rule.refaults.avoidable);
        pieces.push(Piece::new(1, format!("avoidable {}", short_or(back)), t.strong));
    }
    pen.flow(0, &pieces);
    verdict_line(ctx, pen, 1, rule);
}

fn verdict_line(ctx: &Ctx<'_>, pen: &mut Pen<'_>, y: usize, rule: &RuleFrame) {
    let v = verdict::rules(ctx.frame, ctx.known, rule);
    let words = v.fit(pen.width().saturating_sub(4));
    pen.text(1, y, &format!("{} {words}", v.leaning.symbol()), ctx.theme.strong);
}

/// All of them, a row each, and the verdict on the chosen one.
pub(super) fn table(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    pen.title(0, "rule sets, all lruvecs", "r next", false, t.dim, t.strong);
    let wide = pen.width() >= 76;
    let head = if wide {
        "  promoted  kernel    both  only it  only kernel   judged   keeps  avoidable"
    } else {
        " promoted kernel  both only it only krn keeps avoid"
    };
    // Column widths are those of the words above.
    let widths: &[usize] = if wide { &[10, 8, 8, 9, 13, 9, 8, 11] } else { &[9, 7, 6, 8, 9, 6, 6] };
    let numbers: usize = widths.iter().sum();
    let left = pen.width().saturating_sub(numbers + 1).clamp(10, 30);
    pen.text(left, 1, head, t.dim);
    let room = pen.height().saturating_sub(3);
    let chosen = ctx.rule.unwrap_or(0);
    let first = super::pen::first_row(chosen, ctx.frame.rules.len(), room);
    for (y, (i, r)) in ctx.frame.rules.iter().enumerate().skip(first).take(room).enumerate() {
        let y = y + 2;
        let style = if ctx.rule == Some(i) { t.strong } else { t.plain };
        let mark = if ctx.rule == Some(i) { "▸" } else { " " };
        let own = if r.own { " *" } else { "" };
        pen.text(0, y, mark, style);
        pen.text(1, y, &pad_end(&cut_end(&format!("{}{own}", r.name), left - 1), left - 1), style);
        let mut x = left;
        for (n, width) in cells(ctx, r, wide).into_iter().zip(widths) {
            pen.text(x, y, &pad_start(&short_or(n), *width), style);
            x += width;
        }
    }
    if let Some(rule) = ctx.rule.and_then(|r| ctx.frame.rules.get(r)) {
        let y = 2 + room.min(ctx.frame.rules.len());
        verdict_line(ctx, pen, y, rule);
    }
}

fn cells(ctx: &Ctx<'_>, r: &RuleFrame, wide: bool) -> Vec<Option<u64>> {
    let (p, k) = (r.promotions, ctx.known);
    let mut out = vec![
        k.predicted(p.predicted),
        k.promoted(p.actual),
        k.predicted(p.both),
        k.predicted(p.only_predicted),
        k.predicted(p.only_actual),
    ];
    if wide {
        out.push(k.judged(r.evictions.scored));
    }
    out.push(k.judged(r.evictions.would_keep));
    out.push(k.avoidable(r.refaults.avoidable));
    out
}
