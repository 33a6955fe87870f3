//! Expected SARSA (van Seijen et al. 2009), with a network and prioritized n-step transitions: like Q-learning, but a
//! target bootstraps from the mean value of what the policy itself would do next, random actions included.

use shoal::prelude::*;

/// What a configuration can say of the algorithm: its name, and in table `[own]` how often the policy acts at random.
pub const DECLARATION: Declaration = Declaration {
    name: "expected_sarsa",
    keys: &[AlgorithmKey::number("epsilon", 0.1, 0.0..=1.0), AlgorithmKey::of_library("network.convolutions")],
    learns_from_bytes: true,
};

/// The largest error of the run so far. To declare it here and to add to it below is enough for files, TensorBoard and
/// `inspect` to have it.
const LARGEST_ERROR: Metric = Metric::max("largest_error");
const METRICS: &[Metric] = &[LOSS, GRADIENT_NORM, LARGEST_ERROR];

/// The algorithm in one environment: what is known before any process starts.
pub struct ExpectedSarsa {
    config: Config,
    transitions: Transitions,
    network: NetworkSpec,
    epsilon: f32,
}

impl ExpectedSarsa {
    /// The algorithm as `config` describes it, for an environment with discrete actions.
    pub fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let outputs = discrete_actions(DECLARATION.name, environment)?;
        let input = InputSpec { element: environment.observation.element, shape: environment.observation.shape.clone() };
        let network = NetworkSpec::of_input(input, &config.network.convolutions, &config.network.hidden, Head::Linear { outputs });
        let epsilon = config.own.number("epsilon") as f32;
        Ok(Self { config: config.clone(), transitions: Transitions::new(config, environment), network, epsilon })
    }
}

impl Algorithm for ExpectedSarsa {
    fn name(&self) -> &'static str {
        DECLARATION.name
    }

    fn experience(&self) -> &dyn Experience {
        &self.transitions
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn network(&self) -> &NetworkSpec {
        &self.network
    }

    fn sizes(&self) -> Sizes {
        let parameters = self.network.parameter_count();
        Sizes { published: parameters, learned: parameters, state: Trained::state_values(parameters, WithTarget::Yes) }
    }

    fn exploration(&self, _environment: usize, _of: usize, _env_steps: u64) -> f32 {
        self.epsilon
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(EpsilonGreedy { network: build_for_acting(self.network.clone())?, epsilon: self.epsilon }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let Config { learner, network, machine, algorithm, .. } = &self.config;
        let build = || build_network(self.network.clone(), network.engine, learner.device.parse()?, machine.torch_threads);
        Ok(Box::new(Sarsa {
            network: Trained::new(learner, build()?, Some(build()?), &self.network.initialise(seed)),
            config: algorithm.clone(),
            epsilon: self.epsilon,
            buffers: Buffers::default(),
        }))
    }
}

/// Mean value of what a policy does that acts at random with probability `epsilon`.
fn expected(values: &[f32], epsilon: f32) -> f32 {
    (1.0 - epsilon) * values[greedy(values)] + epsilon * values.iter().sum::<f32>() / values.len() as f32
}

/// What an actor or the evaluator acts with.
struct EpsilonGreedy {
    network: Box<dyn Network>,
    epsilon: f32,
}

impl Policy for EpsilonGreedy {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn choose(&self, values: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        if random.random::<f32>() < exploration {
            return self.choose_randomly(values, random, action);
        }
        action.choose(greedy(values), values)
    }

    fn choose_randomly(&self, values: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        action.choose(random.random_range(0..values.len()), values)
    }

    fn state_value(&self, values: &[f32]) -> f32 {
        expected(values, self.epsilon)
    }
}

/// What a learner learns with.
struct Sarsa {
    network: Trained,
    config: AlgorithmConfig,
    epsilon: f32,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    values: Vec<f32>,
    next_values: Vec<f32>,
    expected: Vec<f32>,
    targets: Vec<f32>,
    slopes: Vec<f32>,
    errors: Vec<f32>,
}

impl Learning for Sarsa {
    fn published(&mut self) -> &[f32] {
        self.network.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, _random: &mut Random, gradient: &mut [f32]) -> Share {
        let rows = batch.rows();
        let actions = self.network.online.spec().outputs();
        let Buffers { values, next_values, expected: following, targets, slopes, errors } = &mut self.buffers;
        [&mut *values, next_values, slopes, errors, following].into_iter().for_each(|buffer| buffer.clear());
        [&mut *values, next_values, slopes].into_iter().for_each(|buffer| buffer.resize(rows * actions, 0.0));
        self.network.target().infer(batch.column(transition::NEXT_OBSERVATION).as_values(), rows, next_values);
        following.extend(next_values.chunks(actions).map(|values| expected(values, self.epsilon)));
        bootstrap(batch, following, targets);
        self.network.online.forward(batch.column(transition::OBSERVATION).as_values(), rows, values);
        let mut share = Share::of(METRICS, rows, batch.largest_weight);
        for (row, action) in batch.column(transition::ACTION).as_i32().iter().enumerate() {
            // An attached process may have added an action that does not exist.
            let taken = row * actions + (*action).clamp(0, actions as i32 - 1) as usize;
            let error = values[taken] - targets[row];
            let (loss, slope) = self.config.loss(DECLARATION.name).at(error);
            slopes[taken] = batch.weights[row] * slope;
            errors.push(error.abs());
            share.tally.add(LOSS, f64::from(batch.weights[row] * loss));
            share.tally.add(LARGEST_ERROR, f64::from(error.abs()));
        }
        self.network.online.backward(slopes, Some(gradient), None);
        share
    }

    fn errors(&self) -> &[f32] {
        &self.buffers.errors
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        take_weighted_mean(gradient, total);
        let norm = self.network.step(gradient, learning_rate);
        total.tally.add(GRADIENT_NORM, f64::from(norm));
        let target_networks = self.config.target_networks(DECLARATION.name);
        if self.network.steps().is_multiple_of(target_networks.interval_updates) {
            self.network.follow(target_networks.tau as f32);
        }
        norm
    }

    fn save(&self, state: &mut [f32]) {
        self.network.save(&mut StateWriter::new(state));
    }

    fn restore(&mut self, state: &[f32]) {
        self.network.restore(&mut StateReader::new(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{self, Corridor};

    #[test]
    fn it_keeps_the_rules_of_algorithms() {
        let mut catalogue = Catalogue::default();
        catalogue.add_algorithm(DECLARATION, ExpectedSarsa::new).unwrap();
        let mut config = Config::for_environment(environment::ID);
        config.algorithm.name = DECLARATION.name.into();
        let algorithm = catalogue.algorithms().build(&config, &Corridor::spec()).unwrap();
        check_algorithm(&*algorithm, &random_transitions(&Corridor::spec(), 64)).unwrap();
    }
}
