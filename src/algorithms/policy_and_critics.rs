//! What DDPG, TD3 and SAC share before a process starts: shapes, sizes and the networks themselves.
//!
//! The learned parameters lie in the order policy, critics, anything else, and so do their gradients.

use super::action::continuous_actions;
use super::blockwise::Blockwise;
use super::critics::Critics;
use super::trained::{Trained, WithTarget};
use super::{AlgorithmError, Learning, Sizes};
use crate::config::Config;
use crate::environments::{EnvironmentSpec, derive_seed};
use crate::experience::Transitions;
use crate::networks::{Device, Head, Network, NetworkSpec, build_for_acting};

/// What tells one of these algorithms from another.
pub(super) struct Kind {
    /// Name in the registry.
    pub(super) name: &'static str,
    /// Outputs of the policy network for each element of an action.
    pub(super) outputs_per_action: usize,
    /// Critics.
    pub(super) critics: usize,
    /// Whether the policy has a target network; critics always have one.
    pub(super) policy_with_target: WithTarget,
    /// Parameters that are learned beside those of policy and critics.
    pub(super) further_parameters: usize,
    /// Values that these take in a learner's state.
    pub(super) further_state_values: usize,
}

/// Policy and critics in one environment, as a configuration describes them.
pub(super) struct PolicyAndCritics {
    kind: Kind,
    pub(super) config: Config,
    pub(super) transitions: Transitions,
    /// From an observation to the parameters of a distribution over actions, or to the action itself.
    pub(super) policy: NetworkSpec,
    pub(super) action_elements: usize,
    critic: NetworkSpec,
    device: Device,
}

impl PolicyAndCritics {
    /// # Errors
    /// The actions are not continuous, actors are to compute priorities, no device has the
    /// configured name, or a network cannot be built.
    pub(super) fn new(kind: Kind, config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let action_elements = continuous_actions(kind.name, environment)?;
        if config.estimates_priorities() {
            return Err(AlgorithmError::NoActorErrors { algorithm: kind.name });
        }
        let observations = environment.observation.len();
        let network = |inputs, outputs| NetworkSpec::perceptron(inputs, &config.network.hidden, Head::Linear { outputs });
        let policy = network(observations, kind.outputs_per_action * action_elements);
        let critic = network(observations + action_elements, 1);
        policy.validate()?;
        critic.validate()?;
        let transitions = Transitions::new(config, environment);
        Ok(Self {
            kind,
            config: config.clone(),
            transitions,
            policy,
            action_elements,
            critic,
            device: config.learner.device_of(0).parse()?,
        })
    }

    /// What [`super::Algorithm::sizes`] answers.
    pub(super) fn sizes(&self) -> Sizes {
        let Kind { critics, policy_with_target, further_parameters, further_state_values, .. } = self.kind;
        let policy = self.policy.parameter_count();
        let critic = self.critic.parameter_count();
        let policy_state = Trained::state_values(policy, policy_with_target);
        let critic_state = Trained::state_values(critic, WithTarget::Yes);
        Sizes {
            published: policy,
            learned: policy + critics * critic + further_parameters,
            state: policy_state + critics * critic_state + further_state_values,
        }
    }

    /// The most values that a half hands over: all critics, or the policy and what else is learned with it.
    pub(super) fn handed_over(&self) -> usize {
        let policy_half = self.policy.parameter_count() + self.kind.further_parameters;
        policy_half.max(self.kind.critics * self.critic.parameter_count())
    }

    /// The policy network of an actor.
    pub(super) fn acting_network(&self) -> Result<Box<dyn Network>, AlgorithmError> {
        Ok(build_for_acting(self.policy.clone())?)
    }

    /// The policy of a learner, drawn from `seed`.
    pub(super) fn trained_policy(&self, seed: u64) -> Result<Trained, AlgorithmError> {
        self.trained(&self.policy, derive_seed(seed, 0), self.kind.policy_with_target)
    }

    /// The critics of a learner, each drawn from a seed of its own.
    pub(super) fn trained_critics(&self, seed: u64) -> Result<Critics, AlgorithmError> {
        let seeds = (1..).take(self.kind.critics).map(|index| derive_seed(seed, index));
        let networks = seeds.map(|seed| self.trained(&self.critic, seed, WithTarget::Yes)).collect::<Result<_, _>>()?;
        Ok(Critics::new(networks, self.config.algorithm.loss(self.kind.name)))
    }

    fn trained(&self, spec: &NetworkSpec, seed: u64, with_target: WithTarget) -> Result<Trained, AlgorithmError> {
        Trained::build(&self.config, self.device, spec, with_target, &spec.initialise(seed))
    }

    /// `learning` in the form that suits the device: a CPU takes a large batch in blocks.
    pub(super) fn for_device(&self, learning: impl Learning + 'static) -> Box<dyn Learning> {
        let learning = Box::new(learning);
        if self.device == Device::Cpu { Box::new(Blockwise::new(learning)) } else { learning }
    }

    /// The policy's step size as a multiple of the critics'.
    pub(super) fn policy_rate_ratio(&self) -> f32 {
        let critics = self.config.learning_rate();
        (self.config.algorithm.policy_learning_rate.unwrap_or(critics) / critics) as f32
    }
}
