//! `observer record`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount};
use rustix::thread::CapabilitySet;

use super::{code, live};
use crate::capture::command::{OwnCgroup, exit_code};
use crate::capture::live::Options;
use crate::cli;
use crate::exit::{Code, Failure, say};
use crate::privileges;
use crate::record::parts::{Limits, Parts};
use crate::record::referee::Referee;
use crate::record::signals::Signals;
use crate::record::{Job, Outcome, Output, Rotation, Target, run as record};
use crate::replay::{Input, Inputs, Source as _};

/// Records; the exit code.
pub(super) fn run(args: &cli::Record) -> Result<u8> {
    let to_stdout = args.output.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::new(Code::Usage, "standard output is a terminal: give a file, or pipe it (| observer replay -)").into());
    }
    if let Some(from) = &args.from {
        return copy(args, from);
    }
    live::may_trace()?;
    // Before the cgroup is made, so that Ctrl-C finds someone who removes it.
    let signals = Signals::listen()?;
    let own = match args.run.as_slice() {
        [] => None,
        _ => Some(OwnCgroup::create(args.cgroup.as_deref(), args.memory_max)?),
    };
    let cgroup = own.as_ref().map(OwnCgroup::path).or(args.cgroup.as_deref());
    let mut source =
        live::start(Options { cgroup: cgroup.map(Path::to_owned), command: command_line(&args.run), ..live::options(&args.observe) })?;
    let referee = Referee::new(cgroup)?;
    let target = target(args)?;
    live::give_up(kept(args), &source);
    let command = own.as_ref().map(|own| {
        let start = move || own.spawn(&args.run, to_stdout);
        Box::new(start) as Box<dyn FnOnce() -> Result<_>>
    });
    let job = Job { source: &mut source, referee: Some(&referee), target, duration: args.duration, command, signals: &signals };
    let outcome = record(job);
    if let Some(own) = own.as_ref().filter(|_| !matches!(outcome, Ok(Outcome { command: Some(_), .. }))) {
        // It did not end by itself: what it started goes with it.
        own.kill();
    }
    let outcome = outcome?;
    report(&outcome, "narrow it down with --cgroup");
    Ok(match outcome.command {
        Some(status) => exit_code(status),
        None => code(outcome.lost > 0 && !outcome.closed) as u8,
    })
}

/// Records what another recorder recorded: a stream from another machine into files, or a long recording in parts.
fn copy(args: &cli::Record, from: &Path) -> Result<u8> {
    let itself = fs::canonicalize(from).and_then(|from| Ok(from == fs::canonicalize(&args.output)?));
    if matches!(itself, Ok(true)) && fs::metadata(from)?.is_file() {
        return Err(Failure::new(Code::Usage, format!("{} would overwrite itself", from.display())).into());
    }
    let signals = Signals::listen()?;
    let input = Inputs::open(&[Input::from_argument(from.to_owned())])?;
    let target = target(args)?;
    privileges::drop_except(kept(args));
    let mut source = input.read()?;
    let job = Job { source: &mut source, referee: None, target, duration: args.duration, command: None, signals: &signals };
    let outcome = record(job)?;
    let missing = outcome.lost > 0 && !outcome.closed;
    // Damage has been told, with the rows it cost.
    let told = if source.is_damaged() { Outcome { lost: 0, ..outcome } } else { outcome };
    report(&told, "they were missing before");
    Ok(code(missing || source.is_damaged()) as u8)
}

/// What is still needed after everything is open: new files in a folder that is not our own, and the command's processes and
/// cgroup, which may be another user's.
fn kept(args: &cli::Record) -> CapabilitySet {
    if !args.run.is_empty() {
        return CapabilitySet::DAC_OVERRIDE | CapabilitySet::KILL;
    }
    let folder = args.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = fs::metadata(folder).is_ok_and(|folder| folder.uid() == rustix::process::geteuid().as_raw());
    if args.rotate.is_empty() || own { CapabilitySet::empty() } else { CapabilitySet::DAC_OVERRIDE }
}

/// Where it goes; files are created here.
fn target(args: &cli::Record) -> Result<Target> {
    Ok(match Limits::new(&args.rotate)? {
        Some(limits) => Target::Many(Rotation { parts: Parts::new(&args.output, args.keep)?, limits }),
        None if args.output.as_os_str() == "-" => Target::One(stdout()),
        None => Target::One(file(&args.output)?),
    })
}

fn report(outcome: &Outcome, hint: &str) {
    let Outcome { name, files, rows, bytes, lost, closed, pipe, .. } = outcome;
    let (rows, lost) = (*rows, *lost);
    if lost > 0 && !closed {
        say(format_args!("{} of {} events were lost: {hint}", HumanCount(lost), HumanCount(rows + lost)));
    }
    if io::stderr().is_terminal() && !pipe {
        let files = files.map(|files| format!("{files} files, the last ")).unwrap_or_default();
        say(format_args!("{} events in {files}{name}, {}", HumanCount(rows), HumanBytes(*bytes)));
    }
}

fn stdout() -> Output {
    Output { write: Box::new(io::stdout()), name: "standard output".to_owned(), pipe: true }
}

fn file(path: &Path) -> Result<Output> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let pipe = !file.metadata()?.is_file();
    Ok(Output { write: Box::new(file), name: path.display().to_string(), pipe })
}

/// As the user typed it, more or less; for the header.
fn command_line(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
