//! The `xtask` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod commands;

/// Project chores: setup, the eBPF object, kernels, virtual machines, tests, demo.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Boots a Debian kernel in a virtual machine, without root, and runs a command in it.
    Vm(commands::vm::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Vm(args) => commands::vm::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::from(commands::CLOSED_PIPE),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of our output left; that is its right and no error to speak of.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe))
}
