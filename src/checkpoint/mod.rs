//! What outlives a run: parameters in files that are complete or absent, never half written.

mod atomic;
mod error;
pub mod keeper;
pub mod policy;
pub mod weights;

pub use error::WeightsError;
pub use keeper::{Keeper, Unsaved};
pub use policy::Policy;
pub use weights::{NetworkWeights, Weights, WeightsEvaluation, WeightsMetadata};
