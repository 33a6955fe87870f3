//! An actor-critic algorithm in two halves, each learned by a process of its own (Spreeze, arXiv 2312.06126, section on model
//! parallelism): one improves the critics with a policy that it only reads, the other improves the policy with critics that it
//! only reads.
//!
//! Both build all networks and compute with those of the other half; what a half does not learn, it takes over from time to
//! time. With parts taken over after every update, both halves together make the update of one learner, bit for bit
//! (`tests/learner_halves.rs`): critics and policy take their step from the same parameters there, too.

/// A half of an actor-critic algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Critics and their targets. It counts the updates of the run, and writes priorities.
    Critics,
    /// The policy, and what else is learned with it.
    Policy,
}

impl Half {
    /// What the learner with this number learns.
    pub fn of(learner: usize) -> Self {
        if learner == Self::Critics as usize { Self::Critics } else { Self::Policy }
    }
}

/// Learning that can be halved.
pub trait Halved {
    /// Learn this half alone from now on.
    fn learn_only(&mut self, half: Half);

    /// Write what the other half computes with into the first of `values`, which are [`super::Algorithm::handed_over`].
    fn hand_over(&self, values: &mut [f32]);

    /// Compute with what the other half has handed over after `updates` of its own.
    fn take_over(&mut self, values: &[f32], updates: u64);
}

/// Which part of an algorithm a process learns, as the algorithms keep it.
#[derive(Debug, Default)]
pub(super) struct Part {
    half: Option<Half>,
    /// Updates of the other half behind what was taken over last.
    heard_at: Option<u64>,
}

impl Part {
    /// Of a learner of this half alone.
    pub(super) fn only(half: Half) -> Self {
        Self { half: Some(half), heard_at: None }
    }

    /// Whether this half is learned here.
    pub(super) fn learns(&self, half: Half) -> bool {
        self.half.is_none_or(|own| own == half)
    }

    /// Whether both halves are learned here.
    pub(super) fn is_whole(&self) -> bool {
        self.half.is_none()
    }

    /// Note what was heard, and return the weight with which an average over updates takes it in that would have taken in every
    /// `interval`-th with a weight of `tau`. The first that a process hears counts nothing: how much was missed is not known.
    #[expect(clippy::cast_possible_truncation, reason = "a weight needs no more than an f32")]
    pub(super) fn hear(&mut self, updates: u64, interval: u64, tau: f32) -> f32 {
        let before = self.heard_at.replace(updates).unwrap_or(updates);
        match (updates / interval).saturating_sub(before / interval) {
            0 => 0.0,
            1 => tau,
            times => (1.0 - (1.0 - f64::from(tau)).powf(times as f64)) as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_seldom_weighs_as_much_as_what_would_have_been_heard_meanwhile() {
        let mut part = Part::only(Half::Critics);
        assert!(part.learns(Half::Critics) && !part.learns(Half::Policy) && !part.is_whole());
        let weights = [500, 501, 502, 510, 510, 4].map(|updates| part.hear(updates, 2, 0.1));
        let four = 1.0 - 0.9_f64.powi(4);
        assert_eq!(weights, [0.0, 0.0, 0.1, four as f32, 0.0, 0.0]);
        assert!(Part::default().is_whole() && Part::default().learns(Half::Policy));
        assert_eq!([0, 1].map(Half::of), [Half::Critics, Half::Policy]);
    }
}
