//! `cargo xtask demo`.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use xtask::kernel::Kernel;
use xtask::programs::{self, Link, OBSERVER};
use xtask::shell::say;
use xtask::vm::{Output, Step, Verdict, Vm};

use super::size::parse_size;

/// Shows a real kernel's multi-gen LRU at work on this terminal, live.
///
/// Boots the newest Debian kernel in a virtual machine, runs a workload there in a control group smaller than what it
/// reads, and records it. The recording travels to this machine while it is made and `observer replay -` shows it; its
/// keys are the usual ones (? for help, q to quit, which ends the machine too). Where standard output is no terminal, the
/// workload is short and a summary follows.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Kernel: `newest`, a version such as 6.12, or the path of an image.
    #[arg(long, default_value = "newest", value_name = "VERSION|PATH")]
    kernel: String,
    /// What runs in the control group.
    #[arg(long, default_value = "zipf-read", value_name = "NAME")]
    workload: Workload,
    /// Memory limit of the control group; the workload uses two and a half times as much.
    #[arg(long, default_value = "64M", value_name = "SIZE", value_parser = parse_size)]
    memory_max: u64,
    /// Accesses of the workload; without it, until the screen is left, or 300000 where there is no terminal.
    #[arg(long, value_name = "N")]
    reads: Option<u64>,
    /// Also keeps the recording in a file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Popular and unpopular pages of one file.
    ZipfRead,
    /// The same through a mapping.
    ZipfMmap,
    /// A hot file beside cold ones that are read once per pass.
    ScanAndHot,
    /// Private memory that swaps.
    Anon,
}

impl Workload {
    /// The commands that prepare it outside the control group, and the one that runs inside.
    fn commands(self, pages: u64, reads: u64) -> (Vec<Step>, Vec<String>) {
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let make = vec![Step::new(words(format!("workload make-file --file /data/file --pages {pages}")))];
        match self {
            Self::ZipfRead => (make, words(format!("workload zipf-read --file /data/file --pages {pages} --reads {reads}"))),
            Self::ZipfMmap => (make, words(format!("workload zipf-mmap --file /data/file --pages {pages} --reads {reads}"))),
            Self::Anon => (Vec::new(), words(format!("workload anon --pages {pages} --reads {reads}"))),
            Self::ScanAndHot => {
                let (hot, cold) = (pages / 10, pages * 9 / 40);
                let passes = (reads / (8 * cold)).max(1);
                let files = format!("--folder /data --hot-pages {hot} --cold-pages {cold} --hot-per-cold 1");
                let prepare = Step::new(words(format!("workload scan-and-hot {files} --passes 0")));
                (vec![prepare], words(format!("workload scan-and-hot {files} --passes {passes}")))
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let unbounded = if io::stdout().is_terminal() { 1_000_000_000 } else { 300_000 };
    let pages = args.memory_max.div_ceil(4096) * 5 / 2;
    let (mut steps, command) = args.workload.commands(pages, args.reads.unwrap_or(unbounded));
    for step in &mut steps {
        // Only the recording may reach the pipe.
        step.argv = ["sh", "-c", "exec \"$@\" >&2", "sh"].into_iter().map(str::to_owned).chain(step.argv.drain(..)).collect();
    }
    let record = ["observer", "record", "-o", "-", "--sample", "1/1", "--memory-max"].into_iter().map(str::to_owned);
    steps.push(Step::new(record.chain([args.memory_max.to_string(), "--".to_owned()]).chain(command.iter().cloned())));

    let mut vm = Vm::new(Kernel::resolve(&args.kernel)?);
    // The screen decides how long it lasts.
    vm.timeout = Duration::from_secs(24 * 3600);
    say("building observer for this machine");
    let observer = programs::build(&[OBSERVER], Link::Host)?.remove(0);
    say(format_args!("in the guest: {}, in {} MiB", command.join(" "), args.memory_max >> 20));
    let save = args.save.as_ref().map(|path| File::create(path).with_context(|| path.display().to_string())).transpose()?;
    let mut screen = Screen { observer, child: None, save };
    // Text in the midst of the screen would spoil it; it is shown afterwards.
    let mut words = Vec::new();
    let outcome = vm.run_steps(&steps, &mut Output::Stream(&mut screen, &mut words));
    let shown = screen.finish();
    io::stderr().write_all(&words)?;
    // The guest's own failure comes first: it explains a missing recording.
    match outcome {
        Err(error) if super::is_closed_pipe(&error) => shown,
        Err(error) => Err(error),
        Ok(result) if result.verdict == Verdict::Exit(0) => shown,
        Ok(result) => {
            eprint!("{}", result.console);
            eprintln!("{}", result.verdict);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// `observer replay -` on this terminal, started by the first byte it is to show, so that messages of the boot stay readable.
struct Screen {
    observer: PathBuf,
    child: Option<Child>,
    save: Option<File>,
}

impl Screen {
    /// Lets it come to its end and returns its status.
    fn finish(mut self) -> Result<ExitCode> {
        let Some(mut child) = self.child.take() else { bail!("the guest sent no recording") };
        drop(child.stdin.take());
        let status = child.wait().context("observer replay")?;
        Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)))
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let child = match &mut self.child {
            Some(child) => child,
            none => none.insert(Command::new(&self.observer).args(["replay", "-"]).stdin(Stdio::piped()).spawn()?),
        };
        let pipe = child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(bytes)?;
        if let Some(save) = &mut self.save {
            save.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
