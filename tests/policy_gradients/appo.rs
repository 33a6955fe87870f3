//! APPO.

use rand::RngExt;
use shoal::config::schema::Surrogate;
use shoal::environments::ActionSpace;
use shoal::experience::fragment::{FRAMES, LENGTH, LOG_PROBABILITIES, REWARDS};
use shoal::metrics::Share;
use shoal::networks::take_products;
use shoal::replay::Batch;

use crate::case::{Case, ENTROPY, OBSERVATION, STEPS, kinds, metric, squares};

/// With a penalty on the divergence, whose weight is one at first.
fn penalised(actions: ActionSpace, change: impl FnOnce(&mut shoal::config::Config)) -> Case {
    Case::new("appo", actions, |config| {
        config.algorithm.kl_target = Some(0.01);
        change(config);
    })
}

#[test]
fn the_policys_gradient_is_the_slope_of_surrogate_entropy_and_divergence() {
    for actions in kinds() {
        for surrogate in [Surrogate::Clipped, Surrogate::PolicyGradient] {
            let mut case = penalised(actions.clone(), |config| {
                // A clip that no ratio reaches: at its edge a difference has no slope.
                (config.algorithm.surrogate, config.algorithm.clip_ratio) = (surrogate, Some(9.0));
                config.algorithm.entropy_start = ENTROPY;
            });
            let batch = case.batch(6, |random| (random.random_bool(0.2), random.random_bool(0.2)));
            // The value does not depend on the policy's head, so targets and advantages stay where they are.
            case.assert_slopes(&batch, "policy", |share| {
                metric(share, "policy_loss") - ENTROPY * metric(share, "entropy") + metric(share, "kl")
            });
        }
    }
}

#[test]
fn the_values_gradient_is_the_slope_of_its_error_with_targets_that_stand_still() {
    for actions in kinds() {
        let mut case = penalised(actions, |config| config.algorithm.value_coefficient = Some(0.7));
        // Nothing follows any step and every importance weight is at its largest, one: a step's target is its reward, whatever the values.
        let mut batch = case.batch(6, |_| (true, false));
        batch.column_mut(LOG_PROBABILITIES).as_f32_mut().fill(-30.0);
        case.assert_slopes(&batch, "value", |share| 0.7 * metric(share, "value_loss"));
    }
}

#[test]
fn targets_and_advantages_have_the_discount_decay_and_weights_of_the_settings() {
    const REWARDED: [f32; 3] = [0.4, -0.7, 0.9];
    /// Probabilities of the actions under the target network's policy, divided by those under the policy that acted.
    const WEIGHTS: [f32; 3] = [2.0, 0.6, 0.9];
    let mut case = Case::new("appo", ActionSpace::Discrete { n: 4 }, |config| {
        (config.algorithm.gamma, config.algorithm.trace_decay) = (0.9, Some(0.8));
        (config.algorithm.max_importance_weight, config.algorithm.max_trace_weight) = (1.5, 0.7);
        config.algorithm.surrogate = Surrogate::PolicyGradient;
    });
    let mut batch = case.batch(1, |_| (false, false));
    batch.column_mut(LENGTH).as_i32_mut()[0] = 3;
    batch.column_mut(REWARDS).as_f32_mut()[..3].copy_from_slice(&REWARDED);
    let (state, parameters) = (case.state(), case.algorithm.sizes().published);
    let (log_probabilities, values) = case.judged(&state[..parameters], &batch);
    let (of_target, _) = case.judged(&state[parameters..2 * parameters], &batch);
    for (step, weight) in WEIGHTS.iter().enumerate() {
        batch.column_mut(LOG_PROBABILITIES).as_f32_mut()[step] = of_target[step] - weight.ln();
    }
    let (_, share) = case.gradient(&batch);
    let (mut policy_loss, mut value_loss) = (0.0, 0.0);
    let [mut targets, mut errors] = [const { Vec::new() }; 2];
    let mut next_target = values[3];
    for step in (0..3).rev() {
        let [weight, carried] = [WEIGHTS[step].min(1.5), 0.8 * WEIGHTS[step].min(0.7)];
        let (value, next_value) = (values[step], values[step + 1]);
        policy_loss -= weight * (REWARDED[step] + 0.9 * next_target - value) * log_probabilities[step];
        next_target = value + weight * (REWARDED[step] + 0.9 * next_value - value) + 0.9 * carried * (next_target - next_value);
        value_loss += 0.5 * (value - next_target).powi(2);
        targets.push(f64::from(next_target));
        errors.push(f64::from(value - next_target));
    }
    let (found, expected) = (metric(&share, "explained_variance"), 1.0 - squares(&errors) / squares(&targets));
    assert!((found - expected).abs() < 1e-4 * expected.abs().max(1.0), "{found}, not {expected}");
    for (name, sum) in [("policy_loss", policy_loss), ("value_loss", value_loss), ("importance_weight", 1.5 + 0.6 + 0.9)] {
        let (found, expected) = (metric(&share, name), f64::from(sum / 3.0));
        assert!((found - expected).abs() < 1e-5, "{name}: {found}, not {expected}");
    }
}

#[test]
fn a_batch_has_the_gradient_of_its_parts_together() {
    // Eight fragments go through the networks at once, and of 84 each half.
    let sizes = [(8, 3, false), (84, 42, true)];
    for (actions, (fragments, border, separate)) in kinds().into_iter().flat_map(|actions| sizes.map(|sizes| (actions.clone(), sizes))) {
        let mut case = penalised(actions, |config| config.network.separate_value = Some(separate));
        let batch = case.batch(fragments, |random| (random.random_bool(0.2), random.random_bool(0.2)));
        let (whole, share) = case.gradient(&batch);
        let (mut sum, mut total) = (vec![0.0f32; whole.len()], None::<Share>);
        for part in [0..border, border..fragments] {
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
        // Each part has a variance of its own.
        for (metric, value) in share.tally.known().filter(|(metric, _)| metric.name != "explained_variance") {
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
    let mut case = penalised(ActionSpace::Discrete { n: 4 }, |_| ());
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
    // Targets that the divergence is always far above and always far below, with penalties far from their limits and near them.
    for (kl_target, first, [second, third]) in
        [(1e-9, 1.0, [1.5, 2.25]), (100.0, 1.0, [0.5, 0.25]), (1e-9, 80.0, [100.0, 100.0]), (100.0, 1.5e-4, [1e-4, 1e-4])]
    {
        let mut case = penalised(ActionSpace::Discrete { n: 4 }, |config| {
            config.algorithm.target_interval_updates = Some(3);
            config.algorithm.kl_target = Some(kl_target);
        });
        let batch = case.batch(6, |_| (false, false));
        let parameters = case.algorithm.sizes().learned;
        let mut state = case.state();
        *state.last_mut().unwrap() = first;
        case.learning.restore(&state);
        let (mut targets, mut penalties) = (Vec::new(), Vec::new());
        for _ in 0..6 {
            let (mut gradient, mut share) = case.gradient(&batch);
            case.learning.apply(&mut gradient, &mut share, 1e-2);
            let state = case.state();
            targets.push(state[..parameters] == state[parameters..2 * parameters]);
            penalties.push(*state.last().unwrap());
        }
        assert_eq!(targets, [false, false, true, false, false, true]);
        assert_eq!(penalties, [first, first, second, second, second, third], "it follows the divergence before each copy");
    }
}

#[test]
fn the_target_network_is_asked_once_about_a_batch_that_is_used_again_until_it_is_another_network() {
    let mut case = penalised(ActionSpace::Discrete { n: 4 }, |config| config.algorithm.target_interval_updates = Some(2));
    let mut prepared = case.batch(6, |random| (random.random_bool(0.2), random.random_bool(0.2)));
    let plain = prepared.clone();
    case.learning.prepare(&mut prepared);
    let products_and_gradient = |case: &mut Case, batch: &Batch| {
        take_products();
        let (gradient, share) = case.gradient(batch);
        (take_products(), gradient, share)
    };
    let mut repeats = Vec::new();
    for _ in 0..4 {
        let (all, expected, mut share) = products_and_gradient(&mut case, &plain);
        let (made, mut found, _) = products_and_gradient(&mut case, &prepared);
        assert_eq!(found, expected);
        repeats.push(made < all);
        case.learning.apply(&mut found, &mut share, 1e-2);
    }
    assert_eq!(repeats, [false, true, false, true], "the network is another after every second update");

    // Another batch in the same place, and a learner that goes on from a state.
    prepared.column_mut(FRAMES).as_f32_mut().iter_mut().for_each(|value| *value = 1.0 - *value);
    case.learning.prepare(&mut prepared);
    let mut plain = Batch::new(&case.algorithm.schema(), 6);
    plain.copy_rows(&prepared, 0..6);
    assert_eq!(case.gradient(&prepared).0, case.gradient(&plain).0);
    let mut state = case.state();
    let values = 2 * case.algorithm.sizes().published;
    state[..values].iter_mut().for_each(|value| *value *= 0.5);
    case.learning.restore(&state);
    assert_eq!(case.gradient(&prepared).0, case.gradient(&plain).0);
}
