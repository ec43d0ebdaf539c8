//! The page cache's own tracepoints: deletes, and accesses where no function can be hooked.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use observer_common::{Kind, Range};

use crate::{
    emit::{bare_head, cold, emit},
    names, read, sample,
};

/// A folio leaves the page cache, reclaimed or not.
#[btf_tracepoint]
fn mm_filemap_delete_from_page_cache(ctx: BtfTracePointContext) -> u32 {
    cold(Kind::Delete, ctx.arg(0), 0, 0);
    0
}

/// A folio enters the page cache.
#[btf_tracepoint]
fn mm_filemap_add_to_page_cache(ctx: BtfTracePointContext) -> u32 {
    if !read::is_self() {
        cold(Kind::CacheAdd, ctx.arg(0), read::task_bits(), 0);
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
    if read::is_self() {
        return;
    }
    let Some((dev, ino, inode)) = read::file(mapping) else { return };
    if !sample::range_kept(kind, ino, first, last) {
        return;
    }
    names::tell_once(dev, ino, inode);
    emit::<Range>(|out| {
        out.write(Range { head: bare_head(kind, inode), ino, first, last, dev, pad: 0 });
    });
}
