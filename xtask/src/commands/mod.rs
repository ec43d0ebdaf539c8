//! The commands, one file each.

pub(crate) mod ebpf;
pub(crate) mod setup;
pub(crate) mod test;
pub(crate) mod vm;

/// Exit status after our reader left: what a shell shows for a process ended by SIGPIPE.
pub(crate) const CLOSED_PIPE: u8 = 141;
