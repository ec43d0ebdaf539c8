//! Running other programs, with errors that say what to do.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The program's path, looked up the way a shell does and in the system folders that a user's PATH may lack.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A command for a program that must be there; `package` is the Debian package that brings it.
pub fn command(program: &str, package: &str) -> Result<Command> {
    match find(program) {
        Some(path) => Ok(Command::new(path)),
        None => bail!("{program} is missing; `cargo xtask setup` or `apt-get install {package}` brings it"),
    }
}

/// Runs to the end, returns standard output; a failure carries the program's own words.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| shown.clone())?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{shown}: {}: {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end. Its progress is seen on a terminal, all of it on standard error; in a pipe it is quiet unless it fails.
pub fn run(command: &mut Command) -> Result<()> {
    if !std::io::stderr().is_terminal() {
        return output(command).map(drop);
    }
    let shown = show(command);
    let progress = std::io::stderr().as_fd().try_clone_to_owned().context("standard error")?;
    let status = command.stdin(Stdio::null()).stdout(progress).status().with_context(|| shown.clone())?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// The command as one line, for messages.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Says on standard error what is about to be done.
pub fn say(text: impl std::fmt::Display) {
    eprintln!("xtask: {text}");
}
