//! An actor-critic algorithm in two halves, each learned by a process of its own, as in Spreeze (arXiv 2312.06126): one improves
//! the critics with a policy that it only reads, the other improves the policy with critics that it only reads.
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

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Critics => "critics",
            Self::Policy => "policy",
        }
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

/// The half that a process learns, or all of an algorithm.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part(Option<Half>);

impl Part {
    /// This half alone.
    pub(super) fn only(half: Half) -> Self {
        Self(Some(half))
    }

    /// Whether this half is learned here.
    pub(super) fn learns(self, half: Half) -> bool {
        self.0.is_none_or(|own| own == half)
    }

    /// Whether both halves are learned here.
    pub(super) fn is_whole(self) -> bool {
        self.0.is_none()
    }
}
