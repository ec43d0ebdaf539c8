//! Whether this stream keeps a folio ([`observer_common::sample`]). Global state is never asked about here.

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray},
};
use observer_common::{Kind, sample};

use crate::{config::layout, read, struct_page::Folio};

/// One in this many folios is kept. A map, since user space lowers the rate while the programs run.
#[map]
static SAMPLE: Array<u32> = Array::with_max_entries(1, 0);

/// 1 where this CPU's latest read of a range touched a folio that is kept.
#[map]
static READ_KEPT: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// One in how many folios is kept.
#[inline(always)]
fn one_in() -> u32 {
    match SAMPLE.get(0) {
        Some(n) => *n,
        None => 1,
    }
}

/// Whether a folio belongs to the sample.
#[inline(always)]
pub(crate) fn kept<const HOOKED: bool>(folio: &Folio<HOOKED>) -> bool {
    let n = one_in();
    n <= 1 || sample::keeps(hash(folio), n)
}

/// The same of one that a hook passed, without a helper call where it is of a file: most of what is left out costs no more.
#[inline(always)]
pub(crate) fn keeps_hooked(folio: u64) -> bool {
    let n = one_in();
    if n <= 1 {
        return true;
    }
    // SAFETY: a hook's folio, and from it on what the one before points to.
    let hash = unsafe {
        let mapping: u64 = read::directly(folio, layout!(folio_mapping));
        let flags: u64 = read::directly(folio, 0);
        if mapping == 0 || read::low(mapping) & 3 != 0 || read::is_set(flags, layout!(swapbacked_bit)) {
            sample::of_address(read::number(folio))
        } else {
            let inode: u64 = read::directly(mapping, layout!(mapping_host));
            sample::of_file(read::directly(inode, layout!(inode_ino)), read::directly(folio, layout!(folio_index)))
        }
    };
    sample::keeps(hash, n)
}

#[inline(always)]
fn hash<const HOOKED: bool>(folio: &Folio<HOOKED>) -> u32 {
    let mapping = folio.mapping();
    // The address holds for what is anonymous in any way, lazily freed memory included.
    if mapping == 0 || mapping & 3 != 0 || read::is_set(folio.flags(), layout!(swapbacked_bit)) {
        return sample::of_address(read::number(folio.address));
    }
    sample::of_file(folio.ino(), folio.index())
}

/// Whether a range of a file may touch a folio that belongs to the sample.
///
/// Of reads, the one that follows a kept one is told too: whether a read goes on where the one before it ended decides
/// whether it counts as an access (spec 3.1).
#[inline(always)]
pub(crate) fn range_kept(kind: Kind, ino: u64, first: u64, last: u64) -> bool {
    let n = one_in();
    if n <= 1 {
        return true;
    }
    let kept = sample::keeps_range(ino, first, last, n);
    if kind as u8 != Kind::ReadRange as u8 {
        return kept;
    }
    let Some(before) = READ_KEPT.get_ptr_mut(0) else { return true };
    // SAFETY: this CPU's own slot, alive as long as the program.
    let was_kept = unsafe { core::mem::replace(&mut *before, u32::from(kept)) };
    kept || was_kept != 0
}
