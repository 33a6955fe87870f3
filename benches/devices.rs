//! A forward and backward pass with new parameters, and a forward pass alone, on every device that `SHOAL_BENCH_DEVICES` names, in wall
//! time: how much a GPU saves a learner, and from which batch size on it is worth the transfer.
//!
//! `SHOAL_BENCH_DEVICES=cuda:0 cargo bench --bench devices`; the CPU, one core of it, is measured anyway, with both engines.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shoal::config::schema::Engine;
use shoal::networks::{self, Device, Head, InputSpec, NetworkSpec};
use shoal::segment::system;
use shoal::values::{ValueType, Values};

/// The critic of HalfCheetah, the network of Rally's presets, and the network of Mnih et al. 2015.
fn specs() -> [(&'static str, NetworkSpec, &'static [usize]); 3] {
    let frames = |side| InputSpec { element: ValueType::U8, shape: vec![4, side, side] };
    [
        ("256x256", NetworkSpec::perceptron(23, &[256; 2], Head::Linear { outputs: 1 }), &[256, 1_024, 4_096]),
        ("42x42", NetworkSpec::of_input(frames(42), &[[16, 4, 2], [32, 4, 2]], &[128], Head::Linear { outputs: 3 }), &[32, 512]),
        (
            "84x84",
            NetworkSpec::of_input(frames(84), &[[32, 8, 4], [64, 4, 2], [64, 3, 1]], &[512], Head::Linear { outputs: 6 }),
            &[32, 256],
        ),
    ]
}

fn places() -> Vec<(String, Engine, Device)> {
    let mut places = vec![("cpu".to_owned(), Engine::Cpu, Device::Cpu)];
    if cfg!(feature = "torch") {
        places.push(("torch cpu".to_owned(), Engine::Torch, Device::Cpu));
    }
    let named = std::env::var("SHOAL_BENCH_DEVICES").unwrap_or_default();
    places.extend(named.split(',').filter(|name| !name.is_empty()).map(|name| {
        let device = name.parse().unwrap_or_else(|error| panic!("SHOAL_BENCH_DEVICES: {error}"));
        (name.to_owned(), Engine::Torch, device)
    }));
    places
}

fn devices(criterion: &mut Criterion) {
    // As every process of a run does at its start.
    system::keep_freed_memory();
    let mut group = criterion.benchmark_group("devices");
    for (name, spec, batches) in specs() {
        for (place, engine, device) in places() {
            let mut network = networks::build(spec.clone(), engine, device, 1).expect("the shape is valid and the device exists");
            network.set_parameters(&spec.initialise(1));
            let mut gradient = vec![0.0; spec.parameter_count()];
            for &rows in batches {
                let numbers: Vec<f32> = (0..rows * spec.inputs()).map(|index| (index as f32 * 0.7).sin()).collect();
                let bytes: Vec<u8> = numbers.iter().map(|number| (number * 127.5 + 127.5) as u8).collect();
                let input = if spec.input.element == ValueType::U8 { Values::U8(&bytes) } else { Values::F32(&numbers) };
                let mut output = vec![0.0; rows * spec.outputs()];
                group.throughput(Throughput::Elements(rows as u64));
                group.bench_function(BenchmarkId::new(&place, format!("{name}/batch{rows}/forth")), |bencher| {
                    bencher.iter(|| network.infer(black_box(input), rows, &mut output));
                });
                group.bench_function(BenchmarkId::new(&place, format!("{name}/batch{rows}")), |bencher| {
                    bencher.iter(|| {
                        // Every pass ends with numbers on the host, so nothing is still under way when the clock is read.
                        network.forward(black_box(input), rows, &mut output);
                        network.backward(&output, Some(&mut gradient), None);
                        network.update_parameters(&mut |parameters| parameters[0] += 1e-9);
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(700));
    targets = devices
}
criterion_main!(benches);
