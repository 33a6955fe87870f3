//! The whole path: stage and flush, sample, write priorities back, for rows as CartPole and HalfCheetah have them, alone
//! and beside two other processes that write and sample without pause. CPU time of the measuring thread.
//!
//! `cargo bench --no-default-features --bench replay_processes`

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use shoal::replay::{Batch, Element, Field, Priority, Replay, Schema, StagingArea};
use shoal::segment::description::Description;
use shoal::segment::processes::Role;
use shoal::segment::{Layout, LayoutParameters, Region, Segment, system};
use support::ThreadTime;

const STAGED: usize = 64;
const BATCHES: [usize; 2] = [64, 256];
const OURS: usize = 0;
const OTHER_WRITER: usize = 1;
const OTHER_SAMPLER: usize = 2;

/// The shape of a transition, and how many of them the replay holds.
struct Shape {
    name: &'static str,
    observation: usize,
    action: Field,
    capacity: usize,
}

fn shapes() -> [Shape; 2] {
    [
        Shape { name: "CartPole", observation: 4, action: Field::new("action", Element::I32, 1), capacity: 1 << 17 },
        Shape { name: "HalfCheetah", observation: 17, action: Field::new("action", Element::F32, 6), capacity: 1 << 20 },
    ]
}

impl Shape {
    fn schema(&self) -> Schema {
        Schema::new(vec![
            Field::new("observation", Element::F32, self.observation),
            self.action.clone(),
            Field::new("reward", Element::F32, 1),
            Field::new("discount", Element::F32, 1),
            Field::new("flags", Element::I32, 1),
            Field::new("next_observation", Element::F32, self.observation),
        ])
    }

    fn segment(&self, fanout: usize) -> Segment {
        let schema = self.schema();
        let layout = Layout::new(LayoutParameters {
            processes: 3,
            stagers: 3,
            staged_transitions: STAGED,
            capacity: self.capacity,
            fanout,
            transition_words: schema.words(),
            published_values: 1,
            learned_parameters: 1,
            learner_state_values: 4,
            statistics_values: 0,
            learners: 1,
            frames: 0,
            frame_bytes: 0,
            description_bytes: 4096,
        });
        let description = Description {
            program_version: String::new(),
            config_toml: String::new(),
            run_folder: String::new(),
            environment: self.name.into(),
            algorithm: "none".into(),
            fields: schema.describe(),
        };
        Segment::create(layout.expect("sizes within their limits"), &description, false).expect("room in /dev/shm")
    }

    /// Fill the staging area.
    fn stage(&self, schema: &Schema, area: StagingArea<'_>) {
        let values = [0.5f32; 17];
        let observation = &values[..self.observation];
        while !area.is_full() {
            let mut writer = area.write(schema);
            writer.f32(0, observation).f32(2, &[1.0]).f32(3, &[0.99]).i32(4, &[0]).f32(5, observation);
            match self.action.element {
                Element::I32 => writer.i32(1, &[1]),
                _ => writer.f32(1, &values[..self.action.length]),
            };
            writer.commit(None);
        }
    }
}

fn area(segment: &Segment, slot: usize) -> StagingArea<'_> {
    StagingArea::new(segment.words(Region::Staging), segment.layout().parameters(), slot)
}

/// Take a slot of the process table for this process and see the replay as its owner does.
fn join(segment: &Segment, schema: Schema, slot: usize) -> Replay<'_> {
    let entry = segment.processes().slot(slot);
    assert!(entry.reserve(Role::Synchronous, slot) && entry.occupy(std::process::id()));
    Replay::new(segment, schema, Some(entry))
}

fn learn(replay: &mut Replay<'_>, batch: &mut Batch, random: &mut Pcg64Mcg) {
    replay.sample(batch, 0.4, random).expect("a batch");
    replay.update_priorities(batch, (0..batch.rows()).map(|row| Priority::from_f32(0.1 + (row % 7) as f32)));
}

/// The two other processes; gone when dropped.
struct Others(Vec<Pid>);

impl Others {
    fn start(segment: &Segment, shape: &Shape) -> Self {
        let writer = system::fork_child(|| {
            let mut replay = join(segment, shape.schema(), OTHER_WRITER);
            loop {
                shape.stage(&shape.schema(), area(segment, OTHER_WRITER));
                replay.flush(area(segment, OTHER_WRITER));
            }
        });
        let sampler = system::fork_child(|| {
            let mut replay = join(segment, shape.schema(), OTHER_SAMPLER);
            let (mut batch, mut random) = (Batch::new(&shape.schema(), 256), Pcg64Mcg::seed_from_u64(5));
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
    for shape in shapes() {
        for (kind, fanout) in [("prioritized", 16), ("uniform", 0)] {
            let segment = shape.segment(fanout);
            let schema = shape.schema();
            let mut replay = join(&segment, schema.clone(), OURS);
            for _ in 0..shape.capacity / STAGED {
                shape.stage(&schema, area(&segment, OURS));
                replay.flush(area(&segment, OURS));
            }
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
    let schema = shape.schema();
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(STAGED as u64));
    group.bench_function(format!("stage and flush {STAGED}"), |bencher| {
        bencher.iter(|| {
            replay.flush(area(segment, OURS));
            shape.stage(&schema, area(segment, OURS));
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
