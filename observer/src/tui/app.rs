//! The screen without a terminal: what it shows, and how an input changes that.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, KeyEventKind};
use ratatui::layout::Rect;

use super::state::{State, seekable};
use super::update::{Effect, update};
use super::{Options, keys, view};
use crate::session::frame::Frame;

/// The picture and the user's choices.
pub(super) struct App {
    state: State,
    /// The newest picture.
    latest: Arc<Frame>,
    /// The picture on the screen: an older one while a source that cannot stop is paused.
    shown: Arc<Frame>,
}

impl App {
    pub(super) fn new(frame: Arc<Frame>, options: &Options, size: (u16, u16)) -> Self {
        let state = State {
            look: options.look,
            depth: options.depth,
            no_color: options.no_color,
            speed: options.speed,
            paused: options.paused,
            size,
            ..State::default()
        };
        Self { state, latest: Arc::clone(&frame), shown: frame }
    }

    /// Takes a picture; true if the screen changes.
    pub(super) fn on_frame(&mut self, frame: Arc<Frame>) -> bool {
        self.latest = frame;
        self.follow()
    }

    fn follow(&mut self) -> bool {
        // A recording stands still by itself, and shows where a seek went.
        let held = self.state.paused && !seekable(&self.latest);
        if held || Arc::ptr_eq(&self.latest, &self.shown) {
            return false;
        }
        self.shown = Arc::clone(&self.latest);
        true
    }

    /// Takes an input. None: nothing came of it.
    pub(super) fn on_event(&mut self, event: &Event) -> Option<Outcome> {
        match event {
            Event::Resize(w, h) => {
                self.state.size = (*w, *h);
                Some(Outcome { effect: None })
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let action = keys::action(*key, &self.state.mode)?;
                let effect = update(&mut self.state, &self.shown, action);
                self.follow();
                Some(Outcome { effect })
            }
            _ => None,
        }
    }

    /// A line for the user.
    pub(super) fn notice(&mut self, text: &str) {
        text.clone_into(&mut self.state.notice);
    }

    pub(super) fn draw(&self, buf: &mut Buffer, screen: Rect) {
        view::draw(&self.shown, &self.state, buf, screen);
    }
}

/// What an input led to, besides a new screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) effect: Option<Effect>,
}
