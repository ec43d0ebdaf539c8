//! The name of a file, told once.

use core::ptr::read_volatile;

use aya_ebpf::{
    cty::c_void,
    helpers::generated::bpf_probe_read_kernel_str,
    macros::map,
    maps::{LruHashMap, PerCpuArray},
};
use observer_common::{FileName, Kind, NAME_LEN, NAME_PARTS};

use crate::{
    config::layout,
    emit::{bare_head, emit},
    read,
};

/// Inodes whose names were sent. A forgotten one is merely told again.
#[map]
static TOLD: LruHashMap<u64, u8> = LruHashMap::with_max_entries(16384, 0);

/// The file that this CPU came across last: what happens in a row mostly is about one.
#[map]
static LATEST: PerCpuArray<[u64; 3]> = PerCpuArray::with_max_entries(1, 0);

/// Sends a file's path, innermost component first, unless it was sent before.
#[inline(always)]
pub(crate) fn tell_once(dev: u32, ino: u64, inode: u64) {
    let Some(latest) = LATEST.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own slot, alive as long as the program.
    let latest = unsafe { &mut *latest };
    // One by one: comparing arrays would copy them, and the verifier forbids that to what it takes for a pointer.
    if latest[0] == inode && latest[1] == ino && latest[2] == u64::from(dev) {
        return;
    }
    *latest = [inode, ino, u64::from(dev)];
    // SAFETY: as above. Read back it is a number to the verifier, whatever it was before.
    let inode_number = unsafe { read_volatile(&raw const latest[0]) };
    // The address tells apart a removed file from one that got its number.
    let key = inode_number ^ ino.rotate_left(40) ^ u64::from(dev);
    if TOLD.get_ptr(&key).is_some() {
        return;
    }
    if TOLD.insert(&key, &1, 0).is_err() {
        return;
    }
    tell(dev, ino, inode);
}

#[inline(never)]
fn tell(dev: u32, ino: u64, inode: u64) {
    let first: u64 = read::member(inode, layout!(inode_dentry)).unwrap_or(0);
    if first == 0 {
        return;
    }
    emit::<FileName>(|out| {
        let out = out.as_mut_ptr();
        let mut dentry = first - u64::from(layout!(dentry_alias));
        let mut parts = 0;
        // SAFETY: `out` is the whole reserved record; every field is written before it is submitted.
        unsafe {
            (*out).head = bare_head(Kind::FileName, inode);
            (*out).ino = ino;
            (*out).dev = dev;
            (*out).name = [[0; NAME_LEN]; NAME_PARTS];
            for part in 0..NAME_PARTS {
                let name: u64 = read::member(dentry, layout!(dentry_name)).unwrap_or(0);
                let parent: u64 = read::member(dentry, layout!(dentry_parent)).unwrap_or(0);
                // The root is its own parent.
                if name == 0 || parent == 0 || parent == dentry {
                    break;
                }
                let to = (&raw mut (*out).name[part]).cast::<c_void>();
                if bpf_probe_read_kernel_str(to, NAME_LEN as u32, name as *const c_void) < 0 {
                    break;
                }
                parts = part as u32 + 1;
                dentry = parent;
            }
            (*out).parts = parts;
        }
    });
}
