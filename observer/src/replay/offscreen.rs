//! A source read to its end without a screen, as fast as it goes.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Engine;
use super::source::Source;
use crate::session::frame::Frame;

/// Longest wait before `stop` is asked again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Feeds everything of `source` to `engine` and returns the last picture; ends early when `stop` says so.
///
/// # Errors
/// When the source fails.
pub fn run_to_end(source: &mut dyn Source, engine: &mut dyn Engine, mut stop: impl FnMut() -> bool) -> Result<Frame> {
    let progress = progress(source.total_ns());
    let start = source.header().start_boottime;
    let mut events = Vec::new();
    let mut rows = 0;
    let mut ended = false;
    while !ended && !stop() {
        events.clear();
        ended = !source.fill(&mut events, PATIENCE)?;
        events.iter().for_each(|event| engine.apply(event));
        source.take_notes().into_iter().for_each(|note| engine.note(note));
        rows += events.len();
        if let Some(last) = events.last() {
            progress.set_position(last.ts.saturating_sub(start) / 1_000_000);
            progress.set_message(format!("{rows} events"));
        }
    }
    progress.finish_and_clear();
    let mut frame = engine.frame();
    frame.source.total_ns = source.total_ns();
    frame.source.ended = ended;
    Ok(frame)
}

/// A stop after so long; never if there is no limit.
pub fn after(limit: Option<Duration>) -> impl FnMut() -> bool {
    let start = Instant::now();
    move || limit.is_some_and(|limit| start.elapsed() >= limit)
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
