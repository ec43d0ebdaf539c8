//! What each command does.

mod live;
mod record;
mod show;
mod simulate;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use self::show::Show;
use crate::cli::{Cli, Command};
use crate::exit::{Code, Failure};
use crate::privileges;
use crate::replay::{Input, Inputs, Source as _};
use crate::session::Session;
use crate::session::frame::SourceKind;

/// Sizes of what-if caches in summaries of recordings: the one observed.
const OBSERVED_SIZE: [u32; 1] = [100];

/// Does what the command line says.
///
/// # Errors
/// One that [`crate::exit::code_of`] has an exit code for.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let Cli { command, summary, color } = cli;
    let code = match command {
        None => live::main_job(Show { summary, ..Show::new(color) })?,
        Some(Command::Live(args)) => live::run(args, color)?,
        Some(Command::Record(args)) => return record::run(&args).map(ExitCode::from),
        Some(Command::Doctor(args)) => return doctor(args.json),
        Some(Command::Simulate(args)) => simulate::run(&args)?,
        Some(Command::Replay(args)) => {
            let inputs = Inputs::open(&args.inputs.into_iter().map(Input::from_argument).collect::<Vec<_>>())?;
            // What others wrote is parsed with nothing to lose.
            privileges::drop_all();
            let source = inputs.read()?;
            let rules = if args.rules.is_empty() { Session::default_rules() } else { args.rules };
            let sizes = if args.sizes.is_empty() { OBSERVED_SIZE.to_vec() } else { args.sizes };
            let (speed, paused, repeat) = (args.speed, args.paused, args.repeat);
            let show = Show { summary: args.summary, rules, sizes, speed, paused, repeat, ..Show::new(color) };
            if repeat && show.is_summary() {
                return Err(Failure::new(Code::Usage, "--loop plays on a screen, and standard output is no terminal").into());
            }
            if repeat && source.kind() == SourceKind::Pipe {
                return Err(Failure::new(Code::Usage, "--loop needs a file: what came through a pipe is gone").into());
            }
            show.run(source)?
        }
    };
    Ok(ExitCode::from(code as u8))
}

/// Says what this kernel lets us see; the exit code says whether it is enough.
fn doctor(json: bool) -> Result<ExitCode> {
    let report = crate::doctor::examine();
    let mut text = if json { serde_json::to_string_pretty(&report)? } else { crate::doctor::render(&report) };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(report.exit_code))
}

/// The exit code for data that came through.
fn code(damaged: bool) -> Code {
    if damaged { Code::Data } else { Code::Ok }
}
