//! An environment under test: every call checks what the environment answered.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::ConformanceError;
use crate::environments::{Action, ActionSpace, Environment, EnvironmentError, EnvironmentSpec, Step};
use crate::values::{ValueBuffer, ValuesMut};

/// Longest time for which one random action is repeated: repeated actions reach more states than independent ones.
const MAX_HOLD_STEPS: u32 = 16;

/// An action that owns its values.
#[derive(Debug, Clone)]
pub(super) enum ProbeAction {
    Discrete(usize),
    Continuous(Vec<f32>),
}

impl ProbeAction {
    pub(super) fn as_action(&self) -> Action<'_> {
        match self {
            Self::Discrete(index) => Action::Discrete(*index),
            Self::Continuous(values) => Action::Continuous(values),
        }
    }
}

/// Random actions within the space, each held for some steps; the same for the same seed.
pub(super) struct RandomActions {
    random: Pcg64,
    space: ActionSpace,
    held: ProbeAction,
    hold_steps: u32,
}

impl RandomActions {
    pub(super) fn new(space: &ActionSpace, seed: u64) -> Self {
        Self { random: Pcg64::seed_from_u64(seed), space: space.clone(), held: ProbeAction::Discrete(0), hold_steps: 0 }
    }

    pub(super) fn next(&mut self) -> ProbeAction {
        if self.hold_steps == 0 {
            self.hold_steps = self.random.random_range(1..=MAX_HOLD_STEPS);
            self.held = match &self.space {
                ActionSpace::Discrete { n } => ProbeAction::Discrete(self.random.random_range(0..*n)),
                ActionSpace::Box { low, high } => {
                    ProbeAction::Continuous(low.iter().zip(high).map(|(low, high)| self.random.random_range(*low..=*high)).collect())
                }
            };
        }
        self.hold_steps -= 1;
        self.held.clone()
    }
}

/// What one call answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) observation: ValueBuffer,
    /// Nothing for a reset.
    pub(super) step: Option<Step>,
}

/// An environment, and where its episode stands.
pub(super) struct Probe {
    environment: Box<dyn Environment>,
    spec: EnvironmentSpec,
    elapsed_steps: u32,
    ended: bool,
    /// What an observation of bytes is filled with before the environment writes it.
    fill: u8,
}

impl Probe {
    pub(super) fn new(environment: Box<dyn Environment>) -> Self {
        let spec = environment.spec().clone();
        Self { environment, spec, elapsed_steps: 0, ended: true, fill: rand::random() }
    }

    pub(super) fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    pub(super) fn elapsed_steps(&self) -> u32 {
        self.elapsed_steps
    }

    pub(super) fn reset(&mut self, seed: Option<u64>) -> Result<Answer, ConformanceError> {
        let mut observation = self.unwritten();
        self.environment
            .reset(seed, observation.values_mut())
            .map_err(|source| ConformanceError::Environment { during: "a reset", source })?;
        self.elapsed_steps = 0;
        self.ended = false;
        self.check_observation(&observation)?;
        Ok(Answer { observation, step: None })
    }

    pub(super) fn step(&mut self, action: &ProbeAction) -> Result<Answer, ConformanceError> {
        let mut observation = self.unwritten();
        let step = self
            .environment
            .step(action.as_action(), observation.values_mut())
            .map_err(|source| ConformanceError::Environment { during: "a step", source })?;
        self.elapsed_steps += 1;
        self.ended = step.ended();
        self.check_observation(&observation)?;
        self.check_step(step)?;
        Ok(Answer { observation, step: Some(step) })
    }

    /// A step whose refusal is expected, without any check.
    pub(super) fn attempt(&mut self, action: &ProbeAction) -> Result<Step, EnvironmentError> {
        let mut observation = self.unwritten();
        self.environment.step(action.as_action(), observation.values_mut())
    }

    /// Step with `actions`, or reset without a seed where an episode has ended.
    pub(super) fn advance(&mut self, actions: &mut RandomActions) -> Result<Answer, ConformanceError> {
        if self.ended { self.reset(None) } else { self.step(&actions.next()) }
    }

    /// Start from `seed` and go on for `calls` resets and steps.
    pub(super) fn trajectory(&mut self, seed: u64, calls: usize) -> Result<Vec<Answer>, ConformanceError> {
        let mut actions = RandomActions::new(&self.spec.action, 0);
        let first = self.reset(Some(seed));
        std::iter::once(first).chain((1..calls).map(|_| self.advance(&mut actions))).collect()
    }

    /// Room for an observation, filled so that what the environment forgets to write is noticed. No float that it may show is NaN.
    /// Any byte may be shown: the rules that compare trajectories notice a forgotten one, since no two trajectories begin with the
    /// same `fill`.
    fn unwritten(&mut self) -> ValueBuffer {
        let mut observation = self.spec.observation.zeros();
        self.fill = self.fill.wrapping_add(1);
        match observation.values_mut() {
            ValuesMut::F32(values) => values.fill(f32::NAN),
            ValuesMut::U8(values) => values.fill(self.fill),
        }
        observation
    }

    fn check_observation(&self, observation: &ValueBuffer) -> Result<(), ConformanceError> {
        let step = self.elapsed_steps;
        let space = &self.spec.observation;
        let value_at = |index: usize| match observation {
            ValueBuffer::F32(values) => values[index],
            ValueBuffer::U8(values) => f32::from(values[index]),
        };
        for (index, (&low, &high)) in space.low.iter().zip(&space.high).enumerate() {
            let value = value_at(index);
            if value.is_nan() {
                return Err(ConformanceError::ObservationNotWritten { index, step });
            }
            // Whatever the bounds allow: no network can learn from it.
            if value.is_infinite() {
                return Err(ConformanceError::ObservationNotFinite { index, step, value });
            }
            if !(low..=high).contains(&value) {
                return Err(ConformanceError::ObservationOutOfBounds { index, step, value, low, high });
            }
        }
        Ok(())
    }

    fn check_step(&self, result: Step) -> Result<(), ConformanceError> {
        let step = self.elapsed_steps;
        if !(result.reward as f32).is_finite() {
            return Err(ConformanceError::RewardNotFinite { step, reward: result.reward });
        }
        if self.spec.time_limit_steps == Some(step) && !result.truncated {
            return Err(ConformanceError::TimeLimitDoesNotTruncate { step, terminated: result.terminated });
        }
        Ok(())
    }
}
