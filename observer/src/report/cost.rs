//! What observing cost the machine: the kernel's own counts of our programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::session::frame::Frame;
use crate::stream::counter_names::{ALL_MISSED, MISSED, PROGRAM, RECORDER, RUN_NS, RUNS};

/// Runs missed between the first and the last reading; none where the kernel does not tell.
pub fn missed(frame: &Frame) -> Option<u64> {
    frame.counters.iter().find(|counter| counter.name == ALL_MISSED).map(|counter| counter.delta)
}

/// One program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Program {
    /// Its name in the object.
    pub name: String,
    /// Times it ran.
    pub runs: u64,
    /// Nanoseconds in it, of all CPUs together.
    pub ns: u64,
    /// Nanoseconds per run; null where it never ran.
    pub ns_per_run: Option<f64>,
    /// Times it was left out.
    pub missed: u64,
}

/// All programs, the dearest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Runs of all.
    pub runs: u64,
    /// Nanoseconds of all.
    pub ns: u64,
    /// Share of one CPU's time.
    pub cpu: Option<f64>,
    /// One by one.
    pub programs: Vec<Program>,
}

/// Whether a counter is the kernel's own, and not one of ours about us.
pub fn is_kernel_s(counter: &str) -> bool {
    !is_cost(counter) && !counter.starts_with(RECORDER)
}

/// Whether a counter is about a program of ours and not the kernel's memory.
pub fn is_cost(counter: &str) -> bool {
    counter.starts_with(PROGRAM)
}

/// Between the first and the last reading; none where nobody asked for it (`--cost`).
pub fn of(frame: &Frame) -> Option<Cost> {
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    for counter in &frame.counters {
        let Some((name, what)) = counter.name.strip_prefix(PROGRAM).and_then(|rest| rest.rsplit_once(':')) else { continue };
        let program = programs.entry(name).or_insert_with(|| Program { name: name.to_owned(), ..Program::default() });
        match what {
            RUN_NS => program.ns = counter.delta,
            RUNS => program.runs = counter.delta,
            MISSED => program.missed = counter.delta,
            _ => {}
        }
    }
    let mut programs: Vec<Program> = programs.into_values().collect();
    for program in &mut programs {
        program.ns_per_run = (program.runs > 0).then(|| program.ns as f64 / program.runs as f64);
    }
    programs.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    let (runs, ns) = programs.iter().fold((0, 0), |(runs, ns): (u64, u64), p| (runs.saturating_add(p.runs), ns.saturating_add(p.ns)));
    let time = frame.source.duration_ns;
    (!programs.is_empty()).then(|| Cost { runs, ns, cpu: (time > 0).then(|| ns as f64 / time as f64), programs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::frame::CounterFrame;

    #[test]
    fn counters_of_programs_become_their_cost() {
        let mut frame = crate::report::fixture::recording();
        assert_eq!(of(&frame), None);
        frame.source.duration_ns = 1_000_000;
        let counter = |name: &str, delta| CounterFrame { cgroup: "whole machine".into(), name: name.into(), delta };
        frame.counters.extend([
            counter("bpf:idle:run_ns", 0),
            counter("bpf:idle:runs", 0),
            counter("bpf:mark:run_ns", 1000),
            counter("bpf:mark:runs", 10),
            counter("bpf:mark:missed", 2),
        ]);
        let cost = of(&frame).unwrap();
        assert_eq!((cost.runs, cost.ns, cost.cpu), (10, 1000, Some(0.001)));
        let mark = Program { name: "mark".into(), runs: 10, ns: 1000, ns_per_run: Some(100.0), missed: 2 };
        assert_eq!(cost.programs, [mark, Program { name: "idle".into(), ..Program::default() }]);
        let json = crate::report::json(&frame);
        assert_eq!(json["cost"]["programs"][0]["ns_per_run"], 100.0);
        assert!(json["counters"].as_array().unwrap().iter().all(|counter| !is_cost(counter["name"].as_str().unwrap())));
        assert!(crate::report::text(&frame).contains("cost of observing"));
    }
}
