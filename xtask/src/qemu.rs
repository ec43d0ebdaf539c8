//! The emulator: its command line, and whether this machine's KVM can be trusted with a guest.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use clap::ValueEnum;
use guest_init::PORT_NAME;

use crate::kernel::Kernel;
use crate::{cache, shell};

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// KVM where it was seen to work, or was not tried yet; emulation otherwise.
    #[default]
    Auto,
    /// KVM, and fail without it.
    Kvm,
    /// Emulation.
    Tcg,
}

impl Accel {
    /// The accelerators to try, in order.
    pub fn attempts(self) -> Result<Vec<Self>> {
        Ok(match self {
            Self::Auto if kvm_may_work()? => vec![Self::Kvm, Self::Tcg],
            Self::Auto => vec![Self::Tcg],
            chosen => vec![chosen],
        })
    }

    /// QEMU's argument.
    fn argument(self) -> &'static str {
        match self {
            Self::Auto | Self::Kvm => "kvm",
            Self::Tcg => "tcg,thread=multi",
        }
    }
}

/// The file that remembers how KVM fared; a new host kernel is a new try.
fn kvm_memo() -> Result<PathBuf> {
    let host = rustix::system::uname().release().to_string_lossy().into_owned();
    Ok(cache::subfolder(&cache::folder()?, "kvm")?.join(host))
}

fn kvm_may_work() -> Result<bool> {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    Ok(fs::read_to_string(kvm_memo()?).map_or(true, |memo| memo.starts_with("works")))
}

/// Remembers that a guest ran under KVM, or why it did not.
pub fn remember_kvm(outcome: Result<(), &str>) -> Result<()> {
    let path = kvm_memo()?;
    let text = outcome.map_or_else(|why| format!("fails: {why}\n"), |()| "works\n".to_owned());
    fs::write(&path, text).with_context(|| path.display().to_string())
}

/// The hardware of a machine.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// The kernel to boot.
    pub kernel: &'a Kernel,
    /// The initramfs file.
    pub initramfs: &'a Path,
    /// The disk image, if any.
    pub disk: Option<&'a Path>,
    /// Memory in bytes.
    pub memory: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// What executes it.
    pub accel: Accel,
}

/// Starts the machine. The process has the kernel's console on its standard output; the stream is the virtio port.
pub fn start(machine: &Machine<'_>) -> Result<(Child, UnixStream)> {
    let (host, guest) = UnixStream::pair().context("a socket pair for the guest's port")?;
    let mut command = dies_with_us("qemu-system-x86_64", "qemu-system-x86")?;
    command.args(["-accel", machine.accel.argument(), "-cpu", "max", "-smp", &machine.cpus.to_string()]);
    command.args(["-m", &format!("{}k", machine.memory >> 10)]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none"]);
    command.arg("-kernel").arg(&machine.kernel.image).arg("-initrd").arg(machine.initramfs);
    // A kernel that stumbled must not run on: its numbers would look like results. The lock-up watchdog is
    // patient because an emulated CPU may be starved by the host.
    command.args(["-append", "console=ttyS0 loglevel=5 panic=-1 oops=panic softlockup_panic=1 watchdog_thresh=30"]);
    command.args(["-serial", "file:/dev/stdout", "-device", "virtio-serial-pci"]);
    command.args(["-chardev", "socket,id=control,fd=0"]);
    command.args(["-device", &format!("virtserialport,chardev=control,name={PORT_NAME}")]);
    if let Some(disk) = machine.disk {
        // The image is thrown away afterwards, so nothing of it has to reach the host's disk.
        command.arg("-drive").arg(format!("file={},format=raw,if=virtio,cache=unsafe,discard=unmap", disk.display()));
    }
    command.stdin(Stdio::from(OwnedFd::from(guest))).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| shell::show(&command))?;
    Ok((child, host))
}

/// A command that the kernel ends when this process is killed, where util-linux can arrange it.
fn dies_with_us(program: &str, package: &str) -> Result<Command> {
    let direct = shell::command(program, package)?;
    let Some(setpriv) = shell::find("setpriv") else { return Ok(direct) };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(direct.get_program());
    Ok(command)
}

/// Makes an empty ext4 disk image, sparse.
pub fn make_disk(path: &Path, bytes: u64) -> Result<()> {
    let mut mke2fs = shell::command("mke2fs", "e2fsprogs")?;
    mke2fs.args(["-q", "-F", "-t", "ext4", "-m", "0"]).arg(path).arg(format!("{}k", bytes >> 10));
    shell::output(&mut mke2fs).map(drop)
}
