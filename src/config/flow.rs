//! How insertion and sampling are kept in step: the numbers that follow from `[actor]`, `[learner]` and `[replay]`.
//!
//! The surplus is `samples_per_insert * inserted - sampled`, counted from the moment when `min_size` is reached. With
//! the error band `e`, flushes of any size wait while it is above `e`, and batches of `b` wait while `surplus - b <
//! -e`, unless it is positive. So one side can always move. Shoal asks for `e >= max(b, samples_per_insert * f)` with
//! the largest flush `f`: from a perfect balance either side can then make its whole move within the band, and an
//! actor whose turn it is has the time of a whole flush to take it before others may pass.

use super::by_algorithm::RowKind;
use super::schema::{Config, FragmentsConfig, InitialPriority, LEAST_FRAGMENTS, OnFull};
use crate::adaptation::Hold;

impl Config {
    /// The most actors that the run may have, also while it fits itself to the machine; at least 1.
    pub fn most_actors(&self) -> usize {
        let most = self.adaptation.most_actors.filter(|_| self.adaptation.enabled);
        most.unwrap_or_default().max(self.actor.count).max(1)
    }

    /// The most environments that an actor may have, also while the run fits itself to the machine.
    pub fn most_environments(&self) -> usize {
        let most = self.adaptation.most_environments.filter(|_| self.adaptation.enabled);
        most.unwrap_or_default().max(self.actor.environments)
    }

    /// The most transitions that a batch may have, also while the run fits itself to the machine.
    pub fn largest_batch(&self) -> usize {
        let largest = self.adaptation.largest_batch.filter(|_| self.adaptation.enabled);
        largest.unwrap_or_default().max(self.learner.batch_size)
    }

    /// Whether updates per environment step are held when the batch changes: an update then counts for the rate
    /// limiter as the configured batch, however many transitions it draws.
    pub fn holds_updates(&self) -> bool {
        self.adaptation.hold == Hold::UpdatesPerStep
    }

    /// The most transitions that one flush can insert.
    ///
    /// A staging area is flushed after the step that fills it. Up to `flush_transitions - 1` transitions were there
    /// before, and in that step every environment adds at most `n_step`: as many as an episode that ends releases at
    /// once.
    pub fn largest_flush_transitions(&self) -> usize {
        self.actor.flush_transitions - 1 + self.most_environments() * self.algorithm.n_step
    }

    /// The smallest error band that a whole batch and a whole flush fit into, in samples; `None` if inserts and
    /// samples are not held in step.
    pub fn least_error_band(&self) -> Option<f64> {
        let ratio = self.replay.samples_per_insert?;
        Some((self.largest_batch() as f64).max(ratio * self.largest_flush_transitions() as f64))
    }

    /// The error band in force, in samples: as configured, or else the least one, and at least a tenth of what
    /// `min_size` transitions stand for. `None` if inserts and samples are not held in step.
    pub fn effective_error_band(&self) -> Option<f64> {
        let ratio = self.replay.samples_per_insert?;
        let chosen = self.least_error_band()?.max(0.1 * ratio * self.replay.min_size as f64);
        Some(self.replay.error_band.unwrap_or(chosen))
    }

    /// The transitions from which each of `learners` learners computes its part of an update.
    pub fn transitions_per_learner(&self, learners: usize) -> usize {
        let parts = if self.learns_in_parts() { self.algorithm.minibatches } else { 1 };
        self.learner.batch_size / parts / learners
    }

    /// The number of parts of a batch of PPO that is nearest to `wanted` among those for which
    /// `learner.publish_interval_updates` divides the updates from a batch; `wanted` if 0 is nearer than any of them.
    pub(crate) fn minibatches_near(&self, wanted: usize) -> usize {
        let (epochs, interval) = (self.algorithm.epochs as u64, self.learner.publish_interval_updates);
        let divides_both = |&divisor: &u64| epochs.is_multiple_of(divisor) && interval.is_multiple_of(divisor);
        let unit = interval / (1..=epochs).rev().find(divides_both).unwrap_or(1);
        match (wanted as u64 + unit / 2) / unit * unit {
            0 => wanted,
            // The cast keeps the number, which is at most twice `wanted`.
            nearest => nearest as usize,
        }
    }

    /// Whether one process acts, learns and evaluates in turn, and never looks at the clock.
    pub fn is_synchronous(&self) -> bool {
        self.actor.count == 0
    }

    /// Whether actors estimate the priority of what they insert, by its temporal-difference error.
    pub fn estimates_priorities(&self) -> bool {
        self.replay.prioritized && self.replay.initial_priority == InitialPriority::TdError
    }

    /// The key for want of which a run writes no checkpoint; `None` if it writes some.
    pub fn key_without_checkpoints(&self) -> Option<&'static str> {
        let table = &self.checkpoint;
        match self.is_synchronous() {
            true => table.synchronous_interval_steps.is_none().then_some("checkpoint.synchronous_interval_steps"),
            false => table.interval_s.is_none().then_some("checkpoint.interval_s"),
        }
    }

    /// Slots for actors and guests from outside: a run in one process has none.
    pub fn places_to_attach(&self) -> usize {
        if self.is_synchronous() { 0 } else { self.actor.attach_slots }
    }

    /// Processes that may insert at once.
    fn most_inserters(&self) -> usize {
        self.most_actors() + self.places_to_attach()
    }

    /// The most fragments that all actors, and all that may attach, complete in one step of their environments.
    pub fn most_fragments_in_flight(&self) -> usize {
        self.most_inserters() * self.most_environments()
    }

    /// Fragments of one batch, over all learners. Of a batch that they cannot share, which a rule refuses: those of the
    /// next larger one that they can, so that other rules reckon with what is advised.
    pub fn fragments_per_batch(&self) -> usize {
        self.learner.batch_size.div_ceil(self.fragments.length_steps * self.learner.count) * self.learner.count
    }

    /// The most environments of each of `actors` actors, if nobody configures how many. What they insert at once
    /// finds room in the replay. Their fragments are learned from before they are too old (APPO), or with the next
    /// batch (PPO), although the fragments of more environments than a batch has fragments wait for later batches.
    pub fn most_environments_of(&self, actors: usize) -> usize {
        match self.row_kind() {
            RowKind::Transitions => {
                let has_room = self.replay.capacity / (actors + self.places_to_attach());
                let largest_flush = match (self.replay.error_band, self.replay.samples_per_insert) {
                    (Some(band), Some(ratio)) => has_room.min((band / ratio) as usize),
                    _ => has_room,
                };
                (largest_flush + 1).saturating_sub(self.actor.flush_transitions) / self.algorithm.n_step
            }
            RowKind::Fragments => {
                let FragmentsConfig { capacity, max_policy_lag_updates, uses, .. } = self.fragments;
                let later_batches =
                    if self.learns_from_old_policies() { usize::try_from(max_policy_lag_updates).unwrap_or(usize::MAX) / uses } else { 0 };
                let of_batch = self.fragments_per_batch();
                let has_room = capacity.map(|capacity| capacity.saturating_sub(of_batch) / (actors + self.places_to_attach()));
                (later_batches.saturating_add(1).saturating_mul(of_batch) / actors).min(has_room.unwrap_or(usize::MAX))
            }
        }
    }

    /// The most actors, from 1 to `wanted`, that may have so many `environments` each by
    /// [`Self::most_environments_of`].
    pub fn most_actors_with(&self, environments: usize, wanted: usize) -> usize {
        (1..=wanted).rev().find(|&actors| self.most_environments_of(actors) >= environments).unwrap_or(1)
    }

    /// The least capacity for fragments: a batch and what the actors complete at once, so that neither side waits for
    /// ever, and as many as the key asks for.
    pub fn least_fragments(&self) -> usize {
        (self.fragments_per_batch() + self.most_fragments_in_flight()).max(LEAST_FRAGMENTS)
    }

    /// Places for fragments: as configured, or else for two batches and for what the actors complete at once, even if
    /// the key does not take so few. With more places, fragments would be older when they are taken.
    pub fn fragment_capacity(&self) -> usize {
        self.fragments.capacity.unwrap_or(2 * self.fragments_per_batch() + self.most_fragments_in_flight())
    }

    /// The most fragments that may wait when an actor of APPO completes more; `None` if actors never wait. What all
    /// actors complete next must not overwrite a fragment that waits.
    pub fn most_waiting_fragments(&self) -> Option<usize> {
        (self.fragments.on_full == OnFull::Wait).then(|| self.fragment_capacity() - self.most_fragments_in_flight())
    }

    /// Fragments of one learner's part of a batch that are replayed, having been taken before; at least one of the
    /// part is new.
    pub fn replayed_fragments(&self) -> usize {
        let part = self.fragments_per_batch() / self.learner.count;
        ((self.fragments.replay_share * part as f64).round() as usize).min(part.saturating_sub(1))
    }

    /// Fragments that stay after they were taken: as configured, or else eight batches; 0 if none is replayed.
    pub fn retained_fragments(&self) -> usize {
        if self.replayed_fragments() == 0 { 0 } else { self.fragments.retained.unwrap_or(8 * self.fragments_per_batch()) }
    }

    /// The most transitions that are written at once, by all actors and all that may attach.
    pub fn most_transitions_in_flight(&self) -> usize {
        self.most_inserters() * self.largest_flush_transitions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn two_batches_of_fragments_wait_however_few_or_many_the_actors_complete_at_once() {
        for (environments, attach_slots) in [(1, 0), (1, 8), (64, 8)] {
            let mut config = Config::for_environment("CartPole-v1");
            config.algorithm.name = "appo".into();
            (config.learner.batch_size, config.fragments.length_steps) = (256, 32);
            (config.actor.environments, config.actor.attach_slots) = (environments, attach_slots);
            assert_eq!(config.most_waiting_fragments(), Some(16));
            config.fragments.on_full = OnFull::DropOldest;
            assert_eq!(config.most_waiting_fragments(), None);
        }
    }

    #[test]
    fn nobody_who_attaches_is_reckoned_with_where_nobody_can() {
        let mut config = Config::for_environment("CartPole-v1");
        assert!(config.actor.attach_slots > 0);
        let beside_others = config.most_transitions_in_flight();
        config.actor.count = 0;
        assert_eq!(config.most_transitions_in_flight(), config.largest_flush_transitions());
        assert!(beside_others > config.most_transitions_in_flight());
    }
}
