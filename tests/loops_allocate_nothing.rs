//! Once warm, the loops of actors and learners allocate nothing.

use rand::SeedableRng;
use shoal::algorithms::{ActionBatch, Algorithm, Random, registry};
use shoal::config::Config;
use shoal::environments::{VectorEnvironment, make};
use shoal::experience::transition::{ACTION, DISCOUNT, NEXT_OBSERVATION, OBSERVATION, REWARD};
use shoal::experience::{Choice, Steps};
use shoal::replay::{Batch, Replay, StagingArea};
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, Region, Segment, SegmentSizes};
use shoal::values::ValueBuffer;

const ENVIRONMENTS: usize = 4;
const ROWS: usize = 300;

fn config(algorithm: &str, environment: &str, normalise: bool) -> Config {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.algorithm.normalise_observations = normalise;
    config.algorithm.normalise_rewards = normalise;
    config.network.hidden = vec![32, 32];
    config.algorithm.n_step = 3;
    config
}

fn cases() -> impl Iterator<Item = (Config, Box<dyn Algorithm>)> {
    let names = [("dqn", "CartPole-v1"), ("ddpg", "Pendulum-v1"), ("td3", "Pendulum-v1"), ("sac", "Pendulum-v1")];
    names.into_iter().flat_map(|(name, environment)| {
        [false, true].map(|normalise| {
            let config = config(name, environment, normalise);
            let algorithm = registry::build(&config, make(environment).unwrap().spec()).unwrap();
            (config, algorithm)
        })
    })
}

/// A replay of this process alone, with one staging area.
fn segment(algorithm: &dyn Algorithm) -> Segment {
    let layout = Layout::new(SegmentSizes { staged_transitions: 64, ..SegmentSizes::of_rows(algorithm.schema().words(), 1_024) });
    Segment::create_private(layout.unwrap(), &Description::default()).unwrap()
}

#[test]
fn acting_recording_and_flushing_allocates_nothing() {
    for (config, algorithm) in cases() {
        let id = &config.environment.id;
        let mut environments = VectorEnvironment::new((0..ENVIRONMENTS).map(|_| make(id).unwrap()).collect()).unwrap();
        environments.reset(1).unwrap();
        let segment = segment(&*algorithm);
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let mut replay = Replay::new(&segment, algorithm.schema(), process);
        let area = StagingArea::new(segment.words(Region::Staging), segment.layout().sizes(), 0);
        let mut actions = ActionBatch::new(&environments.spec().action, ENVIRONMENTS);
        let (mut policy, mut random) = (algorithm.policy().unwrap(), Random::seed_from_u64(1));
        policy.set_parameters(algorithm.learning(1).unwrap().published());
        let (width, mut outputs) = (policy.outputs(), vec![0.0; ENVIRONMENTS * policy.outputs()]);
        let mut recorder = algorithm.experience().recorder(ENVIRONMENTS);
        let (mut choices, next_values) = ([Choice::default(); ENVIRONMENTS], [0.5; ENVIRONMENTS]);
        let mut before = ValueBuffer::zeros(environments.spec().observation.element, environments.observations().len());
        let mut chosen_by = Vec::new();
        let mut step = || {
            before.values_mut().copy_from(environments.observations());
            policy.infer(before.values(), ENVIRONMENTS, &mut outputs);
            for (index, outputs) in outputs.chunks_exact(width).enumerate() {
                choices[index] = policy.choose(outputs, 0.5, &mut random, actions.row_mut(index));
            }
            environments.step(actions.for_environments()).unwrap();
            let steps = Steps {
                observations: before.values(),
                actions: actions.all_lanes(),
                choices: &choices,
                rewards: environments.rewards(),
                next_observations: environments.next_observations(),
                next_values: &next_values,
                terminated: environments.terminated(),
                truncated: environments.truncated(),
                parameter_updates: 1,
            };
            recorder.record(&steps, area, &replay, &mut chosen_by);
            if area.pending() >= 32 {
                replay.flush(area);
                chosen_by.clear();
            }
        };
        // Long enough for the first ends of episodes.
        (0..1_000).for_each(|_| step());
        let counted = allocation_counter::measure(|| (0..1_000).for_each(|_| step()));
        assert_eq!(counted.count_total, 0, "{} on {id}, normalised: {}", algorithm.name(), config.algorithm.normalise_observations);
        assert!(replay.len() >= 1_000, "{} transitions were recorded", replay.len());
    }
}

#[test]
fn updating_allocates_nothing() {
    for (config, algorithm) in cases() {
        let (mut learning, mut random) = (algorithm.learning(1).unwrap(), Random::seed_from_u64(1));
        let mut batch = Batch::new(&algorithm.schema(), ROWS);
        for field in [OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION] {
            batch.column_mut(field).as_f32_mut().fill(0.5);
        }
        let mut gradient = vec![0.0; algorithm.sizes().learned];
        let mut update = || {
            learning.prepare(&mut batch);
            let mut share = learning.gradient(&batch, &mut random, &mut gradient);
            learning.apply(&mut gradient, &mut share, 1e-3);
            learning.published().len()
        };
        (0..4).for_each(|_| assert!(update() > 0));
        let counted = allocation_counter::measure(|| (0..8).for_each(|_| assert!(update() > 0)));
        assert_eq!(counted.count_total, 0, "{}, normalised: {}", algorithm.name(), config.algorithm.normalise_observations);
    }
}
