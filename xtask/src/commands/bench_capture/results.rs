//! What one run of a way left behind, read back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Tracer;

/// What the kernel shows processor time in, on every x86.
const TICKS_PER_SECOND: f64 = 100.0;

/// Where the results of a run lie.
pub(super) struct Files<'a> {
    /// The folder of all of them.
    pub(super) folder: &'a Path,
    /// The way's number.
    pub(super) way: usize,
    /// The round's, from 1 on.
    pub(super) round: usize,
}

/// A run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Run {
    /// The reading under a tracer, and right before without.
    pub(super) traced: Reading,
    pub(super) base: Reading,
    /// Events that were told, and that were not.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// One in how many folios was observed in the end.
    pub(super) chosen: Option<u64>,
    /// Bytes in the end, and where they were more on the way there, those written while events came.
    pub(super) bytes: u64,
    pub(super) bytes_before: Option<u64>,
    /// Bytes of a file that has no events in it.
    pub(super) fixed: u64,
    /// Seconds that the tracer's own processes ran, per read.
    pub(super) tracer: f64,
    /// Of the program that ran most: nanoseconds and runs.
    pub(super) program: Option<(u64, u64)>,
}

/// Seconds of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// By the clock.
    pub(super) wall: f64,
    /// Of the reading process alone.
    pub(super) cpu: f64,
}

impl Files<'_> {
    fn path(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{}.{what}", self.way, self.round))
    }

    fn text(&self, what: &str) -> Result<String> {
        let path = self.path(what);
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn number(&self, what: &str) -> Result<u64> {
        self.text(what)?.trim().parse().with_context(|| self.path(what).display().to_string())
    }

    fn json(&self, what: &str) -> Result<Value> {
        serde_json::from_str(&self.text(what)?).with_context(|| self.path(what).display().to_string())
    }

    fn reading(&self, what: &str) -> Result<Reading> {
        let report = self.json(what)?;
        let per_read = |field: &str| Some(report[field].as_f64()? / report["reads"].as_f64()?);
        let (wall, cpu) = (per_read("seconds"), per_read("cpu_seconds"));
        let (wall, cpu) = wall.zip(cpu).with_context(|| format!("{}: no times", self.path(what).display()))?;
        Ok(Reading { wall, cpu })
    }

    /// Why it did not work, if it did not.
    pub(super) fn failure(&self) -> Option<String> {
        Some(self.text("failed").ok()?.trim().to_owned())
    }

    /// What it measured.
    pub(super) fn read(&self, tracer: Tracer) -> Result<Run> {
        let mut run = Run { traced: self.reading("workload")?, base: self.reading("base.workload")?, ..Run::default() };
        let report = self.json("workload")?;
        let reads = report["reads"].as_f64().zip(report["ramp"].as_f64()).map(|(reads, ramp)| reads + ramp).context("reads")?;
        run.tracer = ticks(&self.text("ticks-after")?).saturating_sub(ticks(&self.text("ticks-before")?)) as f64 / TICKS_PER_SECOND / reads;
        let programs = self.text("before").ok().zip(self.text("after").ok()).map(|(before, after)| Programs::between(&before, &after));
        run.program = programs.as_ref().and_then(Programs::busiest);
        match tracer {
            Tracer::Observer => {
                let source = &self.json("summary")?["source"];
                run.events = source["events"].as_u64().context("events")?;
                run.lost = source["lost"].as_u64().context("lost events")?;
                run.chosen = source["sampling"].as_u64();
                run.bytes = self.number("bytes")?;
            }
            Tracer::Counts => {
                run.events = counted(&self.text("text")?);
                run.lost = programs.map_or(0, |programs| programs.missed);
                run.bytes = self.number("bytes")?;
            }
            Tracer::Records => {
                run.events = self.number("lines")?;
                run.lost = told_lost(&self.text("text")?) + programs.map_or(0, |programs| programs.missed);
                run.bytes = self.number("bytes")?;
            }
            Tracer::TraceCmd => {
                let (written, whole) = trace_sizes(&self.text("sizes")?);
                run.events = self.number("lines")?;
                run.lost = trace_lost(&self.text("stat")?);
                run.bytes = written;
                run.bytes_before = Some(whole);
                run.fixed = self.number("bytes")?.saturating_sub(written);
            }
        }
        Ok(run)
    }
}

/// What the kernel counts of the programs of a process.
#[derive(Debug, Default, PartialEq)]
struct Programs {
    /// By program: nanoseconds, runs.
    ran: BTreeMap<u64, (u64, u64)>,
    /// Runs that did not happen because one was under way on the CPU.
    missed: u64,
}

impl Programs {
    /// From the texts of the process's `fdinfo`, before and after.
    fn between(before: &str, after: &str) -> Self {
        let (before, mut after) = (Self::parse(before), Self::parse(after));
        for (id, (ns, runs)) in &mut after.ran {
            let (ns_before, runs_before) = before.ran.get(id).copied().unwrap_or_default();
            *ns = ns.saturating_sub(ns_before);
            *runs = runs.saturating_sub(runs_before);
        }
        after
    }

    /// A program shows `prog_id`, `run_time_ns`, `run_cnt` and `recursion_misses` in that order; links show the first only.
    fn parse(text: &str) -> Self {
        let mut programs = Self::default();
        let (mut id, mut ns, mut missed) = (0, 0, BTreeMap::new());
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let Ok(value) = value.trim().parse::<u64>() else { continue };
            match name {
                "prog_id" => id = value,
                "run_time_ns" => ns = value,
                "run_cnt" => {
                    programs.ran.insert(id, (ns, value));
                }
                "recursion_misses" => {
                    missed.insert(id, value);
                }
                _ => {}
            }
        }
        programs.missed = missed.values().sum();
        programs
    }

    fn busiest(&self) -> Option<(u64, u64)> {
        self.ran.values().copied().max_by_key(|(_, runs)| *runs).filter(|(_, runs)| *runs > 0)
    }
}

/// Sum of all ticks.
fn ticks(text: &str) -> u64 {
    text.split_whitespace().filter_map(|number| number.parse::<u64>().ok()).sum()
}

/// Sum of the counts that bpftrace prints at its end: `@[key]: N`, `@name: N`.
fn counted(text: &str) -> u64 {
    let maps = text.lines().filter(|line| line.starts_with('@'));
    maps.filter_map(|line| line.rsplit_once(": ")?.1.trim().parse::<u64>().ok()).sum()
}

/// Events that bpftrace says it lost.
fn told_lost(text: &str) -> u64 {
    text.lines().filter_map(|line| line.strip_prefix("Lost ")?.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// Bytes of events in a trace, as trace-cmd tells them at its end: as they are in the file, and uncompressed, which is how
/// they were written while they came.
fn trace_sizes(text: &str) -> (u64, u64) {
    text.lines().filter_map(|line| line.trim().split_once(" bytes in size")).fold((0, 0), |(file, whole), (bytes, rest)| {
        let bytes = bytes.parse().unwrap_or(0);
        let before = rest.trim().strip_prefix('(').and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        (file + bytes, whole + before.unwrap_or(bytes))
    })
}

/// Events that the ring had no room for, of all CPUs, in the statistics that trace-cmd keeps with a trace.
fn trace_lost(text: &str) -> u64 {
    let losses = text.lines().filter_map(|line| line.trim().split_once(": "));
    let losses = losses.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    losses.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpftrace_s_counts_are_summed() {
        let text = "Attaching 2 probes...\n\n@[fentry:vmlinux:folio_add_lru]: 86\n@[rawtracepoint:mm_lru_insertion]: 4\n@fentry_x: 10\n";
        assert_eq!(counted(text), 100);
        assert_eq!(counted("@x: many\n28205 0 1 @: 5\n"), 0);
    }

    #[test]
    fn ticks_of_all_processes_are_summed() {
        assert_eq!(ticks("12 3\n0 7\n"), 22);
        assert_eq!(ticks(""), 0);
    }

    #[test]
    fn bpftrace_s_losses_are_summed() {
        assert_eq!(told_lost("Attaching 1 probe...\nLost 12 events\nLost 30 events\n"), 42);
    }

    #[test]
    fn trace_cmd_s_sizes_are_read() {
        let text = "CPU0 data recorded at offset=0xf9000\n    9420 bytes in size (77824 uncompressed)\nCPU1 data recorded at offset=0xfc000\n    \
                    0 bytes in size (0 uncompressed)\n";
        assert_eq!(trace_sizes(text), (9420, 77_824));
        assert_eq!(trace_sizes("    4096 bytes in size\n    8192 bytes in size\n"), (12_288, 12_288));
    }

    #[test]
    fn trace_cmd_s_statistics_are_read() {
        let text =
            "CPU: 0\nentries: 72\noverrun: 5\ncommit overrun: 1\nbytes: 3176\ndropped events: 2\nread events: 9\n\nCPU: 1\noverrun: 10\n";
        assert_eq!(trace_lost(text), 18);
    }

    #[test]
    fn a_program_s_own_runs_are_taken() {
        let program = |id, ns, runs, missed| {
            format!("pos:\t0\nprog_type:\t26\nprog_id:\t{id}\nrun_time_ns:\t{ns}\nrun_cnt:\t{runs}\nrecursion_misses:\t{missed}\n")
        };
        let link = "link_type:\ttracing\nprog_tag:\tff\nprog_id:\t7\n";
        let before = program(7, 100, 1, 0) + link + &program(8, 0, 0, 0);
        let after = program(7, 1100, 11, 3) + link + &program(8, 900, 2, 1);
        let programs = Programs::between(&before, &after);
        assert_eq!((programs.busiest(), programs.missed), (Some((1000, 10)), 4));
        assert_eq!(Programs::between("", "").busiest(), None);
    }
}
