//! What APPO and PPO take for settings that are not set.

use rand::RngExt;
use shoal::config::schema::AlgorithmConfig;
use shoal::environments::ActionSpace;

use crate::case::{ALGORITHMS, Case};

#[test]
fn what_is_not_set_is_what_is_usual_for_the_algorithm() {
    type Change = fn(&mut AlgorithmConfig);
    /// Each key with the usual values of APPO and PPO.
    const USUAL: [(&str, [Change; 2]); 4] = [
        ("clip_ratio", [|settings| settings.clip_ratio = Some(0.3), |settings| settings.clip_ratio = Some(0.2)]),
        ("trace_decay", [|settings| settings.trace_decay = Some(1.0), |settings| settings.trace_decay = Some(0.95)]),
        ("value_coefficient", [|settings| settings.value_coefficient = Some(1.0), |settings| settings.value_coefficient = Some(0.5)]),
        (
            "normalise_advantages",
            [|settings| settings.normalise_advantages = Some(false), |settings| settings.normalise_advantages = Some(true)],
        ),
    ];
    for (index, algorithm) in ALGORITHMS.into_iter().enumerate() {
        let gradient = |change: Change| {
            let mut case = Case::new(algorithm, ActionSpace::Discrete { n: 4 }, |config| {
                config.algorithm.minibatches = 1;
                change(&mut config.algorithm);
            });
            let mut batch = case.batch(40, |random| (random.random_bool(0.2), false));
            case.learning.prepare(&mut batch);
            case.gradient(&batch).0
        };
        let unset = gradient(|_| ());
        for (key, values) in USUAL {
            assert!(gradient(values[index]) == unset, "{algorithm} takes another {key}");
            assert!(gradient(values[1 - index]) != unset, "{algorithm} takes the {key} of the other, or none at all");
        }
    }
}
