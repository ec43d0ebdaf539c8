//! Deterministic workloads for the end-to-end tests: same seed, same accesses, on every machine.

pub mod cgroup;
pub mod files;
pub mod large;
pub mod report;
pub mod slices;

/// Bytes of a page on the machines this runs on.
pub const PAGE: u64 = 4096;
