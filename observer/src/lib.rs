//! observer: predicted and actual promotion of a kernel's multi-gen LRU, side by side.

pub mod capture;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod exit;
mod index;
pub mod kernel;
pub mod model;
pub mod privileges;
pub mod record;
pub mod replay;
pub mod report;
pub mod session;
pub mod simulate;
pub mod stream;
pub mod tui;
pub mod units;
