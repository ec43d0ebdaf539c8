//! Leaving by reclaim, and coming back.

use aya_ebpf::{
    macros::{fentry, fexit},
    programs::{FEntryContext, FExitContext},
};
use observer_common::Kind;

use crate::{emit::cold_by_swap, read, struct_page::Folio};

/// A folio comes back and its slot still held a shadow entry: before anything is restored.
#[fentry]
fn workingset_refault(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0))
        && !read::is_self()
    {
        cold_by_swap(Kind::Refault, &folio, read::task_bits(), ctx.arg(1));
    }
    0
}

/// A folio is evicted; the return value is the shadow entry it leaves.
#[fexit]
fn workingset_eviction(ctx: FExitContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        cold_by_swap(Kind::Evict, &folio, 0, ctx.arg(2));
    }
    0
}

/// A folio is filled from swap: where it did not go through the swap cache, its swap entry is only known here.
#[fentry]
fn swap_read_folio(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        cold_by_swap(Kind::SwapRead, &folio, 0, 0);
    }
    0
}

/// The same where the state of the read comes first (7.3).
#[fentry]
fn swap_read_folio_second(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(1)) {
        cold_by_swap(Kind::SwapRead, &folio, 0, 0);
    }
    0
}
