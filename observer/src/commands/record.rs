//! `observer record`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount};

use super::live;
use crate::capture::command::{OwnCgroup, exit_code};
use crate::cli;
use crate::exit::{Code, Failure, say};
use crate::record::referee::Referee;
use crate::record::signals::Signals;
use crate::record::{Job, Outcome, Output, run as record};

/// Records; the exit code.
pub(super) fn run(args: &cli::Record) -> Result<u8> {
    live::may_trace()?;
    let to_stdout = args.output.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::new(Code::Usage, "standard output is a terminal: give a file, or pipe it (| observer replay -)").into());
    }
    // Before the cgroup is made, so that Ctrl-C finds someone who removes it.
    let signals = Signals::listen()?;
    let own = match args.run.as_slice() {
        [] => None,
        _ => Some(OwnCgroup::create(args.cgroup.as_deref(), args.memory_max)?),
    };
    let cgroup = own.as_ref().map(OwnCgroup::path).or(args.cgroup.as_deref());
    let mut source = live::start(cgroup, command_line(&args.run))?;
    let referee = Referee::new(cgroup)?;
    let output = if to_stdout { stdout() } else { file(&args.output)? };
    let name = output.name.clone();
    let command = own.as_ref().map(|own| {
        let start = move || own.spawn(&args.run, to_stdout);
        Box::new(start) as Box<dyn FnOnce() -> Result<_>>
    });
    let outcome = record(Job { source: &mut source, referee: &referee, output, duration: args.duration, command, signals: &signals });
    if let Some(own) = own.as_ref().filter(|_| !matches!(outcome, Ok(Outcome { command: Some(_), .. }))) {
        // It did not end by itself: what it started goes with it.
        own.kill();
    }
    let outcome = outcome?;
    report(&outcome, &name);
    Ok(match outcome.command {
        Some(status) => exit_code(status),
        None if outcome.lost > 0 && !outcome.closed => Code::Data as u8,
        None => Code::Ok as u8,
    })
}

fn report(outcome: &Outcome, name: &str) {
    let Outcome { rows, bytes, lost, closed, .. } = *outcome;
    if lost > 0 && !closed {
        say(format_args!("{} of {} events were lost: narrow it down with --cgroup", HumanCount(lost), HumanCount(rows + lost)));
    }
    if io::stderr().is_terminal() && !closed {
        say(format_args!("{} events in {name}, {}", HumanCount(rows), HumanBytes(bytes)));
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
