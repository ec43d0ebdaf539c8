//! A shell script beside observer and the workloads, on a real kernel in a virtual machine or on this machine's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use xtask::guest::Copied;
use xtask::kernel::Kernel;
use xtask::programs::{self, Link, PROGRAMS};
use xtask::shell::{self, say};
use xtask::vm::{Output, Step, Vm};

/// A function for all scripts, which lies beside them.
const SETTLED: (&str, &str) = ("settled.sh", include_str!("settled.sh"));

/// The folder of scripts and files in a guest.
const GUEST_FOLDER: &str = "/bench";

/// What runs where.
pub(super) struct Scripted<'a> {
    /// `host`, or a kernel's version.
    pub(super) kernel: &'a str,
    /// Names and texts. The first one is run; all lie in one folder.
    pub(super) scripts: &'a [(&'a str, &'a str)],
    /// More files, by their places in that folder.
    pub(super) files: &'a [Copied],
    /// Where it leaves its results.
    pub(super) out: &'a Path,
    /// A guest is given up after this long.
    pub(super) timeout: Duration,
}

/// The folders that a script is told.
pub(super) struct Folders<'a> {
    /// Scripts and files.
    pub(super) scripts: &'a str,
    /// Results.
    pub(super) out: &'a str,
    /// Room for large files.
    pub(super) scratch: &'a str,
}

impl Scripted<'_> {
    /// Whether this machine's own kernel is meant.
    pub(super) fn is_native(&self) -> bool {
        self.kernel == "host"
    }

    /// Runs it with what `arguments` makes of the folders; which kernel it ran on.
    pub(super) fn run(&self, arguments: impl Fn(Folders<'_>) -> Vec<String>) -> Result<String> {
        let scripts = tempfile::tempdir()?;
        for (name, text) in self.scripts.iter().chain(&[SETTLED]) {
            fs::write(scripts.path().join(name), text).with_context(|| (*name).to_owned())?;
        }
        if self.is_native() { self.natively(scripts.path(), arguments) } else { self.in_guest(scripts.path(), arguments) }
    }

    fn words(&self, folders: Folders<'_>, arguments: impl Fn(Folders<'_>) -> Vec<String>) -> Vec<String> {
        let script = format!("{}/{}", folders.scripts, self.scripts[0].0);
        ["sh".to_owned(), script].into_iter().chain(arguments(folders)).collect()
    }

    fn in_guest(&self, scripts: &Path, arguments: impl Fn(Folders<'_>) -> Vec<String>) -> Result<String> {
        let mut vm = Vm::new(Kernel::resolve(self.kernel)?);
        // Files lie in the guest's memory.
        vm.memory = 2 << 30;
        vm.out = Some(self.out.to_owned());
        vm.timeout = self.timeout;
        let scripts = self.scripts.iter().chain(&[SETTLED]).map(|(name, _)| Copied { host: scripts.join(name), guest: (*name).to_owned() });
        let all = scripts.chain(self.files.iter().cloned());
        vm.copies = all.map(|file| Copied { guest: format!("{GUEST_FOLDER}/{}", file.guest), ..file }).collect();
        let words = self.words(Folders { scripts: GUEST_FOLDER, out: "/out", scratch: "/data" }, arguments);
        Ok(vm.run_steps(&[Step::new(words)], &mut Output::Keep)?.succeeded()?.release)
    }

    fn natively(&self, folder: &Path, arguments: impl Fn(Folders<'_>) -> Vec<String>) -> Result<String> {
        for file in self.files {
            let place = folder.join(&file.guest);
            fs::create_dir_all(place.parent().context("a place in a folder")?)?;
            symlink(&file.host, place)?;
        }
        for (program, built) in PROGRAMS.iter().zip(programs::build(&PROGRAMS, Link::Host)?) {
            fs::copy(built, folder.join(program.name))?;
        }
        let text = |path: &Path| Ok::<_, anyhow::Error>(path.to_str().context("a path that is text")?.to_owned());
        let (place, out) = (text(folder)?, text(self.out)?);
        let search = format!("{place}:{}", std::env::var("PATH").unwrap_or_default());
        say(format_args!("measuring on this machine's own kernel"));
        // In a mount namespace of its own: tracefs may have to be mounted, and the machine stays as it is.
        let mut unshare = shell::command("unshare", "util-linux")?;
        let words = self.words(Folders { scripts: &place, out: &out, scratch: &place }, arguments);
        unshare.arg("--mount").args(words).env("PATH", search);
        shell::output(&mut unshare)?;
        Ok(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
    }
}
