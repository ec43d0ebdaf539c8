//! What user space sets before load. Read-only to the programs, so the verifier treats every value as a constant and
//! removes the branches that this kernel does not need.

use core::ptr::read_volatile;

use observer_common::{
    ABI,
    layout::{Filter, Layout},
};

/// Offsets and bit positions of the running kernel.
#[unsafe(no_mangle)]
static LAYOUT: Layout = Layout::UNKNOWN;

/// What is observed.
#[unsafe(no_mangle)]
static FILTER: Filter = Filter { cgroup: 0, level: 0, self_tgid: 0 };

/// The records' version, compared by the loader.
#[unsafe(no_mangle)]
static RECORDS_ABI: u32 = ABI;

/// One member of [`LAYOUT`]. Volatile: the compiler must not fold the placeholder that the loader replaces.
macro_rules! layout {
    ($member:ident) => {
        $crate::config::load(|layout| &raw const layout.$member)
    };
}
pub(crate) use layout;

/// Reads a member through a volatile access.
#[inline(always)]
pub(crate) fn load(member: impl FnOnce(&'static Layout) -> *const u32) -> u32 {
    // SAFETY: the pointer comes from a live static.
    unsafe { read_volatile(member(&LAYOUT)) }
}

/// The filter's cgroup (0 for none) and its level.
#[inline(always)]
pub(crate) fn filter_cgroup() -> (u64, u32) {
    // SAFETY: both are members of a live static.
    unsafe { (read_volatile(&raw const FILTER.cgroup), read_volatile(&raw const FILTER.level)) }
}

/// The observer's own process.
#[inline(always)]
pub(crate) fn self_tgid() -> u32 {
    // SAFETY: a member of a live static.
    unsafe { read_volatile(&raw const FILTER.self_tgid) }
}
