//! A folio's life on the lists: requested, inserted, accessed, moved.

use aya_ebpf::{
    macros::{btf_tracepoint, fentry, fexit, kprobe},
    programs::{BtfTracePointContext, FEntryContext, FExitContext, ProbeContext},
};
use observer_common::{Kind, inc_gen};

use crate::{
    emit::{cold, hot},
    read,
    struct_page::Folio,
};

/// A folio asks to be put on a list; placement comes later, when its batch is drained.
#[fentry]
fn folio_add_lru(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0))
        && !read::is_self()
    {
        cold(Kind::Add, &folio, read::task_bits(), 0);
    }
    0
}

/// A folio was put on a list: its flags now hold the generation chosen.
#[btf_tracepoint]
fn mm_lru_insertion(ctx: BtfTracePointContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        cold(Kind::Insert, &folio, 0, 0);
    }
    0
}

/// An access through a file descriptor (and what counts as one).
#[fentry]
fn folio_mark_accessed(ctx: FEntryContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0))
        && !read::is_self()
    {
        hot(Kind::Mark, &folio, 0);
    }
    0
}

/// The scan, or aging with four generations, moved a folio up: flags after it.
#[fexit]
fn folio_inc_gen(ctx: FExitContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(1)) {
        hot(Kind::IncGen, &folio, inc_gen::DONE);
    }
    0
}

/// The same where the compiler cloned the function and only a kprobe reaches it: flags before it.
#[kprobe]
fn folio_inc_gen_clone(ctx: ProbeContext) -> u32 {
    if let Some(folio) = ctx.arg::<u64>(1) {
        let folio = Folio::read(folio);
        if folio.is_kept() {
            hot(Kind::IncGen, &folio, 0);
        }
    }
    0
}

/// A folio was activated.
#[btf_tracepoint]
fn mm_lru_activate(ctx: BtfTracePointContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        hot(Kind::Activate, &folio, 0);
    }
    0
}
