//! The screen: predicted and actual side by side, live or replayed.
//!
//! One direction: an input becomes an [`action`], [`update`] changes the [`state`], [`view`] draws it and the latest
//! [`Frame`]. Nothing here reaches into a session: it sends [`Frame`]s through a `watch` channel (the screen shows the newest
//! and never queues), and is told what the user wants through [`Control`].

mod action;
mod app;
mod input;
mod keys;
mod run;
mod state;
mod terminal;
mod theme;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub use run::run;
pub use theme::{Depth, Look};

#[cfg(doc)]
use crate::session::frame::Frame;

/// What the user wants of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Stop or continue. A source that cannot stop (a live kernel, a pipe) may go on: the screen holds its picture.
    Pause(bool),
    /// Speed of a replay, 1 as recorded.
    Speed(f64),
    /// Go to another time of a recording. While paused, the picture there is wanted.
    Seek(Seek),
    /// The screen closes.
    Quit,
}

/// A time to go to; the session bounds it by the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// Nanoseconds from here.
    By(i64),
    /// Nanoseconds from the recording's start.
    To(u64),
}

/// How the screen starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Styles.
    pub look: Look,
    /// Colours the terminal has.
    pub depth: Depth,
    /// No colour whatever is chosen.
    pub no_color: bool,
    /// Speed that a replay was started with.
    pub speed: f64,
    /// Whether it was started paused.
    pub paused: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { look: Look::default(), depth: Depth::default(), no_color: false, speed: 1.0, paused: false }
    }
}

impl Options {
    /// The defaults for this terminal: `NO_COLOR` (set and not empty, <https://no-color.org>), `TERM`, `COLORTERM`.
    #[must_use]
    pub fn from_env() -> Self {
        let var = |name| std::env::var(name).unwrap_or_default();
        Self {
            depth: Depth::of(&var("TERM"), &var("COLORTERM")),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()),
            ..Self::default()
        }
    }
}
