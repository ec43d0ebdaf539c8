//! What the chores need of the machine, and how to get it.

use std::fmt;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::ebpf::toolchain::Toolchain;
use crate::shell::{self, say};

/// What a prerequisite is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Building and checking the workspace.
    Build,
    /// Virtual machines.
    Machines,
    /// Building the eBPF object, which nobody else needs.
    Ebpf,
}

impl fmt::Display for Purpose {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(match self {
            Self::Build => "build",
            Self::Machines => "machines",
            Self::Ebpf => "ebpf",
        })
    }
}

/// One thing that must be there.
#[derive(Clone, Copy)]
pub struct Prerequisite {
    /// Its name.
    pub name: &'static str,
    /// What it is good for.
    pub purpose: Purpose,
    /// Looks for it.
    pub present: fn() -> bool,
    /// What brings it.
    pub remedy: Remedy,
}

/// What brings a prerequisite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A Debian package.
    Package(&'static str),
    /// A command that this program runs.
    Run(&'static [&'static str]),
    /// [`Toolchain::bring`], once there is a nightly compiler.
    EbpfToolchain,
    /// Something only the user can do.
    Say(&'static str),
}

/// Everything the chores need.
pub const PREREQUISITES: [Prerequisite; 11] = [
    Prerequisite { name: "C compiler", purpose: Purpose::Build, present: || is_program("cc"), remedy: Remedy::Package("gcc") },
    Prerequisite { name: "C library to link statically", purpose: Purpose::Build, present: has_libc, remedy: Remedy::Package("libc6-dev") },
    Prerequisite {
        name: "rustfmt",
        purpose: Purpose::Build,
        present: || is_component("fmt"),
        remedy: Remedy::Run(&["rustup", "component", "add", "rustfmt"]),
    },
    Prerequisite {
        name: "clippy",
        purpose: Purpose::Build,
        present: || is_component("clippy"),
        remedy: Remedy::Run(&["rustup", "component", "add", "clippy"]),
    },
    Prerequisite {
        name: "apt",
        purpose: Purpose::Machines,
        present: || is_program("apt-get") && is_program("apt-cache"),
        remedy: Remedy::Say("kernels are Debian packages: apt and dpkg-deb unpack them, so use a Debian or a container of it"),
    },
    Prerequisite { name: "dpkg-deb", purpose: Purpose::Machines, present: || is_program("dpkg-deb"), remedy: Remedy::Package("dpkg") },
    Prerequisite {
        name: "QEMU",
        purpose: Purpose::Machines,
        present: || is_program("qemu-system-x86_64"),
        remedy: Remedy::Package("qemu-system-x86"),
    },
    Prerequisite { name: "mke2fs", purpose: Purpose::Machines, present: || is_program("mke2fs"), remedy: Remedy::Package("e2fsprogs") },
    Prerequisite { name: "tar", purpose: Purpose::Ebpf, present: || is_program("tar"), remedy: Remedy::Package("tar") },
    Prerequisite {
        name: "nightly compiler",
        purpose: Purpose::Ebpf,
        present: Toolchain::has_nightly,
        remedy: Remedy::Run(&["rustup", "toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"]),
    },
    Prerequisite {
        name: "rust-src and bpf-linker",
        purpose: Purpose::Ebpf,
        present: || Toolchain::find().is_ok(),
        remedy: Remedy::EbpfToolchain,
    },
];

fn is_program(name: &str) -> bool {
    shell::find(name).is_some()
}

fn is_component(subcommand: &str) -> bool {
    shell::output(Command::new("cargo").args([subcommand, "--version"])).is_ok()
}

/// Whether there is a C library to link into a program: then the compiler knows its full path.
fn has_libc() -> bool {
    shell::output(Command::new("cc").arg("-print-file-name=libc.a")).is_ok_and(|path| path.starts_with('/'))
}

/// The prerequisites of those purposes that are not there.
#[must_use]
pub fn missing(purposes: &[Purpose]) -> Vec<Prerequisite> {
    PREREQUISITES.into_iter().filter(|wanted| purposes.contains(&wanted.purpose) && !(wanted.present)()).collect()
}

/// Brings what is missing, or says what the user has to do for it.
pub fn bring(missing: &[Prerequisite]) -> Result<()> {
    let packages: Vec<&str> = missing.iter().filter_map(|wanted| wanted.remedy.package()).collect();
    if !packages.is_empty() {
        install(&packages)?;
    }
    for wanted in missing {
        match wanted.remedy {
            Remedy::Package(_) => {}
            Remedy::Run(words) => {
                let (program, arguments) = words.split_first().context("an empty command")?;
                say(format_args!("{}: {}", wanted.name, words.join(" ")));
                shell::run(shell::command(program, "rustup")?.args(arguments))?;
            }
            Remedy::EbpfToolchain => drop(Toolchain::bring()?),
            Remedy::Say(text) => bail!("{} is missing: {text}", wanted.name),
        }
    }
    match missing.iter().find(|wanted| !(wanted.present)()) {
        Some(wanted) => bail!("{} is still missing after installing it", wanted.name),
        None => Ok(()),
    }
}

impl Remedy {
    fn package(self) -> Option<&'static str> {
        match self {
            Self::Package(name) => Some(name),
            _ => None,
        }
    }
}

fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !rustix::process::geteuid().is_root() || shell::find("apt-get").is_none() {
        bail!("missing: {list}; as root: apt-get install --no-install-recommends {list}");
    }
    say(format_args!("installing {list}"));
    let apt = || -> Result<Command> {
        let mut apt = shell::command("apt-get", "apt")?;
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-y"]);
        Ok(apt)
    };
    shell::run(apt()?.arg("update"))?;
    shell::run(apt()?.args(["install", "--no-install-recommends"]).args(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_without_effect_is_an_error() {
        let wanted = Prerequisite { name: "moon", purpose: Purpose::Build, present: || false, remedy: Remedy::Run(&["true"]) };
        assert!(bring(&[wanted]).unwrap_err().to_string().contains("moon is still missing"));
        let wanted = Prerequisite { remedy: Remedy::Say("look up"), ..wanted };
        assert_eq!(bring(&[wanted]).unwrap_err().to_string(), "moon is missing: look up");
    }
}
