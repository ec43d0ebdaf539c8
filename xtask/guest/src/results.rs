//! Sends what the commands left in the results folder.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use guest_init::{Frame, Message, OUT_PATH};

use crate::port::Port;

/// Sends every folder and regular file below the results folder.
pub(crate) fn send(port: &Port) -> Result<()> {
    walk(Path::new(OUT_PATH), port)
}

fn walk(folder: &Path, port: &Port) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
        let relative = path.strip_prefix(OUT_PATH)?.to_string_lossy().into_owned();
        if meta.is_dir() {
            port.say(Message::Directory { path: relative })?;
            walk(&path, port)?;
        } else if meta.is_file() {
            let mut file = File::open(&path).with_context(|| path.display().to_string())?;
            port.say(Message::File { path: relative, mode: meta.mode() & 0o777, len: meta.len() })?;
            send_bytes(&mut file, meta.len(), port)?;
        } else {
            port.say(Message::Note { text: format!("{relative} is neither a file nor a folder; it is not sent") })?;
        }
    }
    Ok(())
}

/// Sends exactly the announced number of bytes, whatever a process in the background does to the file.
fn send_bytes(file: &mut File, len: u64, port: &Port) -> Result<()> {
    let mut left = len;
    while left > 0 {
        let mut bytes = Vec::new();
        file.by_ref().take(left.min(256 << 10)).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            bytes.resize(usize::try_from(left.min(256 << 10))?, 0);
        }
        left -= bytes.len() as u64;
        port.send(&Frame::Data(bytes))?;
    }
    Ok(())
}
