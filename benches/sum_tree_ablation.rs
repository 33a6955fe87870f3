//! What each idea of the tree gains: the same work at the default fan-out, from the plain way to ours, one idea at a time,
//! in turns. The last rows take safety away from ours: the tags, also the compare-and-swap, the atomic additions, or all.
//!
//! `cargo bench --no-default-features --bench sum_tree_ablation`. Nanoseconds of CPU time per element.
#![expect(clippy::print_stdout, reason = "what it measured is its output")]

#[path = "support/paired.rs"]
mod paired;
#[path = "support/plain_descents.rs"]
mod plain_descents;
#[path = "support/plain_updates.rs"]
mod plain_updates;
#[path = "support/tree_work.rs"]
mod tree_work;

use std::hint::black_box;

use paired::{Call, Contestant, Race, huge_page_mebibytes};
use plain_descents::{level_by_level, one_after_another, one_after_another_without_branches};
use plain_updates::{Atomic, Ideas, Immortal, Scratch, Unprotected, UnprotectedLeaves, UnprotectedSums, update};
use shoal::replay::sum_tree::Differences;
use shoal::replay::{Priority, SumTree};
use tree_work::{BATCHES, CAPACITIES, PREPARED, TreeWords, fill, points, priorities, priority, targets, updates};

const FANOUT: usize = 16;

type Find<'a> = Box<dyn Fn(&mut [u64], &mut [usize]) + 'a>;
type Update<'a> = Box<dyn FnMut(&[(usize, u64, Priority)]) + 'a>;

fn report(operation: &str, case: &str, contestants: &[Contestant<'_>], race: &Race, ours: usize) {
    println!("\n{operation} {case}\n\n| | ns per element | times ours |\n|---|---|---|");
    for (index, contestant) in contestants.iter().enumerate() {
        println!("| {} | {:.1} | {:.2} |", contestant.name, race.median_ns(index), race.median_ratio(index, ours));
    }
}

fn find(call: &Call, case: &str, tree: &SumTree<'_>, words: &TreeWords, targets: &[Vec<u64>]) {
    let (capacity, words) = (tree.capacity(), words.get());
    let ways: Vec<(&str, Find<'_>)> = vec![
        (
            "one after another, siblings from left to right",
            Box::new(move |targets, slots| one_after_another::<FANOUT>(words, capacity, targets, slots)),
        ),
        (
            "no branches that depend on the target",
            Box::new(move |targets, slots| one_after_another_without_branches::<FANOUT>(words, capacity, targets, slots)),
        ),
        (
            "the batch level by level, fetched ahead",
            Box::new(move |targets, slots| level_by_level::<FANOUT>(words, capacity, targets, slots, usize::MAX)),
        ),
        ("in chunks of 64", Box::new(move |targets, slots| level_by_level::<FANOUT>(words, capacity, targets, slots, 64))),
        ("near the root, one walk or search over a level (ours)", Box::new(|targets, slots| tree.find(targets, slots))),
    ];
    let ours = ways.len() - 1;
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for (name, find) in &ways {
        let (mut scratch, mut slots) = (vec![0; targets[0].len()], vec![0; targets[0].len()]);
        contestants.push(Contestant::new(*name, move || {
            for targets in targets {
                scratch.copy_from_slice(targets);
                find(&mut scratch, &mut slots);
                black_box(&slots);
            }
        }));
    }
    let race = Race::run(&mut contestants, PREPARED, call.rounds());
    report("find", case, &contestants, &race, ours);
}

fn change(call: &Call, case: &str, tree: &SumTree<'_>, words: &TreeWords, updates: &[Vec<(usize, f32)>]) {
    let (capacity, words) = (tree.capacity(), words.get());
    let of_batch = |batch: &Vec<(usize, f32)>| batch.iter().map(|&(slot, value)| (slot, 0, priority(value))).collect();
    let named: Vec<Vec<(usize, u64, Priority)>> = updates.iter().map(of_batch).collect();
    let mut differences = Differences::default();
    let mut scratch: Vec<Scratch> = (0..8).map(|_| Scratch::default()).collect();
    let mut places = scratch.iter_mut();
    let mut atomic = |ideas: Ideas| -> Update<'_> {
        let scratch = places.next().expect("one for each");
        Box::new(move |batch| update::<Atomic, FANOUT>(words, capacity, batch, ideas, scratch))
    };
    let none = Ideas { merge: false, ahead: false, gather: false };
    let all = Ideas { merge: true, ahead: true, gather: true };
    let mut ways: Vec<(&str, Update<'_>)> = vec![
        ("every difference to the root", atomic(none)),
        ("neighbours merged", atomic(Ideas { merge: true, ..none })),
        ("fetched ahead", atomic(Ideas { merge: true, ahead: true, gather: false })),
        ("upper levels gathered", atomic(all)),
        ("the tree itself (ours)", Box::new(|batch| _ = black_box(tree.update(batch.iter().copied(), &mut differences)))),
    ];
    let ours = ways.len() - 1;
    let [exchanged, leaves, sums, unprotected] = std::array::from_fn(|_| places.next().expect("one for each"));
    let without: [(&str, Update<'_>); 4] = [
        ("ours without tags, leaves exchanged", Box::new(move |batch| update::<Immortal, FANOUT>(words, capacity, batch, all, exchanged))),
        (
            "ours without tags and compare-and-swap",
            Box::new(move |batch| update::<UnprotectedLeaves, FANOUT>(words, capacity, batch, all, leaves)),
        ),
        ("ours without atomic additions", Box::new(move |batch| update::<UnprotectedSums, FANOUT>(words, capacity, batch, all, sums))),
        ("ours without any of these", Box::new(move |batch| update::<Unprotected, FANOUT>(words, capacity, batch, all, unprotected))),
    ];
    ways.extend(without);
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for (name, update) in &mut ways {
        let named = &named;
        contestants.push(Contestant::new(*name, move || named.iter().for_each(|batch| update(batch))));
    }
    let race = Race::run(&mut contestants, PREPARED, call.rounds());
    report("update", case, &contestants, &race, ours);
}

fn main() {
    let call = Call::read();
    let capacities = if call.is_measuring { &CAPACITIES[..] } else { &CAPACITIES[..1] };
    for &capacity in capacities {
        let words = TreeWords::new(capacity, FANOUT);
        let tree = SumTree::new(words.get(), capacity, FANOUT);
        fill(&tree, &priorities(capacity));
        for batch in BATCHES {
            for (order, is_stratified) in [("stratified", true), ("unstratified", false)] {
                let case = format!("{batch} {order} of {capacity}");
                let targets = targets(&points(batch, is_stratified), tree.total());
                find(&call, &case, &tree, &words, &targets);
                change(&call, &case, &tree, &words, &updates(&tree, &targets));
            }
        }
        assert!(tree.audit().is_exact(), "the tree drifted");
    }
    println!("\nOn huge pages: {} MiB.", huge_page_mebibytes());
}
