//! Makes a bare kernel a machine: file systems, modules, disk, swap, cgroups, MGLRU.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use guest_init::{Job, Message, OUT_PATH};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::port::Port;

/// How long the disk may take to appear after its driver loaded.
const DISK_WITHIN: Duration = Duration::from_secs(10);

/// `MODULE_INIT_COMPRESSED_FILE`: the kernel decompresses the module.
const COMPRESSED: i32 = 4;

/// File systems without which nothing else can be found.
pub(crate) fn early_mounts() -> Result<()> {
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_at(kind, target)?;
    }
    Ok(())
}

/// Loads the modules in the order given.
pub(crate) fn load_modules(paths: &[String]) -> Result<()> {
    for path in paths {
        let file = File::open(path).with_context(|| path.clone())?;
        let flags = if path.ends_with(".ko") { 0 } else { COMPRESSED };
        match rustix::system::finit_module(file, c"", flags) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => bail!("the kernel refuses the module {path}: {error}"),
        }
    }
    Ok(())
}

/// Everything the job wants of the machine.
pub(crate) fn prepare(job: &Job, port: &Port) -> Result<()> {
    for (kind, target) in [
        ("devpts", "/dev/pts"),
        ("tmpfs", "/dev/shm"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tmpfs", OUT_PATH),
        ("cgroup2", "/sys/fs/cgroup"),
    ] {
        mount_at(kind, target)?;
    }
    // Kernels may be built without these; the command that needs one says so better than a dead machine.
    for (kind, target) in [
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("bpf", "/sys/fs/bpf"),
        ("securityfs", "/sys/kernel/security"),
    ] {
        if let Err(error) = mount_at(kind, target) {
            port.say(Message::Note { text: format!("{error:#}") })?;
        }
    }
    rustix::system::sethostname(b"guest").context("host name")?;
    write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
    if let Err(error) = loopback_up() {
        port.say(Message::Note { text: format!("{error:#}") })?;
    }
    if job.disk {
        data_disk()?;
    }
    if let Some(bytes) = job.zram {
        zram_swap(bytes)?;
    }
    mglru(job.mglru, port)
}

fn mount_at(kind: &str, target: &str) -> Result<()> {
    fs::create_dir_all(target).with_context(|| target.to_owned())?;
    match mount(kind, target, kind, MountFlags::empty(), None) {
        // The mount is already there when the kernel made it itself (devtmpfs, tracefs).
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("mount {kind} on {target}")),
    }
}

fn write(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("write {value:?} to {path}"))
}

fn loopback_up() -> Result<()> {
    busybox(&["ip", "link", "set", "lo", "up"])
}

fn busybox(words: &[&str]) -> Result<()> {
    let output = Command::new("/bin/busybox").args(words).output().context("/bin/busybox")?;
    if !output.status.success() {
        bail!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn data_disk() -> Result<()> {
    let disk = Path::new("/dev/vda");
    let deadline = Instant::now() + DISK_WITHIN;
    while !disk.exists() {
        if Instant::now() > deadline {
            bail!("the disk {} did not appear: is virtio_blk in this kernel?", disk.display());
        }
        thread::sleep(Duration::from_millis(5));
    }
    // Newer kernels derive a window of 8 MiB from this disk's limits, so that one mapped page read in a small control group
    // evicts the whole group. 128 KiB is what other kernels, and ordinary disks, have.
    write("/sys/block/vda/queue/read_ahead_kb", "128")?;
    fs::create_dir_all("/data").context("/data")?;
    mount(disk, "/data", "ext4", MountFlags::NOATIME, None).context("mount the ext4 disk on /data")
}

fn zram_swap(bytes: u64) -> Result<()> {
    write("/sys/block/zram0/disksize", &bytes.to_string()).context("is zram in this kernel?")?;
    busybox(&["mkswap", "/dev/zram0"])?;
    busybox(&["swapon", "/dev/zram0"])
}

fn mglru(on: bool, port: &Port) -> Result<()> {
    let path = "/sys/kernel/mm/lru_gen/enabled";
    if Path::new(path).exists() {
        return write(path, if on { "y" } else { "n" });
    }
    if on {
        port.say(Message::Note { text: "this kernel has no multi-gen LRU".into() })?;
    }
    Ok(())
}
