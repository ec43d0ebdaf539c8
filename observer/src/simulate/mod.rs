//! Rule sets on synthetic access streams, counted as a kernel counts.

pub mod file;
pub mod letter;
pub mod random;
pub mod render;
pub mod run;
pub mod workload;
pub mod zipf;

pub use file::Readahead;
pub use letter::{Letter, cover_letter};
pub use run::{Config, Report, Row, run};
pub use workload::{Mode, Workload};
