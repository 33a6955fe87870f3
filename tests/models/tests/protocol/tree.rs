//! Leaves that several processes change at once, and the differences that they carry to the root.

use loom::thread::spawn;
use shoal_models::replay::sum_tree::Differences;
use shoal_models::replay::{Priority, SumTree};
use shoal_models::sync::AtomicU64;

use super::support::words;

const CAPACITY: usize = 8;
const FANOUT: usize = 4;

fn tree(words: &[AtomicU64]) -> SumTree<'_> {
    SumTree::new(words, CAPACITY, FANOUT)
}

/// A late update, a new generation and a process that takes: the root is the sum of the leaves, and the leaf is the
/// new generation's.
pub fn changed_by_three() {
    // Two leaves, the node above them, and the root.
    let memory = words(SumTree::words_needed(CAPACITY, FANOUT), |word| [0, 1, 8, 16].contains(&word));
    tree(&memory).clear(&[(0, 1), (1, 1)], &mut Differences::default());
    let one = |slot, generation, priority| std::iter::once((slot, generation, priority));
    let large = Priority::from_f32(3.0).unwrap();
    tree(&memory).update([(0, 1, Priority::ONE), (1, 1, Priority::ONE)].into_iter(), &mut Differences::default());
    let late = spawn({
        let memory = memory.clone();
        move || tree(&memory).update(one(0, 1, large), &mut Differences::default())
    });
    let taker = spawn({
        let memory = memory.clone();
        move || [0, 1].map(|slot| tree(&memory).take(slot, 1, &mut Differences::default()))
    });
    tree(&memory).clear(&[(0, 2)], &mut Differences::default());
    assert_eq!(tree(&memory).update(one(0, 2, Priority::SMALLEST), &mut Differences::default()), 0, "nobody else has this generation");
    late.join().unwrap();
    assert!(taker.join().unwrap()[1]);
    let audit = tree(&memory).audit();
    assert!(audit.is_exact(), "{audit:?}");
    assert_eq!(tree(&memory).priority(0, 2), Some(Priority::SMALLEST));
}
