//! The commands, one file each.

pub(crate) mod bench;
mod bench_capture;
mod bench_pressure;
pub(crate) mod demo;
pub(crate) mod ebpf;
pub(crate) mod kernel_types;
pub(crate) mod memory;
mod scripted;
pub(crate) mod setup;
mod size;
pub(crate) mod test;
pub(crate) mod validate_model;
pub(crate) mod vm;

use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::programs::workspace;
use xtask::shell;

/// Exit status after our reader left: what a shell shows for a process ended by SIGPIPE.
pub(crate) const CLOSED_PIPE: u8 = 141;

/// Whether the reader of our output left; that is its right and no error to speak of.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe))
}

/// Runs cargo in the workspace with everything it prints passed on.
fn cargo(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(words).envs(variables.iter().copied());
    let status = cargo.status().with_context(|| shell::show(&cargo))?;
    if !status.success() {
        bail!("{}: {status}", shell::show(&cargo));
    }
    Ok(())
}
