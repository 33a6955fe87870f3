//! What the cores did for the processes of a run: added up by role, the dead included.

use std::time::{Duration, Instant};

use crate::machine::core_time::CoreTime;
use crate::segment::Segment;
use crate::segment::processes::{Role, SlotState};
use crate::telemetry::ByKind;

/// The core time of every process, read whenever the supervisor looks around. The processes do nothing for it.
#[derive(Debug)]
pub(super) struct CoreTimes {
    slots: Vec<Reading>,
    looked_at: Instant,
    /// Of each kind of process. The supervisor is this process and has no slot.
    pub(super) used: ByKind<CoreTime>,
    /// What the supervisor had used when these times began: to restore a run may have taken seconds, which are no part of it.
    supervisor_before: CoreTime,
}

/// The last look at the owner of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    generation: u64,
    time: CoreTime,
    /// Share of the time between the last two looks in which the process waited for a core.
    core_wait: f64,
}

impl Reading {
    /// Take in the `time` of the owner of this generation, `between` after the last look. Returns what it has used since
    /// then.
    fn take_in(&mut self, generation: u64, mut time: CoreTime, between: Duration) -> CoreTime {
        let before = if self.generation == generation { self.time } else { CoreTime::default() };
        // Whoever can open no more files reads no wait. The kernel's count never falls.
        time.waiting = time.waiting.max(before.waiting);
        let used = time - before;
        *self = Self { generation, time, core_wait: wait_share(used.waiting, between) };
        used
    }
}

impl CoreTimes {
    /// The times before the first look.
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            looked_at: Instant::now(),
            used: ByKind::default(),
            supervisor_before: CoreTime::of_process(std::process::id()).unwrap_or_default(),
        }
    }

    /// Look at every living process of `segment`. What a process used between the last look and its death is not
    /// known any more.
    pub(super) fn read(&mut self, segment: &Segment) {
        let between = self.looked_at.elapsed();
        self.looked_at = Instant::now();
        if let Some(time) = CoreTime::of_process(std::process::id()) {
            self.used.supervisor = time - self.supervisor_before;
        }
        self.slots.resize(segment.processes().len(), Reading::default());
        for (slot, last) in segment.processes().iter().zip(&mut self.slots) {
            let living = slot.state() == SlotState::Live;
            let (Some((role, _)), Some(time)) = (slot.role(), living.then(|| CoreTime::of_process(slot.pid())).flatten()) else {
                // Who is not there waits for no core.
                last.core_wait = 0.0;
                continue;
            };
            let used = last.take_in(slot.generation(), time, between);
            let total = match role {
                Role::Actor | Role::AttachedActor => &mut self.used.actors,
                Role::Learner => &mut self.used.learners,
                Role::Synchronous => &mut self.used.trainer,
                Role::Evaluator => &mut self.used.evaluator,
                Role::Visualizer => &mut self.used.visualizer,
                // Guests are no part of the run.
                Role::Participant | Role::Guest => continue,
            };
            *total += used;
        }
    }

    /// Processor time of each kind of process, in seconds.
    pub(super) fn processor_s(&self) -> ByKind {
        self.used.map(|time| time.running.as_secs_f64())
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
        while times.used.supervisor.running.is_zero() || times.used.visualizer.running.is_zero() {
            times.read(&segment);
        }
        let ByKind { visualizer, supervisor, .. } = times.processor_s();
        assert_eq!(times.processor_s(), ByKind { visualizer, supervisor, ..ByKind::default() });
        assert_eq!(times.processor_s().of_run(), visualizer, "what looks at all processes is none of them");
    }

    #[test]
    fn processor_time_is_told_of_the_kind_that_used_it_and_of_no_guest() {
        for role in [Role::Learner, Role::Actor, Role::AttachedActor, Role::Synchronous, Role::Evaluator, Role::Visualizer, Role::Guest] {
            let segment = segment_with(role);
            let mut times = CoreTimes::new();
            // The supervisor's time is of the same process. The kernel may count what it does later.
            while times.used.supervisor.running.is_zero() {
                times.read(&segment);
            }
            let now = times.processor_s();
            let of_role = match role {
                Role::Learner => now.learners,
                Role::Actor | Role::AttachedActor => now.actors,
                Role::Synchronous => now.trainer,
                Role::Evaluator => now.evaluator,
                Role::Visualizer => now.visualizer,
                Role::Participant | Role::Guest => 0.0,
            };
            assert_eq!(now.of_run(), of_role, "{role:?}");
            assert_eq!(of_role > 0.0, role != Role::Guest, "{role:?}");
        }
    }

    #[test]
    fn what_the_supervisor_did_before_it_observed_the_run_is_none_of_its_time() {
        let segment = segment_with(Role::Learner);
        let now = || CoreTime::of_process(std::process::id()).unwrap();
        while now().running < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
        let before = now();
        let mut times = CoreTimes::new();
        times.read(&segment);
        assert!(times.used.supervisor.running <= (now() - before).running, "{times:?}");
    }

    #[test]
    fn nobody_waits_for_more_than_all_of_the_time() {
        let share = |waited_ms| wait_share(Duration::from_millis(waited_ms), Duration::from_millis(200));
        assert_eq!([0, 50, 200, 880].map(share), [0.0, 0.25, 1.0, 1.0]);
    }

    #[test]
    fn a_look_that_cannot_read_the_wait_for_cores_does_not_have_it_counted_twice() {
        let mut last = Reading::default();
        let mut used = CoreTime::default();
        for waited_s in [8, 0, 9] {
            let time = CoreTime { waiting: Duration::from_secs(waited_s), ..CoreTime::default() };
            used += last.take_in(1, time, Duration::from_secs(60));
        }
        assert_eq!(used.waiting, Duration::from_secs(9));
        let another = CoreTime { waiting: Duration::from_secs(2), ..CoreTime::default() };
        assert_eq!(last.take_in(2, another, Duration::from_secs(60)), another, "who has the slot now has waited for itself");
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
