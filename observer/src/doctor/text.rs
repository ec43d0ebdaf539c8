//! The report as plain text.

use std::fmt::Write as _;

use super::{Report, State};
use crate::stream::header::{Lru, Via};

/// Renders it.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let lru = match report.lru {
        Lru::Mglru => "multi-gen LRU",
        Lru::Classical => "classical LRU",
    };
    let rules = match &report.own_rules {
        Some(rules) => format!("{rules} ({})", report.own_rules_because),
        None => "unknown without type information".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "kernel       {}, {lru}", report.kernel);
    let _ = writeln!(out, "rules        {rules}");
    for check in &report.checks {
        let mark = match check.state {
            State::Ok => "ok  ",
            State::Less => "less",
            State::Missing => "NO  ",
        };
        let _ = writeln!(out, "{mark}  {:<24} {}", check.name, check.found);
        if !check.change.is_empty() {
            let _ = writeln!(out, "{:31}change: {}", "", check.change);
        }
    }
    let layout = &report.layout;
    match (layout.gen_pgoff, layout.refs_pgoff, layout.refs_width) {
        (Some(gen_pgoff), Some(refs_pgoff), Some(width)) => {
            let _ = writeln!(
                out,
                "layout       generation at bit {gen_pgoff}, {width} bits of references at {refs_pgoff}, from {}",
                layout.derived_from
            );
        }
        _ => {
            let _ = writeln!(out, "layout       not derived");
        }
    }
    let _ = writeln!(out, "calibration  {}", report.calibration);
    let _ = writeln!(out, "\nhooks {}", if report.attached { "(attached just now)" } else { "(planned; none was attached)" });
    for hook in &report.hooks {
        match hook.via {
            Via::None => {
                let _ = writeln!(out, "NO    {:<24} {}", hook.name, hook.why);
                let _ = writeln!(out, "{:31}unknown without it: {}", "", hook.without);
            }
            via => {
                let _ = write!(out, "ok    {:<24} {} {}", hook.name, via.name(), hook.target);
                let _ = if hook.why.is_empty() { writeln!(out) } else { writeln!(out, " ({})", hook.why) };
            }
        }
    }
    let _ = writeln!(out, "\n{}", report.verdict);
    out
}
