//! What APPO and PPO begin with.

use shoal::config::schema::Initialisation;

use crate::case::{ALGORITHMS, Case, OBSERVATION, kinds};
use crate::value_network::place;

#[test]
fn the_first_policy_is_nearly_uniform_or_has_the_configured_deviation() {
    for algorithm in ALGORITHMS {
        for (deviation, free) in [(0.3, false), (0.3, true), (2.0, false), (2.0, true)] {
            let logarithm = f64::ln(deviation) as f32;
            // Four logits; or two means and two logarithms of deviations.
            for (actions, expected) in kinds().into_iter().zip([[0.0; 4], [0.0, 0.0, logarithm, logarithm]]) {
                let case = Case::new(algorithm, actions, |config| {
                    (config.algorithm.initial_action_std, config.algorithm.free_action_std) = (deviation, free);
                });
                let mut policy = case.algorithm.policy().unwrap();
                policy.set_parameters(case.algorithm.learning(1).unwrap().published());
                let observations: Vec<f32> = (0..20 * OBSERVATION).map(|index| (index * 7 % 11) as f32 / 5.0 - 1.0).collect();
                let mut outputs = vec![0.0; 20 * policy.outputs()];
                policy.infer((&observations).into(), 20, &mut outputs);
                for outputs in outputs.chunks_exact(policy.outputs()).map(|outputs| &outputs[..4]) {
                    // An output layer of the usual size is further away.
                    let is_near = outputs.iter().zip(expected).all(|(output, expected)| (output - expected).abs() < 0.02);
                    assert!(is_near, "{algorithm}: {outputs:?}, not {expected:?}");
                }
            }
        }
    }
}

#[test]
fn the_deviation_is_among_the_metrics_where_actions_are_continuous() {
    for (algorithm, deviation) in ALGORITHMS.into_iter().flat_map(|name| [(name, 0.3), (name, 2.0)]) {
        let [discrete, continuous] = kinds().map(|actions| {
            let changed = Case::new(algorithm, actions, |config| {
                (config.algorithm.initial_action_std, config.algorithm.free_action_std) = (deviation, true);
            });
            let mut case = Case { learning: changed.algorithm.learning(1).unwrap(), ..changed };
            let mut batch = case.batch(6, |_| (false, false));
            case.learning.prepare(&mut batch);
            case.gradient(&batch).1.tally.get("action_std")
        });
        assert_eq!(discrete, None, "{algorithm}");
        assert!((continuous.unwrap() - deviation).abs() < 1e-6, "{algorithm}: {continuous:?}, not {deviation}");
    }
}

#[test]
fn the_first_weights_of_policy_and_value_are_as_large_as_configured() {
    // How large a weight of a layer of three inputs may be, and whether biases are drawn too.
    let drawn = [(Initialisation::FanIn, 1.0 / 3f32.sqrt(), true), (Initialisation::He, 2f32.sqrt(), false)];
    for (algorithm, (initialisation, bound, has_biases)) in ALGORITHMS.into_iter().flat_map(|name| drawn.map(|drawn| (name, drawn))) {
        let [actions, _] = kinds();
        let changed = Case::new(algorithm, actions, |config| {
            config.network.separate_value = Some(true);
            config.network.initialisation = initialisation;
        });
        let case = Case { learning: changed.algorithm.learning(1).unwrap(), ..changed };
        let state = case.state();
        for (network, first) in [("policy", 0), ("value", place(&case, case.algorithm.sizes().published))] {
            // Seven units of three inputs: weights, then biases.
            let (weights, biases) = state[first..first + 28].split_at(21);
            let largest = weights.iter().fold(0.0f32, |largest, weight| largest.max(weight.abs()));
            assert!((bound / 2.0..=bound).contains(&largest), "{algorithm}, {network}: {largest} of at most {bound}");
            assert_eq!(biases.iter().any(|&bias| bias != 0.0), has_biases, "{algorithm}, {network}: {biases:?}");
        }
    }
}
