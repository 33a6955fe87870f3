//! A small run: a segment, its watchdog, and what a supervisor does with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use shoal::replay::{Audit, Batch, Replay, ReplayView, Sampler, Schema, StagingArea};
use shoal::segment::description::Description;
use shoal::segment::processes::ProcessSlot;
use shoal::segment::{Layout, Region, Segment, SegmentSizes, object, system};
use shoal::sync::{AtomicU64, Ordering, wake_all};

use super::{Identity, Payload};

/// After this long a test is killed, and its segment removed, sooner than by nextest; longer runs that the environment asks for get more.
const WATCHDOG_S: u64 = 1_200;

/// Processes are forked from a process with one busy thread only: tests of one binary run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What tests choose of a layout.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Transitions in the store.
    pub capacity: usize,
    /// Children per node; 0 for uniform sampling.
    pub fanout: usize,
    /// Processes, all with staging areas.
    pub processes: usize,
    /// Rows in a staging area.
    pub staged_rows: usize,
    /// Parameters of the network; the learners' state, four times as long, is the tests' own scratch space.
    pub network_parameters: usize,
    /// Learners.
    pub learners: usize,
    /// Values in the statistics of what was seen; 0 if nothing is normalised.
    pub statistics_values: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { capacity: 256, fanout: 8, processes: 8, staged_rows: 64, network_parameters: 256, learners: 3, statistics_values: 0 }
    }
}

/// A run for one test. Dropping it removes the segment; so does the watchdog when the test hangs or is killed.
pub struct Run {
    /// The segment.
    pub segment: Segment,
    /// The transitions.
    pub payload: Payload,
    watchdog: nix::unistd::Pid,
    _alone: MutexGuard<'static, ()>,
}

impl Run {
    /// A run of these sizes.
    pub fn new(sizes: Sizes) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Some tests crash what they fork: no file of the size of its memory is to be left each time.
        setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("a lower limit");
        let payload = Payload::new();
        let segment = Segment::create(layout(sizes, payload.schema()), &description(payload.schema()), false).expect("a small segment");
        let watchdog = watch(segment.name());
        Self { segment, payload, watchdog, _alone: alone }
    }

    /// The replay as the process in slot `slot` uses it.
    pub fn replay(&self, slot: usize) -> Replay<'_> {
        Replay::new(&self.segment, self.payload.schema().clone(), self.slot(slot))
    }

    /// The replay as somebody sees it who changes nothing.
    pub fn view(&self) -> ReplayView<'_> {
        ReplayView::new(&self.segment, self.payload.schema().clone())
    }

    /// Draws and changes nothing.
    pub fn sampler(&self) -> Sampler<'_> {
        Sampler::new(&self.segment, self.payload.schema().clone())
    }

    /// Slot of the process table.
    pub fn slot(&self, slot: usize) -> ProcessSlot<'_> {
        self.segment.processes().slot(slot)
    }

    /// Staging area of a slot.
    pub fn area(&self, slot: usize) -> StagingArea<'_> {
        StagingArea::of(&self.segment, slot)
    }

    /// A word that the test's processes share, apart from everything that is being tested.
    pub fn scratch(&self, index: usize) -> &AtomicU64 {
        &self.segment.words(Region::LearnerState)[index]
    }

    /// Close the gate, wait until nobody is inside, do something, open it again.
    pub fn while_quiet<T>(&self, work: impl FnOnce() -> T) -> T {
        let gate = self.segment.control().gate();
        gate.store(1, Ordering::SeqCst);
        super::wait_until(|| !self.segment.processes().living().any(|slot| slot.in_operation()));
        let result = work();
        gate.store(0, Ordering::SeqCst);
        wake_all(gate);
        result
    }

    /// Audit the tree while nobody changes it.
    pub fn audit(&self) -> Audit {
        let replay = self.view();
        self.while_quiet(|| replay.tree().expect("a tree").audit())
    }

    /// Panic unless every node of the tree is the sum of its children.
    pub fn assert_tree_is_exact(&self) {
        let audit = self.audit();
        assert!(audit.is_exact(), "{audit:?}");
    }

    /// Every whole transition in the store with how often it is there. Panics on torn ones, on slots that are being
    /// written, and on leaves that do not speak of the transition in their slot. Nobody may be writing.
    pub fn contents(&self) -> HashMap<Identity, usize> {
        let replay = self.view();
        let mut batch = Batch::new(self.payload.schema(), 1);
        let mut contents = HashMap::new();
        for slot in 0..replay.store().capacity() {
            let word = replay.store().word(slot);
            assert!(!word.is_writing(), "slot {slot} is still being written: {word:?}");
            if word.is_empty() {
                continue;
            }
            let read = replay.reader().read(slot, &mut batch.as_rows(), 0, &mut Vec::new());
            let generation = read.expect("a ready slot in a quiet store");
            assert_eq!(generation, word.generation());
            if let Some(tree) = replay.tree() {
                let priority = tree.priority(slot, generation);
                assert!(
                    priority.is_some_and(|priority| priority.to_f64() > 0.0),
                    "the leaf of slot {slot} has {priority:?} for generation {generation}"
                );
            }
            *contents.entry(self.payload.verify(&batch, 0)).or_default() += 1;
        }
        contents
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.watchdog, nix::sys::signal::Signal::SIGKILL);
        let _ = nix::sys::wait::waitpid(self.watchdog, None);
    }
}

/// The layout of a run of these sizes.
pub fn layout(sizes: Sizes, schema: &Schema) -> Layout {
    let Sizes { capacity, fanout, processes, staged_rows, network_parameters, learners, statistics_values } = sizes;
    Layout::new(SegmentSizes {
        processes,
        stagers: processes,
        staged_rows,
        fanout,
        published_values: network_parameters,
        learned_parameters: network_parameters,
        learner_state_values: 4 * network_parameters.next_multiple_of(2),
        learners,
        statistics_values,
        ..SegmentSizes::of_rows(schema.words(), capacity)
    })
    .expect("sizes within their limits")
}

/// The description in the segment of a test's run.
pub fn description(schema: &Schema) -> Description {
    Description {
        program_version: env!("CARGO_PKG_VERSION").into(),
        config_toml: "[run]\nseed = 1\n".into(),
        run_folder: "runs/test".into(),
        environment: "Test-v0".into(),
        spaces: String::new(),
        algorithm: "dqn".into(),
        fields: schema.describe(),
        metrics: Vec::new(),
    }
}

/// A process that kills this one when it takes too long, and removes the segment `name` once this one is gone.
fn watch(name: &str) -> nix::unistd::Pid {
    let watched = nix::unistd::getpid();
    let asked = super::count_from_environment("SHOAL_TEST_KILLS", 0) / 1_000;
    let patience_s = i64::try_from(WATCHDOG_S * (1 + asked)).expect("a time that fits");
    let descriptor = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).expect("a pidfd of this process");
    system::fork_survivor(|| {
        // In a session of its own, so that whoever ends the test's process group does not end the watchdog with it.
        let _ = nix::unistd::setsid();
        let ended = || {
            let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
            poll(&mut descriptors, Some(&Timespec { tv_sec: patience_s, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
        };
        if !ended() {
            let _ = nix::sys::signal::kill(watched, nix::sys::signal::Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(10));
        object::remove(name);
        0
    })
    .expect("forking the watchdog")
}
