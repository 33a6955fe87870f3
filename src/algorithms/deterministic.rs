//! DDPG and TD3, each a [`Variant`] of the same algorithm: a policy that names one action, explored around with Gaussian
//! noise, and the gradient that carries a critic's slope into the policy (Silver et al. 2014, theorem 1).

use rand::RngExt;
use rand_distr::StandardNormal;

use super::action::uniform;
use super::critics::{Critics, PolicyObjective};
use super::halves::{Half, Halved, Part};
use super::policy_and_critics::{Kind, PolicyAndCritics};
use super::state::{StateReader, StateWriter};
use super::temporal_difference::{GRADIENT_NORM, LOSS, POLICY_LOSS, Q_MEAN, bootstrap, finite_or, mean_factor, weighted_mean_factor};
use super::trained::{Trained, WithTarget};
use super::{ActionMut, Algorithm, AlgorithmError, Learning, Policy, Random, Sizes, exploration};
use crate::config::{Config, TargetNetworks};
use crate::environments::EnvironmentSpec;
use crate::experience::transition::{NEXT_OBSERVATION, OBSERVATION};
use crate::experience::{Choice, Experience};
use crate::metrics::{Metric, Share};
use crate::networks::{Network, NetworkSpec};
use crate::replay::Batch;
use crate::values::Values;

const METRICS: &[Metric] = &[LOSS, Q_MEAN, GRADIENT_NORM, POLICY_LOSS];

/// What tells DDPG and TD3 apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    /// Name in the registry.
    pub(super) name: &'static str,
    /// Critics.
    pub(super) critics: usize,
    /// Standard deviation and largest absolute value of the noise on the target policy's actions.
    pub(super) target_noise: Option<(f32, f32)>,
    /// Updates of the critics per update of the policy.
    pub(super) policy_delay_updates: u64,
    /// How the target networks follow.
    pub(super) target_networks: TargetNetworks,
}

/// DDPG or TD3 in one environment.
pub(super) struct Deterministic {
    shared: PolicyAndCritics,
    variant: Variant,
}

impl Deterministic {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec, variant: Variant) -> Result<Self, AlgorithmError> {
        let kind = Kind {
            name: variant.name,
            outputs_per_action: 1,
            critics: variant.critics,
            policy_with_target: WithTarget::Yes,
            further_parameters: 0,
            further_state_values: 0,
        };
        Ok(Self { shared: PolicyAndCritics::new(kind, config, environment)?, variant })
    }
}

impl Algorithm for Deterministic {
    fn name(&self) -> &'static str {
        self.variant.name
    }

    fn experience(&self) -> &dyn Experience {
        &self.shared.transitions
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn network(&self) -> &NetworkSpec {
        &self.shared.policy
    }

    fn sizes(&self) -> Sizes {
        self.shared.sizes()
    }

    fn handed_over(&self) -> usize {
        self.shared.handed_over()
    }

    fn exploration(&self, environment: usize, of: usize, _env_steps: u64) -> f32 {
        exploration::noise_std(&self.shared.config.algorithm, environment, of) as f32
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(DeterministicPolicy { network: self.shared.acting_network()? }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        Ok(self.shared.for_device(DeterministicLearning::new(&self.shared, self.variant, seed)?))
    }
}

/// A policy whose network names the action, squashed into [-1, 1] by a hyperbolic tangent.
struct DeterministicPolicy {
    network: Box<dyn Network>,
}

impl Policy for DeterministicPolicy {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn infer(&mut self, observations: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.network.infer(observations, rows, outputs);
        squash(outputs);
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        let ActionMut::Continuous(action) = action else { return Choice::default() };
        action.copy_from_slice(outputs);
        if exploration > 0.0 {
            for value in action {
                let noise: f32 = random.sample(StandardNormal);
                *value = (*value + exploration * noise).clamp(-1.0, 1.0);
            }
        }
        Choice::default()
    }

    fn choose_randomly(&self, _outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        if let ActionMut::Continuous(action) = action {
            uniform(random, action);
        }
        Choice::default()
    }
}

fn squash(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.tanh());
}

/// The learner's side of DDPG and TD3.
struct DeterministicLearning {
    part: Part,
    /// If another process learns the policy: how many updates that policy had when the target policy last followed it.
    followed: Option<u64>,
    policy: Trained,
    critics: Critics,
    variant: Variant,
    policy_rate_ratio: f32,
    actions: Vec<f32>,
    action_gradient: Vec<f32>,
    targets: Vec<f32>,
}

impl DeterministicLearning {
    fn new(shared: &PolicyAndCritics, variant: Variant, seed: u64) -> Result<Self, AlgorithmError> {
        Ok(Self {
            part: Part::default(),
            followed: None,
            policy: shared.trained_policy(seed)?,
            critics: shared.trained_critics(seed)?,
            variant,
            policy_rate_ratio: shared.policy_rate_ratio(),
            actions: Vec::new(),
            action_gradient: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// Whether this process updates the policy too in the current update.
    fn updates_policy(&self) -> bool {
        self.part.learns(Half::Policy) && (self.critics.steps() + 1).is_multiple_of(self.variant.policy_delay_updates)
    }

    /// Values that the critics should give: reward, and the discounted target value of what the
    /// target policy does next.
    fn compute_targets(&mut self, batch: &Batch, random: &mut Random) {
        let rows = batch.rows();
        let next_observations = batch.column(NEXT_OBSERVATION).as_f32();
        self.policy.target().infer(next_observations.into(), rows, &mut self.actions);
        squash(&mut self.actions);
        if let Some((deviation, clip)) = self.variant.target_noise {
            for action in &mut self.actions {
                let noise: f32 = random.sample(StandardNormal);
                *action = (*action + (deviation * noise).clamp(-clip, clip)).clamp(-1.0, 1.0);
            }
        }
        let bootstrap_values = self.critics.target_values(next_observations, &self.actions, rows);
        bootstrap(batch, bootstrap_values, &mut self.targets);
    }

    /// The gradient of minus the value of the policy's actions; returns the sum of that loss.
    fn policy_gradient(&mut self, observations: &[f32], rows: usize, gradient: &mut [f32]) -> f64 {
        self.policy.online.forward(observations.into(), rows, &mut self.actions);
        squash(&mut self.actions);
        let (values, slopes) = self.critics.action_gradient(observations, &self.actions, rows, PolicyObjective::First);
        let (width, length) = (slopes.len() / rows, self.actions.len() / rows);
        self.action_gradient.clear();
        for (slopes, actions) in slopes.chunks_exact(width).zip(self.actions.chunks_exact(length)) {
            let slopes = &slopes[width - length..];
            self.action_gradient.extend(slopes.iter().zip(actions).map(|(slope, action)| -slope * (1.0 - action * action)));
        }
        let loss = -values.iter().map(|&value| f64::from(value)).sum::<f64>();
        self.policy.online.backward(&self.action_gradient, Some(gradient), None);
        loss
    }
}

impl Learning for DeterministicLearning {
    fn published(&mut self) -> &[f32] {
        self.policy.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        let rows = batch.rows();
        self.actions.resize(rows * self.policy.online.spec().outputs(), 0.0);
        let observations = batch.column(OBSERVATION).as_f32();
        let (policy_gradient, critic_gradient) = gradient.split_at_mut(self.policy.len());
        let mut share = Share::of(METRICS, rows, batch.largest_weight);
        if self.part.learns(Half::Critics) {
            self.compute_targets(batch, random);
            self.critics.regress(batch, &self.targets, critic_gradient, &mut share.tally);
        }
        if self.updates_policy() {
            let policy_loss = self.policy_gradient(observations, rows, policy_gradient);
            share.tally.add_all(POLICY_LOSS, policy_loss, share.samples);
        } else {
            policy_gradient.fill(0.0);
        }
        share
    }

    fn errors(&self) -> &[f32] {
        self.critics.errors()
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let with_policy = self.updates_policy();
        let (policy_gradient, critic_gradient) = gradient.split_at(self.policy.len());
        let mut norm = 0.0;
        if self.part.learns(Half::Critics) {
            norm = self.critics.step(critic_gradient, weighted_mean_factor(total), learning_rate);
        } else {
            self.critics.count_update();
        }
        if with_policy {
            let policy_rate = learning_rate * self.policy_rate_ratio;
            norm = finite_or(self.policy.step_scaled(policy_gradient, mean_factor(total), policy_rate), norm);
        }
        if self.part.learns(Half::Critics) {
            let TargetNetworks { tau, interval_updates } = self.variant.target_networks;
            if self.critics.steps().is_multiple_of(interval_updates) {
                self.critics.follow(tau as f32);
                // A policy that another process learns is followed when it is taken over.
                if self.part.is_whole() {
                    self.policy.follow(tau as f32);
                }
            }
            total.tally.add(GRADIENT_NORM, f64::from(norm));
        }
        norm
    }

    fn save(&self, state: &mut [f32]) {
        let mut writer = StateWriter::new(state);
        self.policy.save(&mut writer);
        self.critics.save(&mut writer);
    }

    fn restore(&mut self, state: &[f32]) {
        let mut reader = StateReader::new(state);
        self.policy.restore(&mut reader);
        self.critics.restore(&mut reader);
        self.followed = None;
    }

    fn halved(&mut self) -> Option<&mut dyn Halved> {
        Some(self)
    }
}

impl Halved for DeterministicLearning {
    fn learn_only(&mut self, half: Half) {
        self.part = Part::only(half);
    }

    fn hand_over(&self, values: &mut [f32]) {
        if self.part.learns(Half::Critics) {
            self.critics.hand_over(values);
        } else {
            values[..self.policy.len()].copy_from_slice(self.policy.online.parameters());
        }
    }

    fn take_over(&mut self, values: &[f32], updates: u64, own_updates: u64) {
        if self.part.learns(Half::Critics) {
            self.policy.online.set_parameters(&values[..self.policy.len()]);
            // After a restore nobody has counted how many of the policy's updates the target policy has followed: it is
            // taken to be as many as this half has made.
            let before = self.followed.unwrap_or(own_updates);
            let TargetNetworks { tau, interval_updates: interval } = self.variant.target_networks;
            self.policy.follow(weight_of((updates / interval).saturating_sub(before / interval), tau as f32));
            // A policy whose learner was killed makes some updates again.
            self.followed = Some(before.max(updates));
        } else {
            self.critics.take_over(values);
        }
    }
}

/// The weight with which one step of a moving average does what `times` steps with a weight of `tau`
/// do, towards the same value.
fn weight_of(times: u64, tau: f32) -> f32 {
    match times {
        0 => 0.0,
        1 => tau,
        times => (1.0 - (1.0 - f64::from(tau)).powf(times as f64)) as f32,
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::algorithms::standardised::assert_standardised;
    use crate::config::schema::Engine;
    use crate::networks::{Device, Head, build};

    #[test]
    fn what_is_followed_seldom_counts_as_much_as_what_would_have_been_followed_meanwhile() {
        let (tau, mut average, value) = (0.1f32, 0.0f32, 5.0f32);
        for _ in 0..4 {
            average += tau * (value - average);
        }
        assert!((weight_of(4, tau) * value - average).abs() < 1e-6);
        assert_eq!([0, 1].map(|times| weight_of(times, tau)), [0.0, tau]);
    }

    #[test]
    fn noise_explores_each_element_by_itself_and_never_beyond_the_bounds() {
        let spec = NetworkSpec::perceptron(2, &[3], Head::Linear { outputs: 4 });
        let policy = DeterministicPolicy { network: build(spec, Engine::Cpu, Device::Cpu, 1).unwrap() };
        let mut random = Random::seed_from_u64(5);
        let mut action = [0.0f32; 4];
        assert_standardised(|| {
            // A bound is four or more deviations from the first two, and half of one from the others.
            policy.choose(&[-0.1, 0.2, 0.9, -0.9], 0.2, &mut random, ActionMut::Continuous(&mut action));
            assert!(action.iter().all(|value| (-1.0..=1.0).contains(value)), "{action:?}");
            [f64::from(action[0]) + 0.1, f64::from(action[1]) - 0.2].map(|noise| noise / 0.2)
        });
    }
}
