//! What outlives a run: weights, replays, and checkpoints from which it goes on. All are complete or absent, never
//! half written.

mod atomic;
mod checkpoints;
mod error;
mod paced;
mod policy_saver;
mod policy_spaces;
mod replay_file;
mod room;
mod run_checkpoint;
mod segment_state;
mod summed;
pub mod weights;
mod weights_error;

pub use atomic::replace_with as replace_file;
pub use checkpoints::{Checkpoints, Retention};
pub use error::CheckpointError;
pub use policy_saver::{PolicySaver, Unsaved};
pub use policy_spaces::PolicySpaces;
pub use replay_file::{Filled, ReplayFile, ReplayFileError, write as write_replay};
pub use room::free_bytes;
pub use run_checkpoint::{Content, Learned, Manifest, Restored, RowsIn, RunCheckpoint, bytes_of_largest_checkpoint};
pub use segment_state::SavedStatistics;
pub use weights::{PolicyWeights, WeightsEvaluation, WeightsMetadata};
pub use weights_error::WeightsError;
