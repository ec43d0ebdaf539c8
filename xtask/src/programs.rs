//! Programs of this workspace, built for a guest or for this machine.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The target of the guests: the host's own, but built with the C library inside the program.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A program of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its package.
    pub package: &'static str,
    /// Its binary, and its name in the guest.
    pub name: &'static str,
}

/// The guest's first process.
pub const INIT: Program = Program { package: "guest-init", name: "guest-init" };

/// The tool itself.
pub const OBSERVER: Program = Program { package: "observer", name: "observer" };

/// The programs a guest finds in its `/bin` unless asked otherwise.
pub const PROGRAMS: [Program; 2] = [OBSERVER, Program { package: "observer-tests", name: "workload" }];

/// The workspace's folder: the one cargo runs in now, since a target folder may be shared by several checkouts, or else
/// the one this was built in.
#[must_use]
pub fn workspace() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().unwrap_or(&own).to_owned()
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// For this machine, as a user builds it.
    Host,
    /// With everything inside, for a guest; beside the host's own build.
    Static,
}

/// Builds programs with the release profile. Returns their paths in the same order.
pub fn build(programs: &[Program], link: Link) -> Result<Vec<PathBuf>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).stdin(Stdio::null()).stderr(Stdio::inherit());
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    if !std::io::stderr().is_terminal() {
        cargo.arg("--quiet");
    }
    if link == Link::Static {
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        cargo.env("RUSTFLAGS", format!("{flags} -C target-feature=+crt-static").trim_start()).args(["--target", TARGET]);
        // Names of functions stay for backtraces; the rest would only fill the guest's memory.
        cargo.args(["--config", "profile.release.debug=false", "--config", "profile.release.strip=\"debuginfo\""]);
    }
    for program in programs {
        cargo.args(["--package", program.package, "--bin", program.name]);
    }
    let output = cargo.output().context("cargo")?;
    if !output.status.success() {
        bail!("the programs did not build (the messages above say why)");
    }
    let built = String::from_utf8_lossy(&output.stdout);
    let built: Vec<PathBuf> = built.lines().filter_map(executable).collect();
    let path = |program: &Program| {
        let found = built.iter().find(|path| path.file_name().is_some_and(|name| name == program.name));
        found.cloned().with_context(|| format!("cargo built no {}", program.name))
    };
    programs.iter().map(path).collect()
}

/// The program that a line of cargo's messages announces.
fn executable(line: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Artifact {
        executable: Option<PathBuf>,
    }
    serde_json::from_str::<Artifact>(line).ok()?.executable
}
