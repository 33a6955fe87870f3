//! PPO.

use rand::{RngExt, SeedableRng};
use shoal::algorithms::Random;
use shoal::config::Config;
use shoal::environments::ActionSpace;
use shoal::experience::fragment::{FLAGS, FRAMES, LENGTH, LOG_PROBABILITIES, REWARDS};
use shoal::experience::transition::flags;
use shoal::replay::Batch;

use crate::case::{Case, ENTROPY, OBSERVATION, STEPS, kinds, metric, squares};

/// A case that has estimated the advantages of a batch, and the batch: its gradients are those of all steps at once.
fn prepared(actions: ActionSpace, change: impl FnOnce(&mut Config)) -> (Case, Batch) {
    let mut case = Case::new("ppo", actions, |config| {
        config.algorithm.minibatches = 1;
        change(config);
    });
    let mut batch = case.batch(6, |random| (random.random_bool(0.2), random.random_bool(0.2)));
    case.learning.prepare(&mut batch);
    (case, batch)
}

#[test]
fn the_policys_gradient_is_the_slope_of_surrogate_and_entropy() {
    for actions in kinds() {
        for normalise in [false, true] {
            let (mut case, batch) = prepared(actions.clone(), |config| {
                // A clip that no ratio reaches: at its edge a difference has no slope.
                (config.algorithm.clip_ratio, config.algorithm.normalise_advantages) = (Some(9.0), Some(normalise));
                config.algorithm.entropy_start = ENTROPY;
            });
            case.assert_slopes(&batch, "policy", |share| metric(share, "policy_loss") - ENTROPY * metric(share, "entropy"));
        }
    }
}

#[test]
fn the_values_gradient_is_the_slope_of_its_error_with_the_returns_of_the_first_pass() {
    for actions in kinds() {
        let (mut case, batch) = prepared(actions, |config| config.algorithm.value_coefficient = Some(0.7));
        case.assert_slopes(&batch, "value", |share| 0.7 * metric(share, "value_loss"));
    }
}

#[test]
fn advantages_are_estimated_up_to_terminations_and_with_the_value_behind_a_cut() {
    let mut case = Case::new("ppo", ActionSpace::Discrete { n: 4 }, |config| {
        (config.algorithm.minibatches, config.algorithm.normalise_advantages) = (1, Some(false));
        (config.algorithm.gamma, config.algorithm.trace_decay) = (0.9, Some(0.8));
    });
    let mut batch = case.batch(1, |_| (false, false));
    let [first, second, third] = [0.4, -0.7, 0.9];
    batch.column_mut(LENGTH).as_i32_mut()[0] = 3;
    batch.column_mut(REWARDS).as_f32_mut()[..3].copy_from_slice(&[first, second, third]);
    // The second step ends an episode, and the third, which begins another, is the last before a time limit.
    batch.column_mut(FLAGS).as_i32_mut()[..3].copy_from_slice(&[flags(false, false), flags(true, false), flags(false, true)]);
    let (log_probabilities, values) = case.judged(&case.state()[..case.algorithm.sizes().published], &batch);
    // With the probabilities of the learned policy itself every ratio is one.
    batch.column_mut(LOG_PROBABILITIES).as_f32_mut().copy_from_slice(&log_probabilities);
    case.learning.prepare(&mut batch);
    let (_, share) = case.gradient(&batch);
    let ended = second - values[1];
    let advantages = [first + 0.9 * values[1] - values[0] + 0.9 * 0.8 * ended, ended, third + 0.9 * values[3] - values[2]].map(f64::from);
    let close = |name: &str, expected: f64| assert!((metric(&share, name) - expected).abs() < 1e-5, "{name}: {share:?}, not {expected}");
    close("policy_loss", -advantages.iter().sum::<f64>() / 3.0);
    close("value_loss", advantages.iter().map(|advantage| 0.5 * advantage * advantage).sum::<f64>() / 3.0);
    let targets = [0, 1, 2].map(|step| advantages[step] + f64::from(values[step]));
    close("explained_variance", 1.0 - squares(&advantages) / squares(&targets));
    close("kl", 0.0);
}

#[test]
fn more_fragments_than_go_through_the_network_at_once_are_valued_as_each_alone() {
    let mut case = Case::new("ppo", ActionSpace::Discrete { n: 4 }, |config| {
        (config.algorithm.minibatches, config.algorithm.normalise_advantages) = (1, Some(false));
    });
    let mut losses = |batch: &mut Batch| {
        case.learning.prepare(batch);
        let (_, share) = case.gradient(batch);
        ["policy_loss", "value_loss"].map(|name| metric(&share, name) * share.samples)
    };
    // Three to four times as many steps as a core takes at once, and fragments across each border.
    let mut all = Case::new("ppo", ActionSpace::Discrete { n: 4 }, |_| ()).batch(300, |random| (random.random_bool(0.2), false));
    let together = losses(&mut all);
    let mut one = all.clone();
    let alone = (0..300).map(|fragment| {
        one.copy_rows(&all, fragment..fragment + 1);
        losses(&mut one)
    });
    let sums = alone.fold([0.0; 2], |sums, losses| [sums[0] + losses[0], sums[1] + losses[1]]);
    for (together, sum) in together.into_iter().zip(sums) {
        assert!((together - sum).abs() < 1e-4 * sum.abs(), "{together} and {sum}");
    }
}

#[test]
fn a_part_of_one_step_moves_the_policy_too() {
    let mut case = Case::new("ppo", ActionSpace::Discrete { n: 4 }, |config| {
        (config.algorithm.minibatches, config.algorithm.entropy_start, config.algorithm.clip_ratio) = (4, 0.0, Some(9.0));
    });
    let mut batch = case.batch(4, |_| (false, false));
    batch.column_mut(LENGTH).as_i32_mut().fill(1);
    case.learning.prepare(&mut batch);
    let (gradient, _) = case.gradient(&batch);
    let tensors = case.algorithm.network().tensors();
    let mut of_policy = tensors.iter().filter(|tensor| tensor.name.starts_with("policy")).flat_map(|tensor| &gradient[tensor.range()]);
    assert!(of_policy.any(|&value| value != 0.0));
}

#[test]
fn the_parts_of_a_pass_have_each_step_once_and_each_pass_another_order() {
    for parts in [3, 7] {
        let plain = |config: &mut Config| config.algorithm.normalise_advantages = Some(false);
        let (mut whole, batch) = prepared(ActionSpace::Discrete { n: 4 }, plain);
        let (gradient, share) = whole.gradient(&batch);
        let (mut case, batch) = prepared(ActionSpace::Discrete { n: 4 }, |config| {
            plain(config);
            config.algorithm.minibatches = parts;
        });
        let mut random = Random::seed_from_u64(5);
        let mut pass = || {
            let mut sum = vec![0.0f32; gradient.len()];
            let mut samples = 0.0;
            let mut first = None;
            for _ in 0..parts {
                let mut part = vec![0.0; gradient.len()];
                let found = case.learning.gradient(&batch, &mut random, &mut part);
                samples += found.samples;
                let [of_part, of_all] = [&found, &share].map(|share| metric(share, "explained_variance"));
                assert_eq!(of_part, of_all, "it is that of the batch before the first pass");
                sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
                first.get_or_insert(part);
            }
            assert_eq!(samples, share.samples);
            for (sum, whole) in sum.iter().zip(&gradient) {
                assert!((sum - whole).abs() < 1e-4 * (1.0 + whole.abs()), "{sum} and {whole}");
            }
            first
        };
        assert_ne!(pass(), pass(), "the first parts of two passes");
    }
}

#[test]
fn of_fewer_steps_than_parts_every_part_has_one() {
    let mut case = Case::new("ppo", ActionSpace::Discrete { n: 4 }, |config| config.algorithm.minibatches = 20);
    let mut batch = case.batch(4, |_| (false, false));
    batch.column_mut(LENGTH).as_i32_mut().fill(1);
    case.learning.prepare(&mut batch);
    for _ in 0..40 {
        let (gradient, share) = case.gradient(&batch);
        assert!(share.samples == 1.0 && gradient.iter().all(|value| value.is_finite()));
    }
}

#[test]
fn steps_behind_the_end_of_a_fragment_change_nothing() {
    let (mut case, mut batch) = prepared(ActionSpace::Discrete { n: 4 }, |_| ());
    batch.column_mut(LENGTH).as_i32_mut().fill(2);
    let mut gradient = |batch: &mut Batch| {
        case.learning.prepare(batch);
        let (gradient, share) = case.gradient(batch);
        assert_eq!(share.samples, 12.0);
        gradient
    };
    let before = gradient(&mut batch);
    for (index, reward) in batch.column_mut(REWARDS).as_f32_mut().iter_mut().enumerate() {
        *reward += if index % STEPS >= 2 { 50.0 } else { 0.0 };
    }
    for (index, value) in batch.column_mut(FRAMES).as_f32_mut().iter_mut().enumerate() {
        *value += if index / OBSERVATION % (STEPS + 1) > 2 { 50.0 } else { 0.0 };
    }
    assert_eq!(gradient(&mut batch), before);
    batch.column_mut(REWARDS).as_f32_mut()[1] += 1.0;
    assert_ne!(gradient(&mut batch), before);
}
