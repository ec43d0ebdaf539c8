//! The one thing that a live kernel and a recording are to everything else.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::session::frame::SourceKind;
use crate::stream::{Event, Header};

/// Where events come from.
pub trait Source: Send {
    /// What the stream says of itself.
    fn header(&self) -> Arc<Header>;

    /// What it is.
    fn kind(&self) -> SourceKind;

    /// What to call it: a file's name, a host's.
    fn name(&self) -> String;

    /// Appends what has come, at most a batch; waits for as long as `patience` if nothing has. `false`: nothing will come any more.
    ///
    /// # Errors
    /// When the source fails; what was appended before is valid.
    fn fill(&mut self, out: &mut Vec<Event>, patience: Duration) -> Result<bool>;

    /// Starts again from the beginning; `false` if it cannot.
    ///
    /// # Errors
    /// When it could once, but cannot now (the file is gone).
    fn rewind(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Nanoseconds from its start to its end, if that is known beforehand.
    fn total_ns(&self) -> Option<u64> {
        None
    }

    /// Whether what this thread does from now on is work on events, or something that fewer of them would not make less. A live
    /// kernel keeps the cost of the former within its share.
    fn on_events(&mut self, _on_events: bool) {}

    /// Lines for the user since the last call.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Whether rows are missing that had been recorded.
    fn is_damaged(&self) -> bool {
        false
    }
}

/// Whether the source has a past to pace and go back to.
pub(crate) fn is_paced(kind: SourceKind) -> bool {
    matches!(kind, SourceKind::Recording | SourceKind::Embedded)
}
