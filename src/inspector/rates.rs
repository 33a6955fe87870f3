//! Rates: what the counters gained between two looks, and the processor time that the gain took.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::machine::core_time::CoreTime;
use crate::machine::machine_time::MachineTime;
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::processes::{ProcessSlot, Role, SlotState};
use crate::sync::Ordering;

/// Counters at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    at: Instant,
    run: Progress,
    processes: Vec<Progress>,
    /// Processor time of the supervisor, if it lives.
    supervisor: Option<Duration>,
    machine_time: MachineTime,
    /// Products per second that the cores could compute; `None` before that is measured.
    products_peak_per_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    env_steps: u64,
    updates: u64,
    learned: u64,
    products: u64,
    /// Process id and processor time of the process.
    processor: Option<(u32, Duration)>,
    /// Whether the process is a guest.
    is_guest: bool,
}

/// Work per second, of a process or of the run; absent if nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rates {
    /// Environment steps per second.
    pub env_steps_per_s: Option<f64>,
    /// Updates per second.
    pub updates_per_s: Option<f64>,
    /// Transitions, or steps of fragments, that learners learned from per second: the update frame rate.
    pub learned_per_s: Option<f64>,
    /// Cores that were computed on, on average.
    pub cores_used: Option<f64>,
    /// Share of the time of all the machine's cores that any program computed; only in the rates of a run.
    pub machine_busy_share: Option<f64>,
    /// Products that networks computed per second: multiplications with a weight, in forward passes and in those for
    /// gradients.
    pub products_per_s: Option<f64>,
    /// `products_per_s` as a share of what the cores that the run may use could compute.
    pub peak_share: Option<f64>,
}

impl Look {
    /// The counters of `segment` now, and the processor time of processes that live.
    pub fn at(segment: &Segment) -> Self {
        let control = segment.control();
        let processes: Vec<Progress> = segment.processes().iter().map(Progress::of).collect();
        let run = Progress {
            env_steps: control.env_steps().load(Ordering::Relaxed),
            updates: control.updates().load(Ordering::Relaxed),
            learned: processes.iter().fold(0, |sum: u64, process| sum.wrapping_add(process.learned)),
            products: processes.iter().fold(0, |sum: u64, process| sum.wrapping_add(process.products)),
            ..Progress::default()
        };
        let peak_per_s = control.products_peak_per_s().load(Ordering::Relaxed);
        Self {
            run,
            processes,
            supervisor: CoreTime::of_process(segment.identity().supervisor_pid).map(|time| time.running),
            products_peak_per_s: (peak_per_s > 0).then_some(peak_per_s),
            machine_time: MachineTime::now(),
            at: Instant::now(),
        }
    }

    /// Rates of the whole run from `earlier` until this look. Cores that guests use do not count as the run's.
    pub(super) fn run_rates(&self, earlier: &Self) -> Rates {
        let own = (0..self.processes.len()).filter(|&slot| !self.processes[slot].is_guest);
        let cores_used = own.filter_map(|slot| self.process_rates(earlier, slot).cores_used);
        let machine_busy_share = (self.machine_time - earlier.machine_time).busy_share();
        Rates { cores_used: Some(cores_used.sum()), machine_busy_share, ..self.rates(earlier, self.run, earlier.run) }
    }

    /// Rates of the process in `slot` from `earlier` until this look.
    pub(super) fn process_rates(&self, earlier: &Self, slot: usize) -> Rates {
        match (self.processes.get(slot), earlier.processes.get(slot)) {
            (Some(&now), Some(&then)) => self.rates(earlier, now, then),
            _ => Rates::default(),
        }
    }

    /// Cores that the supervisor computed on from `earlier` until this look.
    pub(super) fn supervisor_cores_used(&self, earlier: &Self) -> Option<f64> {
        let (now, then) = self.supervisor.zip(earlier.supervisor)?;
        self.per_second(earlier, now.saturating_sub(then).as_secs_f64())
    }

    /// What was `gained` from `earlier` until this look, per second.
    fn per_second(&self, earlier: &Self, gained: f64) -> Option<f64> {
        let elapsed_s = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        (elapsed_s > 0.0).then(|| gained / elapsed_s)
    }

    fn rates(&self, earlier: &Self, now: Progress, then: Progress) -> Rates {
        let per_s = |gained: f64| self.per_second(earlier, gained);
        let rate = |now: u64, then: u64| per_s(now.saturating_sub(then) as f64);
        let products_per_s = rate(now.products, then.products);
        let computed = now.processor.zip(then.processor).filter(|(now, then)| now.0 == then.0);
        Rates {
            env_steps_per_s: rate(now.env_steps, then.env_steps),
            updates_per_s: rate(now.updates, then.updates),
            learned_per_s: rate(now.learned, then.learned),
            cores_used: computed.and_then(|((_, now), (_, then))| per_s(now.saturating_sub(then).as_secs_f64())),
            machine_busy_share: None,
            products_per_s,
            peak_share: products_per_s.zip(self.products_peak_per_s).map(|(products_per_s, peak_per_s)| products_per_s / peak_per_s as f64),
        }
    }
}

impl Progress {
    fn of(slot: ProcessSlot<'_>) -> Self {
        let pid = slot.pid();
        // A process id in the segment may be any number; a process that does not live has no processor time.
        let time = (slot.state() == SlotState::Live).then(|| CoreTime::of_process(pid)).flatten();
        Self {
            env_steps: slot.counters().get(Counter::EnvSteps),
            updates: slot.counters().get(Counter::Updates),
            learned: slot.counters().get(Counter::Learned),
            products: slot.counters().get(Counter::Products),
            processor: time.map(|time| (pid, time.running)),
            is_guest: slot.plays(Role::Guest),
        }
    }
}
