//! The whole path: stage and flush, sample, write priorities back, for rows as CartPole, HalfCheetah and Atari have them,
//! alone and while two other processes write and sample without pause. CPU time of the measuring thread.
//!
//! `cargo bench --no-default-features --bench replay_processes`

#[path = "support/shapes.rs"]
mod shapes;
mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rand_pcg::Pcg64Mcg;
use shapes::{STAGED, Shape, area, join, learn, seeded};
use shoal::replay::{Batch, Replay, Schema};
use shoal::segment::{Segment, system};
use support::ThreadTime;

const BATCHES: [usize; 2] = [64, 256];
const OURS: usize = 0;
const OTHER_WRITER: usize = 1;
const OTHER_SAMPLER: usize = 2;

/// The two other processes; gone when dropped.
struct Others(Vec<Pid>);

impl Others {
    fn start(segment: &Segment, shape: &Shape) -> Self {
        let writer = system::fork_child(|| {
            let mut replay = join(segment, shape.schema(), OTHER_WRITER);
            let mut stream = shape.stream();
            loop {
                stream.stage(&replay, area(segment, OTHER_WRITER));
                replay.flush(area(segment, OTHER_WRITER));
            }
        });
        let sampler = system::fork_child(|| {
            let mut replay = join(segment, shape.schema(), OTHER_SAMPLER);
            let (mut batch, mut random) = (Batch::new(&shape.schema(), 256), seeded(5));
            loop {
                learn(&mut replay, &mut batch, &mut random);
            }
        });
        Self(vec![writer.expect("fork"), sampler.expect("fork")])
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for &child in &self.0 {
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
        }
    }
}

fn path(criterion: &mut Criterion<ThreadTime>) {
    for shape in Shape::all() {
        for (kind, fanout) in [("prioritized", 16), ("uniform", 0)] {
            let segment = shape.shared(fanout);
            let mut replay = join(&segment, shape.schema(), OURS);
            shape.fill(&mut replay, area(&segment, OURS));
            measure(criterion, &format!("{} {kind} alone", shape.name), &shape, &segment, &mut replay);
            if fanout != 0 {
                let others = Others::start(&segment, &shape);
                measure(criterion, &format!("{} {kind} beside two", shape.name), &shape, &segment, &mut replay);
                drop(others);
            }
        }
    }
}

fn measure<'s>(criterion: &mut Criterion<ThreadTime>, name: &str, shape: &Shape, segment: &'s Segment, replay: &mut Replay<'s>) {
    let (schema, mut stream) = (shape.schema(), shape.stream());
    let mut random = seeded(3);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(STAGED as u64));
    group.bench_function(format!("stage and flush {STAGED}"), |bencher| {
        bencher.iter(|| {
            replay.flush(area(segment, OURS));
            stream.stage(replay, area(segment, OURS));
        });
    });
    group.finish();
    for batch in BATCHES {
        sample(criterion.benchmark_group(name), &schema, batch, replay, &mut random);
    }
}

fn sample(mut group: BenchmarkGroup<'_, ThreadTime>, schema: &Schema, rows: usize, replay: &mut Replay<'_>, random: &mut Pcg64Mcg) {
    group.throughput(Throughput::Elements(rows as u64));
    let mut batch = Batch::new(schema, rows);
    group.bench_function(format!("sample {rows}"), |bencher| {
        bencher.iter(|| {
            replay.sample(&mut batch, 0.4, random).expect("a batch");
            black_box(&batch);
        });
    });
    if replay.tree().is_some() {
        group.bench_function(format!("sample {rows} and write priorities back"), |bencher| {
            bencher.iter(|| learn(replay, &mut batch, random));
        });
    }
    group.finish();
}

criterion_group! {
    name = replay_processes;
    config = Criterion::default()
        .with_measurement(ThreadTime(WallTime))
        .warm_up_time(Duration::from_millis(150))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20)
        .without_plots();
    targets = path
}
criterion_main!(replay_processes);
