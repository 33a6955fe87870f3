//! Once warm, neither the loop of an actor nor learning from a batch allocates, whatever the algorithm.
//!
//! What else a learner does is not looked at here: settling on statistics, for example, allocates now and then.

use rand::SeedableRng;
use shoal::algorithms::{Algorithm, Random, registry};
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::environments::spec;
use shoal::experience::fragment::LENGTH;
use shoal::replay::Batch;
use shoal::roles::actor::Actor;
use shoal::roles::run::Run;
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, Segment, SegmentSizes};
use shoal::sync::Ordering;

const ROWS: usize = 300;
/// Steps of a fragment.
const STEPS: u8 = 4;

fn config(algorithm: &str, environment: &str, normalise: bool) -> Config {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.algorithm.normalise_observations = normalise;
    config.algorithm.normalise_rewards = normalise;
    config.algorithm.n_step = 3;
    config.network.hidden = vec![32, 32];
    config.network.separate_value = Some(algorithm == "ppo");
    config.fragments.length_steps = STEPS.into();
    // In one process an actor does not wait at the limiter for a learner, of which there is none here.
    config.actor.count = 0;
    config.actor.environments = 4;
    config.actor.random_steps = 0;
    config
}

fn cases() -> impl Iterator<Item = (Config, Box<dyn Algorithm>)> {
    let names = [
        ("dqn", "CartPole-v1"),
        ("ddpg", "Pendulum-v1"),
        ("td3", "Pendulum-v1"),
        ("sac", "Pendulum-v1"),
        ("ppo", "CartPole-v1"),
        ("appo", "Pendulum-v1"),
    ];
    names.into_iter().flat_map(|(name, environment)| {
        [false, true].map(|normalise| {
            let config = config(name, environment, normalise);
            let algorithm = registry::build(&config, &spec(environment).unwrap()).unwrap();
            (config, algorithm)
        })
    })
}

/// The memory of an actor alone.
fn segment(algorithm: &dyn Algorithm) -> Segment {
    let layout = Layout::new(SegmentSizes {
        staged_rows: algorithm.experience().storage().largest_flush_rows + 1,
        published_values: algorithm.sizes().published,
        statistics_values: algorithm.normalisation().statistics_values(),
        ..SegmentSizes::of_rows(algorithm.schema().words(), 1_024)
    });
    Segment::create_private(layout.unwrap(), &Description::default()).unwrap()
}

#[test]
fn an_actor_allocates_nothing() {
    for (config, algorithm) in cases() {
        let environment = spec(&config.environment.id).unwrap();
        let segment = segment(&*algorithm);
        let (process, board) = (segment.processes().slot(0), segment.parameter_board());
        assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let run = Run {
            segment: &segment,
            config: &config,
            algorithm: &*algorithm,
            environment: &environment,
            catalogue: &Catalogue::default(),
            process,
            role: Role::Actor,
            number: 0,
            incarnation: process.generation(),
            supervisor_alive: &|| true,
        };
        let mut actor = Actor::new(&run).unwrap();
        let parameters = algorithm.learning(1).unwrap().published().to_vec();
        let mut thousand_steps = || {
            for step in 0..1_000 {
                if step % 10 == 0 {
                    board.publish(&[&parameters], [0; 4]);
                }
                assert!(actor.step().unwrap());
            }
        };
        // Long enough for the first ends of episodes.
        thousand_steps();
        let counted = allocation_counter::measure(&mut thousand_steps);
        let normalised = config.algorithm.normalise_observations;
        assert_eq!(counted.count_total, 0, "{} on {}, normalised: {normalised}", algorithm.name(), environment.id);
        let inserted = segment.control().inserted().load(Ordering::Relaxed);
        assert!(inserted >= 1_000, "{inserted} rows were recorded");
    }
}

/// A batch of an algorithm, as it might be drawn.
fn batch(algorithm: &dyn Algorithm) -> Batch {
    let schema = algorithm.schema();
    let mut batch = Batch::new(&schema, ROWS);
    (0..schema.fields().len()).for_each(|field| batch.column_mut(field).as_f32_mut().fill(0.5));
    if algorithm.experience().is_on_policy() {
        batch.column_mut(LENGTH).as_i32_mut().fill(STEPS.into());
    }
    batch
}

#[test]
fn learning_from_a_batch_allocates_nothing() {
    for (config, algorithm) in cases() {
        let mut learning = algorithm.learning(1).unwrap();
        let mut random = Random::seed_from_u64(1);
        let mut batch = batch(&*algorithm);
        let mut gradient = vec![0.0; algorithm.sizes().learned];
        let mut update = || {
            learning.prepare(&mut batch);
            // Fragments are learned from more than once.
            for _ in 0..2 {
                let mut share = learning.gradient(&batch, &mut random, &mut gradient);
                learning.apply(&mut gradient, &mut share, 1e-3);
            }
            learning.published().len()
        };
        (0..4).for_each(|_| assert!(update() > 0));
        let counted = allocation_counter::measure(|| (0..8).for_each(|_| assert!(update() > 0)));
        assert_eq!(counted.count_total, 0, "{}, normalised: {}", algorithm.name(), config.algorithm.normalise_observations);
    }
}
