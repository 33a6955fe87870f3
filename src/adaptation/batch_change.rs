//! How the samples per insert follow a change of the batch.

use serde::{Deserialize, Serialize};

/// What stays when the batch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Samples per insert stay: each transition is drawn as often as before, so a larger batch makes fewer updates.
    SamplesPerInsert,
    /// Updates per environment step stay, so a larger batch draws each transition more often.
    UpdatesPerStep,
}

impl Hold {
    /// The samples per insert with `batch_size`, given that they are `configured_ratio` with `configured_batch_size`.
    pub fn samples_per_insert(self, configured_ratio: f64, configured_batch_size: usize, batch_size: usize) -> f64 {
        match self {
            Self::SamplesPerInsert => configured_ratio,
            Self::UpdatesPerStep => configured_ratio * batch_size as f64 / configured_batch_size.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays() {
        let updates_per_step = |ratio: f64, batch_size: usize| ratio / batch_size as f64;
        assert_eq!(Hold::SamplesPerInsert.samples_per_insert(8.0, 64, 256), 8.0);
        let ratio = Hold::UpdatesPerStep.samples_per_insert(8.0, 64, 256);
        assert_eq!(updates_per_step(ratio, 256), updates_per_step(8.0, 64));
    }
}
