//! `cargo xtask vm`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use xtask::guest::Copied;
use xtask::kernel::Kernel;
use xtask::qemu::Accel;
use xtask::vm::{Output, Step, Verdict, Vm};

use super::size::{parse_size, parse_time};

/// Boots a Debian kernel in a virtual machine, without root, and runs a command in it.
///
/// The kernel and a static busybox are downloaded from this machine's own Debian mirror into the user's cache folder
/// when they are not there yet. The guest has an ext4 disk on /data, compressed swap, cgroup v2, debugfs, tracefs and
/// bpffs, and in /bin: observer, workload, busybox. The command's outputs are passed on as they come. What it leaves
/// in /out is copied to the host. One line with the verdict ends the run on standard error.
///
/// Exit status: the command's own; 124 when time ran out; 125 when the machine failed or its kernel complained.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Kernel: `newest`, a version such as 6.12 or 6.18, or the path of an image or a built source tree.
    #[arg(long, default_value = "newest", value_name = "VERSION|PATH")]
    kernel: String,
    /// Memory of the machine.
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = parse_size)]
    memory: u64,
    /// Virtual CPUs.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// How long the command may run before it is killed.
    #[arg(long, default_value = "300s", value_name = "TIME", value_parser = parse_time)]
    timeout: Duration,
    /// File to put into the guest: HOSTFILE goes to /bin, HOSTFILE:/PATH elsewhere. Programs must be static.
    #[arg(long, value_name = "HOSTFILE[:/PATH]", value_parser = Copied::parse)]
    copy: Vec<Copied>,
    /// Folder on this machine that receives the contents of the guest's /out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Whether the multi-gen LRU is switched on.
    #[arg(long, default_value = "on", value_name = "WHETHER")]
    mglru: Switch,
    /// Size of the ext4 disk on /data; 0 for none.
    #[arg(long, default_value = "4G", value_name = "SIZE", value_parser = parse_size)]
    disk: u64,
    /// Swap: compressed in memory, as large as the memory, or none.
    #[arg(long, default_value = "zram", value_name = "KIND")]
    swap: Swap,
    /// What executes the guest.
    #[arg(long, default_value = "auto", value_name = "HOW")]
    accel: Accel,
    /// Leaves this workspace's programs out: a quicker start while one of them does not build.
    #[arg(long)]
    bare: bool,
    /// Shows the kernel's console on standard error when the run is over, not only when it failed.
    #[arg(long)]
    console: bool,
    /// The command, word by word: `-- sh -c '…'` for a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Swap {
    Zram,
    None,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    }
    let mut vm = Vm::new(Kernel::resolve(&args.kernel)?);
    vm.memory = args.memory;
    vm.cpus = args.cpus;
    vm.timeout = args.timeout;
    vm.disk = (args.disk > 0).then_some(args.disk);
    vm.zram = args.swap == Swap::Zram;
    vm.mglru = args.mglru == Switch::On;
    vm.accel = args.accel;
    vm.copies.clone_from(&args.copy);
    vm.out.clone_from(&args.out);
    if args.bare {
        vm.programs.clear();
    }
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr());
    let result = vm.run_steps(&[Step::new(&args.command)], &mut Output::Stream(&mut stdout, &mut stderr))?;
    if args.console || !matches!(result.verdict, Verdict::Exit(_)) {
        eprint!("{}", result.console);
    }
    for warning in result.warnings() {
        eprintln!("xtask: the kernel warned: {warning}");
    }
    eprintln!("{}", result.verdict);
    Ok(ExitCode::from(u8::try_from(result.verdict.status()).unwrap_or(u8::MAX)))
}
