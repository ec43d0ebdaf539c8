//! Events, and how they are stored.

pub mod event;
pub mod header;
