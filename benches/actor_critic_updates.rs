//! One whole update (gradient and optimizer) of DDPG, TD3 and SAC with the shapes of HalfCheetah, in CPU time of the thread.
//!
//! `cargo bench --bench actor_critic_updates` (add `--no-default-features` to leave libtorch out).

mod support;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use rand::{RngExt, SeedableRng};
use shoal::algorithms::{Random, registry};
use shoal::config::Config;
use shoal::config::schema::Engine;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace};
use shoal::experience::transition::{ACTION, DISCOUNT, NEXT_OBSERVATION, OBSERVATION, REWARD};
use shoal::replay::Batch;
use shoal::segment::system;
use support::ThreadTime;

const OBSERVATIONS: usize = 17;
const ACTIONS: usize = 6;

fn half_cheetah() -> EnvironmentSpec {
    let observation = ObservationSpace::symmetric([f32::INFINITY; OBSERVATIONS]);
    let action = ActionSpace::Box { low: vec![-1.0; ACTIONS], high: vec![1.0; ACTIONS] };
    EnvironmentSpec { time_limit_steps: Some(1_000), ..EnvironmentSpec::new("HalfCheetah-shaped", observation, action) }
}

fn updates(criterion: &mut Criterion<ThreadTime>) {
    // As every process of a run does at its start.
    system::keep_freed_memory();
    let mut group = criterion.benchmark_group("actor_critic_updates");
    group.throughput(Throughput::Elements(1));
    let engines = if cfg!(feature = "torch") { vec![Engine::Cpu, Engine::Torch] } else { vec![Engine::Cpu] };
    for name in ["ddpg", "td3", "sac"] {
        for &engine in &engines {
            for rows in [64, 256, 1_024, 4_096] {
                let mut config = Config::for_environment("HalfCheetah-shaped");
                config.algorithm.name = name.into();
                config.network.engine = engine;
                config.learner.max_gradient_norm = None;
                let algorithm = registry::build(&config, &half_cheetah()).expect("the shapes are valid");
                let mut learning = algorithm.learning(1).expect("the engine is there");
                let mut random = Random::seed_from_u64(1);
                let mut batch = Batch::new(&algorithm.schema(), rows);
                for field in [OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION] {
                    batch.column_mut(field).as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(-1.0..1.0));
                }
                let mut gradient = vec![0.0; algorithm.sizes().learned];
                group.bench_function(BenchmarkId::new(name, format!("{engine:?}/batch{rows}").to_lowercase()), |bencher| {
                    bencher.iter(|| {
                        let mut share = learning.gradient(&batch, &mut random, &mut gradient);
                        learning.apply(&mut gradient, &mut share, 3e-4)
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(ThreadTime(WallTime))
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(1_500));
    targets = updates
}
criterion_main!(benches);
