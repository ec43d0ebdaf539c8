//! `cargo xtask validate-model`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;
use xtask::shell::say;
use xtask::validate::{self, Lru, MARKDOWN_HEAD, Size};

/// Compares the simulator with real kernels: the same reads in virtual machines and in `observer simulate`.
///
/// Each kernel reads a file of 160 MiB in a cgroup of 64 MiB with zipf-distributed popularity, and a hot file beside
/// cold ones; the first kernel also with its multi-gen LRU switched off. A Markdown table on standard output has the
/// refaults per read of kernel and simulation. Exit status 1 when a row differs by more than 3 % (zipf) or 10 %
/// (scan-and-hot). Without KVM the full table takes the better part of an hour.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Kernels, by the names that `cargo xtask vm` takes; the classical LRU is that of the first.
    #[arg(long, value_name = "VERSION|PATH", default_values = ["newest", "6.12"])]
    kernel: Vec<String>,
    /// Exponents of the zipf rows.
    #[arg(long, value_name = "θ", default_values_t = [0.8, 0.9, 1.1, 1.2])]
    theta: Vec<f64>,
    /// Reads counted in each zipf row.
    #[arg(long, default_value_t = 940_000, value_name = "N")]
    reads: u64,
    /// Reads before them.
    #[arg(long, default_value_t = 70_000, value_name = "N")]
    ramp: u64,
    /// Passes over the cold files that are counted in scan-and-hot; 0 leaves those rows out.
    #[arg(long, default_value_t = 4, value_name = "N")]
    passes: u64,
    /// Seed of all reads.
    #[arg(long, default_value_t = 5, value_name = "N")]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let scans = if args.passes > 0 { vec![false, true] } else { Vec::new() };
    let size = Size { thetas: args.theta.clone(), ramp: args.ramp, reads: args.reads, scans, passes: (2, args.passes), seed: args.seed };
    println!("{MARKDOWN_HEAD}");
    let mut all_hold = true;
    for (at, kernel) in args.kernel.iter().enumerate() {
        let lrus = if at == 0 { &[Lru::Generations, Lru::Classical][..] } else { &[Lru::Generations] };
        for row in validate::run(kernel, lrus, &size)? {
            println!("{}", row.markdown());
            all_hold &= row.holds();
        }
    }
    if !all_hold {
        say("a row lies further from the kernel than it may");
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
