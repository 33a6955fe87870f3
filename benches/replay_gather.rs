//! Drawing a batch, compared with the least that it can cost: copying as many rows of the same memory, chosen beforehand,
//! and nothing else. They take turns.
//!
//! `cargo bench --no-default-features --bench replay_gather`. Microseconds of CPU time per batch.
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

#[path = "support/paired.rs"]
mod paired;
#[path = "support/shapes.rs"]
mod shapes;

use std::hint::black_box;

use paired::{Call, Contestant, Race};
use rand::RngExt;
use shapes::{Shape, area, join, seeded};
use shoal::replay::{Batch, Replay};
use shoal::segment::shared_words::load_bytes;
use shoal::segment::{Region, Segment, system};
use shoal::sync::AtomicU64;

const BATCHES: [usize; 3] = [32, 256, 4096];
/// Rows drawn in one round.
const DRAWN: usize = 1 << 16;
/// How many rows are fetched ahead, as in the replay.
const AHEAD: usize = 16;

/// The rows of a segment, without their meaning.
struct Bare<'a> {
    words: &'a [AtomicU64],
    stride: usize,
    row_bytes: usize,
}

impl<'a> Bare<'a> {
    fn new(segment: &'a Segment, shape: &Shape) -> Self {
        let row_bytes = shape.schema().fields().iter().map(shoal::replay::Field::size_bytes).sum();
        Self { words: segment.words(Region::Store), stride: segment.layout().sizes().slot_words(), row_bytes }
    }

    fn slot(&self, slot: usize) -> &'a [AtomicU64] {
        &self.words[slot * self.stride..][..self.stride]
    }

    fn gather(&self, slots: &[usize], rows: &mut [u8]) {
        let fetch = |slot: usize| self.slot(slot).iter().step_by(8).for_each(system::prefetch);
        slots.iter().take(AHEAD).for_each(|&slot| fetch(slot));
        for (position, (row, &slot)) in rows.chunks_exact_mut(self.row_bytes).zip(slots).enumerate() {
            if let Some(&ahead) = slots.get(position + AHEAD) {
                fetch(ahead);
            }
            load_bytes(&self.slot(slot)[1..], row);
        }
    }
}

fn sampler<'a>(replay: &'a mut Replay<'_>, shape: &Shape, rows: usize) -> Contestant<'a> {
    let (mut batch, mut random) = (Batch::new(&shape.schema(), rows), seeded(1));
    Contestant::new("", move || {
        for _ in 0..DRAWN / rows {
            replay.sample(&mut batch, 0.4, &mut random).expect("a batch");
            black_box(&batch);
        }
    })
}

fn main() {
    let call = Call::read();
    let shape = if call.is_measuring { Shape::half_cheetah() } else { Shape::cart_pole() };
    let (of_tree, uniform) = (shape.private(16), shape.private(0));
    let (mut prioritized, mut uniformly) = (join(&of_tree, shape.schema(), 0), join(&uniform, shape.schema(), 0));
    shape.fill(&mut prioritized, area(&of_tree, 0));
    shape.fill(&mut uniformly, area(&uniform, 0));
    println!("{}, {} transitions\n", shape.name, shape.capacity);
    println!("| batch | bare gather (us) | uniform sample (us) | of bare | prioritized sample (us) | of bare |\n|---|---|---|---|---|---|");
    for rows in BATCHES {
        let bare = Bare::new(&uniform, &shape);
        let mut random = seeded(2);
        let slots: Vec<usize> = (0..DRAWN).map(|_| random.random_range(0..shape.capacity)).collect();
        let mut copied = vec![0; rows * bare.row_bytes];
        let gather = Contestant::new("", || {
            for slots in slots.chunks_exact(rows) {
                bare.gather(slots, &mut copied);
                black_box(&copied);
            }
        });
        let mut contestants = [gather, sampler(&mut uniformly, &shape, rows), sampler(&mut prioritized, &shape, rows)];
        let race = Race::run(&mut contestants, DRAWN, call.rounds());
        let us = |contestant| race.median_ns(contestant) * rows as f64 / 1e3;
        let (uniform, prioritized) = (race.median_ratio(1, 0), race.median_ratio(2, 0));
        println!("| {rows} | {:.2} | {:.2} | {uniform:.2} | {:.2} | {prioritized:.2} |", us(0), us(1), us(2));
    }
}
