//! From a running kernel to events: load the programs, attach what this kernel allows, drain.

pub mod attach;
mod census;
pub mod command;
mod cost;
pub mod live;
mod meter;
pub mod object;
mod on_demand;
pub mod peek;
pub mod sample;
mod split;
mod sweep;
mod warnings;
pub mod wire;
