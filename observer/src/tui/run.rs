//! The loop: inputs, pictures and signals in, frames out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use ratatui::crossterm::event::Event;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::app::App;
use super::input::Input;
use super::terminal::{Screen, is_gone};
use super::update::Effect;
use super::{Control, Options};
use crate::session::frame::Frame;

/// Thirty frames a second at most.
const FRAME: Duration = Duration::from_millis(33);
/// How often to look whether the terminal still exists.
const ALIVE: Duration = Duration::from_secs(1);

/// Shows the pictures of `frames` until the user quits, a signal (INT, TERM, HUP) asks for it, or the terminal is gone; all of
/// these are `Ok`, and `controls` gets [`Control::Quit`] first. The sender of `frames` may go: the last picture stays.
///
/// # Errors
///
/// When stdout is not a terminal that can show a screen, or the terminal fails. It is restored in every case, panics in
/// other threads included.
pub async fn run(mut frames: watch::Receiver<Arc<Frame>>, controls: mpsc::Sender<Control>, options: Options) -> anyhow::Result<()> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let mut screen = Screen::open()?;
    let mut input = Input::start().context("cannot read keys")?;
    let mut app = App::new(Arc::clone(&frames.borrow_and_update()), &options, screen.size());
    let mut alive = interval(ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut changed, mut more) = (true, true);
    let mut next_draw = Instant::now();

    let result = loop {
        tokio::select! {
            // Inputs first: pictures may come faster than they can be drawn.
            biased;
            () = signals.next() => break Ok(()),
            event = input.next() => {
                let Some(event) = event else { break Ok(()) };
                let Some(outcome) = app.on_event(&event) else { continue };
                changed = true;
                match outcome.effect {
                    None => (),
                    Some(Effect::Control(Control::Quit)) => break Ok(()),
                    Some(Effect::Control(control)) => match controls.try_send(control) {
                        Ok(()) => (),
                        Err(TrySendError::Full(_)) => app.notice("busy; try again"),
                        Err(TrySendError::Closed(_)) => app.notice("the source has ended"),
                    },
                    Some(Effect::Suspend) => {
                        if let Err(e) = screen.suspend() { break Err(e) }
                        let (w, h) = screen.size();
                        app.on_event(&Event::Resize(w, h));
                    }
                    Some(Effect::Redraw) => if let Err(e) = screen.redraw() { break Err(e) },
                }
            }
            () = sleep_until(next_draw), if changed => {
                if !Screen::is_ours() {
                    // The hook has printed what happened.
                    bail!("a part of observer failed; the screen is closed");
                }
                changed = false;
                next_draw = Instant::now() + FRAME;
                if let Err(e) = screen.draw(|buf, area| app.draw(buf, area)) { break Err(e) }
            }
            new = frames.changed(), if more => match new {
                Ok(()) => changed |= app.on_frame(Arc::clone(&frames.borrow_and_update())),
                Err(_) => more = false,
            },
            _ = alive.tick() => {
                if !Screen::is_there() { break Ok(()) }
                // A panic elsewhere must not leave a dead screen until the next key.
                changed |= !Screen::is_ours();
            }
        }
    };
    // If the session is too busy to take it, the dropped sender tells it the same.
    let _ = controls.try_send(Control::Quit);
    match result {
        Err(e) if !is_gone(&e) => Err(e).context("the terminal failed"),
        _ => Ok(()),
    }
}

/// The signals that end the screen.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
            _ = self.hangup.recv() => (),
        }
    }
}
