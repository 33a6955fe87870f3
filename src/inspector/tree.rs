//! An audit of the sum tree from outside, while processes may be changing it.

use std::time::Duration;

use serde::Serialize;

use crate::replay::{Audit, Priority, SumTree};
use crate::segment::Segment;
use crate::segment::pidfd::is_alive;
use crate::sync::Ordering;

/// The verdict of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// Every node was the sum of its children.
    Exact,
    /// Nodes were not the sums of their children, and no process was changing the tree.
    Inconsistent,
    /// Nodes were not the sums of their children, and a process died in the middle of an operation: a repair makes
    /// the tree exact.
    HalfChanged,
    /// The tree was being changed in every look, so that differences mean nothing.
    InMotion,
}

/// The sum tree, audited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TreeReport {
    /// Children per node.
    pub fanout: usize,
    /// The verdict of the audit.
    pub verdict: Exactness,
    /// Looks that the audit took.
    pub looks: u32,
    /// What the last look found, in units of the smallest priority.
    #[serde(flatten)]
    pub audit: Audit,
    /// Sum of all priorities, from the leaves.
    pub total_priority: f64,
}

impl TreeReport {
    /// Audits `tree`, looking up to `most_looks` times until it is found exact or damaged.
    pub(super) fn of(segment: &Segment, tree: &SumTree<'_>, most_looks: u32) -> Self {
        let mut last: Option<Audit> = None;
        let mut looks = 0;
        let (audit, verdict) = loop {
            let before = Moment::of(segment);
            let audit = tree.audit();
            looks += 1;
            if audit.is_exact() {
                break (audit, Exactness::Exact);
            }
            let quiet = before.is_quiet() && before == Moment::of(segment);
            // One look may fall between two additions of a process that was put to sleep. Two looks that agree did not.
            if quiet && last == Some(audit) {
                break (audit, if before.died_inside > 0 { Exactness::HalfChanged } else { Exactness::Inconsistent });
            }
            last = quiet.then_some(audit);
            if looks >= most_looks {
                break (audit, Exactness::InMotion);
            }
            std::thread::sleep(Duration::from_millis(u64::from(looks)));
        };
        let total_priority = audit.leaf_sum as f64 * Priority::SMALLEST.to_f64();
        Self { fanout: segment.layout().sizes().fanout, verdict, looks, audit, total_priority }
    }
}

/// Counts that change whenever a process changes the tree.
#[derive(PartialEq, Eq)]
struct Moment {
    /// Living processes in the middle of an operation.
    working: usize,
    /// Processes that died in the middle of an operation and are not repaired yet.
    died_inside: usize,
    claimed: u64,
    sampled: u64,
}

impl Moment {
    fn of(segment: &Segment) -> Self {
        let inside = segment.processes().living().filter(|slot| slot.in_operation());
        let (working, died_inside): (Vec<_>, Vec<_>) = inside.partition(|slot| is_alive(slot.pid(), slot.start_time()));
        Self {
            working: working.len(),
            died_inside: died_inside.len(),
            claimed: segment.control().claimed().load(Ordering::Relaxed),
            sampled: segment.control().sampled().load(Ordering::Relaxed),
        }
    }

    fn is_quiet(&self) -> bool {
        self.working == 0
    }
}
