//! Looks at folios that nothing happens to (run through BPF_PROG_TEST_RUN, never attached): those that were on the
//! lists before observer came, and those that the kernel moves without calling anything.

use aya_ebpf::{
    cty::c_void,
    helpers::generated::bpf_loop,
    macros::{map, raw_tracepoint},
    maps::Array,
    programs::RawTracePointContext,
};
use observer_common::{Kind, Known, Progress, SWEEP_LEN, sweep};

use crate::{config::layout, emit::write, memcg, read, struct_page::Folio};

/// What the latest run did.
#[map]
static PROGRESS: Array<Progress> = Array::with_max_entries(1, 0);

/// Followed folios as they were last seen.
#[map]
static KNOWN: Array<[Known; SWEEP_LEN]> = Array::with_max_entries(1, 0);

/// Page frames that have their struct pages in one huge page, at least: where one is missing, so are the rest.
const HOLE: u64 = 512;

/// A run of the census.
#[repr(C)]
struct Frames {
    /// Address of page frame 0's struct page.
    vmemmap: u64,
    /// Bytes of a struct page.
    page_bytes: u64,
    /// Frame after the last.
    end: u64,
    /// Records to write at most.
    limit: u64,
    /// So far.
    done: Progress,
}

/// Emits what is on a list among page frames: arguments vmemmap, bytes of a struct page, first frame, end, records at most.
#[raw_tracepoint(tracepoint = "sys_enter")]
fn census(ctx: RawTracePointContext) -> i32 {
    let Some(progress) = PROGRESS.get_ptr_mut(0) else { return 0 };
    let done = Progress { next: ctx.arg(2), folios: 0, written: 0, unreadable: 0 };
    let mut frames = Frames { vmemmap: ctx.arg(0), page_bytes: ctx.arg(1), end: ctx.arg(3), limit: ctx.arg(4), done };
    let steps = frames.end.saturating_sub(frames.done.next) as u32;
    // SAFETY: the callback has the signature that the helper asks for, and the context outlives the loop.
    unsafe {
        bpf_loop(steps, census_step as *mut c_void, (&raw mut frames).cast::<c_void>(), 0);
        *progress = frames.done;
    }
    0
}

/// One folio, or one page frame that has none: 1 ends the loop.
extern "C" fn census_step(_step: u32, frames: *mut Frames) -> i64 {
    // SAFETY: the helper hands over the context that it was given.
    let frames = unsafe { &mut *frames };
    let frame = frames.done.next;
    if frame >= frames.end || frames.done.written >= frames.limit {
        return 1;
    }
    let folio = frames.vmemmap + frame * frames.page_bytes;
    let Some(flags) = read::value::<u64>(folio) else {
        frames.done.unreadable += 1;
        frames.done.next = (frame | (HOLE - 1)) + 1;
        return 0;
    };
    frames.done.next = frame + 1;
    // Only the head of a folio has the bit (and what is in a batch on its way to a list has not: it is seen when it arrives).
    if !read::is_set(flags, layout!(lru_bit)) {
        return 0;
    }
    let seen = meet(folio);
    frames.done.folios += 1;
    frames.done.written += seen & 1;
    frames.done.next = frame + ((seen >> 1) & 0xffff);
    0
}

/// Emits a folio that is on a list, if it is observed; bit 0 of the result. Above it the folio's pages.
///
/// A function of its own to the verifier, which follows it once and not in every state of the loop.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn meet(folio: u64) -> u64 {
    let folio = Folio::read(folio);
    let pages = folio.pages() << 1;
    let memcg = folio.memcg();
    if !folio.is_kept() || !memcg::observed(memcg) {
        return pages;
    }
    write(Kind::Census, &folio, 0, 0, memcg, &folio.identity());
    pages | 1
}

/// A run of the sweep.
#[repr(C)]
struct Entries {
    /// Entries filled.
    count: u64,
    /// Bits of a flags word that matter.
    mask: u64,
    /// So far.
    done: Progress,
}

/// Emits those of the first `count` entries of [`KNOWN`] that are not as they were: arguments count, mask of flags.
#[raw_tracepoint(tracepoint = "sys_enter")]
fn sweep(ctx: RawTracePointContext) -> i32 {
    let Some(progress) = PROGRESS.get_ptr_mut(0) else { return 0 };
    let mut entries = Entries { count: ctx.arg(0), mask: ctx.arg(1), done: Progress { next: 0, folios: 0, written: 0, unreadable: 0 } };
    let steps = entries.count as u32;
    // SAFETY: the callback has the signature that the helper asks for, and the context outlives the loop.
    unsafe {
        bpf_loop(steps, sweep_step as *mut c_void, (&raw mut entries).cast::<c_void>(), 0);
        *progress = entries.done;
    }
    0
}

/// One entry: 1 ends the loop.
extern "C" fn sweep_step(step: u32, entries: *mut Entries) -> i64 {
    // SAFETY: the helper hands over the context that it was given.
    let entries = unsafe { &mut *entries };
    if u64::from(step) >= entries.count {
        return 1;
    }
    let seen = compare(u64::from(step), entries.mask);
    entries.done.next = u64::from(step) + 1;
    entries.done.written += seen & 1;
    entries.done.unreadable += (seen >> 1) & 1;
    entries.done.folios += 1;
    0
}

/// Emits an entry's folio if it is not as it was; bit 0 of the result. Bit 1: there is no such address.
///
/// A function of its own to the verifier, as [`meet`] is.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn compare(at: u64, mask: u64) -> u64 {
    let Some(table) = KNOWN.get_ptr(0) else { return 0 };
    if at >= SWEEP_LEN as u64 {
        return 0;
    }
    // SAFETY: inside the map's value, as checked.
    let known = unsafe { &raw const (*table)[at as usize] };
    // SAFETY: the same.
    let (folio, was) = unsafe { ((*known).folio, (*known).flags) };
    let folio = Folio::read(folio);
    if !folio.readable {
        return 2;
    }
    let (identity, free) = (folio.identity(), folio.is_free());
    // SAFETY: the same.
    let same = unsafe {
        (folio.flags() ^ was) & mask == 0
            && identity.ino == (*known).ino
            && identity.index == (*known).index
            && folio.pages() == 1 << ((*known).order & 31)
    };
    if same && !free {
        return 0;
    }
    let memcg = folio.memcg();
    // Wherever a followed folio is charged now: where it went is what there is to say. Another that is there in its place is
    // as to the census: none of the sample, or charged to what is not observed, only says that the followed one is gone.
    // SAFETY: the same.
    let followed =
        unsafe { was != Known::UNSEEN && (identity.ino == 0 || (identity.ino == (*known).ino && identity.index == (*known).index)) };
    let observed = followed || (folio.is_kept() && memcg::observed(memcg));
    if was == Known::UNSEEN && !observed {
        return 0;
    }
    write(Kind::Sweep, &folio, if free || !observed { sweep::FREE } else { 0 }, 0, memcg, &identity);
    1
}
