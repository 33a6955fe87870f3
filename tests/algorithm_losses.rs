//! Losses, gradients and whole updates of DQN, DDPG, TD3 and SAC equal those of a reference that was written from the papers, with
//! automatic differentiation by PyTorch's libtorch in f64: from the same weights, the same batches and the same noise. Those of APPO and
//! PPO are in `policy_gradients.rs`.
#![cfg(feature = "torch")]

mod support {
    pub(crate) mod algorithms;
    pub(crate) mod test_device;
}

use rand::SeedableRng;
use shoal::algorithms::Random;
use shoal::config::Config;
use shoal::config::schema::{Engine, Loss};
use shoal::environments::ActionSpace;
use shoal::metrics::{Metric, Tally};
use support::algorithms::actor_critic::{ActorCritic, Kinship};
use support::algorithms::deep_q::DeepQ;
use support::algorithms::reference::Reference;
use support::algorithms::{batch, build, environment, state};

const OBSERVATIONS: usize = 5;
const CHOICES: usize = 4;
const ELEMENTS: usize = 3;
/// More than one block, and not a whole number of blocks, so that taking a batch in blocks is tested too.
const ROWS: usize = 300;
/// One block: a GPU takes whole batches, for which noise is drawn in another order than block after block.
const ROWS_ON_GPU: usize = 256;
/// Enough for a delayed policy and for target networks that follow at an interval to move more than once.
const UPDATES: u64 = 4;
const LEARNING_RATE: f32 = 1e-2;
/// Largest difference, relative to the largest element of the same part. The reference has f64, the algorithms f32 with a rounding
/// error of 6e-8 per operation and hundreds of operations behind each number; 2.1e-5 was measured at most. A wrong sign,
/// factor, mask, weight or order gives more than 1e-3.
const TOLERANCE: f64 = 1e-4;

fn assert_close(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    for (index, (found, expected)) in found.iter().map(|&found| f64::from(found)).zip(expected).enumerate() {
        // Equal infinities are equal: the logarithm of a temperature of 0.
        let is_close = found == *expected || (found - expected).abs() <= TOLERANCE * largest;
        assert!(is_close, "{what}: element {index} is {found}, the reference has {expected} and at most {largest}");
    }
}

/// Compares part by part, so that small numbers are not judged by large ones. What the reference does not touch must be untouched.
fn assert_parts_close(what: &str, mut found: &[f32], expected: &[Vec<f64>]) {
    for (index, expected) in expected.iter().enumerate() {
        let (part, rest) = found.split_at(expected.len());
        assert_close(&format!("{what}, part {index}"), part, expected);
        found = rest;
    }
    assert!(found.is_empty(), "{what}: {} elements more than the reference", found.len());
}

fn assert_number(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= TOLERANCE * expected.abs().max(1.0), "{what}: {found}, the reference has {expected}");
}

fn assert_said(what: &str, found: &Tally, expected: &[(&str, f64)]) {
    assert_eq!(found.known().count(), expected.len(), "{what}: {found}");
    for (name, expected) in expected {
        assert_number(&format!("{what}, {name}"), found.get(name).unwrap_or_else(|| panic!("{what}: no {name}")), *expected);
    }
}

/// Makes `UPDATES` updates of the algorithm and of its reference side by side, and compares everything after each.
fn check(name: &str, change: impl Fn(&mut Config)) {
    for engine in [Engine::Cpu, Engine::Torch] {
        let action = match name {
            "dqn" => ActionSpace::Discrete { n: CHOICES },
            _ => ActionSpace::Box { low: vec![-2.0; ELEMENTS], high: vec![2.0; ELEMENTS] },
        };
        let (config, algorithm) = build(name, &environment::<OBSERVATIONS>(action), |config| {
            config.network.hidden = vec![24, 16];
            config.network.engine = engine;
            config.learner.device = if engine == Engine::Torch { support::test_device::of_libtorch() } else { "cpu".into() };
            config.learner.max_gradient_norm = None;
            // None is its default. Adam divides by the root of the squared gradient and `adam_epsilon`: with the usual 1e-8, elements
            // that are rounding errors of zero would move as far as all others.
            (config.learner.adam_beta1, config.learner.adam_beta2, config.learner.adam_epsilon) = (0.8, 0.95, 1e-2);
            change(config);
        });
        let mut learning = algorithm.learning(3).unwrap();
        let start = state(&*algorithm, &*learning);
        let mut reference: Box<dyn Reference> = match name {
            "dqn" => Box::new(DeepQ::new(&config, &*algorithm, &start)),
            "ddpg" => Box::new(ActorCritic::new(Kinship::Ddpg, &config, &*algorithm, ELEMENTS, &start)),
            "td3" => Box::new(ActorCritic::new(Kinship::Td3, &config, &*algorithm, ELEMENTS, &start)),
            _ => Box::new(ActorCritic::new(Kinship::Sac, &config, &*algorithm, ELEMENTS, &start)),
        };
        let mut random = Random::seed_from_u64(5);
        let mut gradient = vec![f32::NAN; algorithm.sizes().learned];
        let rows = if config.learner.device == "cpu" { ROWS } else { ROWS_ON_GPU };
        for update in 1..=UPDATES {
            let batch = batch(&*algorithm, rows, CHOICES as i32, update);
            let what = |part: &str| format!("{name} on {engine:?}, update {update}, {part}");
            let expected = reference.find(&batch, &mut random.clone());
            let mut found = learning.gradient(&batch, &mut random, &mut gradient);
            assert_eq!((found.samples, found.largest_weight), (rows as f64, f64::from(batch.largest_weight)));
            let mut sum = |name| found.tally.amount_mut(Metric::mean(name)).value;
            assert_number(&what("loss"), sum("loss"), expected.loss_sum);
            assert_number(&what("values"), sum("q_mean"), expected.q_sum);
            if name != "dqn" {
                assert_number(&what("policy loss"), sum("policy_loss"), expected.policy_loss_sum);
            }
            assert_close(&what("errors"), learning.errors(), &expected.errors);
            assert_parts_close(&what("gradient"), &gradient, &expected.gradient);
            let norm = learning.apply(&mut gradient, &mut found, LEARNING_RATE);
            assert_eq!(found.tally.get("gradient_norm"), Some(f64::from(norm)), "{}", what("norm"));
            assert_said(&what("metrics"), &found.tally, &reference.update(&batch, &expected, f64::from(LEARNING_RATE)));
            assert_parts_close(&what("state"), &state(&*algorithm, &*learning), &reference.state());
        }
    }
}

#[test]
fn dqn_makes_the_update_of_the_reference() {
    check("dqn", |_| ());
}

#[test]
fn dqn_with_every_variant_makes_the_update_of_the_reference() {
    for (double, dueling, loss) in [(false, false, Loss::Mse), (false, true, Loss::Huber), (true, true, Loss::Mse)] {
        check("dqn", |config| {
            (config.algorithm.double, config.network.dueling, config.algorithm.loss) = (double, dueling, Some(loss));
            config.algorithm.target_interval_updates = Some(2);
            config.learner.max_gradient_norm = Some(0.05);
        });
    }
}

#[test]
fn dqn_with_softly_moving_targets_makes_the_update_of_the_reference() {
    check("dqn", |config| {
        (config.algorithm.target_interval_updates, config.algorithm.target_tau) = (Some(1), Some(0.3));
    });
}

#[test]
fn ddpg_makes_the_update_of_the_reference() {
    check("ddpg", |_| ());
}

#[test]
fn ddpg_with_every_setting_makes_the_update_of_the_reference() {
    check("ddpg", |config| {
        config.algorithm.loss = Some(Loss::Huber);
        (config.algorithm.target_interval_updates, config.algorithm.target_tau) = (Some(2), Some(0.3));
        config.algorithm.policy_learning_rate = Some(0.25 * config.learning_rate());
        config.learner.max_gradient_norm = Some(0.05);
    });
}

#[test]
fn td3_makes_the_update_of_the_reference() {
    check("td3", |_| ());
}

#[test]
fn td3_with_every_setting_makes_the_update_of_the_reference() {
    check("td3", |config| {
        config.algorithm.loss = Some(Loss::Huber);
        config.algorithm.policy_delay_updates = 3;
        (config.algorithm.target_interval_updates, config.algorithm.target_tau) = (Some(1), Some(0.3));
        (config.algorithm.target_noise_std, config.algorithm.target_noise_clip) = (0.8, 0.6);
        config.learner.max_gradient_norm = Some(0.05);
    });
}

#[test]
fn sac_with_a_learned_temperature_makes_the_update_of_the_reference() {
    check("sac", |_| ());
}

#[test]
fn sac_with_every_setting_makes_the_update_of_the_reference() {
    check("sac", |config| {
        config.algorithm.loss = Some(Loss::Huber);
        (config.algorithm.target_interval_updates, config.algorithm.target_tau) = (Some(2), Some(0.3));
        (config.algorithm.initial_entropy_temperature, config.algorithm.target_entropy) = (0.3, Some(1.5));
        config.algorithm.policy_learning_rate = Some(0.25 * config.learning_rate());
        config.learner.max_gradient_norm = Some(0.05);
    });
}

#[test]
fn sac_with_a_fixed_temperature_makes_the_update_of_the_reference() {
    // Without any entropy too.
    for temperature in [0.15, 0.0] {
        check("sac", |config| config.algorithm.entropy_temperature = Some(temperature));
    }
}
