//! Being in the newest view of all learners, with the state that its leader has.

use super::super::run::{RoleError, Run};
use super::statistics::seen_by_actors;
use super::{Learner, PAUSE};
use crate::algorithms::Half;
use crate::segment::counters::Counter;
use crate::segment::float_board::NOTES;
use crate::segment::membership::View;
use crate::segment::processes::Phase;
use crate::sync::{Ordering, monotonic_ns};

/// The newest view that concerns the learner of `run`: of two that share the algorithm by halves, each is in one of its own.
pub(super) fn newest(run: &Run<'_>, is_half: bool) -> View {
    let view = View::load(run.control().membership());
    if is_half { view.alone(run.number) } else { view }
}

impl Learner<'_> {
    /// The newest view that concerns this learner.
    pub(super) fn newest_view(&self) -> View {
        newest(self.run, self.other_half.is_some())
    }

    /// Be in the newest view, with the state that its leader has; who leads publishes its parameters first. `false` when the run ended
    /// before that.
    ///
    /// # Errors
    /// [`RoleError::StateLost`].
    pub fn join(&mut self) -> Result<bool, RoleError> {
        let mut refused = None;
        loop {
            let view = self.newest_view();
            if view == self.view {
                return Ok(true);
            }
            // A run that is over before anything was published has weights all the same.
            let begins = view.leader == Some(self.run.number) && self.states.version() == 0;
            // In this order: at the end of a run a view changes because the leader has left, which published last.
            if !begins && self.run.is_over() {
                return Ok(false);
            }
            if view.contains(self.run.number) && (self.lead_on(view)? || self.follow(view, &mut refused)) {
                self.view = view;
                // Members begin together, with batches too: what is scaled, and when, is the same for all.
                self.source.restart();
                self.began_anew_at = self.updates;
                let learner = &self.run.config.learner;
                let batch_size = view.batch_size(learner.batch_size);
                let counted = if self.run.config.holds_updates() { learner.batch_size } else { batch_size };
                self.source.resize(batch_size / learner.count, counted / learner.count);
                self.count(Counter::ExchangeNs);
                return Ok(true);
            }
            self.run.process.enter(Phase::Exchange);
            std::thread::sleep(PAUSE);
            self.count(Counter::ExchangeNs);
        }
    }

    /// As the leader of a new view: publish the state for the others, its own or, in a process that has not taken part
    /// in any view yet, the newest that there is.
    fn lead_on(&mut self, view: View) -> Result<bool, RoleError> {
        if view.leader != Some(self.run.number) {
            return Ok(false);
        }
        // Whoever published it is dead, or it would lead: nobody publishes another meanwhile.
        if self.view == View::default() && !self.load_newest() && self.states.version() != 0 {
            return Err(RoleError::StateLost { version: self.states.version() });
        }
        // What was counted after that state is gone with those who knew it. A count ahead of all parameters would make experience look
        // older than it is, for as long as nothing but older experience comes.
        self.count_updates();
        self.publish_state(view);
        self.publish_parameters();
        if let Some(other) = &mut self.other_half {
            other.hand_over(&mut *self.learning, self.updates);
        }
        Ok(true)
    }

    /// As another member: load the leader's state once it has been published under this view. It cannot be missed:
    /// until this learner arrives in a round of the view nobody completes one, so what the leader publishes next it
    /// publishes under a later view, which this learner then finds.
    ///
    /// `refused` is a version that was read under this view and had been published under another one. It is not read
    /// again: a state is long, and a learner that waits looks after every [`PAUSE`]. A version that could not be read
    /// whole is not noted there, and is tried again.
    fn follow(&mut self, view: View, refused: &mut Option<(View, u64)>) -> bool {
        if *refused == Some((view, self.states.version())) {
            return false;
        }
        let Some((version, [epoch, updates, ..])) = self.states.read(&mut self.state) else { return false };
        if epoch != u64::from(view.epoch) {
            *refused = Some((view, version));
            return false;
        }
        self.go_on_from_state(updates);
        true
    }

    /// Load the newest state, if there is any that can be read.
    fn load_newest(&mut self) -> bool {
        let Some((_, [_, updates, ..])) = self.states.read(&mut self.state) else { return false };
        self.go_on_from_state(updates);
        true
    }

    /// Go on from the state that was read, to which so many updates have led.
    fn go_on_from_state(&mut self, updates: u64) {
        self.learning.restore(&self.state);
        self.updates = updates;
        self.statistics = None;
        // A state is without the statistics: without a look at them, whoever leads from here, at once or after the leader's death, would
        // publish unscaled until its next new batch.
        if self.run.algorithm.normalisation().is_needed() {
            self.learning.normalise_with(&seen_by_actors(self.run));
        }
    }

    pub(super) fn publish_state(&mut self, view: View) {
        self.learning.save(&mut self.state);
        self.states.publish(&[&self.state], [u64::from(view.epoch), self.updates, 0, 0]);
    }

    pub(super) fn count_updates(&self) {
        if self.learns(Half::Critics) {
            self.run.control().updates().store(self.updates, Ordering::Relaxed);
        }
    }

    pub(super) fn publish_parameters(&mut self) {
        if !self.learns(Half::Policy) {
            return;
        }
        let notes: [u64; NOTES] = [self.updates, self.run.env_steps(), monotonic_ns(), 0];
        self.board.publish(&[self.learning.published()], notes);
    }
}
