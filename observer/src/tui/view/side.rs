//! Right, on a wide screen: rule sets, the kernel's counters beside ours, hooks.

use super::pen::Pen;
use super::{Ctx, popup, rules};
use crate::report::cost::is_kernel_s;
use crate::report::num::{clean, cut_start, grouped, short_or};

/// Draws it.
pub(super) fn draw(ctx: &Ctx<'_>, pen: &mut Pen<'_>) {
    let t = ctx.theme;
    let width = pen.width();
    let rows = (ctx.frame.rules.len() + 3).min(11);
    rules::table(ctx, &mut pen.part(0, 0, width, rows));
    let mut y = rows + 1;
    let r = ctx.frame.rules.first().map(|r| r.refaults.actual);
    pen.text(1, y - 1, &format!("pages refaulted {}", short_or(r.and_then(|n| ctx.known.refaulted(n)))), t.plain);
    if ctx.frame.counters.iter().any(|c| is_kernel_s(&c.name)) {
        pen.title(y, "the kernel's own counters", "change", false, t.dim, t.strong);
        y += 1;
        let room = (pen.height().saturating_sub(y) / 2).min(8);
        for c in ctx.frame.counters.iter().filter(|c| c.delta > 0 && is_kernel_s(&c.name)).take(room) {
            pen.right(width.saturating_sub(1), y, &grouped(c.delta), t.plain);
            let at = pen.text(1, y, &c.name, t.plain) + 1;
            pen.text(at, y, &cut_start(&clean(&c.cgroup), width.saturating_sub(at + 12)), t.dim);
            y += 1;
        }
    }
    pen.title(y, "hooks", "h more", false, t.dim, t.strong);
    y += 1;
    for (line, style) in popup::hooks::short(ctx, width.saturating_sub(1)) {
        pen.text(1, y, &line, style);
        y += 1;
    }
}
