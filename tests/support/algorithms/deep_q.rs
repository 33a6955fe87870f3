//! DQN a second time: Mnih et al. 2015, van Hasselt et al. 2016 (double), Schaul et al. 2016 (importance weights).

use shoal::algorithms::{Algorithm, Random};
use shoal::config::Config;
use shoal::config::schema::Loss;
use shoal::experience::transition::{ACTION, NEXT_OBSERVATION, OBSERVATION};
use shoal::replay::Batch;
use tch::{Kind, Tensor};

use super::network::{Network, values};
use super::reference::{Found, Reference, column, gradient_of, loss_of, number, targets, weights};

/// DQN, in f64.
pub struct DeepQ {
    config: Config,
    network: Network,
}

impl DeepQ {
    /// From the saved state of a learner that has made no update.
    pub fn new(config: &Config, algorithm: &dyn Algorithm, mut state: &[f32]) -> Self {
        let network = Network::take(&mut state, algorithm.network(), true);
        assert!(state.is_empty());
        Self { config: config.clone(), network }
    }
}

impl Reference for DeepQ {
    fn find(&self, batch: &Batch, _random: &mut Random) -> Found {
        let next = column(batch, NEXT_OBSERVATION);
        let next_values = self.network.target_outputs(&next);
        let chooser = if self.config.algorithm.double { self.network.outputs(&next) } else { next_values.shallow_clone() };
        let following = next_values.gather(1, &chooser.argmax(1, true), false);
        let taken = column(batch, ACTION).to_kind(Kind::Int64);
        let chosen = self.network.outputs(&column(batch, OBSERVATION)).gather(1, &taken, false);
        let errors = &chosen - targets(batch, &following);
        let loss = (weights(batch) * loss_of(&errors, self.config.algorithm.loss.unwrap_or(Loss::Huber))).sum(Kind::Double);
        Found {
            loss_sum: number(&loss),
            q_sum: number(&chosen.sum(Kind::Double)),
            policy_loss_sum: 0.0,
            of_policy: Vec::new(),
            errors: values(&errors.abs()),
            gradient: vec![gradient_of(&loss, self.network.parameters())],
        }
    }

    fn update(&mut self, batch: &Batch, found: &Found, learning_rate: f64) -> Vec<(&'static str, f64)> {
        let scale = 1.0 / (batch.rows() as f64 * f64::from(batch.largest_weight));
        let gradient = Tensor::from_slice(&found.gradient[0]) * scale;
        let gradient_norm = self.network.step(&gradient, &self.config.learner, learning_rate);
        let algorithm = &self.config.algorithm;
        if (self.network.steps() as u64).is_multiple_of(algorithm.target_interval_updates.unwrap_or(100)) {
            self.network.follow(algorithm.target_tau.unwrap_or(1.0));
        }
        vec![("loss", found.loss_sum * scale), ("q_mean", found.q_sum / batch.rows() as f64), ("gradient_norm", gradient_norm)]
    }

    fn state(&self) -> Vec<Vec<f64>> {
        self.network.state()
    }
}
