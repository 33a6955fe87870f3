//! Rates: what the counters gained between two looks.

use std::time::Instant;

use serde::Serialize;

use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::sync::Ordering;

/// Counters at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    at: Instant,
    run: Progress,
    processes: Vec<Progress>,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    env_steps: u64,
    updates: u64,
}

/// Work per second; absent where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rates {
    /// Environment steps per second.
    pub env_steps_per_s: Option<f64>,
    /// Updates per second.
    pub updates_per_s: Option<f64>,
}

impl Look {
    /// The counters of `segment` now.
    pub fn at(segment: &Segment) -> Self {
        let control = segment.control();
        let processes = segment
            .processes()
            .iter()
            .map(|slot| Progress { env_steps: slot.counters().get(Counter::EnvSteps), updates: slot.counters().get(Counter::Updates) });
        Self {
            run: Progress { env_steps: control.env_steps().load(Ordering::Relaxed), updates: control.updates().load(Ordering::Relaxed) },
            processes: processes.collect(),
            at: Instant::now(),
        }
    }

    /// Rates of the whole run from `earlier` until this look.
    pub(super) fn run_rates(&self, earlier: &Self) -> Rates {
        self.rates(earlier, self.run, earlier.run)
    }

    /// Rates of the process in `slot` from `earlier` until this look.
    pub(super) fn process_rates(&self, earlier: &Self, slot: usize) -> Rates {
        match (self.processes.get(slot), earlier.processes.get(slot)) {
            (Some(&now), Some(&then)) => self.rates(earlier, now, then),
            _ => Rates::default(),
        }
    }

    fn rates(&self, earlier: &Self, now: Progress, then: Progress) -> Rates {
        let elapsed_s = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let rate = |now: u64, then: u64| (elapsed_s > 0.0).then(|| now.saturating_sub(then) as f64 / elapsed_s);
        Rates { env_steps_per_s: rate(now.env_steps, then.env_steps), updates_per_s: rate(now.updates, then.updates) }
    }
}
