//! How insertion and sampling are kept in step: the numbers that follow from `[actor]`, `[learner]` and `[replay]`.
//!
//! Let `drift = samples_per_insert * inserted - sampled`, counted from the moment when `min_size` is reached. With the error band `e`, a flush of
//! `f` transitions may go ahead while `drift + samples_per_insert * f <= e`, and a batch of `b` while `drift - b >= -e`. Both sides wait at once,
//! for ever, only if `e - samples_per_insert * f < drift < b - e`, and no such drift exists when `2 e >= b + samples_per_insert * f`.
//! Shoal asks a little more, `e >= max(b, samples_per_insert * f)`: from a perfect balance either side can then make its whole move.

use super::schema::Config;

impl Config {
    /// The most transitions that one flush can insert.
    ///
    /// A staging area is flushed after the step that fills it. Up to `flush_transitions - 1` were there before, and in that step every environment
    /// adds at most `n_step`: as many as an episode that ends releases at once.
    pub fn largest_flush_transitions(&self) -> usize {
        self.actor.flush_transitions - 1 + self.actor.environments * self.algorithm.n_step
    }

    /// The smallest error band with which neither side can block the other, in samples; `None` when both run free.
    pub fn least_error_band(&self) -> Option<f64> {
        let ratio = self.replay.samples_per_insert?;
        Some((self.learner.batch_size as f64).max(ratio * self.largest_flush_transitions() as f64))
    }

    /// The error band in force, in samples: as set, or else the least one and at least a tenth of what `min_size` transitions stand for.
    /// `None` when both sides run free.
    pub fn effective_error_band(&self) -> Option<f64> {
        let ratio = self.replay.samples_per_insert?;
        let chosen = self.least_error_band()?.max(0.1 * ratio * self.replay.min_size as f64);
        Some(self.replay.error_band.unwrap_or(chosen))
    }

    /// The most transitions that are being written at once, by all actors and all that may attach.
    pub fn most_transitions_in_flight(&self) -> usize {
        (self.actor.count.max(1) + self.actor.attach_slots) * self.largest_flush_transitions()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Plays the limiter with whole batches and flushes of any size: at every drift that it reaches, one side can move.
        #[test]
        fn with_the_least_band_one_side_can_always_move(
            batch_size in 1usize..512, flush in 1usize..128, environments in 1usize..16, n_step in 1usize..6,
            ratio in 0.01f64..100.0, choices in prop::collection::vec((any::<bool>(), 0.0f64..1.0), 1..300),
        ) {
            let mut config = Config::for_environment("CartPole-v1");
            config.learner.batch_size = batch_size;
            config.actor.flush_transitions = flush;
            config.actor.environments = environments;
            config.algorithm.n_step = n_step;
            config.replay.samples_per_insert = Some(ratio);
            let band = config.least_error_band().unwrap();
            let largest_flush = config.largest_flush_transitions();
            let mut drift = 0.0;
            for (prefers_insert, share) in choices {
                let can_insert_all = drift + ratio * largest_flush as f64 <= band + 1e-6;
                let can_sample = drift - batch_size as f64 >= -band - 1e-6;
                prop_assert!(can_insert_all || can_sample, "both wait at drift {drift} with band {band}");
                if can_insert_all && (prefers_insert || !can_sample) {
                    let flushed = (1.0 + share * (largest_flush - 1) as f64).floor();
                    drift += ratio * flushed;
                } else {
                    drift -= batch_size as f64;
                }
            }
        }
    }

    #[test]
    fn the_chosen_band_is_never_below_the_least_one() {
        let mut config = Config::for_environment("CartPole-v1");
        for min_size in [1, 100, 10_000] {
            config.replay.min_size = min_size;
            assert!(config.effective_error_band() >= config.least_error_band());
        }
        config.replay.samples_per_insert = None;
        assert_eq!(config.effective_error_band(), None);
    }
}
