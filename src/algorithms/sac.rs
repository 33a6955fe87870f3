//! Soft actor-critic (Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"): a random policy that is
//! rewarded for its entropy, twin critics, and a temperature that is learned so that the entropy stays at a target.
//!
//! Choices, beside what the configuration offers:
//! - critics, policy and temperature are updated from the same batch and the same parameters, so that learners exchange
//!   one gradient per update;
//! - the temperature's loss is `-log(temperature) * (log density + target entropy)`, whose step does not shrink with
//!   the temperature itself;
//! - importance weights multiply the critics' loss alone; priorities are the mean of both critics' absolute errors.
//!
//! docs/sac.md has the measured scores.

use std::f64::consts::LN_2;

use super::action::uniform;
use super::critics::{Critics, PolicyObjective};
use super::halves::{Half, Halved, Part};
use super::policy_and_critics::{Kind, PolicyAndCritics};
use super::squashed_gaussian::{Draws, draw_one, most_likely};
use super::state::{COUNT_VALUES, StateReader, StateWriter};
use super::temporal_difference::{
    ACTION_STD, ENTROPY, GRADIENT_NORM, LOSS, POLICY_LOSS, Q_MEAN, bootstrap, finite_or, mean_factor, weighted_mean_factor,
};
use super::trained::{Trained, WithTarget, adam_settings};
use super::{ActionMut, Algorithm, AlgorithmError, Learning, Policy, Random, Sizes, exploration};
use crate::config::{Config, TargetNetworks};
use crate::environments::EnvironmentSpec;
use crate::experience::transition::{NEXT_OBSERVATION, OBSERVATION};
use crate::experience::{Choice, Experience};
use crate::metrics::{Metric, Share, Tally};
use crate::networks::{Adam, Network, NetworkSpec};
use crate::replay::Batch;

const NAME: &str = "sac";
const TEMPERATURE: Metric = Metric::last("entropy_temperature");
const METRICS: &[Metric] = &[LOSS, Q_MEAN, GRADIENT_NORM, POLICY_LOSS, ENTROPY, ACTION_STD, TEMPERATURE];

/// SAC in one environment.
pub(super) struct Sac {
    shared: PolicyAndCritics,
}

impl Sac {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let kind = Kind {
            name: NAME,
            // Mean and logarithm of the deviation.
            outputs_per_action: 2,
            critics: 2,
            policy_with_target: WithTarget::No,
            // The temperature.
            further_parameters: 1,
            further_state_values: Temperature::STATE_VALUES,
        };
        let shared = PolicyAndCritics::new(kind, config, environment)?;
        check_target_entropy(config, shared.action_elements)?;
        Ok(Self { shared })
    }
}

/// Refuse an entropy that no policy can have, towards which a learned temperature would grow until nothing is finite.
fn check_target_entropy(config: &Config, action_elements: usize) -> Result<(), AlgorithmError> {
    // The uniform policy has the most, and each element of an action lies between -1 and 1.
    let most = action_elements as f64 * LN_2;
    match config.algorithm.target_entropy {
        Some(target) if target > most && config.algorithm.entropy_temperature.is_none() => Err(AlgorithmError::Refused {
            key: "algorithm.target_entropy",
            reason: format!(
                "no policy has an entropy of {target} nats here: each element of an action adds at most ln 2, {most:.2} in all, so that \
                 the temperature would grow for ever; use \"none\", which takes -{action_elements}"
            ),
        }),
        _ => Ok(()),
    }
}

impl Algorithm for Sac {
    fn name(&self) -> &'static str {
        NAME
    }

    fn experience(&self) -> &dyn Experience {
        &self.shared.transitions
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

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn exploration(&self, _environment: usize, _of: usize, _env_steps: u64) -> f32 {
        exploration::OF_THE_POLICY
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(GaussianPolicy { network: self.shared.acting_network()? }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        Ok(self.shared.for_device(SacLearning::new(&self.shared, seed)?))
    }
}

/// A policy that draws its actions.
struct GaussianPolicy {
    network: Box<dyn Network>,
}

impl Policy for GaussianPolicy {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        let ActionMut::Continuous(action) = action else { return Choice::default() };
        if exploration > 0.0 {
            draw_one(outputs, random, action)
        } else {
            most_likely(outputs, action)
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

/// The entropy temperature: fixed, or one more learned parameter, as its logarithm.
struct Temperature {
    logarithm: Vec<f32>,
    adam: Adam,
    target_entropy: f32,
    is_learned: bool,
}

impl Temperature {
    const STATE_VALUES: usize = 3 + COUNT_VALUES;

    fn new(config: &Config, action_elements: usize) -> Self {
        let algorithm = &config.algorithm;
        let start = algorithm.entropy_temperature.unwrap_or(algorithm.initial_entropy_temperature);
        Self {
            logarithm: vec![start.ln() as f32],
            adam: Adam::new(1, adam_settings(&config.learner)),
            target_entropy: algorithm.target_entropy.map_or(-(action_elements as f32), |entropy| entropy as f32),
            is_learned: algorithm.entropy_temperature.is_none(),
        }
    }

    fn value(&self) -> f32 {
        self.logarithm[0].exp()
    }

    /// Gradient of the temperature's loss, summed over the transitions.
    fn gradient(&self, log_densities: &[f32]) -> f32 {
        if self.is_learned { -log_densities.iter().map(|log_density| log_density + self.target_entropy).sum::<f32>() } else { 0.0 }
    }

    fn step(&mut self, gradient: f32, learning_rate: f32) {
        if self.is_learned {
            self.adam.step(&mut self.logarithm, &[gradient], learning_rate);
        }
    }

    fn save(&self, writer: &mut StateWriter<'_>) {
        writer.values(&self.logarithm);
        writer.adam(&self.adam);
    }

    fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.logarithm.copy_from_slice(reader.values(1));
        self.adam = reader.adam(self.adam.settings(), 1);
    }
}

/// The learner's side of SAC.
struct SacLearning {
    part: Part,
    policy: Trained,
    critics: Critics,
    temperature: Temperature,
    target_networks: TargetNetworks,
    policy_rate_ratio: f32,
    action_elements: usize,
    outputs: Vec<f32>,
    output_gradient: Vec<f32>,
    draws: Draws,
    targets: Vec<f32>,
    bootstrap_values: Vec<f32>,
}

impl SacLearning {
    fn new(shared: &PolicyAndCritics, seed: u64) -> Result<Self, AlgorithmError> {
        Ok(Self {
            part: Part::default(),
            policy: shared.trained_policy(seed)?,
            critics: shared.trained_critics(seed)?,
            temperature: Temperature::new(&shared.config, shared.action_elements),
            target_networks: shared.config.algorithm.target_networks(NAME),
            policy_rate_ratio: shared.policy_rate_ratio(),
            action_elements: shared.action_elements,
            outputs: Vec::new(),
            output_gradient: Vec::new(),
            draws: Draws::default(),
            targets: Vec::new(),
            bootstrap_values: Vec::new(),
        })
    }

    /// Values that the critics should give: reward, and the discounted soft value of what the policy does next.
    fn compute_targets(&mut self, batch: &Batch, random: &mut Random) {
        let rows = batch.rows();
        let next_observations = batch.column(NEXT_OBSERVATION).as_f32();
        self.policy.online.infer(next_observations.into(), rows, &mut self.outputs);
        self.draws.draw(&self.outputs, self.action_elements, random);
        let values = self.critics.target_values(next_observations, &self.draws.actions, rows);
        let temperature = self.temperature.value();
        self.bootstrap_values.clear();
        self.bootstrap_values
            .extend(values.iter().zip(&self.draws.log_densities).map(|(value, log_density)| value - temperature * log_density));
        bootstrap(batch, &self.bootstrap_values, &mut self.targets);
    }

    /// The gradient of `temperature * log density - value`; that loss, and how random the policy is, go to `tally`.
    fn policy_gradient(&mut self, observations: &[f32], rows: usize, random: &mut Random, gradient: &mut [f32], tally: &mut Tally) {
        self.policy.online.forward(observations.into(), rows, &mut self.outputs);
        self.draws.draw(&self.outputs, self.action_elements, random);
        let temperature = self.temperature.value();
        let (values, slopes) = self.critics.action_gradient(observations, &self.draws.actions, rows, PolicyObjective::Smallest);
        self.draws.policy_gradient(&self.outputs, slopes, temperature, &mut self.output_gradient);
        let losses = values.iter().zip(&self.draws.log_densities).map(|(value, log_density)| temperature * log_density - value);
        tally.add_all(POLICY_LOSS, losses.map(f64::from).sum(), rows as f64);
        tally.add_all(ENTROPY, -self.draws.log_densities.iter().copied().map(f64::from).sum::<f64>(), rows as f64);
        tally.add_all(ACTION_STD, self.draws.deviations, self.draws.actions.len() as f64);
        self.policy.online.backward(&self.output_gradient, Some(gradient), None);
    }
}

impl Learning for SacLearning {
    fn published(&mut self) -> &[f32] {
        self.policy.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        let rows = batch.rows();
        self.outputs.resize(rows * 2 * self.action_elements, 0.0);
        let observations = batch.column(OBSERVATION).as_f32();
        let (policy_gradient, others) = gradient.split_at_mut(self.policy.len());
        let (critic_gradient, temperature_gradient) = others.split_at_mut(self.critics.learned());
        let mut share = Share::of(METRICS, rows, batch.largest_weight);
        if self.part.learns(Half::Critics) {
            self.compute_targets(batch, random);
            self.critics.regress(batch, &self.targets, critic_gradient, &mut share.tally);
        }
        if self.part.learns(Half::Policy) {
            self.policy_gradient(observations, rows, random, policy_gradient, &mut share.tally);
            temperature_gradient[0] = self.temperature.gradient(&self.draws.log_densities);
        }
        share
    }

    fn errors(&self) -> &[f32] {
        self.critics.errors()
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let (policy_gradient, others) = gradient.split_at(self.policy.len());
        let (critic_gradient, temperature_gradient) = others.split_at(self.critics.learned());
        let mut norm = 0.0;
        if self.part.learns(Half::Critics) {
            norm = self.critics.step(critic_gradient, weighted_mean_factor(total), learning_rate);
            if self.critics.steps().is_multiple_of(self.target_networks.interval_updates) {
                self.critics.follow(self.target_networks.tau as f32);
            }
        }
        if self.part.learns(Half::Policy) {
            let (factor, policy_rate) = (mean_factor(total), learning_rate * self.policy_rate_ratio);
            norm = finite_or(self.policy.step_scaled(policy_gradient, factor, policy_rate), norm);
            self.temperature.step(temperature_gradient[0] * factor, learning_rate);
            total.tally.add(TEMPERATURE, f64::from(self.temperature.value()));
        }
        if self.part.learns(Half::Critics) {
            total.tally.add(GRADIENT_NORM, f64::from(norm));
        }
        norm
    }

    fn save(&self, state: &mut [f32]) {
        let mut writer = StateWriter::new(state);
        self.policy.save(&mut writer);
        self.critics.save(&mut writer);
        self.temperature.save(&mut writer);
    }

    fn restore(&mut self, state: &[f32]) {
        let mut reader = StateReader::new(state);
        self.policy.restore(&mut reader);
        self.critics.restore(&mut reader);
        self.temperature.restore(&mut reader);
    }

    fn halved(&mut self) -> Option<&mut dyn Halved> {
        Some(self)
    }
}

impl Halved for SacLearning {
    fn learn_only(&mut self, half: Half) {
        self.part = Part::only(half);
    }

    fn hand_over(&self, values: &mut [f32]) {
        if self.part.learns(Half::Critics) {
            self.critics.hand_over(values);
        } else {
            let (policy, others) = values.split_at_mut(self.policy.len());
            policy.copy_from_slice(self.policy.online.parameters());
            others[0] = self.temperature.logarithm[0];
        }
    }

    fn take_over(&mut self, values: &[f32], _updates: u64, _own_updates: u64) {
        if self.part.learns(Half::Critics) {
            let (policy, others) = values.split_at(self.policy.len());
            self.policy.online.set_parameters(policy);
            self.temperature.logarithm[0] = others[0];
        } else {
            self.critics.take_over(values);
        }
    }
}
