//! What the sentinel does for a run with checkpoints whose supervisor was killed: one more checkpoint, of
//! everything that was there, unless the run is to stay in memory and somebody adopts it.
//!
//! The kernel has asked the processes of the run to leave. They insert what they had staged, and learners publish
//! what they had learned; then nobody uses the segment any more.

use std::time::{Duration, Instant};

use super::Prepared;
use super::keeper::{Ended, Keeper};
use super::record::SupervisorRecord;
use super::weights::remembered_in;
use crate::checkpoint::{CheckpointError, Checkpoints, Content, RunCheckpoint};
use crate::config::schema::AfterSupervisor;
use crate::replay::{ReplayView, open_gate_of_the_dead, rebuild_sums, repair_beside};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::pidfd::Pidfd;
use crate::segment::processes::{ProcessSlot, Role, SlotState};
use crate::sync::Ordering;
use crate::telemetry::{RunFolder, jsonl, note};

/// How long the processes of the run may take to leave, and again to disappear once they were killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at them.
const PAUSE: Duration = Duration::from_millis(2);

/// What has become of the memory of a run whose supervisor was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nobody needs it any more.
    ToNobody,
    /// Another process has taken it over.
    ToAnother,
}

/// Everything that the sentinel knows of the run, from before its first process.
pub(super) struct Salvage<'a> {
    /// The run.
    pub(super) prepared: &'a Prepared,
    /// Folder of the run.
    pub(super) folder: &'a RunFolder,
}

impl Salvage<'_> {
    /// Wait until nobody uses the segment any more, and repair after everybody. Then keep the run in memory if that
    /// is wanted, or write a checkpoint, and note in `run.log` what became of the run.
    pub(super) fn run(self, segment: &Segment) -> Left {
        // Somebody may have moved it.
        match self.folder.found_again() {
            Some(folder) => Salvage { folder: &folder, ..self }.save(segment),
            None => self.save(segment),
        }
    }

    fn save(&self, segment: &Segment) -> Left {
        // The time for which the run is kept is not part of the run's time.
        let lived = self.prepared.started.elapsed();
        let control = segment.control();
        match control.run_state() {
            // Either nothing was done yet, or nobody may go on from what is there.
            RunState::Starting | RunState::Poisoned | RunState::Kept => return Left::ToNobody,
            // The supervisor was killed after the end of the run.
            _ if self.folder.record().is_ok_and(|record| record.finished.is_some()) => return Left::ToNobody,
            // This tells guests as well, and processes that have missed the signal.
            RunState::Running | RunState::Stopping => control.set_run_state(RunState::Stopping),
        }
        for slot in segment.processes().iter().filter(|slot| slot.state() == SlotState::Reserved) {
            // Processes that were about to join find their places taken back.
            slot.dead_owner().map(|owner| slot.release_from(owner));
        }
        if control.gate().load(Ordering::SeqCst) != 0 {
            // The supervisor died during a repair: others wait behind its gate, which may still be closed after the
            // repair here.
            self.repair(segment);
            if control.gate().load(Ordering::SeqCst) != 0 && rebuild_sums(segment).is_err() {
                // Nobody draws any more, so sums that are wrong for a while do no harm. Those that wait must go on
                // to leave.
                open_gate_of_the_dead(segment);
            }
        }
        wait_for_everybody(segment);
        let is_whole = self.repair(segment);
        let gone = "the supervisor is gone, and ";
        let said = if is_whole && self.prepared.loaded.config.machine.sentinel == AfterSupervisor::Kept {
            match self.keep(segment, lived) {
                Ok(Ended::Adopted) => return Left::ToAnother,
                Ok(Ended::OnDisk(said)) => said,
                Ok(Ended::GivenUp(reason)) => format!("what was kept in memory is lost: {reason}"),
                Err(reason) => {
                    self.folder.forget_kept();
                    let _ = note(self.folder, &format!("{gone}its run cannot be kept in memory: {reason}"));
                    self.write_to_disk(segment, lived).unwrap_or_else(|error| format!("{gone}what was there is lost: {error}"))
                }
            }
        } else if is_whole {
            self.write_to_disk(segment, lived).unwrap_or_else(|error| format!("{gone}what was there is lost: {error}"))
        } else {
            format!("{gone}what was there is lost: a process stands still in the middle of it")
        };
        // Nobody is left who could be told otherwise.
        let _ = self.folder.found_again().map(|folder| note(&folder, &said));
        Left::ToNobody
    }

    /// Offer the run in memory until somebody adopts it, or it is on the disk.
    ///
    /// # Errors
    /// What stands in the way, for people.
    fn keep(&self, segment: &Segment, lived: Duration) -> Result<Ended, String> {
        // Guests have been told meanwhile that the run is over, and leave.
        if !self.repair(segment) {
            return Err("a process stands still in the middle of its replay".into());
        }
        if let Some(guest) = living_by_kernel(segment).next() {
            return Err(format!("process {} still uses its replay", guest.pid()));
        }
        // A supervisor that ends by an error has removed the name of the segment.
        if Segment::identity_of(segment.name()).ok().as_ref() != Some(segment.identity()) {
            return Err("its memory has no name any more".into());
        }
        let schema = self.prepared.algorithm().schema();
        let view = ReplayView::new(segment, schema.clone());
        if view.tree().is_some_and(|tree| !tree.audit().is_exact()) {
            return Err("the sums of its priorities are wrong".into());
        }
        let description = segment.description().map_err(|error| error.to_string())?;
        let checkpoint =
            self.write(segment, lived, &Checkpoints::new(self.folder.kept()), Some(false)).map_err(|error| error.to_string())?;
        std::fs::write(self.folder.kept_segment(), segment.name()).map_err(|error| error.to_string())?;
        let settings = self.folder.settings().map_err(|error| error.to_string())?;
        let checkpoint = checkpoint.path().file_name().unwrap_or_default().to_owned();
        let keeper = Keeper { segment, description, checkpoint, schema, folder: self.folder, settings };
        let write = |folder: &RunFolder| Salvage { folder, ..*self }.write_to_disk(segment, lived).inspect(|_| folder.forget_kept());
        Ok(keeper.keep(write))
    }

    /// Write a checkpoint of everything that is there, and say so.
    fn write_to_disk(&self, segment: &Segment, lived: Duration) -> Result<String, CheckpointError> {
        let written = self.write(segment, lived, &Checkpoints::new(self.folder.checkpoints()), None)?;
        let name = written.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(format!("the supervisor is gone; checkpoint {name} has all that was there"))
    }

    /// Repair after every process that has died or left, as the supervisor does. Stops at the first repair that is
    /// not possible; returns whether all were.
    fn repair(&self, segment: &Segment) -> bool {
        let is_guest = |&slot: &usize| segment.processes().slot(slot).plays(Role::Guest);
        // A process that announces that it leaves wakes nobody: the supervisor may have died before it saw the guest off.
        let left_by = |slot: ProcessSlot<'_>| {
            let owner = slot.owner();
            (owner.state() == SlotState::Live && slot.plays(Role::Guest) && slot.is_leaving()).then_some(owner)
        };
        let mut gone = segment.processes().iter().filter_map(|slot| Some((slot, slot.dead_owner().or_else(|| left_by(slot))?)));
        let mut standing_still = Vec::new();
        // Others wait behind the gate meanwhile: whoever stands in the way of one repair stands in the way of all.
        gone.all(|(slot, owner)| {
            let schema = self.prepared.algorithm().schema();
            let mut repaired = repair_beside(segment, &schema, slot, &standing_still);
            // Guests are not killed. Those that work are waited for, and those that stand still are not.
            let stuck_guests: Vec<usize> = repaired.stuck.iter().copied().filter(is_guest).collect();
            if !stuck_guests.is_empty() {
                standing_still.extend(stuck_guests);
                repaired = repair_beside(segment, &schema, slot, &standing_still);
            }
            repaired.stuck.is_empty() && (repaired.exact || repaired.provisional) && slot.release_from(owner)
        })
    }

    /// Write one more of `checkpoints`, of a run that `lived` so long; with the replay or without, or as the
    /// configuration says.
    fn write(
        &self,
        segment: &Segment,
        lived: Duration,
        checkpoints: &Checkpoints,
        with_replay: Option<bool>,
    ) -> Result<RunCheckpoint, CheckpointError> {
        let config = &self.prepared.loaded.config;
        let env_steps = segment.control().env_steps().load(Ordering::Relaxed);
        let remembered = remembered_in(self.folder, config, env_steps);
        let wall_s = lived.as_secs_f64();
        let best_weights = self.folder.best_weights();
        // As the supervisor counts them.
        let serving = segment.processes().iter().filter(|slot| slot.role().is_none_or(|(role, _)| role.serves_training()));
        let restarts = serving.map(ProcessSlot::restarts).sum();
        let record = SupervisorRecord { wall_s, training_s: training_s(self.folder, wall_s), restarts, remembered };
        let later = |late| record.after(late, false);
        let content = record.content(self.prepared, segment, &best_weights, &later);
        let with_replay = with_replay.unwrap_or(content.with_replay);
        let retention = (&config.checkpoint).into();
        let (path, _) = checkpoints.write(Content { with_replay, ..content }, retention)?;
        let written = RunCheckpoint::open(&path)?;
        checkpoints.prune(retention);
        Ok(written)
    }
}

/// Slots whose process is alive according to the kernel. An id that no process can have means a damaged slot.
fn living_by_kernel(segment: &Segment) -> impl Iterator<Item = ProcessSlot<'_>> {
    let is_possible = |slot: &ProcessSlot<'_>| i32::try_from(slot.pid()).is_ok_and(|pid| pid > 0);
    segment.processes().living().filter(move |slot| is_possible(slot) && slot.dead_owner().is_none())
}

/// Wait for the processes of the run, and kill those that take too long. Guests are neither killed nor waited for.
pub(super) fn wait_for_everybody(segment: &Segment) {
    let ours = || living_by_kernel(segment).filter(|slot| slot.role().is_some_and(|(role, _)| role != Role::Guest));
    let wait = || {
        let deadline = Instant::now() + PATIENCE;
        while ours().next().is_some() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
    };
    wait();
    ours().for_each(kill_owner);
    wait();
}

/// Kill the process that the slot names, unless its id is another process's by now.
fn kill_owner(slot: ProcessSlot<'_>) {
    if let Some(process) = Pidfd::open_of(slot.pid(), slot.start_time()) {
        process.kill();
    }
}

/// Seconds of training of a run that took `wall_s`: without those that, by the last line of the metrics, were not
/// spent in training.
fn training_s(folder: &RunFolder, wall_s: f64) -> f64 {
    let last = jsonl::last::<serde_json::Value>(&folder.metrics());
    let other_s = last.and_then(|line| Some(line["wall_s"].as_f64()? - line["training_s"].as_f64()?)).unwrap_or(0.0);
    (wall_s - other_s).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_trained_since_the_last_line_of_its_metrics_too() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "run", "").unwrap();
        assert_eq!(training_s(&folder, 10.0), 10.0);
        std::fs::write(folder.metrics(), "{\"wall_s\":3.0}\n").unwrap();
        assert_eq!(training_s(&folder, 10.0), 10.0);
        std::fs::write(folder.metrics(), "{\"wall_s\":3.0,\"training_s\":1.0}\n").unwrap();
        assert_eq!(training_s(&folder, 10.0), 8.0);
        assert_eq!(training_s(&folder, 1.0), 0.0, "a line of more time than the run took is of an earlier life");
    }
}
