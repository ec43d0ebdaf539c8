//! The `xtask` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod commands;

/// Project chores: setup, the eBPF object, kernels, virtual machines, tests, demo, benchmarks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// The words on each command are those on its arguments.
#[derive(Subcommand)]
enum Command {
    Bench(commands::bench::Args),
    Demo(commands::demo::Args),
    Ebpf(commands::ebpf::Args),
    KernelTypes(commands::kernel_types::Args),
    Memory(commands::memory::Args),
    Setup(commands::setup::Args),
    Test(commands::test::Args),
    ValidateModel(commands::validate_model::Args),
    Vm(commands::vm::Args),
}

fn main() -> ExitCode {
    if xtask::ebpf::wrapper::is_wanted() {
        eprintln!("xtask: {:#}", xtask::ebpf::wrapper::run());
        return ExitCode::FAILURE;
    }
    let outcome = match Cli::parse().command {
        Command::Bench(args) => commands::bench::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Ebpf(args) => commands::ebpf::run(&args),
        Command::KernelTypes(args) => commands::kernel_types::run(&args),
        Command::Memory(args) => commands::memory::run(&args),
        Command::Setup(args) => commands::setup::run(&args),
        Command::Test(args) => commands::test::run(&args),
        Command::ValidateModel(args) => commands::validate_model::run(&args),
        Command::Vm(args) => commands::vm::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if commands::is_closed_pipe(&error) => ExitCode::from(commands::CLOSED_PIPE),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
