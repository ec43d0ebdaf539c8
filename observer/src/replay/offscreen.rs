//! A source read to its end without a screen, as fast as it goes.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Engine;
use super::notes::Notes;
use super::source::Source;
use crate::session::frame::Frame;

/// Longest wait before `stop` is asked again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Feeds everything of `source` to `engine` and returns the last picture; ends early when `stop` says so. Hands each note to `tell`;
/// all of them, behind `note`, are in the picture too.
///
/// # Errors
/// When the source fails.
pub fn run_to_end(
    source: &mut dyn Source,
    engine: &mut dyn Engine,
    note: &str,
    mut tell: impl FnMut(&str),
    mut stop: impl FnMut() -> bool,
) -> Result<Frame> {
    let mut notes = Notes::new(note);
    let progress = progress(source.total_ns());
    let start = source.header().start_boottime;
    let mut events = Vec::new();
    let mut rows = 0;
    let mut ended = false;
    while !ended && !stop() {
        events.clear();
        ended = !source.fill(&mut events, PATIENCE)?;
        events.iter().for_each(|event| engine.apply(event));
        for note in source.take_notes() {
            progress.suspend(|| tell(&note));
            notes.add(note);
        }
        rows += events.len() as u64;
        if let Some(last) = events.last() {
            progress.set_position(last.ts.saturating_sub(start) / 1_000_000);
            progress.set_message(format!("{} events", HumanCount(rows)));
        }
    }
    engine.finish();
    progress.finish_and_clear();
    engine.note(notes.line());
    let mut frame = engine.frame();
    frame.source.total_ns = source.total_ns();
    frame.source.ended = ended;
    Ok(frame)
}

/// A bar over the recording's time, or a counter where its end is unknown; nothing where stderr is no terminal.
fn progress(total_ns: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let (bar, template) = match total_ns {
        Some(total) => (ProgressBar::with_draw_target(Some(total / 1_000_000), target), "{bar:30} {percent:>3} % {msg} {elapsed}"),
        None => (ProgressBar::with_draw_target(None, target), "{spinner} {msg} {elapsed}"),
    };
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
