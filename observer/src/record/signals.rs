//! The wish to stop, as signals bring it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result};
use rustix::process::Signal;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Signals received since the start.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    interrupts: Arc<AtomicU32>,
    terminations: Arc<AtomicU32>,
}

impl Signals {
    /// Starts to listen for INT, TERM and HUP; from now on they do not end the process.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn listen() -> Result<Signals> {
        let signals = Signals::default();
        let heard = signals.clone();
        let runtime = runtime::Builder::new_current_thread().enable_io().build().context("cannot listen for signals")?;
        let installed = {
            // The handlers belong to the runtime that is entered.
            let _entered = runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal)
        };
        let [interrupt, terminate, hangup] = installed;
        let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
        let listen = move || {
            // Capabilities are each thread's own, and this one only counts.
            crate::privileges::drop_all();
            runtime.block_on(async move {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => heard.interrupts.fetch_add(1, Relaxed),
                        _ = terminate.recv() => heard.terminations.fetch_add(1, Relaxed),
                        _ = hangup.recv() => heard.terminations.fetch_add(1, Relaxed),
                    };
                }
            })
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).context("cannot listen for signals")?;
        Ok(signals)
    }

    /// How often INT came.
    pub fn interrupts(&self) -> u32 {
        self.interrupts.load(Relaxed)
    }

    /// How often TERM or HUP came.
    pub fn terminations(&self) -> u32 {
        self.terminations.load(Relaxed)
    }

    /// Signals of any kind.
    pub fn count(&self) -> u32 {
        self.interrupts() + self.terminations()
    }
}

/// Whether the terminal sends its Ctrl-C to this process group, and so to the command in it as well.
pub fn terminal_interrupts_us() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// What to pass on to the command, given what has come since the last look.
pub fn to_pass_on(interrupts: u32, terminations: u32) -> Option<Signal> {
    if terminations > 0 {
        Some(Signal::TERM)
    } else if interrupts > 0 && !terminal_interrupts_us() {
        Some(Signal::INT)
    } else {
        None
    }
}
