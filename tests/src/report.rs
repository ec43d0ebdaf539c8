//! Runs the accesses, and tells in one JSON line what was done and what the kernel counted meanwhile.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::cgroup::{Cgroup, Counters, difference};

/// What a run did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report<P> {
    /// Name of the workload.
    pub workload: &'static str,
    /// What was asked for.
    pub parameters: P,
    /// Accesses before the measured part.
    pub ramp: u64,
    /// Accesses of the measured part.
    pub reads: u64,
    /// How long the measured part took.
    pub seconds: f64,
    /// What the kernel counted, where the process has a control group.
    pub cgroup: Option<CgroupReport>,
}

/// What the kernel counted for the workload's control group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CgroupReport {
    /// The group.
    pub path: String,
    /// Its limit in bytes.
    pub memory_max: Option<u64>,
    /// Over the measured part.
    pub measured: Counters,
    /// Over everything, the ramp included.
    pub total: Counters,
}

/// Performs `ramp` accesses uncounted and `reads` counted ones.
pub fn run<P>(workload: &'static str, parameters: P, ramp: u64, reads: u64, mut access: impl FnMut() -> Result<()>) -> Result<Report<P>> {
    let cgroup = Cgroup::current();
    let counters = || cgroup.as_ref().map(Cgroup::counters).transpose();
    let start = counters()?;
    for _ in 0..ramp {
        access()?;
    }
    let warm = counters()?;
    let begun = Instant::now();
    for _ in 0..reads {
        access()?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let end = counters()?;
    let cgroup = cgroup.as_ref().zip(start).zip(warm).zip(end).map(|(((cgroup, start), warm), end)| CgroupReport {
        path: cgroup.path(),
        memory_max: cgroup.memory_max(),
        measured: difference(&warm, &end),
        total: difference(&start, &end),
    });
    Ok(Report { workload, parameters, ramp, reads, seconds, cgroup })
}
