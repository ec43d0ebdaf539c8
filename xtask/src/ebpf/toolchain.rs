//! What compiles eBPF: a nightly compiler, the sources of `core`, and bpf-linker, each brought by whichever way is open.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt::Suite;
use crate::cache;
use crate::shell::{self, say};

/// The linker's version: it contains the LLVM that fits the nightly compiler.
const LINKER_VERSION: &str = "0.10.3";

/// Suites that may have a package of the standard library's sources.
const SUITES: [&str; 2] = ["trixie-backports", "trixie"];

/// The toolchain, complete.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// Compiler and linker, for comparison.
    pub version: String,
    /// The compiler's folder.
    pub sysroot: PathBuf,
    linker: PathBuf,
}

impl Toolchain {
    /// Whether there is a nightly compiler.
    #[must_use]
    pub fn has_nightly() -> bool {
        nightly().is_ok()
    }

    /// The toolchain as it is here; an error names the part that is missing.
    pub fn find() -> Result<Self> {
        let (rustc, sysroot) = nightly()?;
        if !has_core_sources(&sysroot) {
            bail!("the nightly toolchain has no rust-src");
        }
        let linker = find_linker()?.with_context(|| format!("there is no bpf-linker {LINKER_VERSION}"))?;
        Ok(Self { version: format!("{rustc}, bpf-linker {LINKER_VERSION}"), sysroot, linker })
    }

    /// The toolchain, after bringing what is missing.
    pub fn bring() -> Result<Self> {
        let (rustc, sysroot) = nightly()?;
        if !has_core_sources(&sysroot) {
            bring_core_sources(&rustc, &sysroot)?;
        }
        if find_linker()?.is_none() {
            bring_linker()?;
        }
        Self::find()
    }

    /// The nightly cargo, with the linker where the compiler looks for it.
    pub fn cargo(&self) -> Result<Command> {
        let mut cargo = nightly_command("cargo")?;
        let own = std::env::var_os("PATH").unwrap_or_default();
        let linker = self.linker.parent().map(Path::to_owned);
        cargo.env("PATH", std::env::join_paths(linker.into_iter().chain(std::env::split_paths(&own)))?);
        Ok(cargo)
    }
}

/// A program of the nightly toolchain, free of what the running cargo told its children of itself.
fn nightly_command(program: &str) -> Result<Command> {
    let mut command = shell::command("rustup", "rustup")?;
    command.args(["run", "nightly", program]);
    for variable in ["CARGO", "RUSTC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    Ok(command)
}

/// The nightly compiler's version line and folder.
fn nightly() -> Result<(String, PathBuf)> {
    let ask = |argument: &[&str]| -> Result<String> {
        let told = shell::output(nightly_command("rustc")?.args(argument));
        Ok(told.context("no nightly compiler: `rustup toolchain install nightly --component rust-src` brings one")?.trim().to_owned())
    };
    Ok((ask(&["--version"])?, PathBuf::from(ask(&["--print", "sysroot"])?)))
}

fn core_sources(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust")
}

fn has_core_sources(sysroot: &Path) -> bool {
    core_sources(sysroot).join("library/core/src/lib.rs").is_file()
}

/// Adds the component, or where rustup cannot fetch it, links the sources of Debian's package of the same version.
fn bring_core_sources(rustc: &str, sysroot: &Path) -> Result<()> {
    let link = core_sources(sysroot);
    // A link whose target went away would be in the component's way.
    if link.is_symlink() {
        fs::remove_file(&link).with_context(|| link.display().to_string())?;
    }
    say("adding rust-src to the nightly toolchain");
    let added = shell::output(shell::command("rustup", "rustup")?.args(["component", "add", "rust-src", "--toolchain", "nightly"]));
    if has_core_sources(sysroot) {
        return Ok(());
    }
    if let Err(error) = added {
        let words = format!("{error:#}");
        let why = words.lines().find(|line| line.starts_with("error")).or_else(|| words.lines().next()).unwrap_or_default();
        say(format_args!("rustup could not ({why}); taking Debian's package"));
    }
    let sources = debian_sources(rustc)?;
    match fs::create_dir_all(link.parent().unwrap_or(sysroot)).and_then(|()| std::os::unix::fs::symlink(&sources, &link)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{} is in the way: remove it", link.display()),
        Err(error) => Err(error).with_context(|| format!("link the sources of core into {}", link.display())),
    }
}

/// The unpacked sources of a Rust release of the same minor version, which the nightly of that version compiles.
fn debian_sources(rustc: &str) -> Result<PathBuf> {
    let minor = minor_version(rustc).with_context(|| format!("{rustc:?} names no version"))?;
    let folder = cache::subfolder(&cache::folder()?, "tools")?.join(format!("rust-src-{minor}"));
    let _lock = cache::lock("rust-src")?;
    if !folder.exists() {
        let mut seen = Vec::new();
        for name in SUITES {
            let suite = Suite::open(name)?;
            let package = suite.show("rust-src")?;
            if package.version.starts_with(&format!("{minor}.")) {
                // The package holds the compiler too, ten times as much.
                suite.unpack(&[package], Some("./usr/src/*/library"), &folder)?;
                break;
            }
            seen.push(format!("{name} has {}", package.version));
        }
        if !folder.exists() {
            bail!(
                "no Debian package of the sources fits the nightly {minor} ({}); install another nightly with its rust-src",
                seen.join(", ")
            );
        }
    }
    let releases = fs::read_dir(folder.join("usr/src"))?.flatten().map(|entry| entry.path());
    releases.into_iter().find(|path| path.join("library").is_dir()).with_context(|| format!("no library in {}", folder.display()))
}

/// The `1.97` of `rustc 1.97.0-nightly (…)`.
fn minor_version(rustc: &str) -> Option<String> {
    let mut numbers = rustc.split_whitespace().nth(1)?.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

/// The linker from PATH or the cache, when it has the version that fits.
fn find_linker() -> Result<Option<PathBuf>> {
    let cached = cache::folder()?.join("tools/bin/bpf-linker");
    let places = shell::find("bpf-linker").into_iter().chain(Some(cached).filter(|path| path.is_file()));
    let fits = |path: &PathBuf| {
        shell::output(Command::new(path).arg("--version")).is_ok_and(|text| text.split_whitespace().any(|word| word == LINKER_VERSION))
    };
    Ok(places.into_iter().find(fits))
}

fn bring_linker() -> Result<()> {
    let root = cache::subfolder(&cache::folder()?, "tools")?;
    say(format_args!("building bpf-linker {LINKER_VERSION}, about a minute"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", "bpf-linker", "--version", LINKER_VERSION, "--locked", "--root"]).arg(&root);
    // Its build leaves nothing that another build could use.
    cargo.env_remove("CARGO_TARGET_DIR");
    shell::run(&mut cargo).context("bpf-linker did not build")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nightly_names_its_release() {
        assert_eq!(minor_version("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)").as_deref(), Some("1.97"));
        assert_eq!(minor_version("rustc"), None);
    }
}
