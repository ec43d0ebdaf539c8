//! Keys, from a thread of their own: reading a terminal blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;

/// How long the thread outlives the screen at most.
const POLL: Duration = Duration::from_millis(100);

/// The thread; it ends soon after this is dropped. It is not joined: a terminal that is gone may never return from a read.
pub(super) struct Input {
    events: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
}

impl Input {
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, events) = mpsc::channel(64);
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                match event::poll(POLL) {
                    Ok(false) => (),
                    Ok(true) => {
                        let Ok(event) = event::read() else { break };
                        if sender.blocking_send(event).is_err() {
                            break;
                        }
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => (),
                    Err(_) => break,
                }
            }
        })?;
        Ok(Self { events, stop })
    }

    /// The next; None when the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
