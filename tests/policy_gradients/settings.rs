//! Settings that APPO and PPO share.

use shoal::environments::ActionSpace;
use shoal::experience::fragment::{LENGTH, LOG_PROBABILITIES, REWARDS};

use crate::case::{Case, STEPS, metric};

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

#[test]
fn a_ratio_beyond_the_clip_counts_as_the_clip() {
    for (algorithm, default) in [("appo", 0.3), ("ppo", 0.2)] {
        for (clip_ratio, clip) in [(Some(0.05), 0.05), (None, default)] {
            let mut case = Case::new(algorithm, ActionSpace::Discrete { n: 4 }, |config| {
                config.algorithm.clip_ratio = clip_ratio;
                (config.algorithm.minibatches, config.algorithm.normalise_advantages) = (1, Some(false));
            });
            // Nothing follows any step: its advantage is its reward less its value.
            let mut batch = case.batch(6, |_| (true, false));
            batch.column_mut(LENGTH).as_i32_mut().fill(STEPS as i32);
            let (state, parameters) = (case.state(), case.algorithm.sizes().published);
            let (log_probabilities, values) = case.judged(&state[..parameters], &batch);
            if algorithm == "appo" {
                // The target network's policy is the one that acted, so that ratios to either are the same.
                let (of_target, _) = case.judged(&state[parameters..2 * parameters], &batch);
                batch.column_mut(LOG_PROBABILITIES).as_f32_mut().copy_from_slice(&of_target);
            }
            let (acted, rewards) = (batch.column(LOG_PROBABILITIES).as_f32(), batch.column(REWARDS).as_f32());
            let losses = (0..rewards.len()).map(|step| {
                let advantage = rewards[step] - values[step / STEPS * (STEPS + 1) + step % STEPS];
                let ratio = (log_probabilities[step] - acted[step]).exp();
                (-advantage * ratio, -advantage * ratio.clamp(1.0 - clip, 1.0 + clip))
            });
            let losses: Vec<(f32, f32)> = losses.collect();
            let mean = |of: fn(&(f32, f32)) -> f32| f64::from(losses.iter().map(of).sum::<f32>()) / losses.len() as f64;
            let expected = [mean(|(plain, clipped)| plain.max(*clipped)), mean(|(plain, clipped)| f32::from(clipped > plain))];
            case.learning.prepare(&mut batch);
            let (_, share) = case.gradient(&batch);
            for (name, expected) in ["policy_loss", "clipped_share"].into_iter().zip(expected) {
                let found = metric(&share, name);
                assert!((found - expected).abs() < 1e-5, "{name} of {algorithm} with {clip}: {found}, not {expected}");
            }
        }
    }
}
