//! Names of the counter rows that observer itself gives a meaning to; all others are the kernel's own words.

/// A cgroup's limit in bytes: a reading, and no count.
pub const LIMIT: &str = "memory.max";
/// One in how many folios is observed from here on: a reading, and no count. Only where it changed while observed.
pub const SAMPLE: &str = "observer.sample";
/// How the counters of the recorder's own work begin: `observer.census.ns`.
pub const RECORDER: &str = "observer.";
/// Runs that all programs missed together. Each is an event that nobody saw, nor counted as lost.
pub const ALL_MISSED: &str = "observer.missed";
/// How the counters of one program begin: `bpf:PROGRAM:WHAT`.
pub const PROGRAM: &str = "bpf:";
/// Nanoseconds spent in a program.
pub const RUN_NS: &str = "run_ns";
/// Times it ran.
pub const RUNS: &str = "runs";
/// Times it did not run, because it or another was running on that CPU.
pub const MISSED: &str = "missed";
