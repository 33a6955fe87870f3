//! A replay of a few made-up transitions, and learning from them, for tests that compare learners.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use shoal::algorithms::{Algorithm, Learning, registry as algorithms};
use shoal::config::Config;
use shoal::environments::registry;
use shoal::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::replay::{Batch, Priority, Replay, ReplayView, StagingArea};
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, Segment, SegmentSizes};

/// Transitions in the replay.
pub const ROWS: usize = 64;

/// A small network.
pub fn config(algorithm: &str, environment: &str) -> Config {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.network.hidden = vec![32, 32];
    config.algorithm.target_interval_updates = Some(4);
    config
}

/// What it describes.
pub fn algorithm(config: &Config) -> Box<dyn Algorithm> {
    algorithms::build(config, &registry::spec(&config.environment.id).unwrap()).unwrap()
}

/// A replay that holds `ROWS` transitions in its first slots, all different.
pub fn segment(algorithm: &dyn Algorithm) -> Segment {
    let sizes = algorithm.sizes();
    let layout = Layout::new(SegmentSizes {
        staged_rows: ROWS,
        fanout: 8,
        published_values: sizes.published,
        learned_parameters: sizes.learned,
        learner_state_values: sizes.state,
        statistics_values: algorithm.normalisation().statistics_values(),
        ..SegmentSizes::of_rows(algorithm.schema().words(), 4 * ROWS)
    })
    .unwrap();
    let description = Description { fields: algorithm.schema().describe(), ..Description::default() };
    let segment = Segment::create(layout, &description, false).unwrap();
    let process = segment.processes().slot(0);
    assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
    let schema = algorithm.schema();
    let area = StagingArea::of(&segment, 0);
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
pub fn batch(segment: &Segment, algorithm: &dyn Algorithm, slots: std::ops::Range<usize>) -> Batch {
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
pub fn state(algorithm: &dyn Algorithm, learning: &dyn Learning) -> Vec<f32> {
    let mut state = vec![0.0; algorithm.sizes().state];
    learning.save(&mut state);
    state
}
