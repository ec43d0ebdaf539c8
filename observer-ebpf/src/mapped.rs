//! Accesses through page tables, where the kernel's own functions see them.

use core::hint::black_box;

use aya_ebpf::{macros::fentry, programs::FEntryContext};
use observer_common::{Head, Kind, walk};

use crate::{
    config::layout,
    emit::{emit, head, hot},
    read,
    struct_page::Folio,
};

/// Aging found a young entry of this folio (6.14 and later). Called with the previous run's folio, which may be none.
#[fentry]
fn walk_update_folio(ctx: FEntryContext) -> u32 {
    // 7.2 put the VMA before the folio. Both are read before one is chosen: the verifier refuses an address in the context
    // that the compiler computes.
    let (second, third): (u64, u64) = (black_box(ctx.arg(1)), black_box(ctx.arg(2)));
    let folio = if layout!(walk_folio_arg) == 1 { second } else { third };
    let object: u64 = ctx.arg(0);
    if folio != 0
        && let Some(folio) = Folio::of_hook(folio)
    {
        hot(Kind::Walk, &folio, if object != 0 { walk::AGING } else { 0 });
    }
    0
}

/// The same before 6.14.
#[fentry]
fn folio_update_gen(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        hot(Kind::Walk, &folio, walk::AGING);
    }
    0
}

/// A young entry of a reclaim candidate, or of a neighbour when no aging walk is under way.
#[fentry]
fn lru_gen_set_refs(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        hot(Kind::SetRefs, &folio, 0);
    }
    0
}

/// Reclaim looks around a candidate's page-table entry. `flags` is the candidate's page frame number.
#[fentry]
fn lru_gen_look_around(ctx: FEntryContext) -> u32 {
    let pfn: u64 = read::member(ctx.arg(0), layout!(pvmw_pfn)).unwrap_or(0);
    emit::<Head>(|out| {
        out.write(head(Kind::LookAround, 0, pfn, observer_common::CLOCK_UNKNOWN, 0));
    });
    0
}
