//! Rule sets on synthetic access streams.

pub mod random;
pub mod zipf;
