//! A test machine: what it is made of, what it ran and how that ended.

mod collect;
mod watch;

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use guest_init::Job;
pub use guest_init::Step;

use crate::cache;
use crate::guest::{self, Copied};
use crate::kernel::Kernel;
use crate::programs::{PROGRAMS, Program};
use crate::qemu::{self, Accel, Machine};
use crate::shell::say;

/// Exit status when the machine itself failed: no boot, a panic, no verdict.
pub const STATUS_FAILED: i32 = 125;

/// Exit status when time ran out.
pub const STATUS_TIMEOUT: i32 = 124;

/// The kernels that the end-to-end tests boot.
pub const TESTED_KERNELS: [&str; 3] = ["newest", "6.18", "6.12"];

/// A machine to be run.
#[derive(Clone, Debug)]
pub struct Vm {
    /// The kernel it boots.
    pub kernel: Kernel,
    /// Memory in bytes.
    pub memory: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// How long the commands may take.
    pub timeout: Duration,
    /// Size in bytes of the ext4 disk on `/data`; none without it.
    pub disk: Option<u64>,
    /// Whether there is compressed swap in memory, as large as the memory.
    pub zram: bool,
    /// Whether the multi-gen LRU is switched on.
    pub mglru: bool,
    /// What executes it.
    pub accel: Accel,
    /// Programs of this workspace in its `/bin`.
    pub programs: Vec<Program>,
    /// Other files in it.
    pub copies: Vec<Copied>,
    /// Where the contents of its `/out` go on the host; dropped without it.
    pub out: Option<PathBuf>,
}

/// What becomes of the commands' outputs.
pub enum Output<'a> {
    /// Kept, to be found in [`StepResult`].
    Keep,
    /// Passed on as it comes: standard output, standard error.
    Stream(&'a mut dyn Write, &'a mut dyn Write),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every command ran, or one that may not fail did and stopped the rest; its status, or 0.
    Exit(i32),
    /// Time ran out in a command (the guest killed it), or the guest fell silent.
    Timeout(String),
    /// The kernel panicked, oopsed or complained of a bug.
    Kernel(String),
    /// The machine did not come up or went away.
    Failed(String),
}

impl Verdict {
    /// The status that tells it to a caller.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            Self::Exit(status) => *status,
            Self::Timeout(_) => STATUS_TIMEOUT,
            Self::Kernel(_) | Self::Failed(_) => STATUS_FAILED,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(to, "vm: exit {status}"),
            Self::Timeout(why) => write!(to, "vm: timeout: {why}"),
            Self::Kernel(line) => write!(to, "vm: kernel: {line}"),
            Self::Failed(why) => write!(to, "vm: failed: {why}"),
        }
    }
}

/// How one command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// Its words.
    pub argv: Vec<String>,
    /// Its exit status; 128 + number after a signal.
    pub status: i32,
    /// How long it ran.
    pub elapsed: Duration,
    /// Its standard output, when kept.
    pub stdout: Vec<u8>,
    /// Its standard error, when kept.
    pub stderr: Vec<u8>,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct VmResult {
    /// How it ended.
    pub verdict: Verdict,
    /// `uname -r` of the guest; empty when it never came up.
    pub release: String,
    /// What executed it.
    pub accel: Accel,
    /// From power-on to the first command.
    pub boot: Duration,
    /// From power-on to the end.
    pub total: Duration,
    /// The commands that ran.
    pub steps: Vec<StepResult>,
    /// What the guest remarked on, such as a missing file system.
    pub notes: Vec<String>,
    /// The kernel's console.
    pub console: String,
    /// Where its results are.
    pub out: Option<PathBuf>,
}

impl VmResult {
    /// The kernel's warnings: it goes on after them, but something was not as its authors meant it.
    #[must_use]
    pub fn warnings(&self) -> Vec<&str> {
        self.console.lines().map(without_stamp).filter(|line| line.starts_with("WARNING:")).collect()
    }

    /// The result, when every command that had to succeed did; otherwise an error with everything one needs to see why.
    pub fn succeeded(self) -> Result<Self> {
        if self.verdict == Verdict::Exit(0) {
            return Ok(self);
        }
        let last = self.steps.last();
        let text = |bytes: fn(&StepResult) -> &[u8]| String::from_utf8_lossy(last.map(bytes).unwrap_or_default()).into_owned();
        anyhow::bail!(
            "{} on {}, in {:?}\nstdout: {}\nstderr: {}\nconsole: {}",
            self.verdict,
            self.release,
            last.map(|step| &step.argv),
            text(|step| &step.stdout),
            text(|step| &step.stderr),
            self.console
        )
    }
}

/// The line without the kernel's `[    1.234567] `.
fn without_stamp(line: &str) -> &str {
    line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, text)| text)
}

impl StepResult {
    /// Its standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl Vm {
    /// A machine of 1 GiB, 2 CPUs, a 4 GiB disk, compressed swap, with this workspace's programs in it.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            memory: 1 << 30,
            cpus: 2,
            timeout: Duration::from_secs(300),
            disk: Some(4 << 30),
            zram: true,
            mglru: true,
            accel: Accel::Auto,
            programs: PROGRAMS.to_vec(),
            copies: Vec::new(),
            out: None,
        }
    }

    /// Runs one command.
    pub fn run<S: Into<String>>(&self, argv: impl IntoIterator<Item = S>) -> Result<VmResult> {
        self.run_steps(&[Step::new(argv)], &mut Output::Keep)
    }

    /// Runs commands one after another in one boot, until one fails that may not.
    pub fn run_steps(&self, steps: &[Step], output: &mut Output<'_>) -> Result<VmResult> {
        let run = RunFolder::new()?;
        let job = Job {
            modules: Vec::new(),
            disk: self.disk.is_some(),
            zram: self.zram.then_some(self.memory),
            mglru: self.mglru,
            timeout_s: self.timeout.as_secs(),
            steps: steps.to_vec(),
        };
        let initramfs = run.path().join("initramfs");
        fs::write(&initramfs, guest::initramfs(&self.kernel, job, &self.programs, &self.copies)?)?;
        let disk = run.path().join("disk");
        let mut attempts = self.accel.attempts()?.into_iter().peekable();
        while let Some(accel) = attempts.next() {
            if let Some(bytes) = self.disk {
                qemu::make_disk(&disk, bytes)?;
            }
            say(format_args!("booting {} ({accel:?}, {} CPUs, {} MiB)", self.kernel.name, self.cpus, self.memory >> 20));
            let machine = Machine {
                kernel: &self.kernel,
                initramfs: &initramfs,
                disk: self.disk.is_some().then_some(disk.as_path()),
                memory: self.memory,
                cpus: self.cpus,
                accel,
            };
            let result = watch::watch(&machine, self, steps, output)?;
            if accel != Accel::Kvm {
                return Ok(result);
            }
            match &result.verdict {
                Verdict::Failed(why) | Verdict::Kernel(why) if result.steps.is_empty() && attempts.peek().is_some() => {
                    say(format_args!("KVM does not run this guest, emulating from now on ({why})"));
                    qemu::remember_kvm(Err(why))?;
                }
                _ => {
                    if !result.steps.is_empty() {
                        qemu::remember_kvm(Ok(()))?;
                    }
                    return Ok(result);
                }
            }
        }
        anyhow::bail!("no accelerator to try")
    }
}

/// A run's files: gone when it ends, or found and removed by a later run after a kill.
struct RunFolder {
    folder: tempfile::TempDir,
    _lock: File,
}

impl RunFolder {
    fn new() -> Result<Self> {
        let parent = cache::subfolder(&cache::folder()?, "run")?;
        // Two runs that start together must not take each other's new folder for an abandoned one.
        let _starting = cache::lock("run")?;
        for entry in fs::read_dir(&parent)?.flatten() {
            remove_abandoned(&entry.path());
        }
        let folder = tempfile::tempdir_in(&parent).context("a folder for the run")?;
        let lock = File::create(folder.path().join("lock"))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn remove_abandoned(folder: &Path) {
    if File::open(folder.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok()) {
        // What cannot be removed now is tried again by the next run.
        let _ = fs::remove_dir_all(folder);
    }
}
