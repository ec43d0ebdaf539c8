//! The `observer` command.

use std::process::ExitCode;

use clap::Parser;
use observer::capture::command;
use observer::cli::Cli;
use observer::exit::{Code, code_of, say};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == command::ENTER) {
        return ExitCode::from(command::enter(arguments));
    }
    observer::commands::run(Cli::parse()).unwrap_or_else(|error| {
        let Some(code) = code_of(&error) else { return ExitCode::from(Code::Ok as u8) };
        // Some causes (the verifier's log) go on for pages: their first line says what it is.
        let line = format!("{error:#}");
        say(line.lines().next().unwrap_or_default());
        ExitCode::from(code as u8)
    })
}
