//! Leaving by reclaim, and coming back.

use aya_ebpf::{
    macros::{fentry, fexit},
    programs::{FEntryContext, FExitContext},
};
use observer_common::Kind;

use crate::{emit::cold, read};

/// A folio comes back and its slot still held a shadow entry: before anything is restored.
#[fentry]
fn workingset_refault(ctx: FEntryContext) -> u32 {
    if !read::is_self() {
        cold(Kind::Refault, ctx.arg(0), read::task_bits(), ctx.arg(1));
    }
    0
}

/// A folio is evicted; the return value is the shadow entry it leaves.
#[fexit]
fn workingset_eviction(ctx: FExitContext) -> u32 {
    cold(Kind::Evict, ctx.arg(0), 0, ctx.arg(2));
    0
}
