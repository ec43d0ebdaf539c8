//! Reclaim and aging: the lruvec's clock, sizes and controller.

use aya_ebpf::{
    helpers::bpf_ktime_get_boot_ns,
    macros::{fentry, fexit, map},
    maps::LruHashMap,
    programs::{FEntryContext, FExitContext},
};
use aya_log_ebpf::warn;
use observer_common::{Controller, Kind, Shrink, layout::ABSENT};

use crate::{
    config::layout,
    emit::{bare_head, emit},
    memcg, read,
};

/// When a lruvec's controller was last sent.
#[map]
static CONTROLLER_SENT: LruHashMap<u64, u64> = LruHashMap::with_max_entries(1024, 0);

/// A controller is sent at most this often per lruvec, nanoseconds: its counters move with every eviction, and the
/// limits that follow from them slowly.
const CONTROLLER_EVERY: u64 = 10_000_000;

/// Reclaim begins on a lruvec.
#[fentry]
fn try_to_shrink_lruvec_enter(ctx: FEntryContext) -> u32 {
    if !shrink(Kind::ShrinkEnter, ctx.arg(0), ctx.arg(1)) {
        warn!(&ctx, "a lruvec's generations cannot be read");
    }
    0
}

/// Reclaim ends on a lruvec.
#[fexit]
fn try_to_shrink_lruvec_exit(ctx: FExitContext) -> u32 {
    let lruvec: u64 = ctx.arg(0);
    shrink(Kind::ShrinkExit, lruvec, ctx.arg(1));
    0
}

/// `max_seq` may have moved (6.14 and later: it has, unless another reclaimer was faster).
#[fexit]
fn inc_max_seq(ctx: FExitContext) -> u32 {
    shrink(Kind::Age, ctx.arg(0), 0);
    0
}

/// The same where `inc_max_seq` was cloned by the compiler.
#[fexit]
fn try_to_inc_max_seq(ctx: FExitContext) -> u32 {
    shrink(Kind::Age, ctx.arg(0), 0);
    0
}

/// Reports a lruvec; false when it cannot be read, which is never claimed to be a zero.
#[inline(always)]
fn shrink(kind: Kind, lruvec: u64, scan_control: u64) -> bool {
    let memcg = read::member::<u64>(lruvec - u64::from(layout!(pn_lruvec)), layout!(pn_memcg));
    if !memcg::observed(memcg) {
        return true;
    }
    let Some([max_seq, anon, file]) = read::seqs(lruvec) else { return false };
    let cgroup = memcg::facts(memcg).cgroup;
    emit::<Shrink>(|out| {
        let out = out.as_mut_ptr();
        let mut priority = 0;
        let mut nr_reclaimed = 0;
        if scan_control != 0 {
            priority = read::member::<u8>(scan_control, layout!(sc_priority)).unwrap_or(0);
            nr_reclaimed = read::member::<u64>(scan_control, layout!(sc_nr_reclaimed)).unwrap_or(0);
        }
        // SAFETY: `out` is the whole reserved record; every field is written before it is submitted.
        unsafe {
            (*out).head = bare_head(kind, lruvec);
            (*out).max_seq = max_seq;
            (*out).min_seq = [anon, file];
            (*out).cgroup = cgroup;
            (*out).nr_reclaimed = nr_reclaimed;
            for generation in 0..4 {
                for kind in 0..2 {
                    (*out).pages[generation][kind] = pages(lruvec, (generation * 2 + kind) as u64);
                }
            }
            (*out).priority = priority;
            (*out).node = node(lruvec);
            (*out).enabled = read::member::<u8>(lruvec, layout!(lruvec_enabled)).unwrap_or(0);
            (*out).pad = [0; 5];
        }
    });
    controller(lruvec, kind);
    true
}

#[inline(always)]
fn node(lruvec: u64) -> u8 {
    match read::member::<u64>(lruvec, layout!(lruvec_pgdat)) {
        Some(pgdat) => read::member::<u8>(pgdat, layout!(pgdat_node_id)).unwrap_or(0),
        None => 0,
    }
}

/// Pages of one generation and type over all zones; a passing negative count reads as none (spec 9.3).
#[inline(always)]
fn pages(lruvec: u64, row: u64) -> u32 {
    const MAX_ZONES: u32 = 8;
    let zones = layout!(nr_zones);
    let base = layout!(lruvec_nr_pages);
    if base == ABSENT {
        return 0;
    }
    let mut sum = 0;
    for zone in 0..MAX_ZONES {
        if zone >= zones {
            break;
        }
        let address = lruvec + u64::from(base) + (row * u64::from(zones) + u64::from(zone)) * 8;
        sum += read::value::<i64>(address).unwrap_or(0);
    }
    if sum < 0 { 0 } else { sum as u32 }
}

#[inline(always)]
fn controller(lruvec: u64, kind: Kind) {
    if layout!(lruvec_avg_refaulted) == ABSENT {
        return;
    }
    // SAFETY: takes nothing, always succeeds.
    let now = unsafe { bpf_ktime_get_boot_ns() };
    if let Some(last) = CONTROLLER_SENT.get_ptr_mut(&lruvec) {
        // SAFETY: a value of a live map; a race merely sends one more.
        unsafe {
            if kind as u8 != Kind::Age as u8 && now - *last < CONTROLLER_EVERY {
                return;
            }
            *last = now;
        }
    } else if CONTROLLER_SENT.insert(&lruvec, &now, 0).is_err() {
        return;
    }
    // The history slot of a type is that of its min_seq (spec 4.1).
    let [_, anon, file] = read::seqs(lruvec).unwrap_or([0; 3]);
    let hists = u64::from(layout!(nr_hist)).max(1);
    let slots = [anon & (hists - 1), file & (hists - 1)];
    let tiers = u64::from(layout!(protected_tiers));
    emit::<Controller>(|out| {
        let out = out.as_mut_ptr();
        // SAFETY: `out` is the whole reserved record; every field is written before it is submitted.
        unsafe {
            (*out).head = bare_head(Kind::Controller, lruvec);
            (*out).protected = [[0; 4]; 2];
            for kind in 0..2 {
                let row = kind as u64;
                // `[hist][type][tier]`
                let slot = (slots[kind] * 2 + row) * 4 * 8;
                read::copy(&raw mut (*out).avg_refaulted[kind], lruvec + u64::from(layout!(lruvec_avg_refaulted)) + row * 32);
                read::copy(&raw mut (*out).avg_total[kind], lruvec + u64::from(layout!(lruvec_avg_total)) + row * 32);
                read::copy(&raw mut (*out).refaulted[kind], lruvec + u64::from(layout!(lruvec_refaulted)) + slot);
                read::copy(&raw mut (*out).evicted[kind], lruvec + u64::from(layout!(lruvec_evicted)) + slot);
                let protected = lruvec + u64::from(layout!(lruvec_protected)) + (slots[kind] * 2 + row) * tiers * 8;
                if tiers == 4 {
                    read::copy(&raw mut (*out).protected[kind], protected);
                } else {
                    let three = (&raw mut (*out).protected[kind][1]).cast::<[u64; 3]>();
                    read::copy(three, protected);
                }
            }
        }
    });
}
