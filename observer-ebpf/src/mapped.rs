//! Accesses through page tables, where the kernel's own functions see them.

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
    walked(ctx.arg(0), ctx.arg(1));
    0
}

/// The same where the VMA comes before the folio (7.2).
#[fentry]
fn walk_update_folio_third(ctx: FEntryContext) -> u32 {
    walked(ctx.arg(0), ctx.arg(2));
    0
}

#[inline(always)]
fn walked(walk: u64, folio: u64) {
    if folio != 0
        && let Some(folio) = Folio::of_hook(folio)
    {
        hot(Kind::Walk, &folio, if walk != 0 { walk::AGING } else { 0 });
    }
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
