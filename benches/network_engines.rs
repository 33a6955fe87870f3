//! Each engine's inference, forward and backward pass, and Adam, in CPU time of the thread, because other work may share the machine.
//!
//! `cargo bench --bench network_engines` (add `--no-default-features` to leave libtorch out).

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shoal::config::schema::Engine;
use shoal::networks::{self, Adam, AdamSettings, Device, Head, InputSpec, Network, NetworkSpec, clip_norm, polyak};
use shoal::segment::system;
use shoal::values::{ValueType, Values};
use support::ThreadTime;

const LEARNING_RATE: f32 = 1e-3;

fn network(engine: Engine, hidden: usize) -> Box<dyn Network> {
    let spec = NetworkSpec::perceptron(4, &[hidden; 2], Head::Linear { outputs: 2 });
    let mut network = networks::build(spec.clone(), engine, Device::Cpu, 1).expect("the shape is valid");
    network.set_parameters(&spec.initialise(1));
    network
}

fn numbers(length: usize) -> Vec<f32> {
    (0..length).map(|index| (index as f32 * 0.7).sin()).collect()
}

fn passes(group: &mut BenchmarkGroup<'_, ThreadTime>, engine: Engine, hidden: usize, rows: usize) {
    let name = |what: &str| BenchmarkId::new(what, format!("{engine:?}/{hidden}x{hidden}/batch{rows}").to_lowercase());
    let mut online = network(engine, hidden);
    let (input, mut output) = (numbers(rows * 4), vec![0.0; rows * 2]);
    let mut gradient = vec![0.0; online.spec().parameter_count()];
    group.throughput(Throughput::Elements(rows as u64));
    group.bench_function(name("infer"), |bencher| bencher.iter(|| online.infer(black_box(&input).into(), rows, &mut output)));
    group.bench_function(name("forward_backward"), |bencher| {
        bencher.iter(|| {
            online.forward(black_box(&input).into(), rows, &mut output);
            online.backward(&output, Some(&mut gradient), None);
        });
    });
}

/// All the arithmetic of one double-DQN update: two inferences on the next observations, forward, backward, clipping, Adam.
fn updates(group: &mut BenchmarkGroup<'_, ThreadTime>, engine: Engine, hidden: usize, rows: usize) {
    let (mut online, mut target) = (network(engine, hidden), network(engine, hidden));
    let input = numbers(rows * 4);
    let mut output = vec![0.0; rows * 2];
    let mut next = vec![0.0; rows * 2];
    let mut gradient = vec![0.0; online.spec().parameter_count()];
    let mut adam = Adam::new(gradient.len(), AdamSettings::default());
    group.throughput(Throughput::Elements(1));
    let name = format!("{engine:?}/{hidden}x{hidden}/batch{rows}").to_lowercase();
    for double in [true, false] {
        group.bench_function(BenchmarkId::new(if double { "double_dqn_update" } else { "dqn_update" }, &name), |bencher| {
            bencher.iter(|| {
                if double {
                    online.infer(black_box(&input).into(), rows, &mut next);
                }
                target.infer(black_box(&input).into(), rows, &mut next);
                online.forward(black_box(&input).into(), rows, &mut output);
                output.iter_mut().zip(&next).for_each(|(output, next)| *output -= 0.99 * next);
                online.backward(&output, Some(&mut gradient), None);
                clip_norm(&mut gradient, 10.0);
                online.update_parameters(&mut |parameters| adam.step(parameters, &gradient, LEARNING_RATE));
            });
        });
    }
}

/// Networks on frames of bytes: the small one of the image games, the one of Mnih et al. 2015, and the decoders of auto-encoders for both.
fn on_frames() -> [(&'static str, NetworkSpec); 4] {
    let spec = |side, convolutions: &[[usize; 3]], units, outputs| {
        let input = InputSpec { element: ValueType::U8, shape: vec![4, side, side] };
        NetworkSpec::of_input(input, convolutions, &[units], Head::Linear { outputs })
    };
    [
        ("42x42", spec(42, &[[16, 4, 2], [32, 4, 2]], 256, 11)),
        ("84x84", spec(84, &[[32, 8, 4], [64, 4, 2], [64, 3, 1]], 512, 6)),
        ("decoder42", NetworkSpec::decoder(256, 4, 42)),
        ("decoder84", NetworkSpec::decoder(256, 4, 84)),
    ]
}

fn frames(group: &mut BenchmarkGroup<'_, ThreadTime>, engine: Engine, name: &str, spec: &NetworkSpec) {
    let mut network = networks::build(spec.clone(), engine, Device::Cpu, 1).expect("the shape is valid");
    network.set_parameters(&spec.initialise(1));
    let mut gradient = vec![0.0; spec.parameter_count()];
    for (rows, trains) in [(8, false), (32, true), (64, true)] {
        let numbers = numbers(rows * spec.inputs());
        let bytes: Vec<u8> = numbers.iter().map(|number| (number * 127.5 + 127.5) as u8).collect();
        let input = if spec.input.element == ValueType::U8 { Values::U8(&bytes) } else { Values::F32(&numbers) };
        let mut output = vec![0.0; rows * spec.outputs()];
        let name = format!("{engine:?}/{name}/batch{rows}").to_lowercase();
        group.throughput(Throughput::Elements(rows as u64));
        if trains {
            group.bench_function(BenchmarkId::new("forward_backward", name), |bencher| {
                bencher.iter(|| {
                    network.forward(black_box(input), rows, &mut output);
                    network.backward(&output, Some(&mut gradient), None);
                    // Weights change after every pass, so what engines prepare from them is measured.
                    network.update_parameters(&mut |parameters| parameters[0] += 1e-9);
                });
            });
        } else {
            group.bench_function(BenchmarkId::new("infer", name), |bencher| {
                bencher.iter(|| network.infer(black_box(input), rows, &mut output));
            });
        }
    }
}

/// An optimizer whose parameters have had no gradient for long, as those of units that are no longer active. Its moments are what
/// rounding makes of their decay.
fn long_without_gradient(parameters: usize) -> Adam {
    let [first_moment, second_moment] = [4, 500].map(|units| vec![f32::from_bits(units); parameters]);
    Adam::from_state(AdamSettings::default(), first_moment, second_moment, 100_000)
}

fn optimizer(group: &mut BenchmarkGroup<'_, ThreadTime>, hidden: usize) {
    let parameters = network(Engine::Cpu, hidden).parameters().to_vec();
    let gradient = numbers(parameters.len());
    let name = |what: &str| BenchmarkId::new(what, format!("{hidden}x{hidden}"));
    group.throughput(Throughput::Elements(parameters.len() as u64));
    let mut adam = Adam::new(parameters.len(), AdamSettings::default());
    let mut changed = parameters.clone();
    group.bench_function(name("adam"), |bencher| bencher.iter(|| adam.step(&mut changed, black_box(&gradient), LEARNING_RATE)));
    let mut inactive = long_without_gradient(parameters.len());
    let none = vec![0.0; parameters.len()];
    group.bench_function(name("adam_inactive"), |bencher| bencher.iter(|| inactive.step(&mut changed, black_box(&none), LEARNING_RATE)));
    let mut clipped = gradient.clone();
    group.bench_function(name("clip_norm"), |bencher| bencher.iter(|| clip_norm(black_box(&mut clipped), 1e9)));
    group.bench_function(name("polyak"), |bencher| bencher.iter(|| polyak(&mut changed, black_box(&parameters), 0.005)));
}

fn network_engines(criterion: &mut Criterion<ThreadTime>) {
    // As every process of a run does at its start.
    system::keep_freed_memory();
    let mut group = criterion.benchmark_group("network_engines");
    let engines = if cfg!(feature = "torch") { vec![Engine::Cpu, Engine::Torch] } else { vec![Engine::Cpu] };
    for hidden in [64, 256] {
        for &engine in &engines {
            for rows in [1, 64, 256] {
                passes(&mut group, engine, hidden, rows);
            }
            for rows in [64, 256] {
                updates(&mut group, engine, hidden, rows);
            }
        }
        optimizer(&mut group, hidden);
    }
    for (name, spec) in on_frames() {
        engines.iter().for_each(|&engine| frames(&mut group, engine, name, &spec));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(ThreadTime(WallTime))
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = network_engines
}
criterion_main!(benches);
