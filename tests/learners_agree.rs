//! Several learners, each with its share of a batch, make the update that one learner makes with the whole batch.

use shoal::algorithms::dqn::Dqn;
use shoal::algorithms::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::algorithms::{Algorithm, PartialUpdate};
use shoal::config::Config;
use shoal::environments::registry;
use shoal::replay::{Batch, Priority, Replay, StagingArea};
use shoal::segment::gradients::{GradientExchange, Share, View};
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, LayoutParameters, Region, Segment};
use shoal::sync::AtomicU64;

const ROWS: usize = 64;
const UPDATES: u64 = 20;
/// Sums in another order differ in the last bits; Adam divides by the root of squares of small gradients.
const TOLERANCE: f32 = 2e-5;

fn config() -> Config {
    let mut config = Config::for_environment("CartPole-v1");
    config.network.hidden = vec![32, 32];
    config.algorithm.target_interval_updates = 4;
    config
}

fn algorithm(config: &Config) -> Dqn {
    Dqn::new(config, &registry::spec("CartPole-v1").unwrap()).unwrap()
}

/// A replay that holds `ROWS` transitions in its first slots, all different.
fn segment(algorithm: &Dqn) -> Segment {
    let layout = Layout::new(LayoutParameters {
        processes: 1,
        stagers: 1,
        staged_transitions: ROWS,
        capacity: 4 * ROWS,
        fanout: 8,
        transition_words: algorithm.schema().words(),
        network_parameters: algorithm.network().parameter_count(),
        learners: 1,
        description_bytes: 4096,
    })
    .unwrap();
    let description = Description {
        program_version: String::new(),
        config_toml: String::new(),
        run_folder: String::new(),
        environment: String::new(),
        algorithm: String::new(),
        fields: algorithm.schema().describe(),
    };
    let segment = Segment::create(layout, &description, false).unwrap();
    let process = segment.processes().slot(0);
    assert!(process.reserve(Role::Actor, 0) && process.occupy(std::process::id()));
    let schema = algorithm.schema();
    let area = StagingArea::new(segment.words(Region::Staging), segment.layout().parameters(), 0);
    for row in 0..ROWS {
        let value = |offset: usize| ((row * 7 + offset * 3) % 23) as f32 / 11.0 - 1.0;
        let mut writer = area.write(&schema);
        writer
            .f32(OBSERVATION, &[value(0), value(1), value(2), value(3)])
            .i32(ACTION, &[(row % 2) as i32])
            .f32(REWARD, &[value(4)])
            .f32(DISCOUNT, &[0.97])
            .i32(FLAGS, &[flags(row % 5 == 0, row % 7 == 0)])
            .f32(NEXT_OBSERVATION, &[value(5), value(6), value(7), value(8)]);
        writer.commit(Some(Priority::ONE));
    }
    assert_eq!(Replay::new(&segment, schema, Some(process)).flush(area), ROWS);
    segment
}

/// The transitions in `slots` as a batch, each with a weight of its own.
fn batch(segment: &Segment, algorithm: &Dqn, slots: std::ops::Range<usize>) -> Batch {
    let replay = Replay::new(segment, algorithm.schema(), None);
    let mut batch = Batch::new(&algorithm.schema(), slots.len());
    for (row, slot) in slots.enumerate() {
        batch.generations[row] = replay.store().read(slot, &mut batch, row).unwrap();
        batch.weights[row] = 0.1 + (slot % 9) as f32;
    }
    batch.largest_weight = batch.weights.iter().copied().fold(0.0, f32::max);
    batch
}

fn share(part: PartialUpdate) -> Share {
    Share { transitions: part.transitions, loss_sum: part.loss_sum, q_sum: part.q_sum, largest_weight: part.largest_weight }
}

fn whole(share: Share) -> PartialUpdate {
    PartialUpdate { transitions: share.transitions, loss_sum: share.loss_sum, q_sum: share.q_sum, largest_weight: share.largest_weight }
}

fn alone(config: &Config, segment: &Segment) -> Vec<f32> {
    let algorithm = algorithm(config);
    let mut learning = algorithm.learning(3).unwrap();
    let mut gradient = vec![0.0; learning.parameters().len()];
    let batch = batch(segment, &algorithm, 0..ROWS);
    for _ in 0..UPDATES {
        let part = learning.gradient(&batch, &mut gradient);
        learning.apply(&mut gradient, part, 1e-3);
    }
    learning.parameters().to_vec()
}

fn together(config: &Config, segment: &Segment, learners: usize) -> Vec<Vec<f32>> {
    let parameters = algorithm(config).network().parameter_count();
    let words: Vec<AtomicU64> = (0..GradientExchange::words_needed(learners, parameters)).map(|_| AtomicU64::new(0)).collect();
    let exchange = GradientExchange::new(&words, learners, parameters);
    let view = View { epoch: 1, members: (1 << learners) - 1 };
    let name = segment.name();
    let names: Vec<usize> = (0..learners).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|&number| {
                scope.spawn(move || {
                    let algorithm = algorithm(config);
                    let mut learning = algorithm.learning(3).unwrap();
                    let (mut gradient, mut scratch) = (vec![0.0; parameters], vec![0.0; parameters]);
                    let rows = ROWS / learners;
                    // A segment is not shared between threads: each has its own view of it.
                    let segment = Segment::attach_read_only(name).unwrap();
                    let batch = batch(&segment, &algorithm, number * rows..(number + 1) * rows);
                    for round in 1..=UPDATES {
                        let part = learning.gradient(&batch, &mut gradient);
                        exchange.arrive(number, view, round, share(part), &gradient);
                        while !exchange.all_arrived(view, round) {
                            std::thread::yield_now();
                        }
                        let total = exchange.add_up(view, round, &mut scratch, &mut gradient);
                        learning.apply(&mut gradient, whole(total), 1e-3);
                    }
                    learning.parameters().to_vec()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn two_and_four_learners_make_the_update_of_one() {
    let config = config();
    let segment = segment(&algorithm(&config));
    let expected = alone(&config, &segment);
    let start = algorithm(&config).network().initialise(3);
    let moved = start.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(moved > 100.0 * TOLERANCE, "the parameters moved by {moved} at most, which is too little to compare");
    for learners in [2, 4] {
        let found = together(&config, &segment, learners);
        for parameters in &found {
            assert_eq!(parameters, &found[0], "learners of one view differ");
        }
        let difference = found[0].iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= TOLERANCE, "{learners} learners: parameters differ by {difference}");
    }
}
