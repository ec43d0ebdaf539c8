//! A source on the screen, or as a summary.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime;
use tokio::time::timeout;

use super::code;
use crate::cli::{Color, Summary};
use crate::exit::{Code, say};
use crate::kernel::size;
use crate::model::rules::Rules;
use crate::record::signals::Signals;
use crate::replay::{Player, Source, offscreen, pump};
use crate::session::Session;
use crate::session::frame::{Frame, SourceKind};
use crate::{report, tui};

/// How to show.
pub(super) struct Show {
    /// Summary or screen.
    pub(super) summary: Summary,
    /// Rule sets beside the kernel's own.
    pub(super) rules: Vec<Rules>,
    /// Sizes of what-if caches, percent of the observed one; none for no such caches.
    pub(super) sizes: Vec<u32>,
    /// Of a replay.
    pub(super) speed: f64,
    /// Start of a replay.
    pub(super) paused: bool,
    /// End of a replay.
    pub(super) repeat: bool,
    /// A line the user should see.
    pub(super) note: String,
    /// End after so long.
    pub(super) duration: Option<Duration>,
    /// Colours.
    pub(super) color: Color,
}

impl Show {
    /// The defaults.
    pub(super) fn new(color: Color) -> Show {
        let (summary, rules) = (Summary::default(), Session::default_rules());
        let (sizes, note) = (Vec::new(), String::new());
        Show { summary, rules, sizes, speed: 1.0, paused: false, repeat: false, note, duration: None, color }
    }

    /// Whether it will be a summary.
    pub(super) fn is_summary(&self) -> bool {
        self.summary.json || self.summary.text || !io::stdout().is_terminal()
    }

    /// Shows `source` until it ends (a summary) or the user has seen enough (the screen).
    pub(super) fn run(self, source: impl Source + 'static) -> Result<Code> {
        let (header, kind, name, rules) = (source.header(), source.kind(), source.name(), self.rules.clone());
        let sizes = self.sizes.clone();
        let session = move || {
            let mut session = Session::new(header.clone(), kind, name.clone(), rules.clone());
            if kind == SourceKind::Live {
                session.track_at_most(size::folios_to_follow());
            }
            session.what_if(&sizes);
            session
        };
        if self.is_summary() { self.summarize(source, session()) } else { self.screen(source, session) }
    }

    fn summarize(&self, mut source: impl Source, mut session: Session) -> Result<Code> {
        let signals = Signals::listen()?;
        let start = Instant::now();
        let stop = || signals.count() > 0 || self.duration.is_some_and(|duration| start.elapsed() >= duration);
        let name = source.name();
        let tell = |note: &str| say(format_args!("{name}: {note}"));
        if !self.note.is_empty() {
            say(&self.note);
        }
        let frame = offscreen::run_to_end(&mut source, &mut session, &self.note, tell, stop)?;
        print(&frame, self.summary.json)?;
        Ok(code(source.is_damaged()))
    }

    fn screen(self, source: impl Source + 'static, session: impl Fn() -> Session + Send + 'static) -> Result<Code> {
        let mut options = tui::Options { speed: self.speed, paused: self.paused, ..tui::Options::from_env() };
        match self.color {
            Color::Auto => {}
            Color::Always => options.no_color = false,
            Color::Never => options.no_color = true,
        }
        let pump = pump::Options { speed: self.speed, paused: self.paused, repeat: self.repeat, note: self.note };
        let player = Player::start(Box::new(source), session, pump)?;
        let screen = tui::run(player.frames.clone(), player.controls.clone(), options);
        let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start the screen")?;
        let shown = runtime.block_on(async {
            match self.duration {
                // The screen gives the terminal back when it is dropped.
                Some(duration) => timeout(duration, screen).await.unwrap_or(Ok(())),
                None => screen.await,
            }
        });
        let played = player.join();
        shown?;
        Ok(code(played?.damaged))
    }
}

/// A picture on standard output.
fn print(frame: &Frame, json: bool) -> io::Result<()> {
    let mut text = if json { report::json(frame).to_string() } else { report::text(frame) };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
