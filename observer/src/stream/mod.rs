//! Events, and how they are stored.

mod columns;
pub mod counter_names;
pub mod damage;
mod decode;
mod encode;
pub mod event;
pub mod header;
#[doc(hidden)]
pub mod hostile;
mod message;
pub mod reader;
mod rows;
mod scan;
pub mod schema;
#[cfg(test)]
pub(crate) mod tests;
pub mod writer;

pub use damage::{Damage, NO_CPU};
pub use event::{Body, Event};
pub use header::Header;
pub use reader::{BatchInfo, OpenError, Reader};
pub use writer::Writer;
