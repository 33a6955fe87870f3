//! The gradient of APPO's whole loss, from fragments to parameters: against differences of the loss that it reports, whole or in parts.

use rand::{RngExt, SeedableRng};
use shoal::algorithms::{Algorithm, Learning, Random, registry};
use shoal::config::Config;
use shoal::config::schema::{AlgorithmConfig, Surrogate};
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry as environments};
use shoal::experience::fragment::{ACTIONS, AGES, FLAGS, FRAMES, LENGTH, LOG_PROBABILITIES, REWARDS};
use shoal::experience::transition::flags;
use shoal::metrics::Share;
use shoal::replay::Batch;

const STEPS: usize = 5;
const OBSERVATION: usize = 3;

struct Case {
    algorithm: Box<dyn Algorithm>,
    settings: AlgorithmConfig,
    learning: Box<dyn Learning>,
    actions: ActionSpace,
}

impl Case {
    fn new(actions: ActionSpace, change: impl FnOnce(&mut Config)) -> Self {
        let environment = EnvironmentSpec {
            observation: ObservationSpace::symmetric([9.0; OBSERVATION]),
            action: actions.clone(),
            ..environments::spec("CartPole-v1").unwrap()
        };
        let mut config = Config::for_environment("made-up");
        config.algorithm.name = "appo".into();
        config.algorithm.gamma = 0.9;
        config.algorithm.kl_target = Some(0.01);
        config.network.hidden = vec![7];
        config.fragments.length_steps = STEPS;
        config.learner.batch_size = 4 * STEPS;
        change(&mut config);
        let algorithm = registry::build(&config, &environment).unwrap();
        let mut case = Self { learning: algorithm.learning(1).unwrap(), algorithm, settings: config.algorithm, actions };
        // Far enough from the beginning that policy and target network differ, and the policy is not uniform.
        let mut random = Random::seed_from_u64(9);
        let parameters = case.algorithm.sizes().learned;
        let mut state = case.state();
        state[..2 * parameters].iter_mut().for_each(|value| *value += random.random_range(-0.3..0.3));
        case.learning.restore(&state);
        case
    }

    fn state(&self) -> Vec<f32> {
        let mut state = vec![0.0; self.algorithm.sizes().state];
        self.learning.save(&mut state);
        state
    }

    /// Random fragments, of any length, with `ended` saying how their steps end.
    fn batch(&self, fragments: usize, ended: impl Fn(&mut Random) -> (bool, bool)) -> Batch {
        let mut batch = Batch::new(&self.algorithm.schema(), fragments);
        let mut random = Random::seed_from_u64(4);
        let floats = |batch: &mut Batch, field: usize, random: &mut Random, low: f32, high: f32| {
            batch.column_mut(field).as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(low..high));
        };
        floats(&mut batch, FRAMES, &mut random, -1.0, 1.0);
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

    fn gradient(&mut self, batch: &Batch) -> (Vec<f32>, Share) {
        let mut gradient = vec![0.0; self.algorithm.sizes().learned];
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
    fn assert_slopes(&mut self, batch: &Batch, head: &str, loss: impl Fn(&Share) -> f64) {
        let (gradient, _) = self.gradient(batch);
        let state = self.state();
        let tensors = self.algorithm.network().tensors();
        let mut compared = 0;
        for index in tensors.iter().filter(|tensor| tensor.name.starts_with(head)).flat_map(|tensor| tensor.range()) {
            let mut at = |by: f32| {
                let mut moved = state.clone();
                moved[index] += by;
                self.loss_at(&moved, batch, &loss)
            };
            let numeric = (at(1e-2) - at(-1e-2)) / 2e-2;
            let analytic = f64::from(gradient[index]);
            assert!((analytic - numeric).abs() < 0.02 * (1.0 + numeric.abs()), "{head} {index}: {analytic} and {numeric}");
            compared += 1;
        }
        assert!(compared > 7, "{head} has {compared} parameters");
        self.learning.restore(&state);
    }
}

fn metric(share: &Share, name: &str) -> f64 {
    share.tally.get(name).unwrap()
}

fn kinds() -> [ActionSpace; 2] {
    [ActionSpace::Discrete { n: 4 }, ActionSpace::Box { low: vec![-1.0; 2], high: vec![1.0; 2] }]
}

#[test]
fn the_policys_gradient_is_the_slope_of_surrogate_entropy_and_divergence() {
    for actions in kinds() {
        for surrogate in [Surrogate::Clipped, Surrogate::PolicyGradient] {
            // A clip that no ratio reaches: at its edge a difference has no slope.
            let mut case =
                Case::new(actions.clone(), |config| (config.algorithm.surrogate, config.algorithm.clip_ratio) = (surrogate, 9.0));
            let batch = case.batch(6, |random| (random.random_bool(0.2), random.random_bool(0.2)));
            // The value does not depend on the policy's head, so targets and advantages stay where they are.
            let entropy = case.settings.entropy_start;
            case.assert_slopes(&batch, "policy", |share| {
                metric(share, "policy_loss") - entropy * metric(share, "entropy") + metric(share, "kl")
            });
        }
    }
}

#[test]
fn the_values_gradient_is_the_slope_of_its_error_with_targets_that_stand_still() {
    for actions in kinds() {
        let mut case = Case::new(actions, |config| config.algorithm.value_coefficient = 0.7);
        // Nothing follows any step and every importance weight is at its largest, one: a step's target is its reward, whatever the values.
        let mut batch = case.batch(6, |_| (true, false));
        batch.column_mut(LOG_PROBABILITIES).as_f32_mut().fill(-30.0);
        case.assert_slopes(&batch, "value", |share| 0.7 * metric(share, "value_loss"));
    }
}

#[test]
fn a_batch_has_the_gradient_of_its_parts_together() {
    for actions in kinds() {
        let mut case = Case::new(actions, |_| ());
        let batch = case.batch(8, |random| (random.random_bool(0.2), random.random_bool(0.2)));
        let (whole, share) = case.gradient(&batch);
        let (mut sum, mut total) = (vec![0.0f32; whole.len()], None::<Share>);
        for part in [0..3, 3..8] {
            let mut rows = Batch::new(&case.algorithm.schema(), part.len());
            rows.copy_rows(&batch, part);
            let (gradient, share) = case.gradient(&rows);
            sum.iter_mut().zip(gradient).for_each(|(sum, part)| *sum += part);
            match &mut total {
                None => total = Some(share),
                Some(total) => total.merge(&share),
            }
        }
        let total = total.unwrap();
        assert_eq!(total.samples, share.samples);
        for (metric, value) in share.tally.known() {
            let parts = total.tally.get(metric.name).unwrap();
            assert!((parts - value).abs() < 1e-4 * (1.0 + value.abs()), "{}: {parts} and {value}", metric.name);
        }
        for (whole, sum) in whole.iter().zip(sum) {
            assert!((whole - sum).abs() < 1e-4 * (1.0 + whole.abs()), "{whole} and {sum}");
        }
    }
}

#[test]
fn steps_behind_the_end_of_a_fragment_change_nothing() {
    let mut case = Case::new(ActionSpace::Discrete { n: 4 }, |_| ());
    let mut batch = case.batch(6, |_| (false, false));
    batch.column_mut(LENGTH).as_i32_mut().fill(2);
    let (before, share) = case.gradient(&batch);
    assert_eq!(share.samples, 12.0);
    for (index, reward) in batch.column_mut(REWARDS).as_f32_mut().iter_mut().enumerate() {
        *reward += if index % STEPS >= 2 { 50.0 } else { 0.0 };
    }
    for (index, value) in batch.column_mut(FRAMES).as_f32_mut().iter_mut().enumerate() {
        *value += if index / OBSERVATION % (STEPS + 1) > 2 { 50.0 } else { 0.0 };
    }
    assert_eq!(case.gradient(&batch).0, before);
    batch.column_mut(REWARDS).as_f32_mut()[1] += 1.0;
    assert_ne!(case.gradient(&batch).0, before);
}

#[test]
fn the_target_network_is_copied_at_its_interval_and_the_penalty_follows_the_divergence() {
    let mut case = Case::new(ActionSpace::Discrete { n: 4 }, |config| {
        config.algorithm.target_interval_updates = Some(3);
        config.algorithm.kl_target = Some(1e-9);
    });
    let batch = case.batch(6, |_| (false, false));
    let parameters = case.algorithm.sizes().learned;
    let (mut targets, mut penalties) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let (mut gradient, mut share) = case.gradient(&batch);
        case.learning.apply(&mut gradient, &mut share, 1e-2);
        let state = case.state();
        targets.push(state[..parameters] == state[parameters..2 * parameters]);
        penalties.push(*state.last().unwrap());
    }
    assert_eq!(targets, [false, false, true, false, false, true]);
    assert_eq!(penalties, [1.0, 1.0, 1.5, 1.5, 1.5, 2.25], "it follows the divergence before each copy");
}
