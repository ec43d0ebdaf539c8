//! The page cache's own tracepoints: deletes, and accesses where no function can be hooked.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use observer_common::{Kind, Range};

use crate::{
    config::layout,
    emit::{bare_head, cold, emit},
    names, read, sample,
    struct_page::Folio,
};

/// A folio leaves the page cache, reclaimed or not.
#[btf_tracepoint]
fn mm_filemap_delete_from_page_cache(ctx: BtfTracePointContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0)) {
        cold(Kind::Delete, &folio, 0, 0);
    }
    0
}

/// A folio enters the page cache.
#[btf_tracepoint]
fn mm_filemap_add_to_page_cache(ctx: BtfTracePointContext) -> u32 {
    if let Some(folio) = Folio::of_hook(ctx.arg(0))
        && !read::is_self()
    {
        cold(Kind::CacheAdd, &folio, read::task_bits(), 0);
    }
    0
}

/// A read of a range of a file.
#[btf_tracepoint]
fn mm_filemap_get_pages(ctx: BtfTracePointContext) -> u32 {
    range(Kind::ReadRange, ctx.arg(0), ctx.arg(1), ctx.arg(2));
    0
}

/// A fault on one page.
#[btf_tracepoint]
fn mm_filemap_fault(ctx: BtfTracePointContext) -> u32 {
    let index = ctx.arg(1);
    range(Kind::FaultRange, ctx.arg(0), index, index);
    0
}

/// Fault-around mapped a range.
#[btf_tracepoint]
fn mm_filemap_map_pages(ctx: BtfTracePointContext) -> u32 {
    range(Kind::MapRange, ctx.arg(0), ctx.arg(1), ctx.arg(2));
    0
}

#[inline(always)]
fn range(kind: Kind, mapping: u64, first: u64, last: u64) {
    // Directly: of all that is observed these come most often, and the hook tells the verifier what `mapping` is.
    // SAFETY: the hook passed `mapping`; the others are members with such a pointer in them.
    unsafe {
        let inode = read::directly::<u64>(mapping, layout!(mapping_host));
        let ino = read::directly::<u64>(inode, layout!(inode_ino));
        if inode == 0 || !sample::range_kept(kind, ino, first, last) || read::is_self() {
            return;
        }
        let dev = read::directly::<u32>(read::directly::<u64>(inode, layout!(inode_sb)), layout!(sb_dev));
        names::tell_once(dev, ino, inode);
        emit::<Range>(|out| {
            out.write(Range { head: bare_head(kind, inode), ino, first, last, dev, pad: 0 });
        });
    }
}
