//! `cargo xtask ebpf`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;

/// Builds the eBPF object that observer contains, with a nightly compiler.
///
/// Writes observer/ebpf/observer.bpf.o and, beside it, the hash of the sources it was built from. Needs a nightly
/// toolchain; rust-src and bpf-linker are brought when missing (by rustup or from Debian's package, by cargo install).
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Writes nothing: fails when the committed object does not belong to the sources. Builds it again for comparison
    /// where the toolchain is complete.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.check {
        xtask::ebpf::check()?
    } else {
        xtask::ebpf::build()?
    }
    Ok(ExitCode::SUCCESS)
}
