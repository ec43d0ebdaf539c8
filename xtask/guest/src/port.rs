//! The guest's end of the virtio serial port.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use guest_init::{Frame, Message, PORT_NAME, write_frame};

/// How long the port's device may take to appear after its driver started.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);

/// The port, shared by the threads that forward a command's outputs.
#[derive(Clone)]
pub(crate) struct Port(Arc<Mutex<File>>);

impl Port {
    /// Finds the port by its name and opens it. The kernel lets nobody else open it then.
    pub(crate) fn open() -> Result<Self> {
        let deadline = Instant::now() + APPEARS_WITHIN;
        while Instant::now() < deadline {
            if let Some(path) = find() {
                let file = OpenOptions::new().read(true).write(true).open(&path).with_context(|| path.display().to_string())?;
                return Ok(Self(Arc::new(Mutex::new(file))));
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("no virtio serial port named {PORT_NAME}: is virtio_console in this kernel?")
    }

    /// Sends one frame.
    pub(crate) fn send(&self, frame: &Frame) -> Result<()> {
        // A thread that panicked while writing leaves at worst a cut frame, which the host notices.
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write_frame(&mut *file, frame).context("virtio serial port")
    }

    /// Sends the guest's own word.
    pub(crate) fn say(&self, message: Message) -> Result<()> {
        self.send(&Frame::Message(message))
    }
}

fn find() -> Option<PathBuf> {
    for entry in fs::read_dir("/sys/class/virtio-ports").ok()?.flatten() {
        if fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT_NAME) {
            return Some(PathBuf::from("/dev").join(entry.file_name()));
        }
    }
    None
}
