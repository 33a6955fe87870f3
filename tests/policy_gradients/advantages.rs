//! How APPO and PPO scale advantages.

use shoal::environments::ActionSpace;
use shoal::experience::fragment::{ACTIONS, LENGTH, LOG_PROBABILITIES, REWARDS};

use crate::case::{ALGORITHMS, Case, STEPS, metric};

#[test]
fn advantages_are_normalised_over_all_steps_of_an_update_if_that_is_wanted() {
    const LOGITS: [f32; 4] = [0.0, 0.4, -0.4, 0.8];
    /// So many that they do not go through the network at once.
    const FRAGMENTS: usize = 300;
    for (algorithm, normalise) in ALGORITHMS.into_iter().flat_map(|algorithm| [(algorithm, false), (algorithm, true)]) {
        let mut case = Case::new(algorithm, ActionSpace::Discrete { n: 4 }, |config| {
            (config.algorithm.minibatches, config.algorithm.clip_ratio) = (1, Some(9.0));
            config.algorithm.normalise_advantages = Some(normalise);
        });
        // The policy has these logits in every state, APPO's target network is uniform, and every value is 0.
        let tensors = case.algorithm.network().tensors();
        let mut state = vec![0.0; case.algorithm.sizes().state];
        state[tensors.iter().find(|tensor| tensor.name == "policy.bias").unwrap().range()].copy_from_slice(&LOGITS);
        case.learning.restore(&state);
        // Nothing follows any step, so its advantage is its reward, which is larger in later fragments. It was drawn uniformly.
        let mut batch = case.batch(FRAGMENTS, |_| (true, false));
        batch.column_mut(LOG_PROBABILITIES).as_f32_mut().fill(0.25f32.ln());
        batch.column_mut(REWARDS).as_f32_mut().iter_mut().enumerate().for_each(|(step, reward)| *reward += step as f32 / 300.0);
        case.learning.prepare(&mut batch);
        let (_, share) = case.gradient(&batch);

        let lengths = batch.column(LENGTH).as_i32();
        let steps = (0..FRAGMENTS * STEPS).filter(|step| step % STEPS < lengths[step / STEPS] as usize);
        let normaliser: f32 = LOGITS.iter().map(|logit| logit.exp()).sum();
        let ratio = |step: usize| 4.0 * LOGITS[batch.column(ACTIONS).as_i32()[step] as usize].exp() / normaliser;
        let (ratios, mut advantages): (Vec<f64>, Vec<f64>) =
            steps.map(|step| (f64::from(ratio(step)), f64::from(batch.column(REWARDS).as_f32()[step]))).unzip();
        let count = advantages.len() as f64;
        if normalise {
            let mean = advantages.iter().sum::<f64>() / count;
            let deviation = (advantages.iter().map(|advantage| (advantage - mean).powi(2)).sum::<f64>() / count).sqrt();
            advantages.iter_mut().for_each(|advantage| *advantage = (*advantage - mean) / deviation);
        }
        let expected = -ratios.iter().zip(&advantages).map(|(ratio, advantage)| ratio * advantage).sum::<f64>() / count;
        let found = metric(&share, "policy_loss");
        assert!((found - expected).abs() < 1e-4, "{algorithm}, {normalise}: {found}, not {expected}");
    }
}
