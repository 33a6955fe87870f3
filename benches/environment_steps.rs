//! Steps per second of the native environments, with resets, random actions and everything a caller of the trait pays.
//!
//!     cargo bench --no-default-features --bench environment_steps
//!
//! `single` steps one environment through the trait; `vector` steps 64 of them in one call and counts 64 steps.
//! Time is the processor time of this process, which is steady on a machine that others use; sleeps are not counted.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nix::time::{ClockId, clock_gettime};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shoal::environments::{Action, ActionSpace, Actions, VectorEnvironment, make, names};

const VECTOR_ENVIRONMENTS: usize = 64;
/// Batches of random actions that are drawn beforehand and then used in turn.
const ACTION_BATCHES: usize = 512;

/// Processor time of this process.
struct ProcessorTime;

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has a clock of processor time").into()
}

impl Measurement for ProcessorTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        processor_time()
    }

    fn end(&self, start: Duration) -> Duration {
        processor_time() - start
    }

    fn add(&self, left: &Duration, right: &Duration) -> Duration {
        *left + *right
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// `ACTION_BATCHES` batches of one action for each of the environments, of one kind.
enum Batches {
    Discrete(Vec<[i32; VECTOR_ENVIRONMENTS]>),
    /// Batches x environments x values of one action.
    Continuous {
        values: Vec<f32>,
        action_len: usize,
    },
}

impl Batches {
    fn random(space: &ActionSpace) -> Self {
        let mut random = Pcg64::seed_from_u64(0);
        match space {
            ActionSpace::Discrete { n } => {
                let batch = |_| std::array::from_fn(|_| random.random_range(0..*n as i32));
                Self::Discrete((0..ACTION_BATCHES).map(batch).collect())
            }
            ActionSpace::Box { low, high } => {
                let bounds = low.iter().zip(high).cycle().take(low.len() * VECTOR_ENVIRONMENTS * ACTION_BATCHES);
                let values = bounds.map(|(low, high)| random.random_range(*low..=*high)).collect();
                Self::Continuous { values, action_len: low.len() }
            }
        }
    }

    fn actions(&self, step: usize) -> Actions<'_> {
        match self {
            Self::Discrete(batches) => Actions::Discrete(&batches[step % ACTION_BATCHES]),
            Self::Continuous { values, action_len } => {
                let batch_len = action_len * VECTOR_ENVIRONMENTS;
                Actions::Continuous(&values[step % ACTION_BATCHES * batch_len..][..batch_len])
            }
        }
    }

    fn action(&self, step: usize) -> Action<'_> {
        match self.actions(step / VECTOR_ENVIRONMENTS) {
            Actions::Discrete(indices) => Action::Discrete(indices[step % VECTOR_ENVIRONMENTS] as usize),
            Actions::Continuous(values) => {
                let action_len = values.len() / VECTOR_ENVIRONMENTS;
                Action::Continuous(&values[step % VECTOR_ENVIRONMENTS * action_len..][..action_len])
            }
        }
    }
}

fn single(criterion: &mut Criterion<ProcessorTime>) {
    let mut group = criterion.benchmark_group("single");
    group.throughput(Throughput::Elements(1));
    for id in names() {
        let mut environment = make(id).expect("the name is in the registry");
        let batches = Batches::random(&environment.spec().action);
        let mut observation = environment.spec().observation.zeros();
        environment.reset(Some(0), observation.values_mut()).expect("a native environment can always be reset");
        let mut steps = 0;
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                let step = environment.step(batches.action(steps), observation.values_mut()).expect("the action is valid");
                if step.ended() {
                    environment.reset(None, observation.values_mut()).expect("a native environment can always be reset");
                }
                steps += 1;
                black_box(&observation);
            });
        });
    }
}

fn vector(criterion: &mut Criterion<ProcessorTime>) {
    let mut group = criterion.benchmark_group("vector");
    group.throughput(Throughput::Elements(VECTOR_ENVIRONMENTS as u64));
    for id in names() {
        let environments = (0..VECTOR_ENVIRONMENTS).map(|_| make(id).expect("the name is in the registry")).collect();
        let mut environments = VectorEnvironment::new(environments).expect("all environments are alike");
        let batches = Batches::random(&environments.spec().action);
        environments.reset(0).expect("native environments can always be reset");
        let mut steps = 0;
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                environments.step(batches.actions(steps)).expect("the actions are valid");
                steps += 1;
                black_box(environments.observations());
            });
        });
    }
}

criterion_group! {
    name = environment_steps;
    config = Criterion::default()
        .with_measurement(ProcessorTime)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2));
    targets = single, vector
}
criterion_main!(environment_steps);
