//! What a test machine starts with: the initramfs that carries its programs, modules and job.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use guest_init::{JOB_PATH, Job};

use crate::apt::Suite;
use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::programs::{self, INIT, Link, Program};
use crate::shell::{self, say};
use crate::{cache, modules};

/// The suite that busybox is taken from.
const BUSYBOX_SUITE: &str = "trixie";

/// A file of the host that goes into the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where it is on the host.
    pub host: PathBuf,
    /// Where it is wanted in the guest.
    pub guest: String,
}

impl Copied {
    /// Reads `HOSTFILE` (goes to `/bin`) or `HOSTFILE:GUESTPATH`.
    pub fn parse(text: &str) -> Result<Self> {
        let (host, guest) = text.split_once(':').unwrap_or((text, ""));
        let name = Path::new(host).file_name().with_context(|| format!("{host:?} names no file"))?;
        let guest = if guest.is_empty() { format!("/bin/{}", name.to_string_lossy()) } else { guest.to_owned() };
        if !guest.starts_with('/') {
            bail!("the place in the guest must begin with a /: {guest}");
        }
        Ok(Self { host: host.into(), guest })
    }
}

/// Debian's static busybox from the cache: a shell and the usual small tools for the guest.
pub fn busybox() -> Result<PathBuf> {
    let folder = cache::subfolder(&cache::folder()?, "tools")?.join("busybox-static");
    let _lock = cache::lock("busybox")?;
    if !folder.exists() {
        let suite = Suite::open(BUSYBOX_SUITE)?;
        suite.unpack(&[suite.show("busybox-static")?], None, &folder)?;
    }
    let places = ["usr/bin/busybox", "bin/busybox"].map(|place| folder.join(place));
    places.into_iter().find(|place| place.is_file()).with_context(|| format!("no busybox in {}", folder.display()))
}

/// Builds the initramfs of a job.
pub fn initramfs(kernel: &Kernel, mut job: Job, programs: &[Program], copies: &[Copied]) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    // The first process needs these two before it can mount anything.
    archive.device("/dev/console", 5, 1);
    archive.device("/dev/null", 1, 3);
    for folder in ["/proc", "/sys", "/tmp", "/run", "/data", "/etc"] {
        archive.folder(folder);
    }
    if let Some(folder) = &kernel.modules {
        for module in modules::collect(folder)? {
            let path = format!("/modules/{}", module.file);
            archive.file(&path, 0o644, &module.bytes);
            job.modules.push(path);
        }
    }
    let programs: Vec<Program> = std::iter::once(INIT).chain(programs.iter().copied()).collect();
    say(format_args!("building for the guest: {}", programs.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")));
    let mut copies = copies.to_vec();
    for (program, host) in programs.iter().zip(programs::build(&programs, Link::Static)?) {
        let guest = if *program == INIT { "/init".to_owned() } else { format!("/bin/{}", program.name) };
        copies.push(Copied { host, guest });
    }
    let busybox = busybox()?;
    let applets = shell::output(Command::new(&busybox).arg("--list"))?;
    copies.push(Copied { host: busybox, guest: "/bin/busybox".to_owned() });
    for copy in &copies {
        let name = || copy.host.display().to_string();
        let mode = fs::metadata(&copy.host).with_context(name)?.permissions().mode() & 0o777;
        archive.file(&copy.guest, mode, &fs::read(&copy.host).with_context(name)?);
    }
    for applet in applets.lines() {
        let path = format!("/bin/{applet}");
        if copies.iter().all(|copy| copy.guest != path) {
            archive.symlink(&path, "busybox");
        }
    }
    archive.symlink("/sbin", "bin");
    archive.file("/etc/passwd", 0o644, b"root:x:0:0:root:/tmp:/bin/sh\n");
    archive.file(JOB_PATH, 0o644, &serde_json::to_vec(&job)?);
    Ok(archive.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_to_bin_unless_placed() {
        assert_eq!(Copied::parse("a/b").unwrap().guest, "/bin/b");
        assert_eq!(Copied::parse("a/b:/data/c").unwrap().guest, "/data/c");
        assert!(Copied::parse("a/b:c").is_err());
        assert!(Copied::parse("..").is_err());
    }
}
