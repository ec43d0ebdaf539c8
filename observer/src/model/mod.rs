//! The shadow: rule sets as data, and what they do to one folio or to a whole lruvec. Knows nothing of eBPF, files, clocks or terminals.
//!
//! Two ways to use it: *lock step*, where a kernel's clock and residency are given and the functions on [`Rules`] move one
//! [`FolioState`] per folio; and *free running*, where the machine does its own aging and eviction.
//! "Spec" in this room means the project's behavioural specification of the multi-gen LRU; section numbers are its.

pub mod access;
pub mod aging;
pub mod classical;
pub mod flags;
mod knobs;
#[cfg(test)]
mod lock_step_tests;
pub mod machine;
pub mod parse;
pub mod placement;
pub mod rules;
pub mod scan;
pub mod shadow_entry;
pub mod tiers;
pub mod what_if;

pub use access::{Moved, Outcome};
pub use flags::{FolioFlags, FolioState, Traits, Window};
pub use machine::{Cache, Config, Counters, Entering, Lru};
pub use placement::Add;
pub use rules::Rules;
pub use scan::{Protection, Rejected};
pub use shadow_entry::{RefaultEffect, ShadowEntry, ShadowLayout, Token};
pub use tiers::Controller;
pub use what_if::{Feed, KeySpace, WhatIf, WhatIfRow};
