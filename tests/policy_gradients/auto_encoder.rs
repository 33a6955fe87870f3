//! The auto-encoder of APPO and PPO.

use shoal::algorithms::registry;
use shoal::config::Config;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry as environments};
use shoal::metrics::Share;
use shoal::replay::Batch;

use crate::case::{ALGORITHMS, Case, metric};

/// Parameters of what draws images of 1 x 4 x 4 from five values: two channels of a kernel of 2, then one of a kernel of 3.
pub(crate) const OF_DECODER: usize = 5 * 2 * 2 * 2 + 2 + 2 * 3 * 3 + 1;

fn with_coefficient(algorithm: &str, coefficient: f64) -> Case {
    Case::seeing(ObservationSpace::bytes(&[1, 4, 4]), algorithm, ActionSpace::Discrete { n: 3 }, |config| {
        config.auto_encoder.coefficient = coefficient;
        config.auto_encoder.latent = 5;
        config.algorithm.minibatches = 1;
    })
}

/// The gradient, and where a learned value lies in the state of a learner.
fn gradient(case: &mut Case) -> (Vec<f32>, Batch, impl Fn(usize) -> usize + use<>) {
    let mut batch = case.batch(6, |_| (false, false));
    case.learning.prepare(&mut batch);
    let published = case.algorithm.sizes().published;
    // Before the decoder's come parameters and moments of the network, and the count of its steps.
    let networks = if case.settings.name == "appo" { 4 } else { 3 };
    (case.gradient(&batch).0, batch, move |index| if index < published { index } else { (networks - 1) * published + 2 + index })
}

fn assert_near(analytic: f64, numeric: f64, what: &str) {
    assert!((analytic - numeric).abs() < 0.02 * (1.0 + numeric.abs()), "{what}: {analytic} and {numeric}");
}

#[test]
fn decoder_and_latent_vector_follow_the_slope_of_the_reconstructions() {
    for algorithm in ALGORITHMS {
        let mut case = with_coefficient(algorithm, 0.6);
        let sizes = case.algorithm.sizes();
        assert_eq!(sizes.learned - sizes.published, OF_DECODER);
        let (gradient, batch, place) = gradient(&mut case);
        let of_latent = case.algorithm.network().tensors().into_iter().filter(|tensor| tensor.name.starts_with("latent"));
        let indices: Vec<usize> = of_latent.flat_map(|tensor| tensor.range()).chain(sizes.published..sizes.learned).collect();
        for index in indices {
            let loss = |share: &Share| 0.6 * metric(share, "reconstruction_loss");
            let numeric = case.slope(&batch, place(index), 1e-2, &loss);
            assert_near(f64::from(gradient[index]), numeric, &format!("{algorithm}, {index} of {sizes:?}"));
        }
    }
}

#[test]
fn the_layers_before_the_latent_vector_learn_from_the_reconstructions_too() {
    for algorithm in ALGORITHMS {
        let [(with, ..), (with_more, ..)] = [0.5, 1.0].map(|coefficient| gradient(&mut with_coefficient(algorithm, coefficient)));
        let mut case = with_coefficient(algorithm, 0.5);
        let (_, batch, place) = gradient(&mut case);
        let shared = case.algorithm.network().tensors().into_iter().filter(|tensor| tensor.name.starts_with("layers"));
        let mut largest = 0.0f64;
        for index in shared.flat_map(|tensor| tensor.range()) {
            // What a weight of one half more adds.
            let added = f64::from(with_more[index] - with[index]);
            // A small step: beyond the edge of a ReLU there is another slope.
            let numeric = case.slope(&batch, place(index), 2e-3, &|share| 0.5 * metric(share, "reconstruction_loss"));
            assert_near(added, numeric, &format!("{algorithm}, {index}"));
            largest = largest.max(added.abs());
        }
        assert!(largest > 0.05, "{algorithm}: nothing reached the layers");
    }
}

#[test]
fn more_steps_than_go_through_the_networks_at_once_have_the_gradient_of_both_halves_together() {
    for algorithm in ALGORITHMS {
        let mut case = Case::seeing(ObservationSpace::bytes(&[1, 4, 4]), algorithm, ActionSpace::Discrete { n: 3 }, |config| {
            config.network.separate_value = Some(true);
            (config.auto_encoder.coefficient, config.auto_encoder.latent) = (0.6, 5);
            (config.algorithm.minibatches, config.algorithm.normalise_advantages) = (1, Some(false));
        });
        // Some 360 steps. A core takes 256 rows at once, of APPO those of 42 fragments.
        let batch = case.batch(120, |_| (false, false));
        let [whole, first, second] = [0..batch.rows(), 0..60, 60..batch.rows()].map(|part| {
            let mut rows = Batch::new(&case.algorithm.schema(), part.len());
            rows.copy_rows(&batch, part);
            case.learning.prepare(&mut rows);
            case.gradient(&rows).0
        });
        for (index, (whole, (first, second))) in whole.iter().zip(first.iter().zip(&second)).enumerate() {
            let sum = first + second;
            assert!((whole - sum).abs() < 1e-4 * (1.0 + whole.abs()), "{algorithm}, {index}: {whole} and {sum}");
        }
    }
}

#[test]
fn reconstructions_become_better_and_a_state_goes_on_where_it_was() {
    for algorithm in ALGORITHMS {
        let mut case = with_coefficient(algorithm, 1.0);
        let mut batch = case.batch(6, |_| (false, false));
        case.learning.prepare(&mut batch);
        let step = |case: &mut Case| {
            let (mut gradient, mut share) = case.gradient(&batch);
            let loss = metric(&share, "reconstruction_loss");
            assert!(case.learning.apply(&mut gradient, &mut share, 1e-2).is_finite());
            loss
        };
        let first = step(&mut case);
        let last = (0..200).map(|_| step(&mut case)).last().unwrap();
        assert!(last < 0.7 * first, "{algorithm}: {first} at first, {last} at last");
        let state = case.state();
        let mut other = with_coefficient(algorithm, 1.0);
        other.learning.prepare(&mut batch.clone());
        other.learning.restore(&state);
        assert_eq!(other.state(), state);
        assert_eq!(metric(&case.gradient(&batch).1, "reconstruction_loss"), metric(&other.gradient(&batch).1, "reconstruction_loss"));
    }
}

#[test]
fn what_is_no_square_image_of_bytes_is_refused_with_the_key() {
    let build = |observation: &ObservationSpace, coefficient: f64| {
        let mut config = Config::for_environment("made-up");
        config.algorithm.name = "appo".into();
        config.auto_encoder.coefficient = coefficient;
        let environment = EnvironmentSpec { observation: observation.clone(), ..environments::spec("CartPole-v1").unwrap() };
        registry::build(&config, &environment).map(drop)
    };
    let floats = ObservationSpace { shape: vec![1, 2, 2], ..ObservationSpace::unbounded(4) };
    let others = [
        (floats, "[1, 2, 2] f32"),
        (ObservationSpace::bytes(&[10, 5]), "[10, 5] u8"),
        (ObservationSpace::bytes(&[4, 10, 5]), "shows 10 x 5"),
        (ObservationSpace::bytes(&[4, 1, 1]), "at least 2 x 2 pixels"),
    ];
    for (observation, found) in others {
        build(&observation, 0.0).unwrap();
        let refused = build(&observation, 0.5).unwrap_err();
        assert_eq!(refused.key(), "auto_encoder.coefficient");
        assert!(refused.to_string().contains(found) && refused.to_string().contains("0.5"), "{refused}");
    }
}

#[test]
fn a_decoder_that_cannot_be_and_frames_that_are_scaled_are_refused_with_their_own_keys() {
    let refusal = |change: fn(&mut Config)| {
        let mut config = Config::for_environment("made-up");
        config.algorithm.name = "ppo".into();
        config.auto_encoder.coefficient = 1.0;
        change(&mut config);
        let observation = ObservationSpace::bytes(&[3, 210, 210]);
        let environment = EnvironmentSpec { observation, ..environments::spec("CartPole-v1").unwrap() };
        registry::build(&config, &environment).map(drop).unwrap_err()
    };
    let scaled = refusal(|config| config.algorithm.normalise_observations = true);
    assert_eq!(scaled.key(), "algorithm.normalise_observations");
    let large = refusal(|config| config.auto_encoder.latent = 20_000);
    assert_eq!(large.key(), "auto_encoder.latent", "{large}");
    assert!(large.to_string().contains("20000"), "{large}");
}
