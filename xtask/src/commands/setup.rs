//! `cargo xtask setup`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;
use xtask::setup::{self, PREREQUISITES, Purpose};

/// Checks what this machine needs for the chores, and brings what is missing.
///
/// Debian packages are installed when run as root; otherwise the command to run is printed. The parts of the eBPF
/// toolchain go into the user's cache folder and the nightly toolchain.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only says what is there and what is missing; fails when something is.
    #[arg(long)]
    check: bool,
    /// Also what building the eBPF object takes (a nightly compiler, rust-src, bpf-linker); the object is committed, so
    /// only who changes it needs this.
    #[arg(long)]
    ebpf: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut purposes = vec![Purpose::Build, Purpose::Machines];
    if args.ebpf {
        purposes.push(Purpose::Ebpf);
    }
    let missing = setup::missing(&purposes);
    for wanted in PREREQUISITES.iter().filter(|wanted| purposes.contains(&wanted.purpose)) {
        let absent = missing.iter().any(|missing| missing.name == wanted.name);
        println!("{:8}  {:9}  {}", if absent { "missing" } else { "ok" }, wanted.purpose, wanted.name);
    }
    if args.check {
        return Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    setup::bring(&missing)?;
    Ok(ExitCode::SUCCESS)
}
