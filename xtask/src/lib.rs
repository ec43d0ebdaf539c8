//! Project chores as a library: the `xtask` command and the end-to-end tests drive the same kernels and machines.

pub mod apt;
pub mod cache;
pub mod cpio;
pub mod ebpf;
pub mod guest;
pub mod kernel;
pub mod modules;
pub mod peers;
pub mod programs;
pub mod qemu;
pub mod setup;
pub mod shell;
pub mod validate;
pub mod vm;
