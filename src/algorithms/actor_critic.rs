//! What the actor-critic algorithms share before a process starts: shapes, sizes and the networks themselves.
//!
//! The learned parameters lie in the order policy, critics, anything else, and so do their gradients.

use super::action::continuous_actions;
use super::blockwise::Blockwise;
use super::critics::Critics;
use super::trained::Trained;
use super::{AlgorithmError, Learning, Sizes};
use crate::config::Config;
use crate::config::schema::{InitialPriority, Loss};
use crate::environments::{EnvironmentSpec, derive_seed};
use crate::experience::Transitions;
use crate::networks::{Device, Head, Network, NetworkSpec, build, build_for_acting};

/// An actor-critic algorithm in one environment.
pub(super) struct ActorCritic {
    pub(super) config: Config,
    pub(super) transitions: Transitions,
    /// From an observation to the parameters of a distribution over actions, or to the action itself.
    pub(super) policy: NetworkSpec,
    pub(super) action_elements: usize,
    critic: NetworkSpec,
    critics: usize,
    device: Device,
}

impl ActorCritic {
    /// `outputs_per_action` numbers of the policy network for each element of an action, and `critics` critics.
    pub(super) fn new(
        algorithm: &'static str,
        config: &Config,
        environment: &EnvironmentSpec,
        outputs_per_action: usize,
        critics: usize,
    ) -> Result<Self, AlgorithmError> {
        let action_elements = continuous_actions(algorithm, environment)?;
        if config.replay.prioritized && config.replay.initial_priority == InitialPriority::TdError {
            return Err(AlgorithmError::NoActorErrors { algorithm });
        }
        let observations = environment.observation.len();
        let network = |inputs, outputs| NetworkSpec::perceptron(inputs, &config.network.hidden, Head::Linear { outputs });
        let policy = network(observations, outputs_per_action * action_elements);
        let critic = network(observations + action_elements, 1);
        policy.validate()?;
        critic.validate()?;
        let transitions = Transitions::new(config, environment);
        Ok(Self {
            config: config.clone(),
            transitions,
            policy,
            action_elements,
            critic,
            critics,
            device: config.learner.device_of(0).parse()?,
        })
    }

    /// Sizes of an algorithm whose policy has a target network or not, and which learns `others` besides, kept in
    /// `other_state` values.
    pub(super) fn sizes(&self, policy_has_target: bool, others: usize, other_state: usize) -> Sizes {
        let (policy, critic) = (self.policy.parameter_count(), self.critic.parameter_count());
        Sizes {
            published: policy,
            learned: policy + self.critics * critic + others,
            state: Trained::state_values(policy, policy_has_target) + self.critics * Trained::state_values(critic, true) + other_state,
        }
    }

    /// The most values that a half hands over: all critics, or the policy and `others` that are learned besides.
    pub(super) fn handed_over(&self, others: usize) -> usize {
        (self.policy.parameter_count() + others).max(self.critics * self.critic.parameter_count())
    }

    /// The policy network of an actor.
    pub(super) fn acting_network(&self) -> Result<Box<dyn Network>, AlgorithmError> {
        Ok(build_for_acting(self.policy.clone())?)
    }

    /// The policy of a learner, drawn from `seed`.
    pub(super) fn trained_policy(&self, seed: u64, with_target: bool) -> Result<Trained, AlgorithmError> {
        self.trained(&self.policy, derive_seed(seed, 0), with_target)
    }

    /// The critics of a learner, each drawn from a seed of its own.
    pub(super) fn trained_critics(&self, seed: u64) -> Result<Critics, AlgorithmError> {
        let seeds = (1..).take(self.critics).map(|index| derive_seed(seed, index));
        let networks = seeds.map(|seed| self.trained(&self.critic, seed, true)).collect::<Result<_, _>>()?;
        Ok(Critics::new(networks, self.config.algorithm.loss.unwrap_or(Loss::Mse)))
    }

    fn trained(&self, spec: &NetworkSpec, seed: u64, with_target: bool) -> Result<Trained, AlgorithmError> {
        let network = || build(spec.clone(), self.config.network.engine, self.device, self.config.machine.torch_threads);
        let target = with_target.then(network).transpose()?;
        Ok(Trained::new(&self.config.learner, network()?, target, &spec.initialise(seed)))
    }

    /// `learning` in the form that suits the device: a CPU takes a large batch in blocks.
    pub(super) fn for_device(&self, learning: impl Learning + 'static) -> Box<dyn Learning> {
        let learning = Box::new(learning);
        if self.device == Device::Cpu { Box::new(Blockwise::new(learning)) } else { learning }
    }

    /// The policy's step size as a multiple of the critics'.
    pub(super) fn policy_rate_ratio(&self) -> f32 {
        let critics = self.config.learner.learning_rate;
        (self.config.algorithm.policy_learning_rate.unwrap_or(critics) / critics) as f32
    }
}
