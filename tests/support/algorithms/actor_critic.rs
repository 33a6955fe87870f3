//! DDPG (Lillicrap et al. 2016), TD3 (Fujimoto et al. 2018) and SAC (Haarnoja et al. 2018, "Algorithms and Applications") a second time.

use std::f64::consts::PI;

use shoal::algorithms::{Algorithm, Random};
use shoal::config::Config;
use shoal::config::schema::Loss;
use shoal::experience::transition::{ACTION, NEXT_OBSERVATION, OBSERVATION};
use shoal::networks::{Head, NetworkSpec};
use shoal::replay::Batch;
use tch::{Kind, Tensor};

use super::network::{Network, adam, values};
use super::reference::{Found, Reference, column, gradient_of, loss_of, noise, number, targets, weights};

/// Which of the three.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    Ddpg,
    Td3,
    Sac,
}

/// One of the three, in f64.
pub struct ActorCritic {
    kinship: Kinship,
    config: Config,
    elements: usize,
    policy: Network,
    critics: Vec<Network>,
    temperature: Temperature,
}

/// The logarithm of the entropy temperature with its optimizer.
struct Temperature {
    logarithm: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    steps: i32,
}

impl ActorCritic {
    /// From the saved state of a learner that has made no update; actions have `elements` elements.
    pub fn new(kinship: Kinship, config: &Config, algorithm: &dyn Algorithm, elements: usize, mut state: &[f32]) -> Self {
        let spec = algorithm.network();
        let critic = NetworkSpec::perceptron(spec.inputs() + elements, &spec.hidden(), Head::Linear { outputs: 1 });
        let policy = Network::take(&mut state, spec, kinship != Kinship::Sac);
        let count = if kinship == Kinship::Ddpg { 1 } else { 2 };
        let critics = (0..count).map(|_| Network::take(&mut state, &critic, true)).collect();
        let settings = &config.algorithm;
        let start = settings.entropy_temperature.unwrap_or(settings.initial_entropy_temperature);
        let zero = || Tensor::from_slice(&[0.0f64]);
        let logarithm = Tensor::from_slice(&[start.ln()]).set_requires_grad(true);
        let temperature = Temperature { logarithm, first_moment: zero(), second_moment: zero(), steps: 0 };
        assert_eq!(state.len(), if kinship == Kinship::Sac { 5 } else { 0 });
        Self { kinship, config: config.clone(), elements, policy, critics, temperature }
    }

    fn delay(&self) -> u64 {
        if self.kinship == Kinship::Td3 { self.config.algorithm.policy_delay_updates } else { 1 }
    }

    /// Whether update number `update`, counted from 1, is one of the policy.
    fn moves_policy(&self, update: i32) -> bool {
        (update as u64).is_multiple_of(self.delay())
    }

    fn alpha(&self) -> f64 {
        number(&self.temperature.logarithm).exp()
    }

    fn smallest_target(&self, observations: &Tensor, actions: &Tensor) -> Tensor {
        let input = Tensor::cat(&[observations, actions], 1);
        self.critics.iter().map(|critic| critic.target_outputs(&input)).reduce(|a, b| a.minimum(&b)).expect("a critic")
    }

    /// The value behind each transition, without its discount.
    fn following(&self, batch: &Batch, next_noise: &Tensor) -> Tensor {
        let next = column(batch, NEXT_OBSERVATION);
        if self.kinship == Kinship::Sac {
            let (actions, log_densities) = self.draw(&next, next_noise);
            return (self.smallest_target(&next, &actions) - log_densities * self.alpha()).detach();
        }
        let mut actions = self.policy.target_outputs(&next).tanh();
        if self.kinship == Kinship::Td3 {
            // Equation 14, in units in which an action lies in [-1, 1].
            let (deviation, clip) = (self.config.algorithm.target_noise_std, self.config.algorithm.target_noise_clip);
            actions = (actions + (next_noise * deviation).clamp(-clip, clip)).clamp(-1.0, 1.0);
        }
        self.smallest_target(&next, &actions)
    }

    /// Actions of the squashed Gaussian and the logarithms of their densities (appendix C): the plain change of variables, for which
    /// f64 has digits enough.
    fn draw(&self, observations: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
        let halves = self.policy.outputs(observations).chunk(2, 1);
        let deviation = halves[1].clamp(-20.0, 2.0).exp();
        let unsquashed = &halves[0] + &deviation * noise;
        let normal = ((&unsquashed - &halves[0]) / &deviation).square() * -0.5 - deviation.log() - 0.5 * (2.0 * PI).ln();
        let actions = unsquashed.tanh();
        let slopes: Tensor = 1.0 - actions.square();
        let log_densities = normal - slopes.log();
        (actions, log_densities.sum_dim_intlist([1i64].as_slice(), true, Kind::Double))
    }

    /// The entropy of SAC's policy, as actions that are drawn with `noise` tell it, and the deviation of the normal distribution that is
    /// squashed, over all elements.
    fn of_policy(&self, batch: &Batch, noise: &Tensor) -> Vec<(&'static str, f64)> {
        if self.kinship != Kinship::Sac {
            return Vec::new();
        }
        let observations = column(batch, OBSERVATION);
        let (_, log_densities) = self.draw(&observations, noise);
        let deviations = self.policy.outputs(&observations).chunk(2, 1)[1].clamp(-20.0, 2.0).exp();
        vec![("entropy", -number(&log_densities.mean(Kind::Double))), ("action_std", number(&deviations.mean(Kind::Double)))]
    }

    /// The policy's loss and the temperature's, summed over the transitions.
    fn policy_losses(&self, batch: &Batch, noise: &Tensor) -> (Tensor, Tensor) {
        let observations = column(batch, OBSERVATION);
        let value_of = |critic: &Network, actions: &Tensor| critic.outputs(&Tensor::cat(&[&observations, actions], 1));
        if self.kinship != Kinship::Sac {
            let actions = self.policy.outputs(&observations).tanh();
            return (-value_of(&self.critics[0], &actions).sum(Kind::Double), Tensor::from(0.0));
        }
        let (actions, log_densities) = self.draw(&observations, noise);
        let value = value_of(&self.critics[0], &actions).minimum(&value_of(&self.critics[1], &actions));
        let target_entropy = self.config.algorithm.target_entropy.unwrap_or(-(self.elements as f64));
        let of_temperature = -(&self.temperature.logarithm * (log_densities.detach() + target_entropy)).sum(Kind::Double);
        ((&log_densities * self.alpha() - value).sum(Kind::Double), of_temperature)
    }
}

impl Reference for ActorCritic {
    fn find(&self, batch: &Batch, random: &mut Random) -> Found {
        let rows = batch.rows();
        let [next_noise, own_noise] = match self.kinship {
            Kinship::Ddpg => [const { None }; 2],
            Kinship::Td3 => {
                let [next] = noise::<1>(random, rows, self.elements);
                [Some(next), None]
            }
            Kinship::Sac => noise::<2>(random, rows, self.elements).map(Some),
        }
        .map(|noise| noise.unwrap_or_else(|| Tensor::from(0.0)));
        let targets = targets(batch, &self.following(batch, &next_noise));
        let input = Tensor::cat(&[column(batch, OBSERVATION), column(batch, ACTION)], 1);
        let loss = self.config.algorithm.loss.unwrap_or(Loss::Mse);
        let count = self.critics.len() as f64;
        let of_policy = self.of_policy(batch, &own_noise);
        let mut found = Found { loss_sum: 0.0, q_sum: 0.0, policy_loss_sum: 0.0, of_policy, errors: vec![0.0; rows], gradient: Vec::new() };
        let (policy_loss, temperature_loss) = self.policy_losses(batch, &own_noise);
        let mut policy_gradient = gradient_of(&policy_loss, self.policy.parameters());
        if self.moves_policy(self.critics[0].steps() + 1) {
            found.policy_loss_sum = number(&policy_loss);
        } else {
            policy_gradient.fill(0.0);
        }
        found.gradient.push(policy_gradient);
        for critic in &self.critics {
            let chosen = critic.outputs(&input);
            let errors = &chosen - &targets;
            let summed = (weights(batch) * loss_of(&errors, loss)).sum(Kind::Double);
            found.loss_sum += number(&summed) / count;
            found.q_sum += number(&chosen.sum(Kind::Double)) / count;
            found.errors.iter_mut().zip(values(&errors.abs())).for_each(|(sum, error)| *sum += error / count);
            found.gradient.push(gradient_of(&summed, critic.parameters()));
        }
        if self.kinship == Kinship::Sac {
            let is_learned = self.config.algorithm.entropy_temperature.is_none();
            found.gradient.push(if is_learned { gradient_of(&temperature_loss, &self.temperature.logarithm) } else { vec![0.0] });
        }
        found
    }

    fn update(&mut self, batch: &Batch, found: &Found, learning_rate: f64) -> Vec<(&'static str, f64)> {
        let rows = batch.rows() as f64;
        let importance = f64::from(batch.largest_weight);
        let (learner, algorithm) = (&self.config.learner, &self.config.algorithm);
        let update = self.critics[0].steps() + 1;
        let moves_policy = self.moves_policy(update);
        let mut means = found.gradient.iter().map(|part| Tensor::from_slice(part) / rows);
        let of_policy = means.next().expect("the policy's part");
        let mut gradient_norm = 0.0f64;
        for (critic, mean) in self.critics.iter_mut().zip(&mut means) {
            gradient_norm = gradient_norm.max(critic.step(&(mean / importance), learner, learning_rate));
        }
        if moves_policy {
            let ratio = algorithm.policy_learning_rate.map_or(1.0, |rate| rate / self.config.learning_rate());
            self.policy.step(&of_policy, learner, learning_rate * ratio);
        }
        if self.kinship == Kinship::Sac && algorithm.entropy_temperature.is_none() {
            self.temperature.steps += 1;
            let Temperature { logarithm, first_moment, second_moment, steps } = &mut self.temperature;
            let change =
                adam([first_moment, second_moment], &means.next().expect("the temperature's part"), *steps, learner) * learning_rate;
            *logarithm = (logarithm.detach() - change).set_requires_grad(true);
        }
        let interval = algorithm.target_interval_updates.unwrap_or(self.delay());
        if (update as u64).is_multiple_of(interval) {
            let tau = self.config.algorithm.target_tau.unwrap_or(0.005);
            self.critics.iter_mut().for_each(|critic| critic.follow(tau));
            self.policy.follow(tau);
        }
        let mut said = vec![("loss", found.loss_sum / rows / importance), ("q_mean", found.q_sum / rows), ("gradient_norm", gradient_norm)];
        said.extend(moves_policy.then_some(("policy_loss", found.policy_loss_sum / rows)));
        said.extend(&found.of_policy);
        said.extend((self.kinship == Kinship::Sac).then(|| ("entropy_temperature", self.alpha())));
        said
    }

    fn state(&self) -> Vec<Vec<f64>> {
        let mut state = self.policy.state();
        self.critics.iter().for_each(|critic| state.extend(critic.state()));
        if self.kinship == Kinship::Sac {
            let Temperature { logarithm, first_moment, second_moment, steps } = &self.temperature;
            state.extend([logarithm, first_moment, second_moment].map(values));
            state.push(vec![0.0, f64::from(*steps)]);
        }
        state
    }
}
