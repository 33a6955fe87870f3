//! Prioritized replay over the segment, without tensors and without locks: insert, sample, update priorities from any
//! number of processes at once.

pub mod batch;
pub mod limiter;
pub mod n_step;
pub mod priority;
mod repair;
pub mod schema;
pub mod staging;
pub mod store;
pub mod sum_tree;
mod table;

pub use batch::{Batch, Column};
pub use limiter::RateLimiter;
pub use n_step::{NStep, Ready};
pub use priority::Priority;
pub use repair::{Repair, repair};
pub use schema::{Element, Field, Schema};
pub use staging::StagingArea;
pub use sum_tree::{Audit, SumTree};
pub use table::{Replay, SampleError};
