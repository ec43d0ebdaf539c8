//! What observing costs, program by program.

use super::super::Ctx;
use super::{Lines, wrap};
use crate::report::cost;
use crate::report::num::{grouped, pad_end, pad_start, short};

/// All of it.
pub(super) fn lines(ctx: &Ctx<'_>, columns: usize) -> Lines {
    let t = ctx.theme;
    let Some(cost) = cost::of(ctx.frame) else {
        let words = "not measured: start observer with --cost (the kernel then reads a clock around every run, which costs some itself)";
        return wrap(words, columns, "", "").into_iter().map(|line| vec![(line, t.plain)]).collect();
    };
    let share = cost.cpu.map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", share * 100.0));
    let mut out: Lines = vec![vec![(format!("{share} of one CPU, {} runs", grouped(cost.runs)), t.strong)], Vec::new()];
    out.push(vec![(format!("{} {:>9} {:>9} {:>9}", pad_end("program", 34), "runs", "ns/run", "missed"), t.dim)]);
    for program in &cost.programs {
        let per_run = program.ns_per_run.map_or_else(|| "–".to_owned(), |ns| format!("{ns:.0}"));
        let name = pad_end(&crate::report::num::cut_end(&program.name, 34), 34);
        let numbers = [short(program.runs), per_run, short(program.missed)].map(|number| pad_start(&number, 9));
        out.push(vec![(format!("{name} {}", numbers.join(" ")), t.plain)]);
    }
    out
}
