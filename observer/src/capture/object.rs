//! The eBPF object inside the binary, and how it is loaded.

use anyhow::{Context, Result, bail};
use aya::{Ebpf, EbpfLoader};
use observer_common::layout::{Filter, Layout};

/// Aligned as the ELF parser wants it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../ebpf/observer.bpf.o"));

/// Loads the object with what is known of this kernel; no program is attached, none even verified yet.
///
/// # Errors
/// Says which privilege is missing, or what the kernel refused.
pub fn load(layout: &Layout, filter: &Filter, ring_bytes: u32) -> Result<Ebpf> {
    let mut loader = EbpfLoader::new();
    loader
        .override_global("LAYOUT", bytemuck::bytes_of(layout), true)
        .override_global("FILTER", bytemuck::bytes_of(filter), true)
        .map_max_entries("EVENTS", ring_bytes);
    loader.load(&OBJECT.0).context(
        "the kernel does not let observer load eBPF programs: run as root, or with CAP_BPF and CAP_PERFMON (`observer doctor` says what is missing)",
    )
}

/// Takes a map out of a loaded object.
///
/// # Errors
/// When the object has none of that name: it and the binary do not belong together.
pub fn take_map(ebpf: &mut Ebpf, name: &str) -> Result<aya::maps::Map> {
    match ebpf.take_map(name) {
        Some(map) => Ok(map),
        None => bail!("the eBPF object has no map {name}: rebuild it with `cargo xtask ebpf`"),
    }
}
