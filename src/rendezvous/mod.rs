//! How processes outside a run find it: the registry of runs, and the handshake of attached actors.

mod error;
pub mod handshake;
mod leftovers;
pub mod listener;
pub mod registry;

pub use error::RendezvousError;
pub use handshake::{Attachment, Refusal, Reply, Request, attach};
pub use listener::{Joined, Listener};
pub use registry::{Announcement, Entry, Registry, RunRecord, RunState};
