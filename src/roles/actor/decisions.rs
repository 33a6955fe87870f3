//! What an actor decides: the next action in each of its environments, by the newest parameters.
//!
//! The network's outputs for the observations to act on next are kept. One inference per step, on the successors
//! of the step, serves three purposes: the next choice of actions, the values behind the steps that the recorder may need
//! (behind truncated ones too), and nothing is computed twice. Only environments that were reset need a second, small one.

use super::super::newest_parameters::NewestParameters;
use super::super::run::Run;
use crate::algorithms::{ActionBatch, Policy, Random};
use crate::environments::{Actions, VectorEnvironment};
use crate::experience::{Choice, Steps};
use crate::values::Values;

/// The policy of an actor, with what it has chosen and what it thinks of where that led.
pub(super) struct Decisions<'a> {
    run: &'a Run<'a>,
    policy: Box<dyn Policy>,
    parameters: NewestParameters<'a>,
    random: Random,
    /// Network outputs for the observations to act on next, environment after environment.
    outputs: Vec<f32>,
    /// Network outputs for the successors of the last step.
    next_outputs: Vec<f32>,
    /// Values of the successors of the last step.
    next_values: Vec<f32>,
    actions: ActionBatch,
    choices: Vec<Choice>,
}

impl<'a> Decisions<'a> {
    /// Nothing decided yet, for so many environments, by a `policy` that has no parameters yet.
    pub(super) fn new(run: &'a Run<'a>, mut policy: Box<dyn Policy>, environments: usize) -> Self {
        Self {
            outputs: vec![0.0; environments * policy.outputs()],
            next_outputs: vec![0.0; environments * policy.outputs()],
            next_values: vec![0.0; environments],
            policy,
            parameters: NewestParameters::of(run),
            random: run.random(),
            actions: ActionBatch::new(&run.environment.action, environments),
            choices: vec![Choice::default(); environments],
            run,
        }
    }

    /// Whether there are no parameters yet and nothing may be decided without: an algorithm that learns from the probabilities of actions
    /// takes no actions but the policy's.
    pub(super) fn need_parameters(&self) -> bool {
        self.parameters.version == 0 && self.run.algorithm.experience().is_on_policy()
    }

    /// Choose the next action in each of the `environments`.
    pub(super) fn choose_actions(&mut self, environments: &VectorEnvironment) {
        if self.parameters.refresh(&mut *self.policy) {
            self.policy.infer(environments.observations(), environments.len(), &mut self.outputs);
        }
        let env_steps = self.run.env_steps();
        let own = self.choices.len();
        let first = self.run.number * own;
        // Actors beyond the configured count, such as attached ones, have higher numbers.
        let total = (self.run.config.actor.count.max(1) * own).max(first + own);
        let width = self.policy.outputs();
        let may_be_random = !self.run.algorithm.experience().is_on_policy();
        let uninformed = may_be_random && (env_steps < self.run.config.actor.random_steps || self.parameters.version == 0);
        for (index, outputs) in self.outputs.chunks_exact(width).enumerate() {
            let action = self.actions.row_mut(index);
            self.choices[index] = if uninformed {
                self.policy.choose_randomly(outputs, &mut self.random, action)
            } else {
                let exploration = self.run.algorithm.exploration(first + index, total, env_steps);
                self.policy.choose(outputs, exploration, &mut self.random, action)
            };
        }
    }

    /// The actions that were chosen, as the environments take them.
    pub(super) fn actions(&mut self) -> Actions<'_> {
        self.actions.for_environments()
    }

    /// Compute the outputs for the successors, and from these the outputs for the observations to act on next.
    pub(super) fn evaluate_successors(&mut self, environments: &VectorEnvironment) {
        let width = self.policy.outputs();
        let length = environments.spec().observation.len();
        self.policy.infer(environments.next_observations(), environments.len(), &mut self.next_outputs);
        self.outputs.copy_from_slice(&self.next_outputs);
        for index in 0..environments.len() {
            if environments.terminated()[index] || environments.truncated()[index] {
                let observation = environments.observations().row(index, length);
                self.policy.infer(observation, 1, &mut self.outputs[index * width..][..width]);
            }
        }
    }

    /// The last step of the `environments`, which began at `observations`, with its decisions, once its successors are evaluated.
    pub(super) fn last_step<'s>(&'s mut self, observations: Values<'s>, environments: &'s VectorEnvironment) -> Steps<'s> {
        let width = self.policy.outputs();
        for (value, outputs) in self.next_values.iter_mut().zip(self.next_outputs.chunks_exact(width)) {
            *value = self.policy.state_value(outputs);
        }
        Steps {
            observations,
            actions: self.actions.all_lanes(),
            choices: &self.choices,
            rewards: environments.rewards(),
            next_observations: environments.next_observations(),
            next_values: &self.next_values,
            terminated: environments.terminated(),
            truncated: environments.truncated(),
            parameter_updates: self.parameters.updates,
        }
    }
}
