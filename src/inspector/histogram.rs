//! The distribution of priorities: counts per power of two, since priorities span many orders of magnitude.

use serde::Serialize;

use crate::replay::{Priority, SumTree};

/// Priorities in the replay, by powers of two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// The bins from the smallest priority to the largest, without gaps.
    pub bins: Vec<Bin>,
    /// Transitions with a positive priority, which can be sampled.
    pub positive: u64,
    /// Filled slots with a priority of zero: they cannot be sampled now, because they are being written.
    pub zero: u64,
    /// Smallest positive priority.
    pub smallest: Option<f64>,
    /// Largest priority.
    pub largest: Option<f64>,
    /// Mean of the positive priorities.
    pub mean: Option<f64>,
}

/// The number of priorities in `at_least..below`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Lower end: `2^exponent`.
    pub at_least: f64,
    /// Upper end: `2^(exponent + 1)`.
    pub below: f64,
    /// Number of transitions.
    pub count: u64,
}

/// Powers of two in which a priority of 64 bits can lie.
const POWERS: usize = 64;

impl Histogram {
    /// Counts the leaves of `tree`, of which `filled` belong to transitions.
    pub fn of(tree: &SumTree<'_>, filled: u64) -> Self {
        let unit = Priority::SMALLEST.to_f64();
        let mut counts = [0u64; POWERS];
        let (mut sum, mut smallest, mut largest) = (0.0, f64::INFINITY, 0.0f64);
        for slot in 0..tree.capacity() {
            let priority = tree.raw_priority(slot).to_f64();
            if priority > 0.0 {
                // Dividing by a power of two is exact, so this is the fixed-point integer itself.
                let integer = (priority / unit) as u64;
                counts[usize::try_from(integer.max(1).ilog2()).unwrap_or(0)] += 1;
                sum += priority;
                smallest = smallest.min(priority);
                largest = largest.max(priority);
            }
        }
        let positive: u64 = counts.iter().sum();
        let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
        let end = counts.iter().rposition(|&count| count > 0).map_or(first, |last| last + 1);
        let bin = |power: usize| {
            let at_least = unit * 2f64.powi(i32::try_from(power).unwrap_or(0));
            Bin { at_least, below: 2.0 * at_least, count: counts[power] }
        };
        let present = |value: f64| (positive > 0).then_some(value);
        Self {
            bins: (first..end).map(bin).collect(),
            positive,
            zero: filled.saturating_sub(positive),
            smallest: present(smallest),
            largest: present(largest),
            mean: present(sum / positive as f64),
        }
    }

    /// Count of the fullest bin.
    pub fn highest_count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).max().unwrap_or(0)
    }
}
