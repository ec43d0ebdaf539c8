//! Where events come from, and at what pace they reach the session.
//!
//! ```text
//! reader thread ──batches, at most two waiting──▶ Source::fill ──▶ Pump (a thread) ──newest Frame──▶ screen
//!                                                                   ▲──Control──────────────────────┘
//! ```
//!
//! A live kernel and a recording are the same thing here, a [`Source`]; nothing downstream knows which it is.

pub mod live;
mod notes;
pub mod offscreen;
mod pacer;
pub mod pump;
pub mod recorded;
mod series;
pub mod source;
#[cfg(test)]
mod tests;

pub use pump::Player;
pub use recorded::{Input, Inputs, Recorded};
pub use source::Source;

pub use crate::tui::{Control, Seek};

use crate::session::Session;
use crate::session::frame::Frame;
use crate::stream::Event;

/// The recording inside the binary: 32 seconds of a 7.3.4 kernel whose cgroup of 40 MiB reads a hot file, cold files and
/// a zipf-distributed one.
pub static EMBEDDED: &[u8] = include_bytes!("../../recordings/default.arrows");

/// What turns events into pictures.
pub trait Engine: Send {
    /// Takes the next event.
    fn apply(&mut self, event: &Event);

    /// No more events will come before the next picture, which should have everything.
    fn finish(&mut self) {}

    /// The picture now.
    fn frame(&self) -> Frame;

    /// The line that the user should see now; replaces the one before.
    fn note(&mut self, note: String);
}

impl Engine for Session {
    fn apply(&mut self, event: &Event) {
        Session::apply(self, event);
    }

    fn finish(&mut self) {
        Session::finish(self);
    }

    fn frame(&self) -> Frame {
        Session::frame(self)
    }

    fn note(&mut self, note: String) {
        Session::note(self, note);
    }
}
