//! The eBPF object inside the binary, and how it is loaded.

use anyhow::{Context, Result, bail};
use aya::{Ebpf, EbpfLoader};
use observer_common::layout::{Filter, Layout};

/// Aligned as the ELF parser wants it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../ebpf/observer.bpf.o"));

/// Loads the object, as often as needed: it reads the kernel's BTF once, which takes most of the time.
pub struct Loader<'a>(EbpfLoader<'a>);

impl<'a> Loader<'a> {
    /// For the running kernel.
    pub fn new() -> Self {
        Self(EbpfLoader::new())
    }

    /// Loads the object with what is known of this kernel; no program is attached, none even verified yet.
    ///
    /// # Errors
    /// Says which privilege is missing, or what the kernel refused.
    pub fn load(&mut self, layout: &'a Layout, filter: &'a Filter, ring_bytes: u32) -> Result<Ebpf> {
        self.0
            .override_global("LAYOUT", bytemuck::bytes_of(layout), true)
            .override_global("FILTER", bytemuck::bytes_of(filter), true)
            .map_max_entries("EVENTS", ring_bytes);
        self.0.load(&OBJECT.0).context(
            "the kernel does not let observer load eBPF programs: run as root, or with CAP_BPF and CAP_PERFMON (`observer doctor` says what is missing)",
        )
    }
}

impl Default for Loader<'_> {
    fn default() -> Self {
        Self::new()
    }
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
