//! A picture as text and as JSON. Both are renderings of one [`Summary`]; what each key means is in `summary-schema.md`,
//! which is [`SCHEMA_DOC`].
//!
//! A number that was not observed is `null` in JSON and "–" in text, never 0: [`known`] decides which those are, for the
//! screen too.

pub mod cost;
pub mod known;
pub mod num;
pub mod sampling;
mod summary;
mod text;
pub mod verdict;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use summary::{SCHEMA, Summary};

use crate::session::frame::Frame;

/// The documentation of the JSON summary, for `--help` and friends.
pub const SCHEMA_DOC: &str = include_str!("summary-schema.md");

/// One screen of plain text, at most 78 columns wide as far as names allow, without escape sequences: fit for a mail.
#[must_use]
pub fn text(frame: &Frame) -> String {
    text::render(&Summary::of(frame))
}

/// The summary with schema [`SCHEMA`].
#[must_use]
pub fn json(frame: &Frame) -> serde_json::Value {
    // A struct of numbers, strings and lists has no key that JSON cannot hold, so the error is unreachable; it is still
    // shown rather than hidden.
    serde_json::to_value(Summary::of(frame)).unwrap_or_else(|e| serde_json::json!({ "schema": SCHEMA, "error": e.to_string() }))
}
