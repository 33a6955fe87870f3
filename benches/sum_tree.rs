//! Our tree compared with the tree of the PAL paper: batches of descents and of updates, for every fan-out, in turns.
//!
//! `cargo bench --no-default-features --bench sum_tree`, and the same with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` before
//! it for huge pages. Nanoseconds of CPU time per element, medians of nine rounds. The ratios are what counts.
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

#[path = "support/paired.rs"]
mod paired;
#[path = "support/paper_tree.rs"]
mod paper_tree;
#[path = "support/tree_work.rs"]
mod tree_work;

use std::cell::RefCell;
use std::hint::black_box;

use paired::{Call, Contestant, Race, huge_page_mebibytes};
use paper_tree::PaperTree;
use shoal::replay::sum_tree::Differences;
use shoal::replay::{Priority, SumTree};
use shoal::segment::layout::FANOUTS;
use tree_work::{BATCHES, CAPACITIES, PREPARED, TreeWords, fill, points, priorities, priority, targets, updates};

/// The default fan-out, by its place in `FANOUTS`.
const DEFAULT: usize = 2;

/// Name a case and print one line of the table.
fn report(case: &str, race: &Race) {
    let ours = (0..FANOUTS.len()).map(|contestant| format!("{:.1}", race.median_ns(contestant)));
    let paper = FANOUTS.len()..2 * FANOUTS.len();
    let best = race.fastest(paper.clone());
    let theirs = paper.map(|contestant| format!("{:.1}", race.median_ns(contestant)));
    let cells: Vec<String> = ours.chain(theirs).collect();
    println!("| {case} | {} | {:.2} |", cells.join(" | "), race.median_ratio(best, DEFAULT));
}

fn find(call: &Call, case: &str, trees: &[SumTree<'_>], paper: &[PaperTree], points: &[Vec<f64>]) {
    let batch = points[0].len();
    let targets = targets(points, trees[0].total());
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for tree in trees {
        let (mut scratch, mut slots) = (vec![0; batch], vec![0; batch]);
        let targets = &targets;
        contestants.push(Contestant::new("ours", move || {
            for targets in targets {
                scratch.copy_from_slice(targets);
                tree.find(&mut scratch, &mut slots);
                black_box(&slots);
            }
        }));
    }
    for tree in paper {
        let of_batch = |points: &Vec<f64>| points.iter().map(|point| (point * f64::from(tree.total())) as f32).collect();
        let targets: Vec<Vec<f32>> = points.iter().map(of_batch).collect();
        let mut slots = vec![0; batch];
        contestants.push(Contestant::new("paper", move || {
            for targets in &targets {
                slots.iter_mut().zip(targets).for_each(|(slot, &target)| *slot = tree.find(target));
                black_box(&slots);
            }
        }));
    }
    report(&format!("find {case}"), &Race::run(&mut contestants, PREPARED, call.rounds()));
}

fn update(call: &Call, case: &str, trees: &[SumTree<'_>], paper: &mut [PaperTree], points: &[Vec<f64>]) {
    let updates = updates(&trees[0], &targets(points, trees[0].total()));
    let of_batch = |batch: &Vec<(usize, f32)>| batch.iter().map(|&(slot, value)| (slot, 0, priority(value))).collect();
    let named: Vec<Vec<(usize, u64, Priority)>> = updates.iter().map(of_batch).collect();
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for tree in trees {
        let mut differences = Differences::default();
        let named = &named;
        contestants.push(Contestant::new("ours", move || {
            for batch in named {
                black_box(tree.update(batch.iter().copied(), &mut differences));
            }
        }));
    }
    for tree in paper {
        let updates = &updates;
        let tree = RefCell::new(tree);
        contestants.push(Contestant::new("paper", move || {
            let mut tree = tree.borrow_mut();
            updates.iter().flatten().for_each(|&(slot, value)| tree.update(slot, value));
        }));
    }
    report(&format!("update {case}"), &Race::run(&mut contestants, PREPARED, call.rounds()));
}

fn main() {
    let call = Call::read();
    let capacities = if call.is_measuring { &CAPACITIES[..] } else { &CAPACITIES[..1] };
    let fanouts = FANOUTS.map(|fanout| format!("K = {fanout}")).join(" | ");
    println!("| ns per element | {fanouts} | paper's, {fanouts} | paper's best / ours at K = {} |", FANOUTS[DEFAULT]);
    println!("|---{}", "|---".repeat(2 * FANOUTS.len() + 1) + "|");
    for &capacity in capacities {
        let values = priorities(capacity);
        let words = FANOUTS.map(|fanout| TreeWords::new(capacity, fanout));
        let trees: Vec<SumTree<'_>> =
            FANOUTS.iter().zip(&words).map(|(&fanout, words)| SumTree::new(words.get(), capacity, fanout)).collect();
        trees.iter().for_each(|tree| fill(tree, &values));
        let mut paper: Vec<PaperTree> = FANOUTS.iter().map(|&fanout| PaperTree::new(&values, fanout)).collect();
        for batch in BATCHES {
            for (order, is_stratified) in [("stratified", true), ("unstratified", false)] {
                let case = format!("{batch} {order} of {capacity}");
                let points = points(batch, is_stratified);
                find(&call, &case, &trees, &paper, &points);
                update(&call, &case, &trees, &mut paper, &points);
            }
        }
        assert!(trees.iter().all(|tree| tree.audit().is_exact()), "the tree drifted");
    }
    println!("\nOn huge pages: {} MiB.", huge_page_mebibytes());
}
