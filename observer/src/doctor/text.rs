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
        let _ = writeln!(out, "{mark}  {:<25} {}", check.name, check.found);
        if !check.change.is_empty() {
            let _ = writeln!(out, "{:32}change: {}", "", check.change);
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
                let _ = writeln!(out, "NO    {:<25} {}", hook.name, hook.why);
                let _ = writeln!(out, "{:32}unknown without it: {}", "", hook.without);
                let _ = writeln!(out, "{:32}change: {}", "", change(&hook.why));
            }
            via => {
                let _ = write!(out, "ok    {:<25} {} {}", hook.name, via.name(), hook.target);
                let _ = if hook.why.is_empty() { writeln!(out) } else { writeln!(out, " ({})", hook.why) };
            }
        }
    }
    let _ = writeln!(out, "\n{}", report.verdict);
    out
}

/// What would open a hook that was not reached.
fn change(why: &str) -> &'static str {
    if why.contains("not permitted") || why.contains("524") || why.contains("not supported") {
        "a kernel that lets functions be hooked (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y, no lockdown of tracing)"
    } else if why.contains("inlined or absent") {
        "nothing here: this kernel has no such function to hook (another version or compiler may)"
    } else if why.contains("no tracepoint") {
        "a kernel with CONFIG_TRACEPOINTS=y and this tracepoint"
    } else {
        "see the reason"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_hook_says_what_would_open_it() {
        assert!(change("folio_add_lru: Operation not permitted (os error 1)").contains("CONFIG_DYNAMIC_FTRACE"));
        assert!(change("inc_max_seq is inlined or absent").contains("nothing here"));
        assert!(change("this kernel has no tracepoint mm_lru_insertion").contains("CONFIG_TRACEPOINTS"));
    }
}
