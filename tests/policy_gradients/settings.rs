//! Settings that APPO and PPO share.

use shoal::environments::ActionSpace;

use crate::case::Case;

#[test]
fn the_weight_of_the_entropy_falls_linearly_with_the_steps_of_the_run() {
    for algorithm in ["appo", "ppo"] {
        let gradient = |entropy_start: f64, env_steps: Option<u64>| {
            let mut case = Case::new(algorithm, ActionSpace::Discrete { n: 4 }, |config| {
                config.algorithm.entropy_start = entropy_start;
                (config.algorithm.entropy_end, config.algorithm.entropy_anneal_steps) = (0.25, 1_000);
            });
            let mut batch = case.batch(6, |_| (false, false));
            case.learning.prepare(&mut batch);
            env_steps.into_iter().for_each(|env_steps| case.learning.schedule(env_steps));
            case.gradient(&batch).0
        };
        // A learner that has heard of no steps yet has the weight that the schedule starts with.
        for (env_steps, weight) in [(0, 1.0), (500, 0.625), (1_000, 0.25), (5_000, 0.25)] {
            assert_eq!(gradient(1.0, Some(env_steps)), gradient(weight, None), "{algorithm} after {env_steps} steps");
        }
    }
}
