//! Critics: one or two networks that value an action in a state, with their target networks.
//!
//! Two of them bound the overestimation of one: targets take the smaller value (clipped double Q-learning, Fujimoto et
//! al. 2018, equation 10).

use super::state::{StateReader, StateWriter};
use super::temporal_difference::{LOSS, Q_MEAN};
use super::trained::Trained;
use crate::config::schema::Loss;
use crate::experience::transition::{ACTION, OBSERVATION};
use crate::metrics::Tally;
use crate::replay::Batch;

/// One or two critics.
pub(super) struct Critics {
    networks: Vec<Trained>,
    loss: Loss,
    /// The input of each critic: in every row the observation, then the action.
    joined: Vec<f32>,
    /// For each critic, its values of all rows.
    values: Vec<Vec<f32>>,
    smallest: Vec<f32>,
    output_gradient: Vec<f32>,
    input_gradient: Vec<f32>,
    scratch: Vec<f32>,
    errors: Vec<f32>,
}

/// Which critic the policy climbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyObjective {
    /// The first (DDPG, TD3).
    First,
    /// In every state the one that values the action less (SAC).
    Smallest,
}

impl Critics {
    pub(super) fn new(networks: Vec<Trained>, loss: Loss) -> Self {
        Self {
            values: vec![Vec::new(); networks.len()],
            networks,
            loss,
            joined: Vec::new(),
            smallest: Vec::new(),
            output_gradient: Vec::new(),
            input_gradient: Vec::new(),
            scratch: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Number of parameters of all critics.
    pub(super) fn learned(&self) -> usize {
        self.networks.len() * self.each()
    }

    /// Number of parameters of each critic: they are built alike.
    fn each(&self) -> usize {
        self.networks[0].len()
    }

    /// Updates made so far.
    pub(super) fn steps(&self) -> u64 {
        self.networks[0].steps()
    }

    /// The smallest value that the target networks give to each of `rows` actions, in the observation beside it.
    pub(super) fn target_values(&mut self, observations: &[f32], actions: &[f32], rows: usize) -> &[f32] {
        join(observations, actions, rows, &mut self.joined);
        for (network, values) in self.networks.iter_mut().zip(&mut self.values) {
            values.resize(rows, 0.0);
            network.target().infer(self.joined.as_slice().into(), rows, values);
        }
        self.take_smallest(self.networks.len());
        &self.smallest
    }

    fn take_smallest(&mut self, critics: usize) {
        self.smallest.clone_from(&self.values[0]);
        for values in &self.values[1..critics] {
            self.smallest.iter_mut().zip(values).for_each(|(smallest, value)| *smallest = smallest.min(*value));
        }
    }

    /// The gradient of the weighted loss between each critic's values for the actions of `batch` and `targets`, critic
    /// after critic. Losses and values, as means of the critics, are added to `tally`.
    pub(super) fn regress(&mut self, batch: &Batch, targets: &[f32], gradient: &mut [f32], tally: &mut Tally) {
        let (rows, weights) = (batch.rows(), &batch.weights);
        let [observations, actions] = [OBSERVATION, ACTION].map(|field| batch.column(field).as_f32());
        join(observations, actions, rows, &mut self.joined);
        let count = self.networks.len();
        self.output_gradient.resize(rows, 0.0);
        self.errors.clear();
        self.errors.resize(rows, 0.0);
        let parts = gradient.chunks_exact_mut(self.each());
        let (mut loss_sum, mut q_sum) = (0.0, 0.0);
        for ((network, values), part) in self.networks.iter_mut().zip(&mut self.values).zip(parts) {
            values.resize(rows, 0.0);
            network.online.forward(self.joined.as_slice().into(), rows, values);
            for row in 0..rows {
                let error = values[row] - targets[row];
                let (loss, slope) = self.loss.at(error);
                self.output_gradient[row] = weights[row] * slope;
                self.errors[row] += error.abs() / count as f32;
                loss_sum += f64::from(weights[row] * loss) / count as f64;
                q_sum += f64::from(values[row]) / count as f64;
            }
            network.online.backward(&self.output_gradient, Some(part), None);
        }
        tally.add_all(LOSS, loss_sum, rows as f64);
        tally.add_all(Q_MEAN, q_sum, rows as f64);
    }

    /// Mean absolute error of the critics, per transition of the last regression.
    pub(super) fn errors(&self) -> &[f32] {
        &self.errors
    }

    /// The value of each of `rows` actions in the observation beside it, and its derivative with respect to both: a row
    /// has that of the observation first, then that of the action.
    pub(super) fn action_gradient(
        &mut self,
        observations: &[f32],
        actions: &[f32],
        rows: usize,
        objective: PolicyObjective,
    ) -> (&[f32], &[f32]) {
        join(observations, actions, rows, &mut self.joined);
        let climbed = match objective {
            PolicyObjective::First => 1,
            PolicyObjective::Smallest => self.networks.len(),
        };
        for (network, values) in self.networks[..climbed].iter_mut().zip(&mut self.values) {
            values.resize(rows, 0.0);
            network.online.forward(self.joined.as_slice().into(), rows, values);
        }
        self.take_smallest(climbed);
        self.output_gradient.resize(rows, 0.0);
        self.input_gradient.resize(self.joined.len(), 0.0);
        self.scratch.resize(self.joined.len(), 0.0);
        for index in 0..climbed {
            for row in 0..rows {
                // If critics give equal values, the first of them counts.
                let chosen = self.values[..climbed].iter().position(|values| values[row] == self.smallest[row]).unwrap_or(0);
                self.output_gradient[row] = f32::from(u8::from(chosen == index));
            }
            let network = &mut self.networks[index].online;
            if index == 0 {
                network.backward(&self.output_gradient, None, Some(&mut self.input_gradient));
            } else {
                network.backward(&self.output_gradient, None, Some(&mut self.scratch));
                self.input_gradient.iter_mut().zip(&self.scratch).for_each(|(sum, value)| *sum += value);
            }
        }
        (&self.smallest, &self.input_gradient)
    }

    /// One step of every critic against its part of `gradient` times `factor`; returns the largest norm of these parts.
    pub(super) fn step(&mut self, gradient: &[f32], factor: f32, learning_rate: f32) -> f32 {
        let parts = gradient.chunks_exact(self.each());
        let mut largest = 0.0f32;
        for (network, part) in self.networks.iter_mut().zip(parts) {
            // `max` would drop a NaN, which the caller must see.
            let norm = network.step_scaled(part, factor, learning_rate);
            largest = if norm > largest || norm.is_nan() { norm } else { largest };
        }
        largest
    }

    /// Count an update of the critics that another process makes.
    pub(super) fn count_update(&mut self) {
        self.networks.iter_mut().for_each(Trained::count_step);
    }

    /// Write the parameters of all critics into the first of `values`.
    pub(super) fn hand_over(&self, values: &mut [f32]) {
        for (network, part) in self.networks.iter().zip(values.chunks_exact_mut(self.each())) {
            part.copy_from_slice(network.online.parameters());
        }
    }

    /// Replace the parameters of all critics by `values`, as [`Self::hand_over`] wrote them.
    pub(super) fn take_over(&mut self, values: &[f32]) {
        let parts = values.chunks_exact(self.each());
        for (network, part) in self.networks.iter_mut().zip(parts) {
            network.online.set_parameters(part);
        }
    }

    /// Move every target network towards its critic.
    pub(super) fn follow(&mut self, tau: f32) {
        self.networks.iter_mut().for_each(|network| network.follow(tau));
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.networks.iter().for_each(|network| network.save(writer));
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.networks.iter_mut().for_each(|network| network.restore(reader));
    }
}

/// Rows of observations beside rows of actions: the input of a critic.
fn join(observations: &[f32], actions: &[f32], rows: usize, joined: &mut Vec<f32>) {
    joined.clear();
    let (observation, action) = (observations.len() / rows, actions.len() / rows);
    for (observation, action) in observations.chunks_exact(observation).zip(actions.chunks_exact(action)) {
        joined.extend_from_slice(observation);
        joined.extend_from_slice(action);
    }
}
