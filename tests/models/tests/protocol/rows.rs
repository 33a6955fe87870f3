//! Rows: claimed, written and published by one process while others read them, claim them and take them.

use loom::thread::spawn;
use shoal_models::replay::{Batch, FRESH, Priority, Reader, Replay, SumTree, fresh_rows};
use shoal_models::segment::{Region, Segment};
use shoal_models::sync::Ordering;

use super::support::{CLAIMED, INSERTED, flush, insert, rows, schema, segment, sizes, stage, value};

/// Words between two slots of the store.
const STRIDE: usize = 8;

/// Whether `word` of the store is the slot word or a word of the row in one of the first `slots`.
fn of_slots(slots: usize, word: usize) -> bool {
    word / STRIDE < slots && word % STRIDE < 3
}

/// A reader beside a writer that overwrites the row gets the old row, the new one, or none.
pub fn overwritten_while_it_is_read() {
    let segment = segment(sizes(1, 2), &[], |region, word| region == Region::Store && of_slots(1, word));
    insert(&segment, 0, 10, Priority::ONE);
    insert(&segment, 0, 11, Priority::ONE);
    let writer = spawn({
        let segment = segment.clone();
        move || insert(&segment, 0, 12, Priority::ONE)
    });
    let (mut batch, mut names) = (Batch::new(&schema(), 1), Vec::new());
    if let Ok(generation) = Reader::new(&segment, schema()).read(0, &mut batch.as_rows(), 0, &mut names) {
        assert!([(1, 10), (2, 12)].contains(&(generation, value(&batch, 0))), "generation {generation} holds {}", value(&batch, 0));
    }
    writer.join().unwrap();
    assert_eq!(rows(&segment), [11, 12]);
}

/// Two writers of which one comes round to the slot that the other has claimed: nothing is torn,
/// and every row has the leaf of its generation.
pub fn claimed_by_two_writers() {
    let takes_part = |region, word: usize| match region {
        Region::Store => word / STRIDE < 3 && word % STRIDE < 2,
        Region::Tree => word == 0,
        _ => false,
    };
    let segment = segment(sizes(2, 3), &[CLAIMED], takes_part);
    stage(&segment, 0, 10, Priority::ONE);
    (20..23).for_each(|value| stage(&segment, 1, value, Priority::ONE));
    let writer = spawn({
        let segment = segment.clone();
        move || flush(&segment, 0)
    });
    assert_eq!(flush(&segment, 1), 3);
    assert_eq!(writer.join().unwrap(), 1);
    let found = rows(&segment);
    assert!(found.len() == 3 && found.iter().all(|value| [10, 20, 21, 22].contains(value)), "{found:?}");
    assert_eq!(segment.control().inserted().load(Ordering::Relaxed), 4);
}

/// Two writers that pass over slots in which a process stands still: each gets a slot of its own.
pub fn passed_over_by_two_writers() {
    let segment = segment(sizes(3, 4), &[CLAIMED], |region, word: usize| {
        region == Region::Store && [2, 3].contains(&(word / STRIDE)) && word.is_multiple_of(STRIDE)
    });
    // Process 2 has claimed the first two slots, once each, and writes them.
    let writing = 1 << 24 | 1 << 20 | 2;
    (0..2).for_each(|slot| segment.words(Region::Store)[slot * STRIDE].store(writing, Ordering::Relaxed));
    let writer = spawn({
        let segment = segment.clone();
        move || insert(&segment, 0, 10, Priority::ONE)
    });
    insert(&segment, 1, 11, Priority::ONE);
    writer.join().unwrap();
    (0..2).for_each(|slot| segment.words(Region::Store)[slot * STRIDE].store(0, Ordering::Relaxed));
    assert_eq!(rows(&segment), [10, 11]);
}

/// Whoever sees rows counted as inserted sees them in the tree: they do not look as if they had been overwritten.
pub fn counted_once_they_are_there() {
    // The root, behind the leaves.
    let segment = segment(sizes(2, 3), &[INSERTED], |region, word| region == Region::Tree && word == 8);
    let other = spawn({
        let segment = segment.clone();
        move || insert(&segment, 1, 11, FRESH)
    });
    insert(&segment, 0, 10, FRESH);
    let inserted = segment.control().inserted().load(Ordering::Acquire);
    let fresh = fresh_rows(&SumTree::of(&segment).expect("a tree"));
    assert!(fresh >= inserted, "{inserted} rows are counted, and {fresh} are there");
    other.join().unwrap();
    assert_eq!(segment.control().inserted().load(Ordering::Relaxed), 2);
    assert_eq!(rows(&segment), [10, 11]);
}

fn take_all(segment: &Segment, index: usize) -> Vec<u64> {
    let mut replay = Replay::new(segment, schema(), segment.processes().slot(index));
    let mut batch = Batch::new(&schema(), 1);
    let mut taken = Vec::new();
    while replay.take(&mut batch, 0) {
        taken.push(value(&batch, 0));
    }
    taken
}

/// Two processes that take rows in order: each row goes to one of them.
pub fn taken_by_two() {
    let segment = segment(sizes(2, 3), &[], |region, word| region == Region::Tree && [0, 1, 8].contains(&word));
    (10..12).for_each(|value| insert(&segment, 0, value, FRESH));
    let other = spawn({
        let segment = segment.clone();
        move || take_all(&segment, 1)
    });
    let mut taken = take_all(&segment, 0);
    taken.extend(other.join().unwrap());
    taken.sort_unstable();
    assert_eq!((taken, rows(&segment)), (vec![10, 11], vec![10, 11]));
}

/// A process that takes rows while the oldest is overwritten: rows that it gets are whole and taken once, and others
/// are still there.
pub fn taken_while_they_are_overwritten() {
    let takes_part = |region, word| match region {
        Region::Store => of_slots(1, word),
        Region::Tree => word == 0,
        _ => false,
    };
    let segment = segment(sizes(2, 3), &[], takes_part);
    (10..13).for_each(|value| insert(&segment, 0, value, FRESH));
    let taker = spawn({
        let segment = segment.clone();
        move || take_all(&segment, 1)
    });
    insert(&segment, 0, 13, FRESH);
    let mut taken = taker.join().unwrap();
    taken.extend(take_all(&segment, 0));
    taken.sort_unstable();
    assert!(taken == [10, 11, 12, 13] || taken == [11, 12, 13], "{taken:?}");
    assert_eq!(rows(&segment), [11, 12, 13]);
}
