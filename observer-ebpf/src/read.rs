//! Kernel memory, read at offsets that user space found in this kernel's BTF.

use aya_ebpf::{
    cty::c_void,
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, generated::bpf_probe_read_kernel},
};
use observer_common::{CLOCK_UNKNOWN, layout::ABSENT, pack_clock, task};

use crate::config::{layout, self_tgid};

/// Copies `size_of::<T>()` bytes of kernel memory; false (and zeros, by the helper) when they cannot be read.
#[inline(always)]
pub(crate) fn copy<T>(to: *mut T, address: u64) -> bool {
    // SAFETY: the helper writes exactly the size of T to `to`, which every caller takes from a place of that type, and
    // checks the kernel address itself.
    unsafe { bpf_probe_read_kernel(to.cast::<c_void>(), size_of::<T>() as u32, address as *const c_void) == 0 }
}

/// Reads one value; `None` when the address cannot be read.
#[inline(always)]
pub(crate) fn value<T: Copy + Default>(address: u64) -> Option<T> {
    let mut out = T::default();
    if copy(&raw mut out, address) { Some(out) } else { None }
}

/// A kernel address as a number to compute with. The verifier forbids that with what a hook passes as a pointer; what is
/// read from memory is a number, wherever the memory is.
#[inline(always)]
pub(crate) fn number(pointer: u64) -> u64 {
    let held = pointer;
    value((&raw const held) as u64).unwrap_or(0)
}

/// The low half of a pointer as a number: enough for its tag bits, and no helper call. The verifier lets only a move of 32 bits
/// turn a pointer into a number, and the compiler would rather mask the pointer itself.
#[inline(always)]
pub(crate) fn low(pointer: u64) -> u32 {
    let low: u64;
    // SAFETY: a move between registers.
    unsafe { core::arch::asm!("w0 = w1", in("r1") pointer, lateout("r0") low, options(pure, nomem, nostack)) };
    low as u32
}

/// Reads a member at `base + offset`; `None` when this kernel has no such member.
#[inline(always)]
pub(crate) fn member<T: Copy + Default>(base: u64, offset: u32) -> Option<T> {
    if offset == ABSENT { None } else { value(base + u64::from(offset)) }
}

/// Reads a member without a helper: zero where the pointer leads nowhere.
///
/// # Safety
/// `base` is what the verifier knows to point to a kernel type with such a member at `offset`: an argument of the hook, or
/// what was read from one in this way. It refuses anything else, and arithmetic with the value read.
#[inline(always)]
pub(crate) unsafe fn directly<T: Copy>(base: u64, offset: u32) -> T {
    // SAFETY: the verifier checks type and size, and the kernel handles a fault. Volatile: the compiler must not merge reads.
    unsafe { core::ptr::read_volatile((base + u64::from(offset)) as *const T) }
}

/// NUMA node out of a flags word.
#[inline(always)]
pub(crate) fn node(flags: u64) -> u64 {
    (flags >> (layout!(node_shift) & 63)) & u64::from(layout!(node_mask))
}

/// The lruvec of a cgroup on a node.
#[inline(always)]
pub(crate) fn lruvec(memcg: u64, node: u64) -> Option<u64> {
    let per_node: u64 = value(memcg + u64::from(layout!(memcg_nodeinfo)) + node * 8)?;
    if per_node == 0 { None } else { Some(per_node + u64::from(layout!(pn_lruvec))) }
}

/// max_seq, min_seq[anon], min_seq[file], read in one go.
#[inline(always)]
pub(crate) fn seqs(lruvec: u64) -> Option<[u64; 3]> {
    member(lruvec, layout!(lruvec_seq))
}

/// A lruvec's packed clock.
#[inline(always)]
pub(crate) fn clock(memcg: Option<u64>, flags: u64) -> u32 {
    let Some(memcg) = memcg else { return CLOCK_UNKNOWN };
    let Some(lruvec) = lruvec(memcg, node(flags)) else { return CLOCK_UNKNOWN };
    match seqs(lruvec) {
        Some([max, anon, file]) => pack_clock(max, anon, file),
        None => CLOCK_UNKNOWN,
    }
}

/// Whether the observer itself is running.
#[inline(always)]
pub(crate) fn is_self() -> bool {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    tgid != 0 && tgid == self_tgid()
}

/// The running task's state that `folio_add_lru` looks at: [`task`] bits.
#[inline(always)]
pub(crate) fn task_bits() -> u8 {
    const PF_MEMALLOC: u32 = 0x800;
    // SAFETY: takes nothing, returns the running task's address.
    let current = unsafe { bpf_get_current_task() };
    let Some(flags) = member::<u32>(current, layout!(task_flags)) else { return task::UNKNOWN };
    let Some(byte) = member::<u8>(current, layout!(task_in_lru_fault)) else { return task::UNKNOWN };
    let in_fault = (byte >> (layout!(task_in_lru_fault_bit) & 7)) & 1;
    let memalloc = if flags & PF_MEMALLOC != 0 { task::MEMALLOC } else { 0 };
    in_fault * task::IN_LRU_FAULT | memalloc
}

/// What a folio holds, as records name it.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// Device, 0 for anon.
    pub(crate) dev: u32,
    /// Inode number; what stands in `folio->mapping` where that is no file.
    pub(crate) ino: u64,
    /// Index.
    pub(crate) index: u64,
    /// The inode's address, 0 for anon.
    pub(crate) inode: u64,
}

/// Whether a flag bit is set.
#[inline(always)]
pub(crate) fn is_set(flags: u64, bit: u32) -> bool {
    (flags >> (bit & 63)) & 1 != 0
}

/// Device, inode number and inode address behind a file mapping.
#[inline(always)]
pub(crate) fn file(mapping: u64) -> Option<(u32, u64, u64)> {
    let inode: u64 = member(mapping, layout!(mapping_host))?;
    if inode == 0 {
        return None;
    }
    let ino: u64 = member(inode, layout!(inode_ino))?;
    let sb: u64 = member(inode, layout!(inode_sb))?;
    let dev: u32 = member(sb, layout!(sb_dev))?;
    Some((dev, ino, inode))
}
