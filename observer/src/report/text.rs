//! The summary as plain text.

use std::fmt::{self, Write};

use super::cost::is_kernel_s;
use super::num::{UNKNOWN, clean, cut_start, grouped, grouped_or, pad_end, pad_start, percent, rate, seconds, short, short_or};
use super::sampling::{Sampling, count, seen, share};
use super::summary::{CalibrationState, Lruvec, Summary, WhatIf};
use crate::stream::header::{Lru, Via};

/// Lines are wrapped here, so that a mail may quote them.
const WIDTH: usize = 78;
/// Column at which what a line says begins.
const INDENT: usize = 11;
/// Lruvecs and files shown; JSON has more.
const LRUVECS: usize = 3;
const FILES: usize = 5;
/// Sizes of what-if caches shown; JSON has more.
const SIZES: usize = 5;

/// Renders it.
pub(super) fn render(s: &Summary) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_all(&mut out, s);
    out
}

fn write_all(out: &mut String, s: &Summary) -> fmt::Result {
    writeln!(out, "{} {}: predicted and actual promotion of a kernel's LRU\n", s.tool.name, s.tool.version)?;
    source(out, s)?;
    kernel(out, s)?;
    hooks(out, s)?;
    fidelity(out, s)?;
    rules(out, s)?;
    sampled(out, s)?;
    lruvecs(out, s)?;
    files(out, s)?;
    what_if(out, s)?;
    checks(out, s)?;
    cost(out, s)
}

/// `label      words…`, wrapped.
fn item(out: &mut String, label: &str, words: &str) -> fmt::Result {
    let mut line = pad_end(label, INDENT);
    let mut empty = true;
    for word in clean(words).split(' ').filter(|w| !w.is_empty()) {
        if !empty && super::num::width(&line) + 1 + super::num::width(word) > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(INDENT);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}

fn source(out: &mut String, s: &Summary) -> fmt::Result {
    let src = &s.source;
    let mut what = match src.kind {
        "live" => format!("live on {}", src.name),
        "embedded" => "the recording embedded in observer".to_owned(),
        kind => format!("{kind} {}", src.name),
    };
    let ns = super::num::to_u64(src.duration_s * 1e9);
    write!(what, ", {}, {} events", seconds(ns), grouped(src.events))?;
    if let Some(per_s) = src.events_per_s {
        write!(what, " ({}/s now)", rate(per_s))?;
    }
    // Loud only when there is something to be loud about.
    write!(what, ", {} {}", grouped(src.lost), if src.lost > 0 { "LOST" } else { "lost" })?;
    if src.lost > 0 {
        let by_cpu: Vec<String> =
            src.lost_per_cpu.iter().enumerate().filter(|(_, n)| **n > 0).map(|(cpu, n)| format!("cpu{cpu} {}", grouped(*n))).collect();
        if !by_cpu.is_empty() {
            write!(what, " ({})", by_cpu.join(", "))?;
        }
    }
    if let Some(missed) = src.missed.filter(|missed| *missed > 0) {
        write!(what, ", {} MISSED", grouped(missed))?;
    }
    match src.sampling {
        0 | 1 => what.push_str(", every folio seen"),
        n if s.sampling.as_ref().is_some_and(Sampling::is_mixed) => write!(what, ", 1/{n} of folios seen now")?,
        n => write!(what, ", 1/{n} of folios seen")?,
    }
    item(out, "source", &what)?;
    if !src.filter.is_empty() {
        item(out, "", &format!("only cgroup {}", src.filter))?;
    }
    if !src.command.is_empty() {
        item(out, "command", &src.command)?;
    }
    if src.table_evictions > 0 {
        item(out, "", &format!("{} entries dropped from observer's own full tables", grouped(src.table_evictions)))?;
    }
    if !src.note.is_empty() {
        item(out, "note", &src.note)?;
    }
    Ok(())
}

fn kernel(out: &mut String, s: &Summary) -> fmt::Result {
    let k = &s.kernel;
    let lru = match k.lru {
        Lru::Mglru => "multi-gen LRU",
        Lru::Classical => "active/inactive LRU",
    };
    let own = s.rules.iter().find(|r| r.own).map_or(UNKNOWN, |r| r.name.as_str());
    let because = if k.own_rules_because.is_empty() { String::new() } else { format!(" ({})", k.own_rules_because) };
    item(out, "kernel", &format!("{} {}, {lru}, {}-byte pages, rules {own}{because}", k.release, k.machine, grouped(k.page_size.into())))?;
    let layout = match &s.calibration {
        CalibrationState::NotNeeded => return Ok(()),
        CalibrationState::Confirmed { samples } => format!("generation bits confirmed by {} insertions", grouped(*samples)),
        CalibrationState::Pending { seen, need } => {
            format!("generation bits confirmed by {seen} of {need} insertions so far: no prediction is shown yet")
        }
        CalibrationState::Contradicted { why } => format!("generation bits CONTRADICTED, no prediction is shown: {why}"),
    };
    item(out, "layout", &layout)
}

fn hooks(out: &mut String, s: &Summary) -> fmt::Result {
    let mut by_way: Vec<String> = Vec::new();
    for (via, name) in WAYS {
        let n = s.hooks.iter().filter(|h| h.via == via).count();
        if n > 0 {
            by_way.push(format!("{n} {name}"));
        }
    }
    if by_way.is_empty() {
        by_way.push("none reached".to_owned());
    }
    item(out, "hooks", &by_way.join(", "))?;
    for h in s.hooks.iter().filter(|h| h.via != Via::None && !h.target.is_empty() && h.target != h.name) {
        let why = if h.why.is_empty() { String::new() } else { format!(" ({})", h.why) };
        item(out, "", &format!("{} through {}{why}", h.name, h.target))?;
    }
    // Hooks that share a reason share a line.
    let mut reasons: Vec<&str> = Vec::new();
    for h in s.hooks.iter().filter(|h| h.via == Via::None) {
        if !reasons.contains(&h.why.as_str()) {
            reasons.push(&h.why);
        }
    }
    for why in reasons {
        let missing = || s.hooks.iter().filter(|h| h.via == Via::None && h.why == why);
        let names: Vec<&str> = missing().map(|h| h.name.as_str()).collect();
        let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
        item(out, "", &format!("not reached: {}{because}", names.join(", ")))?;
        let unknown: Vec<&str> = missing().map(|h| h.without.as_str()).filter(|w| !w.is_empty()).collect();
        if !unknown.is_empty() {
            item(out, "  unknown", &unknown.join("; "))?;
        }
    }
    Ok(())
}

/// How hooks are reached, best first.
const WAYS: [(Via, &str); 5] =
    [(Via::Fentry, "fentry"), (Via::Fexit, "fexit"), (Via::Kprobe, "kprobe"), (Via::TpBtf, "tp_btf"), (Via::None, "not reached")];

fn fidelity(out: &mut String, s: &Summary) -> fmt::Result {
    let Some(own) = s.rules.iter().find(|r| r.own) else {
        return item(out, "fidelity", &format!("{UNKNOWN} (no model of this kernel's own rules)"));
    };
    let f = &own.fidelity;
    if matches!(s.calibration, CalibrationState::Pending { .. } | CalibrationState::Contradicted { .. }) {
        return item(out, "fidelity", &format!("{UNKNOWN} (the flags cannot be read for certain yet)"));
    }
    item(
        out,
        "fidelity",
        &format!(
            "{}: the {} model equals the kernel's flags at {} of {} events scored; {} not scored",
            percent(f.agree, f.scored),
            own.name,
            grouped(f.agree),
            grouped(f.scored),
            grouped(f.unknown)
        ),
    )?;
    let types = s.fidelity_by.iter().filter(|row| row.kind == "all");
    let types: Vec<String> = types
        .map(|row| {
            let f = &row.fidelity;
            let share = row.share.map_or_else(|| percent(f.agree, f.scored), share);
            format!("{} {share} of {} scored, {} not", row.of, grouped(f.scored), grouped(f.unknown))
        })
        .collect();
    if types.is_empty() { Ok(()) } else { item(out, "  by type", &types.join("; ")) }
}

fn rules(out: &mut String, s: &Summary) -> fmt::Result {
    writeln!(out)?;
    writeln!(out, "{:18}------------- promotions ------------   evictions    refaults", "")?;
    writeln!(out, "{:18}predict actual  both only-it only-krn  judged keeps avoidable", "rules (* own)")?;
    for r in &s.rules {
        let (p, e) = (&r.promotions, &r.evictions);
        let name = if r.own { format!("{} *", r.name) } else { r.name.clone() };
        writeln!(
            out,
            "{} {} {} {} {} {} {} {} {}",
            pad_end(&super::num::cut_end(&name, 17), 17),
            pad_start(&short_or(p.predicted), 7),
            pad_start(&short_or(p.actual), 6),
            pad_start(&short_or(p.both), 5),
            pad_start(&short_or(p.only_predicted), 7),
            pad_start(&short_or(p.only_actual), 8),
            pad_start(&short_or(e.scored), 7),
            pad_start(&short_or(e.would_keep), 5),
            pad_start(&short_or(r.refaults.avoidable), 9),
        )?;
    }
    if s.rules.is_empty() {
        writeln!(out, "none")?;
    }
    if let Some(r) = s.rules.first() {
        writeln!(out, "{:70} {}", "refaults in all", pad_start(&short_or(r.refaults.actual), 7))?;
    }
    match featured(s) {
        Some(r) => item(out, "", &r.verdict),
        None => Ok(()),
    }
}

/// What the sample says about all folios.
fn sampled(out: &mut String, s: &Summary) -> fmt::Result {
    let Some(sampling) = &s.sampling else { return Ok(()) };
    writeln!(out)?;
    let what = format!(
        "every count of folios, pages and events in this summary is {}, the kernel's own counters and sizes are not; avoidable \
         refaults are of file pages. Of all folios, estimated ± one standard error of sampling:",
        seen(sampling)
    );
    item(out, "sample", &what)?;
    let per_eviction = sampling.refaults_per_eviction.map(|e| format!("{:.3} ± {:.3} refaulted per eviction", e.value, e.error));
    let kernel = [
        count(sampling.promoted, "promotions"),
        count(sampling.evicted, "pages evicted"),
        count(sampling.refaulted, "pages refaulted"),
        per_eviction,
    ];
    estimates(out, "the kernel", kernel)?;
    for r in &s.rules {
        let Some(e) = &r.sampling else { continue };
        let keeps = e.keeps_share.map(|keeps| format!("keeps {} of evictions judged", share(keeps)));
        let avoidable = e.avoidable_share.map(|avoidable| format!("{} of refaulted file pages avoidable", share(avoidable)));
        let fidelity = e.fidelity.map(|fidelity| format!("fidelity {}", share(fidelity)));
        estimates(out, &r.name, [fidelity, count(e.predicted, "promotions"), keeps, avoidable])?;
    }
    Ok(())
}

fn estimates(out: &mut String, name: &str, of: [Option<String>; 4]) -> fmt::Result {
    let known: Vec<String> = of.into_iter().flatten().collect();
    let all = if known.is_empty() { UNKNOWN.to_owned() } else { known.join(", ") };
    item(out, "", &format!("{name}: {all}"))
}

fn featured(s: &Summary) -> Option<&super::summary::Rules> {
    s.rules.iter().find(|r| Some(&r.name) == s.featured.as_ref())
}

fn lruvecs(out: &mut String, s: &Summary) -> fmt::Result {
    writeln!(out)?;
    let places = match s.kernel.lru {
        Lru::Mglru => ["youngest", "age 1", "age 2", "oldest"],
        Lru::Classical => ["active", "", "", "inactive"],
    };
    let head: String = places.iter().map(|p| pad_start(p, 10)).collect();
    writeln!(out, "lruvecs (pages)          seq         {head}")?;
    for l in s.lruvecs.iter().take(LRUVECS) {
        let from = if l.pages.is_some() { "" } else { " (tracked only)" };
        writeln!(
            out,
            "{} node {}{from}: {} agings, {} evicted, {} refaulted",
            cut_start(&clean(&l.cgroup), 24),
            l.node,
            short_or(l.agings),
            short_or(l.evictions),
            short_or(l.refaults)
        )?;
        lruvec_rows(out, l, s.kernel.lru)?;
    }
    match s.lruvecs.len() {
        0 => writeln!(out, "  none seen"),
        n if n > LRUVECS => writeln!(out, "  {} more in --json", n - LRUVECS),
        _ => Ok(()),
    }
}

fn lruvec_rows(out: &mut String, l: &Lruvec, lru: Lru) -> fmt::Result {
    let pages = l.pages.or_else(|| l.tracked.as_ref().map(|t| t.by_age));
    for (t, name) in ["anon", "file"].into_iter().enumerate() {
        let seq = match (l.min_seq, l.max_seq) {
            (Some(min), Some(max)) => format!("{}..{max}", min[t]),
            (None, Some(max)) => format!("..{max}"),
            _ => UNKNOWN.to_owned(),
        };
        let cell = |age: usize| match (lru, age) {
            // Between active and inactive there is nothing to count.
            (Lru::Classical, 1 | 2) => String::new(),
            _ => pages.map_or_else(|| UNKNOWN.to_owned(), |p| grouped(p[age][t])),
        };
        let cells: String = (0..4).map(|age| pad_start(&cell(age), 10)).collect();
        writeln!(out, "  {}{}{cells}", pad_end(name, 23), pad_end(&seq, 12))?;
    }
    Ok(())
}

fn files(out: &mut String, s: &Summary) -> fmt::Result {
    let Some(rule) = featured(s) else { return Ok(()) };
    writeln!(out)?;
    writeln!(out, "{}  both only-it only-krn keeps avoidable", pad_end(&format!("files where {} and the kernel differ", rule.name), 40))?;
    for f in s.files.iter().take(FILES) {
        let Some(d) = f.by_rules.iter().find(|d| d.rules == rule.name) else { continue };
        writeln!(
            out,
            "{} {} {} {} {} {}",
            pad_end(&cut_start(&clean(&f.name), 39), 39),
            pad_start(&short_or(d.both), 6),
            pad_start(&short_or(d.only_predicted), 7),
            pad_start(&short_or(d.only_actual), 8),
            pad_start(&short_or(d.would_keep), 5),
            pad_start(&short_or(d.avoidable), 9),
        )?;
        // Where nothing may be predicted the dashes have said so.
        if d.both.is_some() {
            writeln!(out, "    {}", d.verdict)?;
        }
    }
    match s.files.len() {
        0 => writeln!(out, "  none seen"),
        n if n > FILES => writeln!(out, "  {} more in --json", n - FILES),
        _ => Ok(()),
    }
}

/// Refaults by rule set and size, the kernel's own below.
fn what_if(out: &mut String, s: &Summary) -> fmt::Result {
    let Some(first) = s.what_if.first() else { return Ok(()) };
    let sizes = s.what_if.iter().take_while(|w| w.rules == first.rules).count();
    let row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.take(SIZES).map(|cell| pad_start(&cell, 11)).collect();
        format!("{}{cells}", pad_end(&super::num::cut_end(name, 22), 22)).trim_end().to_owned()
    };
    writeln!(out)?;
    let cgroup = cut_start(&clean(&first.cgroup), 24);
    writeln!(out, "what if: each rule set alone with {} accesses of {cgroup}", grouped(first.accesses))?;
    writeln!(out, "{}", row("refaults at", &mut s.what_if[..sizes].iter().map(|w| format!("{} %", w.percent))))?;
    writeln!(out, "{}", row("pages", &mut s.what_if[..sizes].iter().map(|w| grouped(w.pages))))?;
    for rows in s.what_if.chunks(sizes) {
        let name = if rows[0].own { format!("{} *", rows[0].rules) } else { rows[0].rules.clone() };
        writeln!(out, "{}", row(&name, &mut rows.iter().map(|w| grouped(w.refaults))))?;
    }
    let observed = |w: &WhatIf| if w.percent == 100 { grouped_or(w.observed) } else { String::new() };
    writeln!(out, "{}", row("the kernel, observed", &mut s.what_if[..sizes].iter().map(observed)))?;
    if sizes > SIZES {
        writeln!(out, "  {} more sizes in --json", sizes - SIZES)?;
    }
    Ok(())
}

/// What observing cost, and the programs that cost most of it.
fn cost(out: &mut String, s: &Summary) -> fmt::Result {
    let Some(cost) = &s.cost else { return Ok(()) };
    let share = cost.cpu.map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", share * 100.0));
    writeln!(out)?;
    writeln!(out, "{} {:>12} {:>12} {:>8}", pad_end(&format!("cost of observing: {share} of one CPU"), 42), "runs", "ns/run", "missed")?;
    for program in cost.programs.iter().filter(|program| program.runs > 0).take(8) {
        let per_run = program.ns_per_run.map_or_else(|| "–".to_owned(), |ns| format!("{ns:.0}"));
        let name = pad_end(&super::num::cut_end(&program.name, 42), 42);
        writeln!(out, "{name} {:>12} {per_run:>12} {:>8}", grouped(program.runs), grouped(program.missed))?;
    }
    Ok(())
}

fn checks(out: &mut String, s: &Summary) -> fmt::Result {
    if !s.counters.iter().any(|counter| is_kernel_s(&counter.name)) {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "{} {:>12} {:>12}", pad_end("the kernel's own counters", 52), "kernel", "observed")?;
    let sampled = match &s.sampling {
        Some(sampling) if sampling.is_mixed() => " (ever fewer seen)".to_owned(),
        Some(sampling) => format!(" (1/{} seen)", sampling.one_in),
        None => String::new(),
    };
    for c in &s.checks {
        let name = format!("{}{sampled}  {}", c.what, clean(&c.cgroup));
        let name = pad_end(&super::num::cut_end(&name, 52), 52);
        writeln!(out, "{name} {:>12} {:>12}", grouped(c.kernel), grouped_or(c.observed))?;
    }
    for c in s.counters.iter().filter(|c| c.delta > 0 && is_kernel_s(&c.name)).take(8) {
        let name = format!("{}  {}", c.name, clean(&c.cgroup));
        writeln!(out, "{} {:>12}", pad_end(&super::num::cut_end(&name, 52), 52), short(c.delta))?;
    }
    Ok(())
}
