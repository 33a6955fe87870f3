//! Prioritized replay over the segment, without tensors and without locks: insert, sample, update priorities from any
//! number of processes at once.

pub mod batch;
mod column;
pub mod frames;
pub(crate) mod gate;
mod insertion;
pub mod leaderless;
pub mod limiter;
pub mod n_step;
pub mod power;
pub mod priority;
mod reader;
mod recent_frames;
mod repair;
mod row;
mod sampling;
mod saving;
pub mod schema;
pub mod staging;
pub mod store;
pub mod sum_tree;
mod table;
mod taking;
mod target;
pub mod turn;
mod view;

pub use batch::{Batch, Rows};
pub use column::Column;
pub use frames::FrameStore;
pub use gate::open_gate_of_the_dead;
pub use limiter::RateLimiter;
pub use n_step::{NStep, Return};
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
pub use target::Target;
pub use turn::Turn;
pub use view::ReplayView;
