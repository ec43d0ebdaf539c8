//! Exit codes, and the line that explains one.

use std::fmt;
use std::io::{self, Write};

use crate::stream::OpenError;

/// A line on standard error. Whoever closed that does not want it: no reason to fail.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "observer: {line}");
}

/// Why observer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All is well.
    Ok = 0,
    /// Something failed.
    Failed = 1,
    /// Wrong usage (clap's own code for it).
    Usage = 2,
    /// The kernel lacks what is needed.
    Unsupported = 3,
    /// A permission is missing.
    Permission = 4,
    /// Data are missing.
    Data = 5,
}

/// An error that knows its exit code; put it anywhere into an error's chain.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    line: String,
}

impl Failure {
    /// `line` says what failed and what to do.
    pub fn new(code: Code, line: impl Into<String>) -> Failure {
        Failure { code, line: line.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Failure {}

/// What an error means to whoever called us; `None`: nothing to say, the reader of our output has gone.
pub fn code_of(error: &anyhow::Error) -> Option<Code> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Some(failure.code);
    }
    let mut code = Code::Failed;
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(failure.code);
        }
        match cause.downcast_ref::<OpenError>() {
            Some(OpenError::Io(_)) | None => {}
            Some(_) => return Some(Code::Data),
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => return None,
            Some(io::ErrorKind::PermissionDenied) => code = Code::Permission,
            _ => {}
        }
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn causes_decide() {
        let io = |kind: io::ErrorKind| -> anyhow::Error { Err::<(), _>(io::Error::from(kind)).context("outer").unwrap_err() };
        assert_eq!(code_of(&io(io::ErrorKind::BrokenPipe)), None);
        assert_eq!(code_of(&io(io::ErrorKind::PermissionDenied)), Some(Code::Permission));
        assert_eq!(code_of(&io(io::ErrorKind::NotFound)), Some(Code::Failed));
        assert_eq!(code_of(&anyhow!("plain")), Some(Code::Failed));
        assert_eq!(code_of(&anyhow!(OpenError::Empty).context("run.arrows")), Some(Code::Data));
        assert_eq!(code_of(&anyhow!(Failure::new(Code::Unsupported, "no BTF")).context("live")), Some(Code::Unsupported));
    }
}
