//! Once warm, the loops of actors and learners allocate nothing.

use rand::SeedableRng;
use shoal::algorithms::transition::{ACTION, DISCOUNT, NEXT_OBSERVATION, OBSERVATION, REWARD};
use shoal::algorithms::{ActionBatch, Algorithm, Random, registry};
use shoal::config::Config;
use shoal::environments::{VectorEnvironment, make};
use shoal::replay::n_step::Taken;
use shoal::replay::{Batch, NStep};

const ENVIRONMENTS: usize = 4;
const ROWS: usize = 300;

fn config(algorithm: &str, environment: &str, normalise: bool) -> Config {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.algorithm.normalise_observations = normalise;
    config.algorithm.normalise_rewards = normalise;
    config.network.hidden = vec![32, 32];
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

#[test]
fn acting_and_forming_transitions_allocates_nothing() {
    for (config, algorithm) in cases() {
        let id = &config.environment.id;
        let mut environments = VectorEnvironment::new((0..ENVIRONMENTS).map(|_| make(id).unwrap()).collect()).unwrap();
        environments.reset(1).unwrap();
        let length = environments.spec().observation.len();
        let mut actions = ActionBatch::new(&environments.spec().action, ENVIRONMENTS);
        let (mut policy, mut random) = (algorithm.policy().unwrap(), Random::seed_from_u64(1));
        policy.set_parameters(algorithm.learning(1).unwrap().published());
        let (width, mut outputs) = (policy.outputs(), vec![0.0; ENVIRONMENTS * policy.outputs()]);
        let mut memories = vec![NStep::new(3, 0.99); ENVIRONMENTS];
        let mut before = environments.observations().to_vec();
        let mut step = || {
            before.copy_from_slice(environments.observations());
            policy.infer(&before, ENVIRONMENTS, &mut outputs);
            for (index, outputs) in outputs.chunks_exact(width).enumerate() {
                policy.choose(outputs, 0.5, &mut random, actions.row_mut(index));
            }
            environments.step(actions.for_environments()).unwrap();
            for (index, memory) in memories.iter_mut().enumerate() {
                let taken = Taken {
                    observation: &before[index * length..][..length],
                    action: actions.lanes(index),
                    value: 0.0,
                    reward: environments.rewards()[index],
                    next_observation: &environments.next_observations()[index * length..][..length],
                    terminated: environments.terminated()[index],
                    truncated: environments.truncated()[index],
                };
                memory.push(taken, |_| ());
            }
        };
        // Long enough for the first ends of episodes.
        (0..1_000).for_each(|_| step());
        let counted = allocation_counter::measure(|| (0..1_000).for_each(|_| step()));
        assert_eq!(counted.count_total, 0, "{} on {id}, normalised: {}", algorithm.name(), config.algorithm.normalise_observations);
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
            let total = learning.gradient(&mut batch, &mut random, &mut gradient);
            learning.apply(&mut gradient, total, 1e-3);
            learning.published().len()
        };
        (0..4).for_each(|_| assert!(update() > 0));
        let counted = allocation_counter::measure(|| (0..8).for_each(|_| assert!(update() > 0)));
        assert_eq!(counted.count_total, 0, "{}, normalised: {}", algorithm.name(), config.algorithm.normalise_observations);
    }
}
