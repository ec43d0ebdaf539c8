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
    /// How much processor time of this process it took.
    pub cpu_seconds: f64,
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
    /// Since the process entered it, ramp and preparation included.
    pub total: Counters,
}

/// Watches what the kernel counts for the process from its start on.
#[derive(Clone, Debug)]
pub struct Meter {
    cgroup: Option<(Cgroup, Counters)>,
}

impl Meter {
    /// Begins to count for the control group the process is in now.
    pub fn start() -> Result<Self> {
        let cgroup = Cgroup::current();
        let cgroup = cgroup.map(|cgroup| cgroup.counters().map(|counters| (cgroup, counters))).transpose()?;
        Ok(Self { cgroup })
    }

    /// Performs `ramp` accesses unmeasured and `reads` measured ones.
    pub fn run<P>(
        self,
        workload: &'static str,
        parameters: P,
        ramp: u64,
        reads: u64,
        mut access: impl FnMut() -> Result<()>,
    ) -> Result<Report<P>> {
        let counters = || self.cgroup.as_ref().map(|(cgroup, _)| cgroup.counters()).transpose();
        for _ in 0..ramp {
            access()?;
        }
        let warm = counters()?;
        let (begun, cpu) = (Instant::now(), processor_time());
        for _ in 0..reads {
            access()?;
        }
        let (seconds, cpu_seconds) = (begun.elapsed().as_secs_f64(), processor_time() - cpu);
        let end = counters()?;
        let cgroup = self.cgroup.as_ref().zip(warm).zip(end).map(|(((cgroup, start), warm), end)| CgroupReport {
            path: cgroup.path(),
            memory_max: cgroup.memory_max(),
            measured: difference(&warm, &end),
            total: difference(start, &end),
        });
        Ok(Report { workload, parameters, ramp, reads, seconds, cpu_seconds, cgroup })
    }
}

/// Seconds that this process ran, in the kernel too.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
