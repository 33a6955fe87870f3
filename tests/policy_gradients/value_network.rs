//! A value with a network of its own, and deviations that are the same in every state.

use shoal::environments::{ActionSpace, ObservationSpace};
use shoal::experience::fragment::LOG_PROBABILITIES;
use shoal::metrics::Share;
use shoal::replay::Batch;

use crate::auto_encoder::OF_DECODER;
use crate::case::{ALGORITHMS, Case, kinds, metric};

/// Six fragments of which each step ends an episode and has the largest importance weight: a step's target is its reward,
/// whatever the values.
fn batch(case: &mut Case) -> Batch {
    let mut batch = case.batch(6, |_| (true, false));
    batch.column_mut(LOG_PROBABILITIES).as_f32_mut().fill(-30.0);
    case.learning.prepare(&mut batch);
    batch
}

fn separate(algorithm: &str, actions: ActionSpace, value_coefficient: f64) -> Case {
    Case::new(algorithm, actions, |config| {
        config.network.separate_value = Some(true);
        config.algorithm.minibatches = 1;
        config.algorithm.value_coefficient = Some(value_coefficient);
    })
}

/// Where a parameter of the second network lies in the state: before it come parameters and moments of the first,
/// and the count of its steps.
pub(crate) fn place(case: &Case, index: usize) -> usize {
    let copies = if case.settings.name == "appo" { 4 } else { 3 };
    let published = case.algorithm.sizes().published;
    (copies - 1) * published + 2 + index
}

#[test]
fn its_gradient_is_the_slope_of_its_error() {
    for (algorithm, actions) in ALGORITHMS.into_iter().flat_map(|algorithm| kinds().map(|actions| (algorithm, actions))) {
        let mut case = separate(algorithm, actions, 0.7);
        let sizes = case.algorithm.sizes();
        // Three inputs, seven units, one output.
        assert_eq!(sizes.learned - sizes.published, 4 * 7 + 8);
        let batch = batch(&mut case);
        let (gradient, _) = case.gradient(&batch);
        for (index, &analytic) in gradient.iter().enumerate().skip(sizes.published) {
            // A small step: beyond the edge of a ReLU there is another slope.
            let numeric = case.slope(&batch, place(&case, index), 5e-4, &|share: &Share| 0.7 * metric(share, "value_loss"));
            let analytic = f64::from(analytic);
            assert!((analytic - numeric).abs() < 0.02 * (1.0 + numeric.abs()), "{algorithm}, {index}: {analytic} and {numeric}");
        }
    }
}

#[test]
fn the_policy_neither_gives_the_value_nor_hears_of_its_errors() {
    for (algorithm, actions) in ALGORITHMS.into_iter().flat_map(|algorithm| kinds().map(|actions| (algorithm, actions))) {
        let [(little, published), (much, _)] = [0.1, 10.0].map(|coefficient| {
            let mut case = separate(algorithm, actions.clone(), coefficient);
            assert_eq!(case.algorithm.network().head_outputs("value"), None);
            let batch = batch(&mut case);
            (case.gradient(&batch).0, case.algorithm.sizes().published)
        });
        assert_eq!(little[..published], much[..published]);
        assert!(little[published..].iter().zip(&much[published..]).any(|(little, much)| (little - much).abs() > 0.1));
        // One that shares its layers does hear of them.
        let [little, much] = [0.1, 10.0].map(|coefficient| {
            let mut case = Case::new(algorithm, actions.clone(), |config| {
                config.algorithm.minibatches = 1;
                config.algorithm.value_coefficient = Some(coefficient);
            });
            let batch = batch(&mut case);
            case.gradient(&batch).0
        });
        assert_ne!(little, much);
    }
}

#[test]
fn value_and_auto_encoder_learn_side_by_side_and_a_state_goes_on_where_it_was() {
    let case = |algorithm| {
        Case::seeing(ObservationSpace::bytes(&[1, 4, 4]), algorithm, ActionSpace::Discrete { n: 3 }, |config| {
            config.network.separate_value = Some(true);
            config.auto_encoder.coefficient = 1.0;
            config.auto_encoder.latent = 5;
            config.algorithm.minibatches = 1;
            config.learner.max_gradient_norm = None;
        })
    };
    for algorithm in ALGORITHMS {
        let mut one = case(algorithm);
        let batch = batch(&mut one);
        let step = |case: &mut Case| {
            let (mut gradient, mut share) = case.gradient(&batch);
            assert!(case.learning.apply(&mut gradient, &mut share, 1e-2).is_finite());
            ["value_loss", "reconstruction_loss"].map(|name| metric(&share, name))
        };
        let first = step(&mut one);
        let last = (0..200).map(|_| step(&mut one)).last().unwrap();
        assert!(first.iter().zip(last).all(|(first, last)| last < 0.7 * first), "{algorithm}: {first:?} at first, {last:?} at last");
        let state = one.state();
        let mut other = case(algorithm);
        other.learning.prepare(&mut batch.clone());
        other.learning.restore(&state);
        assert!(other.state() == state, "{algorithm}: what was written is not what was read");
        // PPO has another order of steps, and sums differ in their last digits.
        let further = step(&mut one).into_iter().zip(step(&mut other));
        assert!(further.clone().all(|(one, other)| (one - other).abs() < 1e-6 * one), "{algorithm}: {further:?}");
    }
}

#[test]
fn a_step_follows_the_mean_gradient_with_policy_and_value_clipped_together_and_the_decoder_by_itself() {
    for (algorithm, limit) in ALGORITHMS.into_iter().flat_map(|algorithm| [(algorithm, None), (algorithm, Some(0.05))]) {
        let mut case = Case::seeing(ObservationSpace::bytes(&[1, 4, 4]), algorithm, ActionSpace::Discrete { n: 3 }, |config| {
            config.network.separate_value = Some(true);
            (config.auto_encoder.coefficient, config.auto_encoder.latent) = (1.0, 5);
            config.algorithm.minibatches = 1;
            config.learner.max_gradient_norm = limit;
            // The first moment is then the gradient of the last step.
            config.learner.adam_beta1 = 0.0;
        });
        let sizes = case.algorithm.sizes();
        let with_value = sizes.learned - OF_DECODER;
        let batch = batch(&mut case);
        let (_, mut share) = case.gradient(&batch);
        // Any gradient will do, and of this one the norm of every part is known to be far beyond the limit.
        let mean: Vec<f64> = (0..sizes.learned).map(|index| (index as f64).cos()).collect();
        let mut sum: Vec<f32> = mean.iter().map(|mean| (mean * share.samples) as f32).collect();
        let found_norm = f64::from(case.learning.apply(&mut sum, &mut share, 1e-2));
        let norm = |part: &[f64]| part.iter().map(|value| value * value).sum::<f64>().sqrt();
        let (together, of_decoder) = mean.split_at(with_value);
        assert!((found_norm - norm(together)).abs() < 1e-4 * found_norm, "{algorithm}: {found_norm}");
        assert_eq!(metric(&share, "gradient_norm"), found_norm);
        let expected = [together, of_decoder].map(|part| {
            let scale = limit.map_or(1.0, |limit| limit / norm(part));
            part.iter().map(move |value| value * scale)
        });

        let mut state = case.state();
        let mut moments = Vec::new();
        for (network, length) in [sizes.published, with_value - sizes.published, OF_DECODER].into_iter().enumerate() {
            // Parameters, perhaps those of the target network, two moments, and the count of steps.
            let parameters = if network == 0 && algorithm == "appo" { 2 * length } else { length };
            moments.extend(state.drain(..parameters + 2 * length + 2).skip(parameters).take(length));
        }
        for (index, (found, expected)) in moments.iter().zip(expected.into_iter().flatten()).enumerate() {
            let largest = limit.unwrap_or(1.0);
            assert!((f64::from(*found) - expected).abs() < 1e-4 * largest, "{algorithm}, {limit:?}, {index}: {found}, not {expected}");
        }
    }
}

#[test]
fn deviations_of_their_own_are_learned_and_stay_the_same_in_every_state() {
    for algorithm in ALGORITHMS {
        let [_, actions] = kinds();
        let first = Case::new(algorithm, actions, |config| {
            config.algorithm.free_action_std = true;
            config.algorithm.minibatches = 1;
        });
        let mut learning = first.algorithm.learning(1).unwrap();
        let tensors = first.algorithm.network().tensors();
        let range = |name: &str| tensors.iter().find(|tensor| tensor.name == name).unwrap().range();
        let (weights, biases) = (range("log_deviation.weight"), range("log_deviation.bias"));
        let before = learning.published().to_vec();
        assert!(before[weights.clone()].iter().all(|&weight| weight == 0.0));
        let mut case = Case { learning, ..first };
        let batch = batch(&mut case);
        for _ in 0..20 {
            let (mut gradient, mut share) = case.gradient(&batch);
            case.learning.apply(&mut gradient, &mut share, 1e-2);
        }
        let after = case.learning.published();
        assert!(after[weights].iter().all(|&weight| weight == 0.0), "{algorithm}: they depend on the state now");
        assert!(
            after[biases.clone()].iter().zip(&before[biases]).all(|(after, before)| after != before),
            "{algorithm}: nothing was learned"
        );
    }
}
