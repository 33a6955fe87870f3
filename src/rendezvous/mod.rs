//! How processes outside a run find it: the registry of runs, and the handshake of those who join.

mod error;
pub mod handshake;
mod leftovers;
pub mod listener;
pub mod registry;

pub use error::RendezvousError;
pub use handshake::{Attachment, Refusal, Reply, Request, Visitor, attach};
pub use leftovers::remove_dead_replays;
pub use listener::{Joined, Knock, Listener};
pub use registry::{Announcement, Entry, Liveliness, RegisteredRun, Registry};
