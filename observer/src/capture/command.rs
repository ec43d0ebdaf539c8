//! A command in a memory cgroup of its own.
//!
//! The command must be inside before it runs its first instruction, or its first pages are charged elsewhere. So it is
//! started through a second instance of ourselves ([`enter`]), which moves itself in and then becomes the command.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::exit::say;
use crate::kernel::cgroup;

/// First argument of the instance that becomes the command.
pub const ENTER: &str = "__enter-cgroup";

/// Exit codes of shells for a command that cannot be run, and for one that does not exist.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// A memory cgroup that lives as long as this value.
#[derive(Debug)]
pub struct OwnCgroup {
    path: PathBuf,
    id: u64,
}

impl OwnCgroup {
    /// Creates it below `parent` (a path as `--cgroup` takes it), or below the root.
    ///
    /// # Errors
    /// When there is no memory controller, or we may not.
    pub fn create(parent: Option<&Path>, memory_max: Option<u64>) -> Result<OwnCgroup> {
        let parent = cgroup::resolve(parent.unwrap_or(Path::new("/")))?.path;
        let unified = parent.join("cgroup.controllers").exists();
        if unified {
            enable_memory(&parent)?;
        }
        let path = parent.join(format!("observer-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot create the cgroup {}", path.display()))?;
        // From here on dropping removes it.
        let own = OwnCgroup { id: fs::metadata(&path)?.ino(), path };
        if let Some(bytes) = memory_max {
            let file = own.path.join(if unified { "memory.max" } else { "memory.limit_in_bytes" });
            fs::write(&file, bytes.to_string()).with_context(|| format!("cannot set {} to {bytes}", file.display()))?;
        }
        Ok(own)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its kernfs id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Starts a command in it. With `stdout_taken` its standard output goes to standard error, because ours is the recording.
    ///
    /// # Errors
    /// When no process can be started; a command that cannot be run ends with 126 or 127 like in a shell.
    pub fn spawn(&self, command: &[OsString], stdout_taken: bool) -> Result<Running> {
        let mut child = Command::new("/proc/self/exe");
        child.arg0("observer").arg(ENTER).arg(&self.path).args(command);
        if stdout_taken {
            child.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        }
        Ok(Running { child: child.spawn().context("cannot start the command")? })
    }

    /// Processes still in it.
    pub fn processes(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }

    /// Kills everything in it, what is started meanwhile included.
    pub fn kill(&self) {
        for _ in 0..10 {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            for pid in processes {
                // One that has just ended is none to kill.
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn remove(&self) -> io::Result<()> {
        // The kernel takes a moment after the last process was waited for.
        for _ in 0..50 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && self.processes().is_empty() => {
                    thread::sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
        fs::remove_dir(&self.path)
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        let left = self.processes().len();
        if left > 0 {
            say(format_args!("{left} processes of the command still run, in {}", self.path.display()));
        } else if let Err(error) = self.remove() {
            say(format_args!("cannot remove {}: {error}", self.path.display()));
        }
    }
}

/// Lets the children of `parent` have the memory controller.
fn enable_memory(parent: &Path) -> Result<()> {
    let file = parent.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    if enabled.split_ascii_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    fs::write(&file, "+memory").with_context(|| {
        format!("cannot enable the memory controller below {}: choose another with --cgroup, or move its processes", parent.display())
    })
}

/// A command that was started.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// How it ended, once it has.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends it a signal; one that has ended already is no error.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        // It is not waited for yet, so the number is still its own.
        let _ = kill_process(pid, signal);
    }

    /// Asks it to end, and makes it after `grace`.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        const STEP: Duration = Duration::from_millis(20);
        self.signal(Signal::TERM);
        let mut waited = Duration::ZERO;
        while waited < grace {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(STEP);
            waited += STEP;
        }
        self.signal(Signal::KILL);
        self.child.wait()
    }
}

/// The exit code that passes a status on, as shells have it: 128 + signal for one that a signal ended.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// The life of the second instance: moves into the cgroup and becomes the command. `arguments` are what follows [`ENTER`].
/// Returns only when that fails: the exit code, after saying why.
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    match become_command(arguments.next().as_deref(), arguments.next().as_deref(), arguments) {
        Ok(never) => match never {},
        Err(error) => {
            say(format_args!("{error:#}"));
            let missing = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
            if missing { NOT_FOUND } else { CANNOT_RUN }
        }
    }
}

fn become_command(
    cgroup: Option<&OsStr>, command: Option<&OsStr>, arguments: impl Iterator<Item = OsString>,
) -> Result<std::convert::Infallible> {
    let (Some(cgroup), Some(command)) = (cgroup, command) else { bail!("{ENTER} is not for people") };
    // 0 is whoever writes it.
    fs::write(Path::new(cgroup).join("cgroup.procs"), "0").context("cannot enter the command's cgroup")?;
    let error = Command::new(command).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", command.display()))
}
