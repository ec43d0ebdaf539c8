//! `cargo xtask kernel-types`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use xtask::kernel::Kernel;
use xtask::shell::say;
use xtask::vm::{Output, Step, Vm};

/// Stores what the tests of layout and hook choice need of each kernel: its types, cut down, and its symbols.
///
/// Boots the kernels one after another, takes /sys/kernel/btf/vmlinux and the symbols of the LRU, and writes
/// observer/src/kernel/stored/VERSION. Then look at what changed in the snapshots: `cargo insta review`, or
/// `INSTA_UPDATE=always cargo test -p observer --lib kernel::stored` and git diff.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Kernels: `newest` or a version.
    #[arg(default_values = ["6.1", "6.12", "6.18", "newest"], value_name = "VERSION")]
    kernels: Vec<String>,
}

/// What the guest hands out; which symbols are kept is decided by the example that reduces the types.
const TAKE: &str = "cat /sys/kernel/btf/vmlinux > /out/btf; \
                    grep -E ' (pff|lru_|workingset_|folio_|walk_|try_to_|inc_max|shrink_one|evict_folios|swap_|vmemmap_base)' /proc/kallsyms > /out/kallsyms";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    for name in &args.kernels {
        let out = tempfile::tempdir()?;
        let mut vm = Vm::new(Kernel::resolve(name)?);
        (vm.cpus, vm.disk, vm.zram, vm.out) = (1, None, false, Some(out.path().to_owned()));
        vm.programs.clear();
        let result = vm.run_steps(&[Step::new(["sh", "-ec", TAKE])], &mut Output::Keep)?.succeeded()?;
        let version: Vec<&str> = result.release.split(['.', '-', '+']).take(2).collect();
        let stored = Path::new("observer/src/kernel/stored").join(version.join("."));
        say(format_args!("{} goes to {}", result.release, stored.display()));
        let file = |name: &str| out.path().join(name).to_str().map(str::to_owned).context("a path that is text");
        let stored = stored.to_str().context("a path that is text")?;
        let reduce = ["run", "--quiet", "--package", "observer", "--example", "reduce_btf", "--"];
        super::cargo(&[&reduce[..], &[&file("btf")?, &file("kallsyms")?, stored]].concat(), &[])?;
    }
    Ok(ExitCode::SUCCESS)
}
