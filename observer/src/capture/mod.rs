//! From a running kernel to events: load the programs, attach what this kernel allows, drain.

pub mod attach;
pub mod command;
mod cost;
pub mod live;
pub mod object;
pub mod peek;
mod warnings;
pub mod wire;
