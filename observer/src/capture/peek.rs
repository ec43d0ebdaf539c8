//! Reads kernel memory through a program, for static data that no file shows under lockdown.

use anyhow::{Context, Result, bail};
use aya::{
    Ebpf,
    maps::Array,
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};

/// Bytes read at once; the program's own constant.
const LEN: usize = 256;

/// Reads [`LEN`] bytes at a kernel address.
///
/// # Errors
/// When the kernel refuses the program or the address cannot be read.
pub fn peek(ebpf: &mut Ebpf, address: u64) -> Result<Vec<u8>> {
    let map = |ebpf: &mut Ebpf, name| super::object::take_map(ebpf, name);
    let mut addresses: Array<_, u64> = Array::try_from(map(ebpf, "PEEK_ADDRESS")?)?;
    let bytes: Array<_, [u8; LEN]> = Array::try_from(map(ebpf, "PEEK_BYTES")?)?;
    let done: Array<_, u64> = Array::try_from(map(ebpf, "PEEK_DONE")?)?;
    addresses.set(0, address, 0)?;
    let program: &mut RawTracePoint = ebpf.program_mut("peek").context("the eBPF object has no program peek")?.try_into()?;
    program.load().context("the kernel refused the program that reads kernel memory")?;
    program.test_run(RawTracePointRunOptions::default()).context("the kernel did not run the program that reads kernel memory")?;
    if done.get(&0, 0)? != 1 {
        bail!("kernel memory at {address:#x} cannot be read");
    }
    Ok(bytes.get(&0, 0)?.to_vec())
}
