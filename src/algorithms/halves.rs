//! An actor-critic algorithm in two halves, each learned by a process of its own, as in Spreeze (arXiv
//! 2312.06126): one improves the critics with a policy that it only reads, the other improves the policy with
//! critics that it only reads.
//!
//! Both processes build all networks. Each learns its own half and takes over the other half's parameters from time to
//! time. If both do so after every update, in step, they make the update of one learner together, bit for bit
//! (`tests/runs/learner_halves.rs`): one learner also updates critics and policy from the same parameters.
//! In a run nothing holds them in step: either may be some swaps ahead.

/// A half of an actor-critic algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Critics and their target networks. The learner of this half counts the updates of the run and writes priorities.
    Critics,
    /// The policy, and what is learned with it, such as SAC's temperature.
    Policy,
}

impl Half {
    /// The half that the learner with this number learns.
    pub fn of(learner: usize) -> Self {
        if learner == Self::Critics as usize { Self::Critics } else { Self::Policy }
    }

    /// Name for people.
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

    /// Write what the other half needs of this one into the first of `values`, which has
    /// [`super::Algorithm::handed_over`] values.
    fn hand_over(&self, values: &mut [f32]);

    /// Compute from now on with `values`, which the other half handed over after `updates` updates of its own. This half has made
    /// `own_updates`, in the same run.
    fn take_over(&mut self, values: &[f32], updates: u64, own_updates: u64);
}

/// What a process learns: one half, or the whole algorithm.
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
