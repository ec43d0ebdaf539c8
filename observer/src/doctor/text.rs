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
    for row in &report.hooks {
        let hook = &row.hook;
        match hook.via {
            Via::None => {
                let _ = writeln!(out, "NO    {:<25} {}", hook.name, hook.why);
                let _ = writeln!(out, "{:32}unknown without it: {}", "", hook.without);
                let _ = writeln!(out, "{:32}change: {}", "", row.change);
            }
            via => {
                let how = if via == Via::Run { "run over" } else { via.name() };
                let _ = write!(out, "ok    {:<25} {how} {}", hook.name, hook.target);
                let _ = if hook.why.is_empty() { writeln!(out) } else { writeln!(out, " ({})", hook.why) };
            }
        }
    }
    let _ = writeln!(out, "\n{}", report.verdict);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::{Layout, Row},
        stream::header::Hook,
    };

    #[test]
    fn programs_that_are_run_have_their_rows_reached_or_not() {
        let row = |name: &str, via, target: &str, why: &str| {
            Row::from(Hook { name: name.into(), via, target: target.into(), why: why.into(), without: "what moves by itself".into() })
        };
        let report = Report {
            schema: "observer.doctor/1",
            kernel: "7.3.4".into(),
            lru: Lru::Mglru,
            own_rules: None,
            own_rules_because: String::new(),
            checks: Vec::new(),
            hooks: vec![
                row("census", Via::Run, "262144 page frames", ""),
                row("sweep", Via::None, "", "the kernel refused the program sweep: Invalid argument"),
            ],
            attached: true,
            layout: Layout::default(),
            calibration: "not tried".into(),
            verdict: String::new(),
            exit_code: 0,
        };
        let text = render(&report);
        assert!(text.contains("ok    census                    run over 262144 page frames\n"), "{text}");
        assert!(text.contains("NO    sweep                     the kernel refused the program sweep"), "{text}");
        assert!(text.contains("unknown without it: what moves by itself") && text.contains("change: a kernel with bpf_loop"), "{text}");
    }
}
