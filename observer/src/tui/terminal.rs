//! The terminal: taken over, and given back whatever happens.

use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
    window_size,
};
use ratatui::crossterm::{cursor, execute, queue};
use ratatui::layout::Rect;

/// Whether the terminal is ours. Global because a panic hook is.
static OURS: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Collects a frame and writes it at once. Once the terminal is given back (a panic in the midst of a frame) nothing of it
/// reaches the user's shell.
struct Out(Vec<u8>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = if OURS.load(Ordering::Relaxed) {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&self.0).and_then(|()| stdout.flush())
        } else {
            Ok(())
        };
        self.0.clear();
        result
    }
}

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Out>>,
}

impl Screen {
    /// Takes it over.
    pub(super) fn open() -> anyhow::Result<Self> {
        const INSTEAD: &str = "use --text or --json";
        if !io::stdout().is_terminal() {
            bail!("the screen needs a terminal on stdout; {INSTEAD}");
        }
        if std::env::var("TERM").is_ok_and(|t| t == "dumb") {
            bail!("this terminal (TERM=dumb) cannot show a screen; {INSTEAD}");
        }
        match size() {
            Ok((w, h)) if w > 0 && h > 0 => (),
            _ => bail!("this terminal does not tell its size; set it (stty rows 24 cols 80), or {INSTEAD}"),
        }
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                leave();
                report(info);
            }));
        });
        enter().context("cannot take over the terminal")?;
        match Terminal::new(CrosstermBackend::new(Out(Vec::new()))) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(e) => {
                leave();
                Err(e).context("cannot use the terminal")
            }
        }
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        self.terminal.size().map_or((0, 0), |s| (s.width, s.height))
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Buffer, Rect)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|f| {
            let area = f.area();
            paint(f.buffer_mut(), area);
        })?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Write::flush(self.terminal.backend_mut())
    }

    /// Forgets what is on the terminal, so that the next frame is drawn in full.
    pub(super) fn redraw(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it asks the terminal where the cursor is, and the answer goes to the thread that reads keys.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Gives the terminal to the shell that started us until it continues us.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        leave();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
        enter()?;
        self.redraw()
    }

    /// Whether it is still ours: a panic anywhere in the process gives it back.
    pub(super) fn is_ours() -> bool {
        OURS.load(Ordering::Relaxed)
    }

    /// Whether there is still a terminal. Its other end may be gone without a signal (`nohup`, `setsid`).
    pub(super) fn is_there() -> bool {
        window_size().is_ok()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::Relaxed);
    let shown = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide);
    if shown.is_err() {
        leave();
    }
    shown
}

/// Gives it back. There is nobody left to tell if that fails.
fn leave() {
    if OURS.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// Whether an error says that the terminal is gone.
pub(super) fn is_gone(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::IO, Errno::NXIO, Errno::BADF, Errno::PIPE, Errno::NODEV];
    gone.iter().any(|g| e.raw_os_error() == Some(g.raw_os_error())) || e.kind() == io::ErrorKind::BrokenPipe
}
