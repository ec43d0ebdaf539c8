//! Into the ring buffer: reserve, fill, submit; and count what did not fit.

use core::mem::MaybeUninit;

use aya_ebpf::{
    bindings::BPF_RB_NO_WAKEUP,
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_boot_ns},
    macros::map,
    maps::{PerCpuArray, RingBuf},
};
use observer_common::{CLOCK_UNKNOWN, Cold, Head, Kind, SWAP_DEV};

use crate::{
    memcg, names,
    read::{self, Identity},
    sample,
    struct_page::Folio,
};

/// Records on their way to user space. The loader sets the size.
#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(1 << 24, 0);

/// Records that found the ring full, per CPU.
#[map]
static LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Reserves a record, lets `fill` write all of it, submits it. No wake-up: user space drains on a timer.
#[inline(always)]
pub(crate) fn emit<T: 'static>(fill: impl FnOnce(&mut MaybeUninit<T>)) {
    match EVENTS.reserve::<T>(0) {
        Some(mut entry) => {
            fill(&mut entry);
            entry.submit(u64::from(BPF_RB_NO_WAKEUP));
        }
        None => {
            if let Some(lost) = LOST.get_ptr_mut(0) {
                // SAFETY: this CPU's own slot, alive as long as the program.
                unsafe { *lost += 1 };
            }
        }
    }
}

/// A record's common part, now, here.
#[inline(always)]
pub(crate) fn head(kind: Kind, folio: u64, flags: u64, clock: u32, aux: u8) -> Head {
    // SAFETY: both helpers take nothing and always succeed.
    let (ts, cpu) = unsafe { (bpf_ktime_get_boot_ns(), bpf_get_smp_processor_id()) };
    Head { ts, folio, flags, clock, kind: kind as u8, aux, cpu: cpu as u16 }
}

/// Goes on with a folio of the sample if what it is charged to is observed.
#[inline(always)]
pub(crate) fn of_stream<const HOOKED: bool>(folio: &Folio<HOOKED>, then: impl FnOnce(Option<u64>)) {
    let memcg = folio.memcg();
    if memcg::observed(memcg) {
        then(memcg);
    }
}

/// Something happened to a folio: flags word and clock.
#[inline(always)]
pub(crate) fn hot<const HOOKED: bool>(kind: Kind, folio: &Folio<HOOKED>, aux: u8) {
    of_stream(folio, |memcg| {
        let flags = folio.flags();
        let clock = read::clock(memcg, flags);
        emit::<Head>(|out| {
            out.write(head(kind, folio.address, flags, clock, aux));
        });
    });
}

/// Something happened to a folio whose identity matters: flags word, clock, who and where it is.
#[inline(always)]
pub(crate) fn cold<const HOOKED: bool>(kind: Kind, folio: &Folio<HOOKED>, aux: u8, arg: u64) {
    of_stream(folio, |memcg| write(kind, folio, aux, arg, memcg, &folio.identity()));
}

/// The same where swap is involved: a folio of the swap cache is known by its swap entry, which survives eviction.
#[inline(always)]
pub(crate) fn cold_by_swap<const HOOKED: bool>(kind: Kind, folio: &Folio<HOOKED>, aux: u8, arg: u64) {
    of_stream(folio, |memcg| {
        let identity = match folio.swap_entry(kind as u8 == Kind::SwapRead as u8) {
            Some(index) => Identity { dev: SWAP_DEV, ino: 0, index, inode: 0 },
            None => folio.identity(),
        };
        write(kind, folio, aux, arg, memcg, &identity);
    });
}

/// Writes the record of a folio about which all is known.
#[inline(always)]
pub(crate) fn write<const HOOKED: bool>(kind: Kind, folio: &Folio<HOOKED>, aux: u8, arg: u64, memcg: Option<u64>, identity: &Identity) {
    let flags = folio.flags();
    let clock = read::clock(memcg, flags);
    let memcg::Facts { cgroup, memcg_id, .. } = memcg::facts(memcg);
    let Identity { dev, ino, index, inode } = *identity;
    let order = folio.order();
    if inode != 0 {
        names::tell_once(dev, ino, inode);
        sample::told(ino, index, order);
    }
    let node = read::node(flags) as u8;
    emit::<Cold>(|out| {
        out.write(Cold { head: head(kind, folio.address, flags, clock, aux), ino, index, cgroup, arg, dev, memcg_id, node, order });
    });
}

/// A record's head for something that is no folio.
#[inline(always)]
pub(crate) fn bare_head(kind: Kind, subject: u64) -> Head {
    head(kind, subject, 0, CLOCK_UNKNOWN, 0)
}
