//! Reads kernel memory through a program, for static data that no file shows under lockdown.

use anyhow::{Context, Result, bail};
use aya::{
    Ebpf,
    maps::{Array, MapData},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};

use super::object::take_map;

/// Bytes read at once; the program's own constant.
const LEN: usize = 256;

/// Reads kernel memory.
pub struct Peeker {
    ebpf: Ebpf,
    addresses: Array<MapData, u64>,
    bytes: Array<MapData, [u8; LEN]>,
    done: Array<MapData, u64>,
}

impl Peeker {
    /// With a loaded object that serves nothing else.
    ///
    /// # Errors
    /// When the kernel refuses the program.
    pub fn new(mut ebpf: Ebpf) -> Result<Self> {
        let addresses = Array::try_from(take_map(&mut ebpf, "PEEK_ADDRESS")?)?;
        let bytes = Array::try_from(take_map(&mut ebpf, "PEEK_BYTES")?)?;
        let done = Array::try_from(take_map(&mut ebpf, "PEEK_DONE")?)?;
        let program: &mut RawTracePoint = ebpf.program_mut("peek").context("the eBPF object has no program peek")?.try_into()?;
        program.load().context("the kernel refused the program that reads kernel memory")?;
        Ok(Self { ebpf, addresses, bytes, done })
    }

    /// Reads [`LEN`] bytes at a kernel address.
    ///
    /// # Errors
    /// When the address cannot be read.
    pub fn read(&mut self, address: u64) -> Result<Vec<u8>> {
        self.addresses.set(0, address, 0)?;
        let program: &RawTracePoint = self.ebpf.program("peek").context("the eBPF object has no program peek")?.try_into()?;
        program.test_run(RawTracePointRunOptions::default()).context("the kernel did not run the program that reads kernel memory")?;
        if self.done.get(&0, 0)? != 1 {
            bail!("kernel memory at {address:#x} cannot be read");
        }
        Ok(self.bytes.get(&0, 0)?.to_vec())
    }
}
