//! Every way by which data goes from one process to another: experience, parameters, priorities, gradients, metrics, statistics,
//! evaluations, changes of the batch, and pictures.
//!
//! Measures how long a message takes until the other process has copied all of it, and how many bytes a second come through. The same
//! bytes through a pipe, and through a file in memory that is renamed, are measured beside it. Two changes that no bytes tell come last:
//! another actor, and one fewer.
//!
//! `cargo bench --no-default-features --bench transfer`. Time on the wall, so it needs two free cores.
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

#[path = "transfer/actors.rs"]
mod actors;
#[path = "transfer/alternatives.rs"]
mod alternatives;
#[path = "transfer/boards.rs"]
mod boards;
#[path = "transfer/experience.rs"]
mod experience;
#[path = "transfer/gradients.rs"]
mod gradients;
#[path = "transfer/measure.rs"]
mod measure;
#[path = "transfer/priorities.rs"]
mod priorities;
#[path = "transfer/reports.rs"]
mod reports;
#[path = "transfer/views.rs"]
mod views;

use std::time::Duration;

use actors::{ActorTimes, Actors};
use alternatives::{Pipe, Renamed};
use boards::{Floats, Pictures};
use experience::{Experience, Shape};
use gradients::Gradients;
use measure::{Desk, Effort, Path, Times};
use priorities::{PRIORITY_BYTES, Priorities};
use reports::{Evaluations, Metrics, NewestScores, REPORT_BYTES, SCORE_BYTES, evaluation_bytes};
use shoal::algorithms::Normalisation;
use shoal::networks::{Head, InputSpec, NetworkSpec};
use shoal::values::ValueType;
use views::{VIEW_BYTES, Views};

const ROUNDS: usize = 5;
/// Actors that come and go, one after the other.
const ACTORS: usize = 1_000;
const PICTURE: [usize; 2] = [600, 400];

/// One line of the tables.
struct Row {
    path: &'static str,
    message: String,
    message_bytes: usize,
    /// Whether the reader sleeps while it waits, as a learner does that has nothing to learn from. If not, it looks again and again.
    sleeps: bool,
    /// Whether a message has arrived without a reader: priorities change sums, and any process that draws finds the newest.
    needs_no_reader: bool,
    make: Box<dyn Fn() -> Box<dyn Path>>,
}

impl Row {
    fn new<P: Path + 'static>(
        path: &'static str,
        message: impl Into<String>,
        message_bytes: usize,
        make: impl Fn() -> P + 'static,
    ) -> Self {
        Self {
            path,
            message: message.into(),
            message_bytes,
            sleeps: false,
            needs_no_reader: false,
            make: Box::new(move || Box::new(make())),
        }
    }

    fn experience(message: &str, shape: Shape) -> Self {
        Self { sleeps: true, ..Self::new("experience", message, shape.message_bytes(), move || Experience::new(&shape)) }
    }

    fn priorities(count: usize) -> Self {
        let row = Self::new("priorities", format!("of {count}"), PRIORITY_BYTES * count, move || Priorities::new(count));
        Self { needs_no_reader: true, ..row }
    }

    /// The way itself, a pipe and a file, none of them used before.
    fn ways(&self) -> [Box<dyn Path>; 3] {
        [(self.make)(), Box::new(Pipe::new(self.message_bytes, self.sleeps)), Box::new(Renamed::new(self.message_bytes, self.sleeps))]
    }
}

fn networks() -> [(&'static str, usize); 3] {
    let image = |side| InputSpec { element: ValueType::U8, shape: vec![4, side, side] };
    let small = NetworkSpec::perceptron(4, &[64, 64], Head::Dueling { outputs: 2 });
    let rally = NetworkSpec::of_input(image(42), &[[16, 4, 2], [32, 4, 2]], &[128], Head::Dueling { outputs: 3 });
    let nature = NetworkSpec::of_input(image(84), &[[32, 8, 4], [64, 4, 2], [64, 3, 1]], &[512], Head::Linear { outputs: 6 });
    [("64-64, CartPole", small), ("convolutions, Rally", rally), ("Mnih et al. 2015, Pong", nature)]
        .map(|(name, network)| (name, network.parameter_count()))
}

fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::experience("64 transitions, CartPole", Shape::cart_pole()),
        Row::experience("1 transition, HalfCheetah", Shape::half_cheetah()),
        Row::experience("64 transitions, 4 frames of 42x42", Shape::frames()),
        Row::experience("fragment, 50 steps of 42x42", Shape::fragment()),
    ];
    rows.extend(networks().map(|(name, count)| Row::new("parameters", name, 4 * count, move || Floats::parameters(count))));
    rows.extend([8, 64, 256].map(Row::priorities));
    rows.extend(networks().map(|(name, count)| Row::new("gradients", name, 4 * count, move || Gradients::new(count))));
    let seen = Normalisation { observations: true, rewards: true, length: 17 }.statistics_values();
    rows.extend([
        Row::new("metrics", "one report", REPORT_BYTES, Metrics::new),
        Row::new("statistics", "of 17 numbers", 4 * seen, move || Floats::statistics(seen)),
        Row::new("evaluations", "report, 20 episodes", evaluation_bytes(), Evaluations::new),
        Row::new("evaluations", "newest scores", SCORE_BYTES, NewestScores::new),
        Row::new("pictures", "600x400", boards::length_bytes(PICTURE), || Pictures::new(PICTURE)),
        Row::new("adaptation", "view, another batch", VIEW_BYTES, Views::new),
    ]);
    rows
}

/// What one way did in all rounds.
struct Found {
    times: Times,
    /// Messages per second, sent and got whole.
    streamed: Vec<[f64; 2]>,
    /// Median of each round, in nanoseconds.
    medians_ns: Vec<f64>,
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() as f64 * part) as usize).min(sorted.len() - 1)]
}

fn as_floats(values: &[u64]) -> Vec<f64> {
    values.iter().map(|&value| value as f64).collect()
}

impl Found {
    fn seen_us(&self, part: f64) -> f64 {
        quantile(&as_floats(&self.times.seen_ns), part) / 1e3
    }

    /// Megabytes per second of streamed messages.
    fn streamed(&self, message_bytes: usize, is_sent: bool) -> f64 {
        let rates: Vec<f64> = self.streamed.iter().map(|&[sent, got]| if is_sent { sent } else { got }).collect();
        quantile(&rates, 0.5) * message_bytes as f64 / 1e6
    }
}

/// Megabytes per second of calls that take so long.
fn rate(message_bytes: usize, calls_ns: &[u64]) -> f64 {
    message_bytes as f64 * 1e3 / quantile(&as_floats(calls_ns), 0.5)
}

/// Measure all ways in turns, so that other work on the machine slows each of them.
fn measure(desk: &Desk, row: &Row, effort: Effort, rounds: usize) -> [Found; 3] {
    let mut found = [0; 3].map(|_| Found { times: Times::default(), streamed: Vec::new(), medians_ns: Vec::new() });
    for _ in 0..rounds {
        for (way, found) in row.ways().iter().zip(&mut found) {
            let before = found.times.seen_ns.len();
            desk.one_by_one(&**way, effort, &mut found.times);
            found.medians_ns.push(quantile(&as_floats(&found.times.seen_ns[before..]), 0.5));
        }
        for (way, found) in row.ways().iter().zip(&mut found) {
            found.streamed.push(desk.streamed(&**way, effort));
        }
    }
    found
}

/// `value` with three digits, or as a whole number.
fn digits(value: f64) -> String {
    let decimals = if value < 1.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$}")
}

fn print(rows: &[Row], measured: &[[Found; 3]], actors: &ActorTimes) {
    println!("| what | message | bytes | p50 (us) | p99 (us) | writer (MB/s) | reader (MB/s) | streamed (MB/s) |");
    println!("|---|---|---|---|---|---|---|---|");
    for (row, [ours, ..]) in rows.iter().zip(measured) {
        let Row { path, message, message_bytes, .. } = row;
        let [p50, p99] = [0.5, 0.99].map(|part| digits(ours.seen_us(part)));
        let calls = [&ours.times.sent_ns, &ours.times.copied_ns].map(|calls_ns| digits(rate(*message_bytes, calls_ns)));
        let streamed = digits(ours.streamed(*message_bytes, row.needs_no_reader));
        println!("| {path} | {message} | {message_bytes} | {p50} | {p99} | {} | {} | {streamed} |", calls[0], calls[1]);
    }
    for (change, took_ns) in [("another actor, until it is there", &actors.come_ns), ("an actor fewer, until it is gone", &actors.go_ns)] {
        let [p50, p99] = [0.5, 0.99].map(|part| digits(quantile(&as_floats(took_ns), part) / 1e3));
        println!("| adaptation | {change} | | {p50} | {p99} | | | |");
    }
    println!(
        "\n| what | message | pipe: p50 (us) | p99 | streamed (MB/s) | p50 / ours | file: p50 (us) | p99 | streamed (MB/s) | p50 / ours |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (row, [ours, others @ ..]) in rows.iter().zip(measured) {
        let cells = others.each_ref().map(|other| {
            let ratios: Vec<f64> = other.medians_ns.iter().zip(&ours.medians_ns).map(|(other, ours)| other / ours).collect();
            let figures = [other.seen_us(0.5), other.seen_us(0.99), other.streamed(row.message_bytes, false), quantile(&ratios, 0.5)];
            figures.map(digits).join(" | ")
        });
        println!("| {} | {} | {} |", row.path, row.message, cells.join(" | "));
    }
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn main() {
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let (lasting, rounds, count) = if is_measuring { ([80, 40], ROUNDS, ACTORS) } else { ([1, 1], 1, 1) };
    let [one_by_one, streamed] = lasting.map(Duration::from_millis);
    let (desk, rows, before) = (Desk::new(), rows(), load());
    let measured: Vec<[Found; 3]> = rows.iter().map(|row| measure(&desk, row, Effort { one_by_one, streamed }, rounds)).collect();
    let actors = Actors::new(desk.cores().map_or_else(Vec::new, Vec::from)).come_and_go(count);
    print(&rows, &measured, &actors);
    let cores = if desk.cores().is_some() { "a core each" } else { "one core for both, so these are figures of a scheduler" };
    println!("\nWriter and reader: {cores}. Load before {before}, after {}.", load());
}
