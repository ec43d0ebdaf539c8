//! `cargo xtask test`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use xtask::ebpf::{self, toolchain::Toolchain};
use xtask::guest;
use xtask::kernel::Kernel;
use xtask::programs::{self, INIT, Link, PROGRAMS};
use xtask::setup::{self, Purpose};
use xtask::shell::say;
use xtask::vm;

use super::cargo;

/// Checks and tests everything, virtual machines included.
///
/// Format, lints, documentation, the tests of all crates, whether the committed eBPF object is stale, and the end-to-end
/// tests on real kernels. Brings what is missing first. Tests run under `cargo test`, so its summary lines are on
/// standard output. Ends at the first stage that fails.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Leaves the virtual machines out: no QEMU, no kernels to download.
    #[arg(long)]
    no_vm: bool,
}

/// A stage's name and what it does.
type Stage = (&'static str, fn() -> Result<()>);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut stages: Vec<Stage> = vec![
        ("setup for building", || setup::bring(&setup::missing(&[Purpose::Build]))),
        ("format", format),
        ("eBPF object", ebpf_object),
        ("lints", lints),
        ("documentation", documentation),
        ("tests", tests),
    ];
    if !args.no_vm {
        stages.push(("setup for virtual machines", machines));
        stages.push(("tests in virtual machines", vm_tests));
    }
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, stage) in stages {
        say(format_args!("== {name}"));
        let started = Instant::now();
        stage().with_context(|| format!("stage {name:?} failed"))?;
        times.push((name, started.elapsed()));
    }
    for (name, time) in &times {
        say(format_args!("{:6.1} s  {name}", time.as_secs_f64()));
    }
    say(format_args!("all passed in {:.1} s", times.iter().map(|(_, time)| time.as_secs_f64()).sum::<f64>()));
    Ok(ExitCode::SUCCESS)
}

fn format() -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["fmt", "--check", "--manifest-path", "observer-ebpf/Cargo.toml"], &[])
}

/// Compares the committed object with its sources; where there is a nightly compiler, by building it again.
fn ebpf_object() -> Result<()> {
    if Toolchain::has_nightly() {
        // The recorded hash alone still tells whether the object is stale.
        if let Err(error) = Toolchain::bring() {
            say(format_args!("the rest of the eBPF toolchain could not be brought: {error:#}"));
        }
    }
    ebpf::check()
}

fn lints() -> Result<()> {
    cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"], &[])
}

fn documentation() -> Result<()> {
    // Written for those who work on it, so private items are documented and may be linked to.
    let flags = "-D warnings -A rustdoc::private_intra_doc_links";
    cargo(&["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"], &[("RUSTDOCFLAGS", flags)])
}

fn tests() -> Result<()> {
    cargo(&["test", "--locked", "--workspace", "--no-fail-fast"], &[])
}

/// Everything slow that the machines need, before a test's own clock runs.
fn machines() -> Result<()> {
    setup::bring(&setup::missing(&[Purpose::Machines]))?;
    for name in vm::TESTED_KERNELS {
        let kernel = Kernel::resolve(name)?;
        say(format_args!("kernel {name}: {}", kernel.name));
    }
    guest::busybox()?;
    let programs: Vec<_> = std::iter::once(INIT).chain(PROGRAMS).collect();
    say("building the guests' programs");
    programs::build(&programs, Link::Static).map(drop)
}

fn vm_tests() -> Result<()> {
    // One machine at a time: their timing is part of what is tested, and an emulated CPU takes a real one.
    let words = ["test", "--locked", "--workspace", "--no-fail-fast", "--features", "observer-tests/vm", "--test", "vm_*"];
    cargo(&[&words[..], &["--", "--test-threads", "1"]].concat(), &[])
}
