//! What a memory cgroup is called and whether it is observed: found once, since that is many reads for each event.

use core::ptr::{read_volatile, write_volatile};

use aya_ebpf::{macros::map, maps::PerCpuArray};

use crate::{
    config::{filter_cgroup, layout},
    read::{member, value},
};

/// What holds for all of a memory cgroup's life.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    /// User space's id of it, 0 when unknown.
    pub(crate) cgroup: u64,
    /// Its id in shadow entries.
    pub(crate) memcg_id: u16,
    /// Whether it is inside the observed subtree.
    pub(crate) observed: bool,
}

impl Facts {
    /// Of a folio that is charged to none.
    pub(crate) const NONE: Self = Self { cgroup: 0, memcg_id: 0, observed: false };
}

/// A memory cgroup that this CPU came across.
#[repr(C)]
struct Slot {
    /// Its serial number, which no other one ever has; 0 while the slot has none.
    serial: u64,
    cgroup: u64,
    memcg_id: u16,
    observed: u16,
    /// 1 while a program fills the slot. It may be preempted, and another one come this way on this CPU.
    filling: u32,
}

/// Slots of a CPU.
const SLOTS: u32 = 16;

#[map]
static MEMCGS: PerCpuArray<Slot> = PerCpuArray::with_max_entries(SLOTS, 0);

/// Whether a memory cgroup is inside the observed subtree.
#[inline(always)]
pub(crate) fn observed(memcg: Option<u64>) -> bool {
    filter_cgroup().0 == 0 || facts(memcg).observed
}

/// What is known of a memory cgroup.
#[inline(always)]
pub(crate) fn facts(memcg: Option<u64>) -> Facts {
    let Some(memcg) = memcg else { return Facts::NONE };
    let serial: u64 = member(memcg, layout!(memcg_serial)).unwrap_or(0);
    let Some(slot) = MEMCGS.get_ptr_mut(serial as u32 & (SLOTS - 1)) else { return look(memcg) };
    // SAFETY: this CPU's own slot, alive as long as the program. Volatile: other programs run between any two of these lines.
    unsafe {
        if serial != 0 && read_volatile(&raw const (*slot).serial) == serial {
            let facts = Facts {
                cgroup: read_volatile(&raw const (*slot).cgroup),
                memcg_id: read_volatile(&raw const (*slot).memcg_id),
                observed: read_volatile(&raw const (*slot).observed) != 0,
            };
            if read_volatile(&raw const (*slot).serial) == serial {
                return facts;
            }
        }
        let facts = look(memcg);
        if read_volatile(&raw const (*slot).filling) == 0 {
            write_volatile(&raw mut (*slot).filling, 1);
            write_volatile(&raw mut (*slot).serial, 0);
            write_volatile(&raw mut (*slot).cgroup, facts.cgroup);
            write_volatile(&raw mut (*slot).memcg_id, facts.memcg_id);
            write_volatile(&raw mut (*slot).observed, u16::from(facts.observed));
            write_volatile(&raw mut (*slot).serial, serial);
            write_volatile(&raw mut (*slot).filling, 0);
        }
        facts
    }
}

#[inline(always)]
fn look(memcg: u64) -> Facts {
    Facts {
        cgroup: match cgroup(memcg) {
            Some(cgroup) => kn_id(cgroup).unwrap_or(0),
            None => 0,
        },
        memcg_id: member(memcg, layout!(memcg_id)).unwrap_or(0),
        observed: inside(memcg).unwrap_or(false),
    }
}

/// The cgroup of a memory cgroup.
#[inline(always)]
fn cgroup(memcg: u64) -> Option<u64> {
    member(memcg, layout!(memcg_cgroup))
}

/// kernfs id of a cgroup.
#[inline(always)]
fn kn_id(cgroup: u64) -> Option<u64> {
    member(member(cgroup, layout!(cgroup_kn))?, layout!(kn_id))
}

#[inline(always)]
fn inside(memcg: u64) -> Option<bool> {
    let (wanted, level) = filter_cgroup();
    if wanted == 0 {
        return Some(true);
    }
    let cgroup = cgroup(memcg)?;
    let own_level: u32 = member(cgroup, layout!(cgroup_level))?;
    if own_level < level {
        return Some(false);
    }
    // A cgroup is its own ancestor at its own level.
    let ancestor: u64 = value(cgroup + u64::from(layout!(cgroup_ancestors)) + u64::from(level & 0xff) * 8)?;
    Some(kn_id(ancestor)? == wanted)
}
