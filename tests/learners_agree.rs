//! Several learners, each with its share of a batch, make the update that one learner makes with the whole batch.

use rand::SeedableRng;
use shoal::algorithms::{Algorithm, Learning, Random, registry as algorithms};
use shoal::config::Config;
use shoal::environments::registry;
use shoal::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::replay::{Batch, Priority, Replay, ReplayView, StagingArea};
use shoal::segment::gradients::GradientExchange;
use shoal::segment::membership::View;
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, LayoutParameters, Region, Segment};
use shoal::sync::AtomicU64;

const ROWS: usize = 64;
const UPDATES: u64 = 20;
/// Sums in another order differ in the last bits; Adam divides by the root of squares of small gradients.
const TOLERANCE: f32 = 2e-5;

fn config(algorithm: &str, environment: &str) -> Config {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.network.hidden = vec![32, 32];
    config.algorithm.target_interval_updates = Some(4);
    config
}

fn algorithm(config: &Config) -> Box<dyn Algorithm> {
    algorithms::build(config, &registry::spec(&config.environment.id).unwrap()).unwrap()
}

/// A replay that holds `ROWS` transitions in its first slots, all different.
fn segment(algorithm: &dyn Algorithm) -> Segment {
    let sizes = algorithm.sizes();
    let layout = Layout::new(LayoutParameters {
        processes: 1,
        stagers: 1,
        staged_transitions: ROWS,
        capacity: 4 * ROWS,
        fanout: 8,
        transition_words: algorithm.schema().words(),
        published_values: sizes.published,
        learned_parameters: sizes.learned,
        learner_state_values: sizes.state,
        statistics_values: sizes.statistics,
        learners: 1,
        frames: 0,
        frame_bytes: 0,
        picture_bytes: 0,
        description_bytes: 4096,
    })
    .unwrap();
    let description = Description { fields: algorithm.schema().describe(), ..Description::default() };
    let segment = Segment::create(layout, &description, false).unwrap();
    let process = segment.processes().slot(0);
    assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
    let schema = algorithm.schema();
    let area = StagingArea::new(segment.words(Region::Staging), segment.layout().parameters(), 0);
    let (length, discrete) = (algorithm.network().inputs(), algorithm.name() == "dqn");
    for row in 0..ROWS {
        let value = |offset: usize| ((row * 7 + offset * 3) % 23) as f32 / 11.0 - 1.0;
        let mut writer = area.write(&schema);
        writer
            .f32(OBSERVATION, &(0..length).map(value).collect::<Vec<_>>())
            .lanes(ACTION, &[if discrete { (row % 2) as u32 } else { value(9).to_bits() }])
            .f32(REWARD, &[value(4)])
            .f32(DISCOUNT, &[0.97])
            .i32(FLAGS, &[flags(row % 5 == 0, row % 7 == 0)])
            .f32(NEXT_OBSERVATION, &(5..5 + length).map(value).collect::<Vec<_>>());
        writer.commit(Some(Priority::ONE));
    }
    assert_eq!(Replay::new(&segment, schema, process).flush(area), ROWS);
    segment
}

/// The transitions in `slots` as a batch, each with a weight of its own.
fn batch(segment: &Segment, algorithm: &dyn Algorithm, slots: std::ops::Range<usize>) -> Batch {
    let replay = ReplayView::new(segment, algorithm.schema());
    let mut batch = Batch::new(&algorithm.schema(), slots.len());
    for (row, slot) in slots.enumerate() {
        let generation = replay.reader().read(slot, &mut batch.as_rows(), row, &mut Vec::new()).unwrap();
        batch.generations[row] = generation;
        batch.weights[row] = 0.1 + (slot % 9) as f32;
    }
    batch.largest_weight = batch.weights.iter().copied().fold(0.0, f32::max);
    batch
}

/// Every parameter, target parameter and moment.
fn state(algorithm: &dyn Algorithm, learning: &dyn Learning) -> Vec<f32> {
    let mut state = vec![0.0; algorithm.sizes().state];
    learning.save(&mut state);
    state
}

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
    std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|&number| {
                scope.spawn(move || {
                    let algorithm = algorithm(config);
                    let (mut learning, mut random) = (algorithm.learning(3).unwrap(), Random::seed_from_u64(number as u64));
                    let mut gradient = vec![0.0; parameters];
                    let rows = ROWS / learners;
                    let batch = batch(segment, &*algorithm, number * rows..(number + 1) * rows);
                    for round in 1..=UPDATES {
                        let mut share = learning.gradient(&batch, &mut random, &mut gradient);
                        exchange.arrive(number, view, round, &share, &gradient);
                        while !exchange.all_arrived(view, round) {
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
        let (mut random, mut gradient) = (Random::seed_from_u64(1), vec![0.0; algorithm.sizes().learned]);
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
