//! What the cores did for the processes of a run: added up by role, the dead included.

use std::time::{Duration, Instant};

use crate::machine::core_time::CoreTime;
use crate::segment::Segment;
use crate::segment::processes::{Role, SlotState};

/// The core time of every process, read whenever the supervisor looks around. The processes do nothing for it.
#[derive(Debug)]
pub(super) struct CoreTimes {
    slots: Vec<Reading>,
    looked_at: Instant,
    /// Of all actors.
    pub(super) actors: CoreTime,
    /// Of all learners.
    pub(super) learners: CoreTime,
    /// Of the evaluator.
    pub(super) evaluator: CoreTime,
    /// Of the visualizer.
    pub(super) visualizer: CoreTime,
    /// Of the supervisor, which is this process and has no slot, since it began.
    pub(super) supervisor: CoreTime,
    /// Processor time of all processes of the run but the supervisor. Guests are no part of the run.
    pub(super) all: Duration,
}

/// The last look at the owner of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    generation: u64,
    time: CoreTime,
    /// Share of the time between the last two looks in which the process waited for a core.
    core_wait: f64,
}

impl CoreTimes {
    /// The times before the first look.
    pub(super) fn new() -> Self {
        let none = CoreTime::default();
        Self {
            slots: Vec::new(),
            looked_at: Instant::now(),
            actors: none,
            learners: none,
            evaluator: none,
            visualizer: none,
            supervisor: none,
            all: Duration::ZERO,
        }
    }

    /// Look at every living process of `segment`. What a process used between the last look and its death is not
    /// known any more.
    pub(super) fn read(&mut self, segment: &Segment) {
        let between = self.looked_at.elapsed();
        self.looked_at = Instant::now();
        self.supervisor = CoreTime::of_process(std::process::id()).unwrap_or(self.supervisor);
        self.slots.resize(segment.processes().len(), Reading::default());
        for (slot, last) in segment.processes().iter().zip(&mut self.slots) {
            let living = slot.state() == SlotState::Live;
            let (Some((role, _)), Some(time)) = (slot.role(), living.then(|| CoreTime::of_process(slot.pid())).flatten()) else {
                // Who is not there waits for no core.
                last.core_wait = 0.0;
                continue;
            };
            let generation = slot.generation();
            let before = if last.generation == generation { last.time } else { CoreTime::default() };
            let used = time - before;
            *last = Reading { generation, time, core_wait: wait_share(used.waiting, between) };
            if !matches!(role, Role::Participant | Role::Guest) {
                self.all += used.running;
            }
            let total = match role {
                Role::Actor | Role::AttachedActor => &mut self.actors,
                Role::Learner => &mut self.learners,
                Role::Evaluator => &mut self.evaluator,
                Role::Visualizer => &mut self.visualizer,
                // One process that does everything in turn cannot be divided, and what a guest does is its own
                // business.
                Role::Synchronous | Role::Participant | Role::Guest => continue,
            };
            *total += used;
        }
    }

    /// Share of the time between the last two looks in which the owner of slot `slot` waited for a core.
    pub(super) fn core_wait(&self, slot: usize) -> f64 {
        self.slots.get(slot).map_or(0.0, |reading| reading.core_wait)
    }
}

/// Share of the time `between` two looks in which a process waited for a core that has `waited` so long by the kernel's
/// count. The kernel counts a wait when it is over: the count may hold waits that began before the first look.
fn wait_share(waited: Duration, between: Duration) -> f64 {
    (waited.as_secs_f64() / between.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SegmentSizes;

    /// A segment in which this process plays `role`.
    fn segment_with(role: Role) -> Segment {
        let segment = Segment::of_sizes(SegmentSizes::of_rows(1, 64));
        let slot = segment.processes().slot(0);
        let generation = slot.reserve(role, 0).unwrap();
        assert!(slot.occupy(std::process::id(), generation));
        segment
    }

    #[test]
    fn the_visualizer_and_the_supervisor_have_times_of_their_own() {
        let segment = segment_with(Role::Visualizer);
        let mut times = CoreTimes::new();
        // This process is both. The kernel may count what it does later.
        while times.supervisor.running.is_zero() || times.visualizer.running.is_zero() {
            times.read(&segment);
        }
        assert_eq!([times.actors, times.learners, times.evaluator], [CoreTime::default(); 3]);
        assert_eq!(times.all, times.visualizer.running, "what looks at all processes is none of them");
    }

    #[test]
    fn nobody_waits_for_more_than_all_of_the_time() {
        let share = |waited_ms| wait_share(Duration::from_millis(waited_ms), Duration::from_millis(200));
        assert_eq!([0, 50, 200, 880].map(share), [0.0, 0.25, 1.0, 1.0]);
    }

    #[test]
    fn who_is_gone_waits_for_no_core() {
        let segment = segment_with(Role::Learner);
        let mut times = CoreTimes::new();
        times.read(&segment);
        // As if others had had its core, until it died.
        times.slots[0].core_wait = 0.9;
        segment.processes().slot(0).release();
        times.read(&segment);
        assert_eq!(times.core_wait(0), 0.0);
    }
}
