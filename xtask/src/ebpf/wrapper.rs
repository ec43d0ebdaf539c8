//! Makes the object the same in every folder.
//!
//! Cargo tells the compiler an identity for each crate that it derives from absolute paths, of the checkout and of the
//! toolchain; it ends up in symbol names. So this program stands between cargo and the compiler and tells it the
//! crate's name instead, which is unique among the few crates of the build.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

/// Set for the build: this program is asked to be the compiler.
const VARIABLE: &str = "OBSERVER_XTASK_IS_RUSTC";

/// Puts this program between cargo and the compiler.
pub(super) fn wrap(cargo: &mut Command) -> Result<()> {
    cargo.env("RUSTC_WRAPPER", std::env::current_exe().context("this program's own path")?).env(VARIABLE, "1");
    Ok(())
}

/// Whether cargo started this program in the compiler's place.
#[must_use]
pub fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Becomes the compiler. Returns only when it cannot be started.
pub fn run() -> anyhow::Error {
    let mut words = std::env::args_os().skip(1);
    let Some(compiler) = words.next() else { return anyhow::anyhow!("{VARIABLE} is set, but cargo gave no compiler") };
    let error = Command::new(&compiler).args(rename(words.collect())).exec();
    anyhow::Error::new(error).context(compiler.to_string_lossy().into_owned())
}

/// Replaces the value of `-C metadata=` by the crate's name.
fn rename(mut words: Vec<OsString>) -> Vec<OsString> {
    let at = words.iter().position(|word| word == OsStr::new("--crate-name"));
    if let Some(name) = at.and_then(|at| words.get(at + 1)).map(|name| name.to_string_lossy().into_owned()) {
        for word in &mut words {
            if word.to_string_lossy().starts_with("metadata=") {
                *word = format!("metadata={name}").into();
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identity_is_replaced() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let given = words("--crate-name core lib.rs -C metadata=12ab -C extra-filename=-12ab");
        assert_eq!(rename(given), words("--crate-name core lib.rs -C metadata=core -C extra-filename=-12ab"));
        assert_eq!(rename(words("-vV")), words("-vV"));
    }
}
