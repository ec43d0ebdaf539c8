//! Whether this stream keeps a folio ([`observer_common::sample`]). Global state is never asked about here.

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray},
};
use observer_common::{Kind, sample};

/// One in this many folios is kept. A map, since user space lowers the rate while the programs run.
#[map]
static SAMPLE: Array<u32> = Array::with_max_entries(1, 0);

/// The orders of the folios that user space was told of, a bit for each, by block of a file ([`sample::block_of`]). Blocks that share a
/// slot share their bits, and none is ever taken away: what is asked about too much is only told too much. An access to
/// a folio that user space knows nothing of would tell it nothing.
#[map]
static ORDERS: Array<u64> = Array::with_max_entries(1 << (32 - BLOCK_SHIFT), 0);

/// What is left of a block's hash has 15 bits: 256 KiB of slots.
const BLOCK_SHIFT: u32 = 17;

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

/// Whether a folio with this hash belongs to the sample. The hash is asked for only where not all do.
#[inline(always)]
pub(crate) fn keeps(hash: impl FnOnce() -> u32) -> bool {
    let n = one_in();
    n <= 1 || sample::keeps(hash(), n)
}

/// A folio of a file is told to user space: reads of it may be from now on.
#[inline(always)]
pub(crate) fn told(ino: u64, index: u64, order: u8) {
    let Some(orders) = orders(ino, index) else { return };
    let bit = 1_u64 << (order & 15);
    // SAFETY: the block's own slot, alive as long as the program; atomically, since other CPUs tell of other folios in it. No
    // method of an atomic compiles to this instruction.
    unsafe {
        if orders.read_volatile() & bit == 0 {
            core::arch::asm!("lock *(u64 *)(r1 + 0) |= r2", in("r1") orders, in("r2") bit, options(nostack));
        }
    }
}

/// The slot of the block that a page of a file lies in.
#[inline(always)]
fn orders(ino: u64, index: u64) -> Option<*mut u64> {
    ORDERS.get_ptr_mut(sample::block_of(ino, index) >> BLOCK_SHIFT)
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
    // SAFETY: the block's own slot, alive as long as the program.
    let orders = orders(ino, first).map_or(u32::MAX, |orders| unsafe { orders.read_volatile() } as u32);
    let kept = sample::keeps_range(ino, first, last, n, orders);
    if kind as u8 != Kind::ReadRange as u8 {
        return kept;
    }
    let Some(before) = READ_KEPT.get_ptr_mut(0) else { return true };
    // SAFETY: this CPU's own slot, alive as long as the program.
    let was_kept = unsafe { core::mem::replace(&mut *before, u32::from(kept)) };
    kept || was_kept != 0
}
