//! What processes on one replay cost each other: one process, two on replays of their own (the most that the machine can
//! give), and two on the same; and how long an operation takes while another process stands still in the middle of its own.
//!
//! `cargo bench --no-default-features --bench replay_scaling`. Time on the wall, so it needs two free cores.
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

#[path = "support/shapes.rs"]
mod shapes;

use std::hint::black_box;
use std::io::{PipeWriter, Read, Write, pipe};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use shapes::{STAGED, Shape, area, join, learn, seeded};
use shoal::replay::{Batch, Priority, Replay, repair};
use shoal::segment::{Segment, system};

const ROWS: usize = 256;
const ROUNDS: usize = 7;
const FILLER: usize = 0;

#[derive(Clone, Copy)]
enum Operation {
    Insert,
    Sample,
    Update,
    Learn,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Insert, Self::Sample, Self::Update, Self::Learn];

    fn name(self) -> String {
        match self {
            Self::Insert => format!("stage and flush {STAGED}"),
            Self::Sample => format!("sample {ROWS}"),
            Self::Update => format!("update {ROWS}"),
            Self::Learn => format!("sample {ROWS} and update them"),
        }
    }
}

/// Do `operation` again and again, in this process.
fn repeated<'s>(operation: Operation, segment: &'s Segment, shape: &Shape, slot: usize) -> impl FnMut() + use<'s> {
    let mut replay: Replay<'s> = join(segment, shape.schema(), slot);
    let area = area(segment, slot);
    let (mut stream, mut random) = (shape.stream(), seeded(slot as u64));
    let mut batch = Batch::new(&shape.schema(), ROWS);
    // A few hundred batches take turns, so that the rows of an update are out of the cache, as in a learner.
    let mut batches = Vec::new();
    if matches!(operation, Operation::Update) {
        for _ in 0..256 {
            learn(&mut replay, &mut batch, &mut random);
            batches.push(batch.clone());
        }
    }
    let mut turn = 0;
    move || {
        turn += 1;
        match operation {
            Operation::Insert => {
                stream.stage(&replay, area);
                black_box(replay.flush(area));
            }
            Operation::Sample => {
                replay.sample(&mut batch, 0.4, &mut random).expect("a batch");
                black_box(&batch);
            }
            Operation::Update => {
                let priority = |row: usize| Priority::from_f32(0.1 + ((row + turn) % 7) as f32);
                replay.update_priorities(&batches[turn % batches.len()], (0..ROWS).map(priority));
            }
            Operation::Learn => learn(&mut replay, &mut batch, &mut random),
        }
    }
}

fn reap(child: Pid) {
    let _ = kill(child, Signal::SIGKILL);
    let _ = waitpid(child, None);
}

/// Operations per second of one process on each of `segments`, all at once, summed.
fn throughput(operation: Operation, segments: &[&Segment], shape: &Shape, lasting: Duration) -> f64 {
    let (mut counts, writer) = pipe().expect("a pipe");
    // All processes are ready by then.
    let start = Instant::now() + Duration::from_millis(300);
    let count = |mut writer: PipeWriter, segment: &Segment, slot: usize| {
        let mut once = repeated(operation, segment, shape, slot);
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let (start, mut done) = (Instant::now(), 0u32);
        while start.elapsed() < lasting {
            (0..8).for_each(|_| once());
            done += 8;
        }
        let rate = f64::from(done) / start.elapsed().as_secs_f64();
        writer.write_all(&rate.to_ne_bytes()).expect("the reader is there");
        0
    };
    let children: Vec<Pid> = segments
        .iter()
        .zip(1..)
        .map(|(segment, slot)| system::fork_child(|| count(writer.try_clone().expect("a pipe"), segment, slot)).expect("fork"))
        .collect();
    drop(writer);
    let mut rates = Vec::new();
    counts.read_to_end(&mut rates).expect("rates");
    children.into_iter().for_each(reap);
    segments.iter().zip(1..).for_each(|(segment, slot)| segment.processes().slot(slot).release());
    let (rates, _) = rates.as_chunks::<8>();
    assert_eq!(rates.len(), segments.len(), "a process died");
    rates.iter().map(|rate| f64::from_ne_bytes(*rate)).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn scaling(shape: &Shape, segments: &[Segment; 2], lasting: Duration, rounds: usize) {
    println!("| thousand operations/s | one | two, apart | of one | two, together | of one |\n|---|---|---|---|---|---|");
    for operation in Operation::ALL {
        let [mine, other] = segments;
        let groups: [&[&Segment]; 3] = [&[mine], &[mine, other], &[mine, mine]];
        let rounds: Vec<[f64; 3]> = (0..rounds).map(|_| groups.map(|group| throughput(operation, group, shape, lasting))).collect();
        let rate = |group: usize| median(rounds.iter().map(|round| round[group] / 1e3).collect());
        let ratio = |group: usize| median(rounds.iter().map(|round| round[group] / round[0]).collect());
        let name = operation.name();
        println!("| {name} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} |", rate(0), rate(1), ratio(1), rate(2), ratio(2));
    }
}

/// A process that stopped inside an operation.
fn stopped_inside(operation: Operation, segment: &Segment, shape: &Shape, slot: usize) -> Pid {
    let child = system::fork_child(|| {
        let mut once = repeated(operation, segment, shape, slot);
        loop {
            once();
        }
    });
    let child = child.expect("fork");
    loop {
        std::thread::sleep(Duration::from_millis(20));
        kill(child, Signal::SIGSTOP).expect("a child");
        waitpid(child, Some(WaitPidFlag::WUNTRACED)).expect("a child");
        if segment.processes().slot(slot).in_operation() {
            return child;
        }
        kill(child, Signal::SIGCONT).expect("a child");
    }
}

/// End such a process and do what a supervisor does after a death.
fn end(child: Pid, segment: &Segment, shape: &Shape, slot: usize) {
    reap(child);
    let place = segment.processes().slot(slot);
    repair(segment, &shape.schema(), place);
    place.release();
}

/// Microseconds of single operations, sorted.
fn latencies(operation: Operation, segment: &Segment, shape: &Shape, count: usize) -> Vec<f64> {
    let slot = 1;
    let mut once = repeated(operation, segment, shape, slot);
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    segment.processes().slot(slot).release();
    times.sort_by(f64::total_cmp);
    times
}

fn beside_a_stopped_process(shape: &Shape, segment: &Segment, count: usize, rounds: usize) {
    println!("\n| us per operation | beside | median | p99 | p99.9 |\n|---|---|---|---|---|");
    for operation in Operation::ALL {
        let mut rounds_of = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            rounds_of[0].push(latencies(operation, segment, shape, count));
            for (stopped_in, rounds) in [Operation::Insert, Operation::Update].into_iter().zip(&mut rounds_of[1..]) {
                let stopped = stopped_inside(stopped_in, segment, shape, 2);
                rounds.push(latencies(operation, segment, shape, count));
                end(stopped, segment, shape, 2);
            }
        }
        for (beside, rounds) in ["nobody", "one stopped in a flush", "one stopped in an update"].into_iter().zip(rounds_of) {
            let at = |part: f64| median(rounds.iter().map(|times| times[(times.len() as f64 * part) as usize]).collect());
            println!("| {} | {beside} | {:.1} | {:.1} | {:.1} |", operation.name(), at(0.5), at(0.99), at(0.999));
        }
    }
}

fn main() {
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let shape = if is_measuring { Shape::half_cheetah() } else { Shape::cart_pole() };
    let segments = [shape.shared(16), shape.shared(16)];
    for segment in &segments {
        let mut replay = join(segment, shape.schema(), FILLER);
        shape.fill(&mut replay, area(segment, FILLER));
    }
    println!("{}, {} transitions\n", shape.name, shape.capacity);
    let (lasting, count, rounds) = if is_measuring { (Duration::from_secs(1), 20_000, ROUNDS) } else { (Duration::from_millis(5), 100, 1) };
    scaling(&shape, &segments, lasting, rounds);
    beside_a_stopped_process(&shape, &segments[0], count, rounds);
}
