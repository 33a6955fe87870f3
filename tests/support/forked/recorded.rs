//! A replay of what an algorithm's recorder makes, for several processes.

use nix::unistd::Pid;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry};
use shoal::experience::Experience;
use shoal::replay::{Replay, ReplayView, Schema, StagingArea, repair};
use shoal::segment::processes::{ProcessSlot, Role};
use shoal::segment::{Layout, Segment, SegmentSizes, system};

use super::{Run, Sizes, wait_until};

/// An environment that shows `stack` frames of `side` x `side` bytes and takes three actions.
pub fn stacked_environment(stack: usize, side: usize) -> EnvironmentSpec {
    let observation = ObservationSpace { stack, ..ObservationSpace::bytes(&[stack, side, side]) };
    EnvironmentSpec { observation, action: ActionSpace::Discrete { n: 3 }, ..registry::spec("CartPole-v1").expect("it is native") }
}

/// A replay of the rows of one experience.
pub struct Recorded<E> {
    /// What makes the rows.
    pub experience: E,
    /// The segment.
    pub segment: Segment,
    /// Holds the watchdog, keeps other tests of this program from forking meanwhile, and has words of its own to share.
    pub run: Run,
}

impl<E: Experience> Recorded<E> {
    /// Room for `capacity` rows, `frames` frames and `processes` processes that stage `staged` rows each.
    pub fn new(experience: E, capacity: usize, frames: usize, processes: usize, staged: usize) -> Self {
        let run = Run::new(Sizes::default());
        let schema = experience.schema();
        let layout = Layout::new(SegmentSizes {
            processes,
            stagers: processes,
            staged_rows: staged,
            frames,
            frame_bytes: schema.frame_bytes(),
            ..SegmentSizes::of_rows(schema.words(), capacity)
        });
        let segment = Segment::create(layout.expect("sizes within their limits"), &super::run::description(&schema), false);
        Self { experience, segment: segment.expect("memory"), run }
    }

    /// Fields of a row.
    pub fn schema(&self) -> Schema {
        self.experience.schema()
    }

    /// Slot of the process table.
    pub fn slot(&self, slot: usize) -> ProcessSlot<'_> {
        self.segment.processes().slot(slot)
    }

    /// Staging area of a slot.
    pub fn area(&self, slot: usize) -> StagingArea<'_> {
        StagingArea::of(&self.segment, slot)
    }

    /// The replay as the process in slot `slot` uses it.
    pub fn replay(&self, slot: usize) -> Replay<'_> {
        Replay::new(&self.segment, self.schema(), self.slot(slot))
    }

    /// The replay as somebody sees it who changes nothing.
    pub fn view(&self) -> ReplayView<'_> {
        ReplayView::new(&self.segment, self.schema())
    }

    /// Promise a slot to a process that is to come; what it is given makes it that process's own.
    pub fn promised(&self, slot: usize) -> impl FnOnce() {
        let entry = self.slot(slot);
        let generation = entry.reserve(Role::Actor, slot).unwrap_or_else(|| panic!("slot {slot} is not free"));
        move || assert!(entry.occupy(std::process::id(), generation), "slot {slot} was not reserved")
    }

    /// Give this process a slot.
    pub fn join(&self, slot: usize) {
        self.promised(slot)();
    }

    /// Fork a process into a slot.
    pub fn start(&self, slot: usize, body: impl FnOnce()) -> Pid {
        let occupy = self.promised(slot);
        let child = system::fork_child(|| {
            occupy();
            body();
            0
        });
        child.expect("fork")
    }

    /// Do for the dead process in a slot what a supervisor does, waiting for living ones that are slow, and free the slot.
    pub fn repair(&self, slot: usize) {
        wait_until(|| repair(&self.segment, &self.schema(), self.slot(slot)).stuck.is_empty());
        self.slot(slot).release();
    }

    /// Repair after the process in a slot, which was killed after `instruction`. One repair must be enough, whichever instruction that is.
    pub fn repair_once(&self, slot: usize, instruction: usize) {
        let repaired = repair(&self.segment, &self.schema(), self.slot(slot));
        assert!(repaired.stuck.is_empty() && repaired.exact, "killed after instruction {instruction}: {repaired:?}");
        self.assert_exact(instruction);
    }

    /// Panics unless every node of the tree is the sum of its children.
    pub fn assert_exact(&self, instruction: usize) {
        let audit = self.view().tree().expect("a tree").audit();
        assert!(audit.is_exact(), "killed after instruction {instruction}: {audit:?}");
    }
}
