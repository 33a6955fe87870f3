//! A sum tree without a replay: for programs that keep their transitions themselves.

use std::sync::{Mutex, MutexGuard};

use super::options::FANOUT;
use super::per_process::PerProcess;
use super::{ReplayError, check_errors};
use crate::replay::sum_tree::Differences;
use crate::replay::{Priority, SumTree};
use crate::segment::PrivateWords;
use crate::segment::layout::MAX_CAPACITY;
use crate::segment::system::count_forks;

/// Times that a target is looked for again if its leaf was being set to zero.
const ROUNDS: usize = 100;

/// A sum tree in memory of its own, private to this process; a child of a fork has a copy. Its methods may be called
/// from several threads.
pub struct OwnedSumTree {
    words: PrivateWords,
    capacity: usize,
    /// Held by the thread that changes leaves.
    differences: PerProcess<Mutex<Differences>>,
}

impl OwnedSumTree {
    /// A tree of `capacity` leaves, all zero.
    ///
    /// # Errors
    /// `capacity` is 0 or larger than that of any replay, or there is no memory for it.
    pub fn new(capacity: usize) -> Result<Self, ReplayError> {
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(ReplayError::OutOfRange { what: "capacity", value: capacity as f64, least: 1.0, most: MAX_CAPACITY as f64 });
        }
        let words = PrivateWords::new(SumTree::words_needed(capacity, FANOUT))?;
        count_forks();
        Ok(Self { words, capacity, differences: PerProcess::new(Mutex::default()) })
    }

    fn tree(&self) -> SumTree<'_> {
        let tree = SumTree::new(self.words.get(), self.capacity, FANOUT);
        self.differences.get(|inherited| {
            // A thread of the parent, which the child does not have, was changing leaves.
            if inherited.try_lock().is_err() {
                tree.rebuild();
            }
            Mutex::default()
        });
        tree
    }

    /// The right to change leaves of `tree`.
    fn differences(&self, tree: &SumTree<'_>) -> MutexGuard<'_, Differences> {
        let mutex = self.differences.get(|_| Mutex::default());
        mutex.lock().unwrap_or_else(|poisoned| {
            // The panic left leaves whose sums are not updated.
            let mut differences = poisoned.into_inner();
            *differences = Differences::default();
            tree.rebuild();
            mutex.clear_poison();
            differences
        })
    }

    /// Number of leaves.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sum of all leaves.
    pub fn total(&self) -> f64 {
        Priority::sum_to_f64(self.tree().total())
    }

    /// Set leaves; if one is named twice, the last priority counts. A leaf with priority zero is never found. Other
    /// priorities are kept to a millionth, and at least that. Everything is checked before anything is changed.
    ///
    /// # Errors
    /// [`ReplayError::Priority`] for a priority that is no finite number of at least 0, [`ReplayError::OutOfRange`]
    /// for one above 524,288, [`ReplayError::Index`] for a leaf that does not exist.
    pub fn update(&self, leaves: &[i64], priorities: &[f32]) -> Result<(), ReplayError> {
        let most = Priority::LARGEST.to_f64() as f32;
        // One comparison per value, which the compiler vectorizes; NaN fails it too.
        if !priorities.iter().all(|priority| (0.0..=most).contains(priority)) {
            check_errors(priorities)?;
            let value = priorities.iter().copied().fold(0.0, f32::max).into();
            return Err(ReplayError::OutOfRange { what: "a priority", value, least: 0.0, most: most.into() });
        }
        self.check(leaves)?;
        let priority = |&value: &f32| if value == 0.0 { Some(Priority::NEVER) } else { Priority::from_f32(value) };
        let changes = leaves.iter().zip(priorities).filter_map(|(&leaf, value)| Some((leaf.cast_unsigned() as usize, 0, priority(value)?)));
        self.change(changes);
        Ok(())
    }

    /// Set leaves to priorities. The generation, the number between them, is always 0: leaves are not given to other
    /// transitions here.
    pub(super) fn change(&self, changes: impl Iterator<Item = (usize, u64, Priority)>) {
        let tree = self.tree();
        tree.update(changes, &mut self.differences(&tree));
    }

    /// The leaf on which each target, in `0..total`, falls: the first whose sum with all before it is greater.
    /// `found` has a place for each.
    ///
    /// # Errors
    /// [`ReplayError::AllZero`] while all leaves are zero; [`ReplayError::Contended`] if other threads keep changing
    /// the sums on the way; [`ReplayError::OutOfRange`] for a target below 0 or above the total.
    pub fn find(&self, targets: &[f64], found: &mut [i64]) -> Result<(), ReplayError> {
        let tree = self.tree();
        let total = tree.total();
        if total == 0 {
            return Err(ReplayError::AllZero);
        }
        let most = Priority::sum_to_f64(total);
        if let Some(&value) = targets.iter().find(|target| !(0.0..=most).contains(*target)) {
            return Err(ReplayError::OutOfRange { what: "a target", value, least: 0.0, most });
        }
        let mut units: Vec<u64> = targets.iter().map(|&target| Priority::sum_from_f64(target).min(total - 1)).collect();
        let mut leaves = vec![0; units.len()];
        tree.find(&mut units, &mut leaves);
        for ((place, leaf), &target) in found.iter_mut().zip(leaves).zip(targets) {
            let again = || self.find_again(&tree, target);
            let leaf = if leaf == SumTree::NOWHERE { again()? } else { leaf };
            *place = leaf as i64;
        }
        Ok(())
    }

    /// Look for a target again, on whose way another thread was changing sums.
    fn find_again(&self, tree: &SumTree<'_>, target: f64) -> Result<usize, ReplayError> {
        for _ in 0..ROUNDS {
            let mut leaf = [SumTree::NOWHERE];
            let last = tree.total().checked_sub(1).ok_or(ReplayError::AllZero)?;
            tree.find(&mut [Priority::sum_from_f64(target).min(last)], &mut leaf);
            if leaf[0] != SumTree::NOWHERE {
                return Ok(leaf[0]);
            }
            std::thread::yield_now();
        }
        Err(ReplayError::Contended { rounds: ROUNDS })
    }

    /// Priorities of `leaves`, or of all.
    ///
    /// # Errors
    /// [`ReplayError::Index`] for a leaf that does not exist.
    pub fn priorities(&self, leaves: Option<&[i64]>) -> Result<Vec<f64>, ReplayError> {
        let tree = self.tree();
        let Some(leaves) = leaves else { return Ok((0..self.capacity).map(|leaf| tree.raw_priority(leaf).to_f64()).collect()) };
        self.check(leaves)?;
        Ok(leaves.iter().map(|&leaf| tree.raw_priority(leaf.cast_unsigned() as usize).to_f64()).collect())
    }

    fn check(&self, leaves: &[i64]) -> Result<(), ReplayError> {
        let capacity = self.capacity;
        // One comparison per value, which the compiler vectorizes; a negative number is too large as well.
        if leaves.iter().all(|&leaf| leaf.cast_unsigned() < capacity as u64) {
            return Ok(());
        }
        let index = leaves.iter().copied().find(|&leaf| leaf.cast_unsigned() >= capacity as u64).unwrap_or(-1);
        Err(ReplayError::Index { index, capacity })
    }
}
