//! Rule sets on synthetic access streams, counted as a kernel counts.
#![doc = "\n"]
#![doc = include_str!("validation.md")]

pub mod bench;
pub mod file;
pub mod letter;
pub mod random;
pub mod render;
pub mod run;
pub mod workload;
pub mod zipf;

#[cfg(test)]
mod proposal_tests;

pub use file::Readahead;
pub use letter::{Letter, cover_letter};
pub use run::{Config, Report, Row, run};
pub use workload::{Mode, Workload};
pub use zipf::Scatter;
