//! An algorithm that learns from fragments, with made-up ones.

use rand::{RngExt, SeedableRng};
use shoal::algorithms::{Algorithm, Learning, Random, registry};
use shoal::config::Config;
use shoal::config::schema::AlgorithmConfig;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry as environments};
use shoal::experience::fragment::{ACTIONS, AGES, FLAGS, FRAMES, LENGTH, LOG_PROBABILITIES, REWARDS};
use shoal::experience::transition::flags;
use shoal::metrics::Share;
use shoal::replay::Batch;
use shoal::values::Values;

pub(crate) const ALGORITHMS: [&str; 2] = ["appo", "ppo"];
pub(crate) const STEPS: usize = 5;
pub(crate) const OBSERVATION: usize = 3;
/// Weight of the entropy where its slope is compared: with the default's, a slope without it would be near enough.
pub(crate) const ENTROPY: f64 = 1.0;

pub(crate) struct Case {
    pub(crate) algorithm: Box<dyn Algorithm>,
    pub(crate) settings: AlgorithmConfig,
    pub(crate) learning: Box<dyn Learning>,
    pub(crate) actions: ActionSpace,
}

impl Case {
    pub(crate) fn new(algorithm: &str, actions: ActionSpace, change: impl FnOnce(&mut Config)) -> Self {
        Self::seeing(ObservationSpace::symmetric([9.0; OBSERVATION]), algorithm, actions, change)
    }

    pub(crate) fn seeing(observation: ObservationSpace, algorithm: &str, actions: ActionSpace, change: impl FnOnce(&mut Config)) -> Self {
        let environment = EnvironmentSpec { observation, action: actions.clone(), ..environments::spec("CartPole-v1").unwrap() };
        let mut config = Config::for_environment("made-up");
        config.algorithm.name = algorithm.into();
        config.algorithm.gamma = 0.9;
        config.network.hidden = vec![7];
        config.fragments.length_steps = STEPS;
        config.learner.batch_size = 4 * STEPS;
        // The expected losses follow the value through the shared layers.
        config.network.separate_value = Some(false);
        change(&mut config);
        let algorithm = registry::build(&config, &environment).unwrap();
        let mut case = Self { learning: algorithm.learning(1).unwrap(), algorithm, settings: config.algorithm, actions };
        // Far enough from the beginning that a target network differs from the policy, and that this one is not uniform.
        let mut random = Random::seed_from_u64(9);
        let networks = if case.settings.name == "appo" { 2 } else { 1 };
        let values = networks * case.algorithm.sizes().published;
        let mut state = case.state();
        state[..values].iter_mut().for_each(|value| *value += random.random_range(-0.3..0.3));
        case.learning.restore(&state);
        case
    }

    pub(crate) fn state(&self) -> Vec<f32> {
        let mut state = vec![0.0; self.algorithm.sizes().state];
        self.learning.save(&mut state);
        state
    }

    /// Random fragments, of any length, with `ended` saying how their steps end.
    pub(crate) fn batch(&self, fragments: usize, ended: impl Fn(&mut Random) -> (bool, bool)) -> Batch {
        let mut batch = Batch::new(&self.algorithm.schema(), fragments);
        let mut random = Random::seed_from_u64(4);
        let floats = |batch: &mut Batch, field: usize, random: &mut Random, low: f32, high: f32| {
            batch.column_mut(field).as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(low..high));
        };
        match batch.column(FRAMES).as_values() {
            Values::F32(_) => floats(&mut batch, FRAMES, &mut random, -1.0, 1.0),
            Values::U8(_) => batch.column_mut(FRAMES).bytes_mut().iter_mut().for_each(|byte| *byte = random.random()),
        }
        floats(&mut batch, REWARDS, &mut random, -1.0, 1.0);
        floats(&mut batch, LOG_PROBABILITIES, &mut random, -1.6, -0.8);
        match &self.actions {
            ActionSpace::Discrete { n } => {
                let n = i32::try_from(*n).unwrap();
                batch.column_mut(ACTIONS).as_i32_mut().iter_mut().for_each(|action| *action = random.random_range(0..n));
            }
            ActionSpace::Box { .. } => floats(&mut batch, ACTIONS, &mut random, -1.0, 1.0),
        }
        batch.column_mut(FLAGS).as_i32_mut().iter_mut().for_each(|word| {
            let (terminated, truncated) = ended(&mut random);
            *word = flags(terminated, truncated);
        });
        batch.column_mut(AGES).as_i32_mut().fill(3);
        batch.column_mut(LENGTH).as_i32_mut().iter_mut().for_each(|length| *length = random.random_range(1..=STEPS as i32));
        batch
    }

    /// What the policy of these parameters says of a batch: the logarithm of the probability of each action, which is discrete, and the
    /// value of each observation, of which a fragment has one more than steps.
    pub(crate) fn judged(&self, parameters: &[f32], batch: &Batch) -> (Vec<f32>, Vec<f32>) {
        let mut policy = self.algorithm.policy().unwrap();
        policy.set_parameters(parameters);
        let (rows, width) = (batch.rows() * (STEPS + 1), policy.outputs());
        let mut outputs = vec![0.0; rows * width];
        policy.infer(batch.column(FRAMES).as_values(), rows, &mut outputs);
        let before_steps = outputs.chunks_exact(width).enumerate().filter(|(row, _)| row % (STEPS + 1) < STEPS);
        let log_probabilities = before_steps.zip(batch.column(ACTIONS).as_i32()).map(|((_, outputs), &action)| {
            let logits = &outputs[..width - 1];
            logits[usize::try_from(action).unwrap()] - logits.iter().map(|logit| logit.exp()).sum::<f32>().ln()
        });
        (log_probabilities.collect(), outputs.chunks_exact(width).map(|outputs| policy.state_value(outputs)).collect())
    }

    pub(crate) fn gradient(&mut self, batch: &Batch) -> (Vec<f32>, Share) {
        // What an update before left there counts for nothing.
        let mut gradient = vec![f32::NAN; self.algorithm.sizes().learned];
        let share = self.learning.gradient(batch, &mut Random::seed_from_u64(1), &mut gradient);
        (gradient, share)
    }

    /// What `loss` makes of the metrics at these parameters, summed over the steps.
    fn loss_at(&mut self, state: &[f32], batch: &Batch, loss: &impl Fn(&Share) -> f64) -> f64 {
        self.learning.restore(state);
        let (_, share) = self.gradient(batch);
        loss(&share) * share.samples
    }

    /// Compare the gradient with differences of `loss`, for the parameters of the head called `head`.
    pub(crate) fn assert_slopes(&mut self, batch: &Batch, head: &str, loss: impl Fn(&Share) -> f64) {
        let (gradient, _) = self.gradient(batch);
        let tensors = self.algorithm.network().tensors();
        let indices: Vec<usize> = tensors.iter().filter(|tensor| of_head(&tensor.name, head)).flat_map(|tensor| tensor.range()).collect();
        assert!(indices.len() > 7, "{head} has {} parameters", indices.len());
        for index in indices {
            let analytic = f64::from(gradient[index]);
            let numeric = self.slope(batch, index, 1e-2, &loss);
            assert!((analytic - numeric).abs() < 0.02 * (1.0 + numeric.abs()), "{head} {index}: {analytic} and {numeric}");
        }
    }

    /// How `loss` changes with value number `index` of the state, from a difference of twice `step`.
    pub(crate) fn slope(&mut self, batch: &Batch, index: usize, step: f32, loss: &impl Fn(&Share) -> f64) -> f64 {
        let state = self.state();
        let [above, below] = [step, -step].map(|by| {
            let mut moved = state.clone();
            moved[index] += by;
            self.loss_at(&moved, batch, loss)
        });
        self.learning.restore(&state);
        (above - below) / f64::from(2.0 * step)
    }
}

/// Whether the tensor of this name is one of the value's head, or of those that the policy has.
fn of_head(tensor: &str, head: &str) -> bool {
    let is_policy = ["policy", "mean", "log_deviation"].iter().any(|name| tensor.starts_with(name));
    if head == "policy" { is_policy } else { tensor.starts_with(head) }
}

pub(crate) fn metric(share: &Share, name: &str) -> f64 {
    share.tally.get(name).unwrap()
}

/// Squared distances from the mean, added up.
pub(crate) fn squares(numbers: &[f64]) -> f64 {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    numbers.iter().map(|number| (number - mean).powi(2)).sum()
}

pub(crate) fn kinds() -> [ActionSpace; 2] {
    [ActionSpace::Discrete { n: 4 }, ActionSpace::Box { low: vec![-1.0; 2], high: vec![1.0; 2] }]
}
