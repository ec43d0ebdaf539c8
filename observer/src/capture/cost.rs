//! What the programs cost, as the kernel counts it while someone asks: runs, nanoseconds, runs missed.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::sys::{Stats, enable_stats};

use crate::stream::counter_names::{ALL_MISSED, MISSED, PROGRAM, RUN_NS, RUNS};
use crate::stream::{Body, Event};

/// Readings are this far apart.
const EVERY: Duration = Duration::from_secs(1);

/// Reads the kernel's counts of our programs.
pub(super) struct Cost {
    /// Names, and where the kernel shows their counts; the descriptors are the loaded object's.
    programs: Vec<(String, String)>,
    next: Option<Instant>,
    // The kernel counts time and runs as long as this is open; runs missed it counts in any case.
    counting: Option<OwnedFd>,
}

impl Cost {
    /// Starts to read, and with `timed` lets the kernel count time and runs too. With it come lines for the user.
    pub(super) fn start(ebpf: &Ebpf, timed: bool) -> (Cost, Vec<String>) {
        let refused = |error: aya::sys::SyscallError| {
            format!("--cost: the kernel does not count for us (CAP_SYS_ADMIN is needed): {}", error.io_error)
        };
        let (counting, notes) = match timed.then(|| enable_stats(Stats::RunTime).map_err(refused)).transpose() {
            Ok(counting) => (counting, Vec::new()),
            Err(note) => (None, vec![note]),
        };
        // One that was not loaded has no descriptor, and no cost.
        let loaded = ebpf.programs().filter_map(|(name, program)| Some((name, program.fd().ok()?.as_fd().as_raw_fd())));
        let programs = loaded.map(|(name, fd)| (name.to_owned(), format!("/proc/self/fdinfo/{fd}"))).collect();
        (Cost { programs, next: None, counting }, notes)
    }

    /// The counts as counter rows, if the last ones are old enough.
    pub(super) fn read(&mut self, ts: u64, out: &mut Vec<Event>) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        let mut row = |name: String, value| out.push(Event { ts, cpu: 0, body: Body::Counter { cgroup: 0, name, value } });
        let mut missed = None;
        for (name, place) in &self.programs {
            let Ok(text) = fs::read_to_string(place) else { continue };
            for (what, value) in counts(&text) {
                if what == MISSED {
                    *missed.get_or_insert(0) += value;
                }
                if self.counting.is_some() {
                    row(format!("{PROGRAM}{name}:{what}"), value);
                }
            }
        }
        if let Some(missed) = missed {
            row(ALL_MISSED.to_owned(), missed);
        }
    }
}

/// Our names and the values, from the text that the kernel shows of a program's descriptor.
fn counts(text: &str) -> impl Iterator<Item = (&'static str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let what = match name {
            "run_time_ns" => RUN_NS,
            "run_cnt" => RUNS,
            "recursion_misses" => MISSED,
            _ => return None,
        };
        Some((what, value.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_text_is_read() {
        let text = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nprog_tag:\t0f\nrun_time_ns:\t1200\nrun_cnt:\t10\nrecursion_misses:\t3\n";
        assert_eq!(counts(text).collect::<Vec<_>>(), [(RUN_NS, 1200), (RUNS, 10), (MISSED, 3)]);
        assert_eq!(counts("run_cnt:\tmany\n").count(), 0);
    }
}
