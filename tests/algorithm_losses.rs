//! Losses and gradients of DDPG, TD3 and SAC equal those that PyTorch computes by automatic differentiation from the same
//! weights, the same batch and the same noise. The references are written from the papers, not from the code.
#![cfg(feature = "torch")]

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use shoal::algorithms::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::algorithms::{Algorithm, Learning, Random, registry};
use shoal::config::Config;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace};
use shoal::networks::MlpSpec;
use shoal::replay::{Batch, Column};
use tch::{Kind, Tensor};

const OBSERVATIONS: usize = 5;
const ACTIONS: usize = 3;
/// More than one block and not a whole number of them, so that taking a batch in blocks is tested too.
const ROWS: usize = 300;
/// Relative to the largest element: both sides compute in f32, in different orders.
const TOLERANCE: f64 = 2e-4;

fn environment() -> EnvironmentSpec {
    EnvironmentSpec {
        id: "made-up".into(),
        observation: ObservationSpace::symmetric([9.0; OBSERVATIONS]),
        action: ActionSpace::Box { low: vec![-2.0; ACTIONS], high: vec![2.0; ACTIONS] },
        time_limit_steps: None,
        reward_threshold: None,
    }
}

fn algorithm(name: &str, change: impl FnOnce(&mut Config)) -> Box<dyn Algorithm> {
    let mut config = Config::for_environment("made-up");
    config.algorithm.name = name.into();
    config.network.hidden = vec![24, 16];
    config.learner.max_gradient_norm = None;
    change(&mut config);
    registry::build(&config, &environment()).unwrap()
}

/// A batch with everything in it: importance weights, several discounts, terminated, truncated and both.
fn batch(algorithm: &dyn Algorithm) -> Batch {
    let mut random = Random::seed_from_u64(11);
    let mut batch = Batch::new(&algorithm.schema(), ROWS);
    for field in [OBSERVATION, ACTION, REWARD, NEXT_OBSERVATION] {
        batch.column_mut(field).as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(-1.0..1.0));
    }
    for (row, discount) in batch.column_mut(DISCOUNT).as_f32_mut().iter_mut().enumerate() {
        *discount = [0.99, 0.97, 0.95][row % 3];
    }
    let Column::I32(all) = batch.column_mut(FLAGS) else { panic!("flags are integers") };
    for (row, value) in all.iter_mut().enumerate() {
        *value = flags(row % 5 == 0, row % 7 == 0);
    }
    for (row, weight) in batch.weights.iter_mut().enumerate() {
        *weight = 0.2 + (row % 9) as f32 / 4.0;
    }
    batch.largest_weight = 2.2;
    batch
}

fn matrix(values: &[f32], columns: usize) -> Tensor {
    Tensor::from_slice(values).view([-1, columns as i64])
}

fn column(batch: &Batch, field: usize, columns: usize) -> Tensor {
    matrix(batch.column(field).as_f32(), columns)
}

/// The network of `spec` with the flat `parameters`.
fn mlp(spec: &MlpSpec, parameters: &Tensor, input: &Tensor) -> Tensor {
    let tensors = spec.tensors();
    let part = |index: usize| {
        let shape: Vec<i64> = tensors[index].shape.iter().map(|&length| length as i64).collect();
        parameters.narrow(0, tensors[index].offset as i64, tensors[index].length() as i64).view(shape.as_slice())
    };
    let layers = tensors.len() / 2;
    (0..layers).fold(input.shallow_clone(), |below, layer| {
        let output = below.linear(&part(2 * layer), Some(&part(2 * layer + 1)));
        if layer + 1 < layers { output.relu() } else { output }
    })
}

/// The parameters in a state that was saved before any update, as leaves: policy (and its target), critics and their targets.
struct Weights {
    policy: Tensor,
    policy_target: Option<Tensor>,
    critics: Vec<Tensor>,
    critic_targets: Vec<Tensor>,
}

fn critic_spec() -> MlpSpec {
    MlpSpec { inputs: OBSERVATIONS + ACTIONS, hidden: vec![24, 16], outputs: 1, dueling: false }
}

impl Weights {
    /// `state` is in the order of `Learning::save`: for each network the parameters, the target's, two moments and a count.
    fn read(algorithm: &dyn Algorithm, learning: &dyn Learning, policy_has_target: bool, critics: usize) -> Self {
        let mut state = vec![0.0; algorithm.sizes().state];
        learning.save(&mut state);
        let mut rest = state.as_slice();
        let mut take = |length: usize| {
            let (part, others) = rest.split_at(length);
            rest = others;
            Tensor::from_slice(part).set_requires_grad(true)
        };
        let (policy_length, critic_length) = (algorithm.network().parameter_count(), critic_spec().parameter_count());
        let policy = take(policy_length);
        let policy_target = policy_has_target.then(|| take(policy_length));
        drop(take(2 * policy_length + 2));
        let (mut online, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..critics {
            online.push(take(critic_length));
            targets.push(take(critic_length));
            drop(take(2 * critic_length + 2));
        }
        Self { policy, policy_target, critics: online, critic_targets: targets }
    }
}

fn smallest(critics: &[Tensor], input: &Tensor) -> Tensor {
    let values = critics.iter().map(|parameters| mlp(&critic_spec(), parameters, input));
    values.reduce(|left, right| left.minimum(&right)).unwrap()
}

/// Targets, given the value behind each transition.
fn targets(batch: &Batch, following: &Tensor) -> Tensor {
    let continues: Vec<f32> = batch.column(FLAGS).as_i32().iter().map(|&flags| if flags & 1 == 1 { 0.0 } else { 1.0 }).collect();
    (column(batch, REWARD, 1) + column(batch, DISCOUNT, 1) * matrix(&continues, 1) * following).detach()
}

/// The summed weighted loss of the critics, and their absolute errors averaged.
fn critic_loss(batch: &Batch, weights: &Weights, targets: &Tensor) -> (Tensor, Tensor) {
    let input = Tensor::cat(&[column(batch, OBSERVATION, OBSERVATIONS), column(batch, ACTION, ACTIONS)], 1);
    let importance = matrix(&batch.weights, 1);
    let errors: Vec<Tensor> = weights.critics.iter().map(|critic| mlp(&critic_spec(), critic, &input) - targets).collect();
    let loss = errors.iter().map(|error| (&importance * 0.5 * error.square()).sum(Kind::Float)).reduce(|a, b| a + b).unwrap();
    let count = errors.len() as f64;
    (loss, errors.iter().map(Tensor::abs).reduce(|a, b| a + b).unwrap() / count)
}

fn noise(random: &mut Random, rows: usize) -> Vec<f32> {
    (0..rows * ACTIONS).map(|_| random.sample(StandardNormal)).collect()
}

/// Noise as the learner draws it: block after block, `per_block` times in each.
fn noises<const N: usize>(random: &mut Random) -> [Tensor; N] {
    let mut all = [const { Vec::new() }; N];
    let mut left = ROWS;
    while left > 0 {
        let rows = left.min(256);
        all.iter_mut().for_each(|all| all.extend(noise(random, rows)));
        left -= rows;
    }
    all.map(|values| matrix(&values, ACTIONS))
}

fn assert_close(what: &str, found: &[f32], expected: &Tensor) {
    let expected: Vec<f32> = Vec::try_from(expected.detach().view([-1])).unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let difference = f64::from((found - expected).abs());
        assert!(difference <= TOLERANCE * f64::from(largest), "{what}: element {index} is {found}, PyTorch has {expected}");
    }
    assert!(largest > 0.0, "{what}: nothing to compare");
}

fn assert_sum(what: &str, found: f64, expected: &Tensor) {
    let expected = expected.double_value(&[]);
    assert!((found - expected).abs() <= TOLERANCE * expected.abs().max(1.0), "{what}: {found}, PyTorch has {expected}");
}

fn gradient_of(loss: &Tensor, of: &[&Tensor]) -> Tensor {
    Tensor::cat(&Tensor::run_backward(&[loss], of, true, false), 0)
}

fn check_deterministic(name: &str, critics: usize, noisy: bool) {
    let algorithm = algorithm(name, |config| config.algorithm.policy_delay_updates = 1);
    let mut learning = algorithm.learning(3).unwrap();
    let weights = Weights::read(&*algorithm, &*learning, true, critics);
    let mut batch = batch(&*algorithm);
    let (mut random, mut gradient) = (Random::seed_from_u64(5), vec![0.0; algorithm.sizes().learned]);
    let mut same_noise = random.clone();
    let found = learning.gradient(&mut batch, &mut random, &mut gradient);

    let next = column(&batch, NEXT_OBSERVATION, OBSERVATIONS);
    let mut next_action = mlp(algorithm.network(), weights.policy_target.as_ref().unwrap(), &next).tanh();
    if noisy {
        let [noise] = noises::<1>(&mut same_noise);
        next_action = (next_action + (noise * 0.2).clamp(-0.5, 0.5)).clamp(-1.0, 1.0);
    }
    let following = smallest(&weights.critic_targets, &Tensor::cat(&[next, next_action], 1));
    let (loss, errors) = critic_loss(&batch, &weights, &targets(&batch, &following));
    let observations = column(&batch, OBSERVATION, OBSERVATIONS);
    let action = mlp(algorithm.network(), &weights.policy, &observations).tanh();
    let policy_loss = -mlp(&critic_spec(), &weights.critics[0], &Tensor::cat(&[observations, action], 1)).sum(Kind::Float);

    let (of_policy, of_critics) = gradient.split_at(algorithm.network().parameter_count());
    assert_close("policy", of_policy, &gradient_of(&policy_loss, &[&weights.policy]));
    assert_close("critics", of_critics, &gradient_of(&loss, &weights.critics.iter().collect::<Vec<_>>()));
    assert_close("errors", learning.errors(), &errors);
    assert_sum("loss", found.loss_sum * critics as f64, &loss);
    assert_sum("policy loss", found.policy_loss_sum, &policy_loss);
    assert_eq!((found.transitions, found.largest_weight), (ROWS as f64, f64::from(2.2f32)));
}

#[test]
fn ddpg_has_the_gradients_of_its_losses() {
    check_deterministic("ddpg", 1, false);
}

#[test]
fn td3_has_the_gradients_of_its_losses() {
    check_deterministic("td3", 2, true);
}

/// Actions and log densities of a squashed Gaussian, by torch's own functions.
fn squashed(outputs: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
    let (mean, log_deviation) = (outputs.narrow(1, 0, ACTIONS as i64), outputs.narrow(1, ACTIONS as i64, ACTIONS as i64).clamp(-20.0, 2.0));
    let unsquashed = &mean + log_deviation.exp() * noise;
    let normal = -(noise.square() * 0.5) - &log_deviation - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let correction: Tensor = (std::f64::consts::LN_2 - &unsquashed - (&unsquashed * -2.0).softplus()) * 2.0;
    let log_density = (normal - correction).sum_dim_intlist([1i64].as_slice(), true, Kind::Float);
    (unsquashed.tanh(), log_density)
}

fn check_sac(temperature: Option<f64>) {
    let algorithm = algorithm("sac", |config| {
        config.algorithm.entropy_temperature = temperature;
        config.algorithm.initial_entropy_temperature = 0.3;
    });
    let alpha = temperature.unwrap_or(0.3);
    let mut learning = algorithm.learning(3).unwrap();
    let weights = Weights::read(&*algorithm, &*learning, false, 2);
    let mut batch = batch(&*algorithm);
    let (mut random, mut gradient) = (Random::seed_from_u64(5), vec![0.0; algorithm.sizes().learned]);
    let [next_noise, noise] = noises::<2>(&mut random.clone());
    let found = learning.gradient(&mut batch, &mut random, &mut gradient);

    let next = column(&batch, NEXT_OBSERVATION, OBSERVATIONS);
    let (next_action, next_log_density) = squashed(&mlp(algorithm.network(), &weights.policy, &next), &next_noise);
    let following = smallest(&weights.critic_targets, &Tensor::cat(&[next, next_action], 1)) - next_log_density * alpha;
    let (loss, errors) = critic_loss(&batch, &weights, &targets(&batch, &following));
    let observations = column(&batch, OBSERVATION, OBSERVATIONS);
    let (action, log_density) = squashed(&mlp(algorithm.network(), &weights.policy, &observations), &noise);
    let value = smallest(&weights.critics, &Tensor::cat(&[observations, action], 1));
    let policy_loss = (&log_density * alpha - value).sum(Kind::Float);
    let log_alpha = Tensor::from_slice(&[alpha.ln() as f32]).set_requires_grad(true);
    let temperature_loss = -(&log_alpha * (log_density.detach() - ACTIONS as f64)).sum(Kind::Float);

    let (of_policy, others) = gradient.split_at(algorithm.network().parameter_count());
    let (of_critics, of_temperature) = others.split_at(others.len() - 1);
    assert_close("policy", of_policy, &gradient_of(&policy_loss, &[&weights.policy]));
    assert_close("critics", of_critics, &gradient_of(&loss, &weights.critics.iter().collect::<Vec<_>>()));
    assert_close("errors", learning.errors(), &errors);
    assert_sum("loss", found.loss_sum * 2.0, &loss);
    assert_sum("policy loss", found.policy_loss_sum, &policy_loss);
    if temperature.is_none() {
        assert_close("temperature", of_temperature, &gradient_of(&temperature_loss, &[&log_alpha]));
    } else {
        assert_eq!(of_temperature, [0.0]);
    }
}

#[test]
fn sac_with_a_learned_temperature_has_the_gradients_of_its_losses() {
    check_sac(None);
}

#[test]
fn sac_with_a_fixed_temperature_has_the_gradients_of_its_losses() {
    check_sac(Some(0.15));
}
