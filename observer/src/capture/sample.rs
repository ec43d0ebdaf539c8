//! Tells the programs which folios to keep ([`observer_common::sample`]).

use anyhow::{Context, Result};
use aya::{Ebpf, maps::Array};

/// One in `n` from now on.
pub(super) fn set(ebpf: &mut Ebpf, n: u32) -> Result<()> {
    let map = ebpf.map_mut("SAMPLE").context("the eBPF object has no map SAMPLE: rebuild it with `cargo xtask ebpf`")?;
    let mut map: Array<_, u32> = Array::try_from(map)?;
    map.set(0, n, 0).context("cannot say which folios to sample")
}
