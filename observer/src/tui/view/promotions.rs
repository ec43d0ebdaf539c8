//! Promotions per second over time, both sides on one scale.

use super::compare::Columns;
use super::pen::Pen;
use super::scope::Scope;
use super::{Ctx, bar};
use crate::report::num::{UNKNOWN, rate, to_u64, width};
use crate::session::frame::Side;
use ratatui::style::Style;

/// Rows a chart takes at most; a taller one says no more.
const TALL: usize = 10;

/// Draws it from row `y` to the end of the panel.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>, cols: Columns, scope: &Scope, y: usize) {
    let t = ctx.theme;
    let rows = pen.height().saturating_sub(y);
    let (actual, predicted) = (scope.actual.as_ref(), scope.predicted.as_ref());
    let max = [actual, predicted].into_iter().flatten().flat_map(|s| s.promotions_per_s.iter().copied()).fold(0.0, f64::max);
    let one_line = rows < 3;
    let height = if one_line { rows } else { (rows - 1).min(TALL) };
    pen.text(1, y, "prom/s", t.dim);
    for (side, x, style) in [(predicted, cols.predicted, t.predicted), (actual, cols.actual, t.actual)] {
        let Some(side) = side else { continue };
        if one_line {
            let at = (x + 6, y);
            pen.right(x + 5, y, &now(side), t.plain);
            chart(pen, at, cols.width.saturating_sub(6), height, side, max, style);
        } else {
            let seconds = to_u64((side.promotions_per_s.len() as f64 * ctx.frame.window_s).round());
            let peak = side.promotions_per_s.iter().copied().fold(0.0, f64::max);
            let forms = [
                format!("{}/s now, peak {}/s in {} s", now(side), rate(peak), seconds),
                format!("{}/s, peak {}", now(side), rate(peak)),
                format!("{}/s", now(side)),
            ];
            let words =
                if side.promotions_per_s.is_empty() { UNKNOWN } else { forms.iter().find(|f| width(f) <= cols.width).unwrap_or(&forms[2]) };
            pen.text(x, y, words, t.plain);
            chart(pen, (x, y + 1), cols.width, height, side, max, style);
        }
    }
    if !one_line && max > 0.0 {
        pen.right(7, y + 1, &rate(max), t.dim);
        if height > 1 {
            pen.right(7, y + height, "0", t.dim);
        }
    }
}

fn now(side: &Side) -> String {
    side.promotions_per_s.last().map_or_else(|| UNKNOWN.to_owned(), |v| rate(*v))
}

fn chart(pen: &mut Pen<'_>, (x, y): (usize, usize), width: usize, height: usize, side: &Side, max: f64, style: Style) {
    for (row, line) in bar::columns(&side.promotions_per_s, max, width, height).iter().enumerate() {
        pen.text(x, y + row, line, style);
    }
}
