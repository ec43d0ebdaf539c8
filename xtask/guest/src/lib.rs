//! What the host and the first process of a test machine say to each other.
//!
//! The host writes a [`Job`] into the initramfs; the guest answers with [`Frame`]s on a virtio serial port. The port has
//! one opener only, so nothing a command prints, on either of its outputs, can be taken for the guest's own word.

mod frame;
mod job;

pub use frame::{Frame, Message, read_frame, write_frame};
pub use job::{Job, Step};

/// Name of the virtio serial port, as QEMU announces it and the guest finds it in sysfs.
pub const PORT_NAME: &str = "observer.control";

/// Where the initramfs holds the [`Job`].
pub const JOB_PATH: &str = "/job.json";

/// Folder of the guest whose contents travel back to the host.
pub const OUT_PATH: &str = "/out";
