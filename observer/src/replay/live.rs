//! A live kernel as a source.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::source::Source;
use crate::capture::live::{DRAIN_EVERY, Live};
use crate::session::frame::SourceKind;
use crate::stream::{Event, Header};

impl Source for Live {
    fn header(&self) -> Arc<Header> {
        Live::header(self)
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Live
    }

    fn name(&self) -> String {
        Live::header(self).host.clone()
    }

    fn fill(&mut self, out: &mut Vec<Event>, patience: Duration) -> Result<bool> {
        // No wake-up per event: whoever drains too often takes the CPU from what is observed.
        if !self.drain(out)? {
            thread::sleep(patience.min(DRAIN_EVERY));
        }
        Ok(true)
    }

    fn on_events(&mut self, on_events: bool) {
        self.meter(on_events);
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.take_warnings()
    }
}
