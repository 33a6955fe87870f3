//! What the sentinel does for a run with checkpoints whose supervisor was killed: one more checkpoint, of everything that was there.
//!
//! The kernel has asked the processes of the run to leave. They insert what they had staged, and learners publish what they had
//! learned; then nobody uses the segment any more.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Prepared;
use super::resumption::Memory;
use super::session::checkpoint_content;
use crate::checkpoint::{CheckpointError, Checkpoints, RunCheckpoint};
use crate::replay::repair_beside;
use crate::segment::Segment;
use crate::segment::processes::{ProcessSlot, Role, SlotState, has_exited};
use crate::sync::Ordering;
use crate::telemetry::{Remembered, RunFolder, note};

/// How long the processes of the run may take to leave, and to disappear once they were killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at them.
const PAUSE: Duration = Duration::from_millis(2);

/// Everything that the sentinel knows of the run, from before its first process.
pub(super) struct Salvage<'a> {
    /// The run.
    pub(super) prepared: &'a Prepared,
    /// Its folder.
    pub(super) folder: &'a RunFolder,
}

impl Salvage<'_> {
    /// Wait until nobody uses the segment any more, repair after everybody, write a checkpoint, and note in `run.log` what became of it.
    pub(super) fn run(self, segment: &Segment) {
        wait_for_everybody(segment);
        self.repair(segment);
        let said = match self.write(segment) {
            Ok(name) => format!("the supervisor was killed; checkpoint {name} has all that was there"),
            Err(error) => format!("the supervisor was killed, and what was there is lost: {error}"),
        };
        // Nobody is left who could be told otherwise.
        let _ = note(self.folder, &said);
    }

    /// As the supervisor does after a death.
    fn repair(&self, segment: &Segment) {
        let guests: Vec<usize> = living(segment).map(|slot| slot.index()).collect();
        for slot in segment.processes().iter().filter(|slot| slot.dead_owner().is_some()) {
            let repaired = repair_beside(segment, &self.prepared.algorithm.schema(), slot, &guests);
            debug_assert!(repaired.stuck.is_empty(), "everybody else is gone");
            slot.release();
        }
    }

    fn write(&self, segment: &Segment) -> Result<String, CheckpointError> {
        let config = &self.prepared.loaded.config;
        let env_steps = segment.control().env_steps().load(Ordering::Relaxed);
        let remembered = Remembered::of_files(self.folder, config.run.stop_eval_return, env_steps);
        let wall_s = self.prepared.started.elapsed().as_secs_f64();
        let checkpoints = Checkpoints::new(self.folder.checkpoints());
        let best_weights = self.folder.best_weights();
        let memory = Memory { wall_s, training_s: wall_s, restarts: 0, remembered };
        let (path, _) = checkpoints.write(checkpoint_content(self.prepared, segment, &best_weights, &memory))?;
        RunCheckpoint::open(&path)?;
        checkpoints.prune((&config.checkpoint).into());
        Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }
}

/// Slots whose process lives, in the kernel's words.
fn living(segment: &Segment) -> impl Iterator<Item = ProcessSlot<'_>> {
    segment.processes().iter().filter(|slot| slot.state() == SlotState::Live && slot.dead_owner().is_none())
}

/// Wait for the processes of the run; those that take too long are killed. Guests are nobody's to kill, and nobody's to wait for.
fn wait_for_everybody(segment: &Segment) {
    let ours = || living(segment).filter(|slot| slot.role().is_some_and(|(role, _)| role != Role::Guest));
    let wait = || {
        let deadline = Instant::now() + PATIENCE;
        while ours().next().is_some() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
    };
    wait();
    for slot in ours() {
        // The id was this process's a moment ago, and is looked at once more.
        if !has_exited(slot.pid(), slot.start_time()) {
            let _ = kill(Pid::from_raw(slot.pid().cast_signed()), Signal::SIGKILL);
        }
    }
    wait();
}
