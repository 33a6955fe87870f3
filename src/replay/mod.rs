//! Prioritized replay over the segment, without tensors and without locks: insert, sample, update priorities from any
//! number of processes at once.

// Rows, and what they are made of.
mod batch;
mod column;
mod n_step;
mod reader; // a whole transition, with the frames that it names
mod row; // copies between a row of the store and the bytes of fields
pub mod schema;

// What lies in the segment.
mod frames;
mod name; // of what lies in a slot
pub mod priority;
pub mod staging;
pub mod store;
pub mod sum_tree;

// What processes do.
mod insertion;
pub mod power; // `x ^ exponent` of many values
mod recent_frames; // which frames this process has stored lately
mod sampling;
mod saving; // a whole replay, read and put back
mod table; // insert, sample, update priorities, as a process of the replay
mod taking; // rows in order, each once
mod view; // looks, and changes nothing

// Who waits for whom.
mod limiter;
mod turn;

// After a death.
pub(crate) mod gate; // lets a repair have the replay to itself
pub mod leaderless; // repair without a supervisor
mod repair;

pub use batch::{Batch, Rows};
pub use column::Column;
pub use frames::FrameStore;
pub use gate::open_gate_of_the_dead;
pub use limiter::RateLimiter;
pub use n_step::{NStep, Return};
pub use name::Name;
pub use priority::Priority;
pub use reader::{Reader, Unreadable};
pub use recent_frames::{RecentFrames, frames_for};
pub use repair::{Repair, is_unfinished, rebuild_sums, repair, repair_beside};
pub use sampling::{SampleError, Sampler};
pub use saving::{Counts, Record, Restoring, ZeroPriority};
pub use schema::{Element, Field, Schema};
pub use staging::StagingArea;
pub use sum_tree::{Audit, SumTree};
pub use table::{Replay, Scratch};
pub use taking::{FRESH, fresh_rows};
pub use turn::Turn;
pub use view::ReplayView;
