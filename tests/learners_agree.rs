//! Several learners, each with its share of a batch, make the update that one learner makes with the whole batch.

#[path = "support"]
mod support {
    pub(crate) mod few_transitions;
}

#[path = "learners_agree/actor_critic.rs"]
mod actor_critic;

use std::time::{Duration, Instant};

use rand::SeedableRng;
use shoal::algorithms::{Learning, Random};
use shoal::config::Config;
use shoal::segment::Segment;
use shoal::segment::gradients::GradientExchange;
use shoal::segment::membership::View;
use shoal::sync::AtomicU64;
use support::few_transitions::{ROWS, algorithm, batch, config, segment, state};

const UPDATES: u64 = 20;
/// Longest that learners wait for each other: a watchdog, not an expectation.
const WATCHDOG: Duration = Duration::from_secs(120);
/// Sums in another order differ in the last bits; Adam divides by the root of squares of small gradients.
const TOLERANCE: f32 = 2e-5;

fn alone(config: &Config, segment: &Segment) -> Vec<f32> {
    let algorithm = algorithm(config);
    let (mut learning, mut random) = (algorithm.learning(3).unwrap(), Random::seed_from_u64(1));
    let mut gradient = vec![0.0; algorithm.sizes().learned];
    let batch = batch(segment, &*algorithm, 0..ROWS);
    for _ in 0..UPDATES {
        let mut share = learning.gradient(&batch, &mut random, &mut gradient);
        learning.apply(&mut gradient, &mut share, 1e-3);
    }
    state(&*algorithm, &*learning)
}

fn together(config: &Config, segment: &Segment, learners: usize) -> Vec<Vec<f32>> {
    let parameters = algorithm(config).sizes().learned;
    let words: Vec<AtomicU64> = (0..GradientExchange::words_needed(learners, parameters)).map(|_| AtomicU64::new(0)).collect();
    let exchange = GradientExchange::new(&words, learners, parameters);
    let view = View { epoch: 1, members: (1 << learners) - 1, leader: Some(0), doublings: 0 };
    let names: Vec<usize> = (0..learners).collect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|&number| {
                scope.spawn(move || {
                    let algorithm = algorithm(config);
                    let mut learning = algorithm.learning(3).unwrap();
                    let mut random = Random::seed_from_u64(number as u64);
                    let mut gradient = vec![0.0; parameters];
                    let rows = ROWS / learners;
                    let batch = batch(segment, &*algorithm, number * rows..(number + 1) * rows);
                    for round in 1..=UPDATES {
                        let mut share = learning.gradient(&batch, &mut random, &mut gradient);
                        exchange.arrive(number, view, round, &share, &gradient);
                        while !exchange.all_arrived(view, round) {
                            assert!(began.elapsed() < WATCHDOG, "learner {number} waits in round {round} for one that may have panicked");
                            std::thread::yield_now();
                        }
                        exchange.add_up(view, round, &mut share, &mut gradient);
                        learning.apply(&mut gradient, &mut share, 1e-3);
                    }
                    state(&*algorithm, &*learning)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn check(name: &str, environment: &str) {
    let config = config(name, environment);
    let segment = segment(&*algorithm(&config));
    let expected = alone(&config, &segment);
    let start = state(&*algorithm(&config), &*algorithm(&config).learning(3).unwrap());
    let moved = start.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(moved > 100.0 * TOLERANCE, "the parameters moved by {moved} at most, which is too little to compare");
    for learners in [2, 4] {
        let found = together(&config, &segment, learners);
        for state in &found {
            assert_eq!(state, &found[0], "learners of one view differ");
        }
        let difference = found[0].iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= TOLERANCE, "{learners} learners of {name}: states differ by {difference}");
    }
}

#[test]
fn two_and_four_learners_of_dqn_make_the_update_of_one() {
    check("dqn", "CartPole-v1");
}

/// The other actor-critic algorithms draw noise, which learners of one view draw apart.
#[test]
fn two_and_four_learners_of_ddpg_make_the_update_of_one() {
    check("ddpg", "Pendulum-v1");
}

#[test]
fn a_state_goes_on_bit_for_bit() {
    for (name, environment) in [("dqn", "CartPole-v1"), ("ddpg", "Pendulum-v1"), ("td3", "Pendulum-v1"), ("sac", "Pendulum-v1")] {
        let config = config(name, environment);
        let algorithm = algorithm(&config);
        let segment = segment(&*algorithm);
        let batch = batch(&segment, &*algorithm, 0..ROWS);
        let mut random = Random::seed_from_u64(1);
        let mut gradient = vec![0.0; algorithm.sizes().learned];
        let mut update = |learning: &mut dyn Learning, random: &mut Random| {
            let mut share = learning.gradient(&batch, random, &mut gradient);
            learning.apply(&mut gradient, &mut share, 1e-3);
        };
        let mut first = algorithm.learning(3).unwrap();
        (0..7).for_each(|_| update(&mut *first, &mut random));
        let mut second = algorithm.learning(4).unwrap();
        second.restore(&state(&*algorithm, &*first));
        let mut same_random = random.clone();
        for _ in 0..5 {
            update(&mut *first, &mut random);
            update(&mut *second, &mut same_random);
        }
        let [first, second] = [first, second].map(|learning| state(&*algorithm, &*learning));
        assert!(first.iter().zip(&second).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
    }
}
