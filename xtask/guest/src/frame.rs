//! The frames on the virtio port: a kind byte, a little-endian length, the payload.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Longest payload either side believes; larger data is split.
const MAX_PAYLOAD: u32 = 1 << 20;

/// One frame from guest to host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The guest's own word.
    Message(Message),
    /// Bytes of the running command's standard output.
    Stdout(Vec<u8>),
    /// Bytes of the running command's standard error.
    Stderr(Vec<u8>),
    /// Bytes of the file announced last.
    Data(Vec<u8>),
}

/// What the guest itself has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Message {
    /// The first process runs.
    Hello {
        /// `uname -r`.
        release: String,
    },
    /// The machine is as the job wants it; the steps begin.
    Ready,
    /// Something worth a line on the host, not a failure.
    Note {
        /// The line.
        text: String,
    },
    /// The machine could not be made ready.
    Failed {
        /// Why.
        text: String,
    },
    /// A step begins.
    StepStart {
        /// Its place in the job.
        index: usize,
    },
    /// A step ended.
    StepEnd {
        /// Its place in the job.
        index: usize,
        /// Exit status, 128 + number after a signal, 127 when the program could not be started.
        status: i32,
        /// How long it ran.
        millis: u64,
        /// Whether the job's time ran out and it was killed.
        timed_out: bool,
    },
    /// A folder of the results, relative to them.
    Directory {
        /// Its relative path.
        path: String,
    },
    /// A file of the results; its bytes follow as [`Frame::Data`].
    File {
        /// Its relative path.
        path: String,
        /// Permission bits.
        mode: u32,
        /// How many bytes follow.
        len: u64,
    },
    /// Everything was sent; the guest powers off.
    Done,
}

/// Writes one frame; payloads above the limit become several frames of the same kind.
pub fn write_frame(to: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let (kind, payload) = match frame {
        Frame::Message(message) => return write_one(to, 0, &serde_json::to_vec(message)?),
        Frame::Stdout(bytes) => (1, bytes),
        Frame::Stderr(bytes) => (2, bytes),
        Frame::Data(bytes) => (3, bytes),
    };
    for part in payload.chunks(MAX_PAYLOAD as usize) {
        write_one(to, kind, part)?;
    }
    Ok(())
}

fn write_one(to: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).ok().filter(|len| *len <= MAX_PAYLOAD).ok_or(io::ErrorKind::InvalidInput)?;
    // One write: frames of several threads share the port.
    let mut bytes = Vec::with_capacity(5 + payload.len());
    bytes.push(kind);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(payload);
    to.write_all(&bytes)
}

/// Reads the next frame; `None` at an end between two frames.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len > MAX_PAYLOAD {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame claims {len} bytes")));
    }
    let mut payload = vec![0; len as usize];
    from.read_exact(&mut payload)?;
    Ok(Some(match kind[0] {
        0 => Frame::Message(serde_json::from_slice(&payload)?),
        1 => Frame::Stdout(payload),
        2 => Frame::Stderr(payload),
        3 => Frame::Data(payload),
        other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of unknown kind {other}"))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_port() {
        let frames = [
            Frame::Message(Message::Hello { release: "7.3".into() }),
            Frame::Stdout(b"\0vm: exit 0\n".to_vec()),
            Frame::Data(vec![7; 300_000]),
            Frame::Message(Message::Done),
        ];
        let mut wire = Vec::new();
        for frame in &frames {
            write_frame(&mut wire, frame).unwrap();
        }
        let mut wire = wire.as_slice();
        for frame in frames {
            assert_eq!(read_frame(&mut wire).unwrap(), Some(frame));
        }
        assert_eq!(read_frame(&mut wire).unwrap(), None);
    }

    #[test]
    fn a_cut_frame_and_a_huge_claim_are_errors() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &Frame::Stdout(b"hello".to_vec())).unwrap();
        assert!(read_frame(&mut &wire[..wire.len() - 1]).is_err());
        assert!(read_frame(&mut [1, 0xff, 0xff, 0xff, 0xff].as_slice()).is_err());
    }
}
