//! The sentinel as the keeper of a run in memory: it offers the run until a new supervisor has adopted it, or it is
//! on the disk.

use std::ffi::OsString;
use std::fs::File;
use std::time::Duration;

use indicatif::BinaryBytes;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::resumption::ROWS;
use crate::checkpoint::{CheckpointError, RowsIn, RunCheckpoint};
use crate::replay::Schema;
use crate::segment::control::RunState;
use crate::segment::keeping::Wanted;
use crate::segment::{Description, Segment, system};
use crate::shell::word;
use crate::telemetry::{FolderSettings, RunFolder, note};

/// The longest between two looks at what is wanted, and at whoever adopts the run.
const PAUSE: Duration = Duration::from_millis(20);
/// Time between two attempts to put right what a dead adopter left, the number of attempts, and their number once
/// this process was asked to stop.
const RETRY: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 60;
const ATTEMPTS_AFTER_A_STOP: u32 = 5;

/// Why a run is kept no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// A supervisor has adopted it, and answers for its memory.
    Adopted,
    /// The run is on the disk; in words for people.
    OnDisk(String),
    /// The run can be neither adopted nor written; why, for people.
    GivenUp(String),
}

/// What stands in the way of putting right what a dead adopter left, in words for people.
enum Obstacle {
    /// The disk may have room again at any time.
    Disk(String),
    /// Anything else: an obstacle that is still there after many attempts is there for good.
    Other(String),
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl Obstacle {
    fn reason(self) -> String {
        let (Self::Disk(reason) | Self::Other(reason)) = self;
        reason
    }
}

/// Failed attempts to put right what a dead adopter left.
#[derive(Default)]
struct Attempts {
    failed: u32,
    /// Failures in a row for an obstacle that may stay for ever, counted anew once this process is asked to stop.
    hopeless: u32,
    is_stopped: bool,
}

impl Attempts {
    /// Count one more failure, for `obstacle`; `is_stopped` says whether this process has been asked to stop.
    /// Returns whether to give up.
    fn are_vain_after(&mut self, obstacle: &Obstacle, is_stopped: bool) -> bool {
        self.failed = self.failed.saturating_add(1);
        let is_news = !std::mem::replace(&mut self.is_stopped, is_stopped) && is_stopped;
        self.hopeless = match obstacle {
            Obstacle::Disk(_) => 0,
            Obstacle::Other(_) if is_news => 1,
            Obstacle::Other(_) => self.hopeless + 1,
        };
        self.hopeless > if is_stopped { ATTEMPTS_AFTER_A_STOP } else { ATTEMPTS }
    }
}

/// A run that nobody uses, of which a checkpoint has all but the replay.
pub(super) struct Keeper<'a> {
    pub(super) segment: &'a Segment,
    /// What the segment says of itself.
    pub(super) description: Description,
    /// The name, among those that are kept, of a checkpoint that has all but the replay.
    pub(super) checkpoint: OsString,
    /// Fields of a row.
    pub(super) schema: Schema,
    /// The run's folder, which this process has taken.
    pub(super) folder: &'a RunFolder,
    /// What the folder says of the run.
    pub(super) settings: FolderSettings,
}

impl Keeper<'_> {
    /// Offer the run, and wait until it is adopted, or wanted on the disk, to which `write` writes it. If the disk
    /// does not take it, it stays.
    pub(super) fn keep(self, write: impl Fn(&RunFolder) -> Result<String, CheckpointError>) -> Ended {
        leave_the_terminal();
        // A stop signal, such as from a machine that is switched off or a batch system that warns, asks for the run on the disk. In this
        // order: a signal between the two looks is still to be heeded.
        let stops_before = system::stops();
        let mut stops_heeded = if system::stop_requested() { 0 } else { stops_before };
        let (control, keeping) = (self.segment.control(), self.segment.control().keeping());
        control.set_run_state(RunState::Kept);
        let name = keeping.become_keeper();
        self.say_where_it_is();
        let mut is_given_back = false;
        let mut attempts = Attempts::default();
        loop {
            // What is wanted is read first, and whose keeper this process is second: an adopter lets this process
            // go before anybody else can want anything.
            let wanted = keeping.wanted();
            if keeping.keeper() != Some(name) {
                return Ended::Adopted;
            }
            match wanted {
                Wanted::Nothing if system::stops() != stops_heeded => {
                    let stops = system::stops();
                    // Somebody else may be quicker: the next look tells.
                    if keeping.write_to_disk().is_ok() {
                        stops_heeded = stops;
                    }
                }
                Wanted::Nothing => control.wait_for_progress(PAUSE, || false),
                Wanted::OnDisk => {
                    if let Some(ended) = self.have_written(&write) {
                        return ended;
                    }
                }
                Wanted::By(adopter) if !adopter.has_ended() => {
                    if !std::mem::replace(&mut is_given_back, true) {
                        self.folder.give_back();
                    }
                    control.wait_for_progress(PAUSE, || false);
                }
                // The adopter died after it had taken over the run.
                Wanted::By(_) if keeping.keeper() != Some(name) => return Ended::Adopted,
                Wanted::By(_) => {
                    if let Some(ended) = self.offer_again(&mut is_given_back, &mut attempts, stops_heeded) {
                        return ended;
                    }
                }
            }
        }
    }

    fn say_where_it_is(&self) {
        let folder = word(self.folder.path());
        self.say(&format!(
            "the supervisor is gone, and process {} keeps the run in memory ({}): `shoal adopt {folder}` goes on with it there, \
             `shoal resume {folder}` and SIGTERM to that process have it written to the disk",
            std::process::id(),
            BinaryBytes(self.segment.layout().total_bytes() as u64),
        ));
    }

    fn say(&self, text: &str) {
        // Nobody is left who could be told otherwise.
        let _ = self.folder.found_again().map(|folder| note(&folder, text));
    }

    /// Have `write` write the run to the disk. If the disk does not take it, the run is offered again, and `None`
    /// is returned.
    fn have_written(&self, write: impl Fn(&RunFolder) -> Result<String, CheckpointError>) -> Option<Ended> {
        let Some(folder) = self.folder.found_again() else { return Some(Ended::GivenUp("its folder was removed".into())) };
        match write(&folder) {
            Ok(said) => Some(Ended::OnDisk(said)),
            Err(error) => {
                self.say(&format!("the run stays in memory, since the disk does not take it: {error}"));
                self.segment.control().keeping().offer_again();
                None
            }
        }
    }

    /// Put back what a dead adopter left, and offer the run again. What stands in the way is tried again after a rest, and ends the run
    /// once that is in vain. `stops_heeded` are the requests to stop that were heeded.
    fn offer_again(&self, is_given_back: &mut bool, attempts: &mut Attempts, stops_heeded: u32) -> Option<Ended> {
        let control = self.segment.control();
        let Err(obstacle) = self.put_back(is_given_back) else {
            control.set_run_state(RunState::Kept);
            *attempts = Attempts::default();
            control.keeping().offer_again();
            return None;
        };
        let are_vain = attempts.are_vain_after(&obstacle, system::stops() != stops_heeded);
        let reason = obstacle.reason();
        if are_vain {
            return Some(Ended::GivenUp(reason));
        }
        self.rest_after(attempts.failed, &reason);
        None
    }

    /// Rest before the next attempt to put back what a dead adopter left, after so many `failures` in a row, the
    /// last of them for `reason`.
    fn rest_after(&self, failures: u32, reason: &str) {
        if failures == 2 {
            self.say(&format!("the run in memory is offered again as soon as that can be: {reason}"));
        }
        std::thread::sleep(if failures > 1 { RETRY } else { PAUSE });
    }

    /// Undo what an adopter did that has died before it took the run over. It has left the rows alone.
    ///
    /// # Errors
    /// What stands in the way, for people. It may be tried again.
    fn put_back(&self, is_given_back: &mut bool) -> Result<(), Obstacle> {
        // The sentinel of the dead adopter may still have the folder, for the moment that it takes to find that the
        // run is not its own.
        if *is_given_back && !self.folder.take_again() {
            return Err(Obstacle::Other("others have its folder".into()));
        }
        *is_given_back = false;
        let folder = self.folder.found_again().ok_or_else(|| "its folder was removed".to_owned())?;
        folder.put_back(&self.settings).map_err(|error| Obstacle::Disk(error.to_string()))?;
        self.segment.take_back(&ROWS, &self.description).map_err(|error| error.to_string())?;
        let checkpoint = RunCheckpoint::open(&folder.kept().join(&self.checkpoint)).map_err(|error| error.to_string())?;
        let restored = checkpoint.restore(self.segment, &self.schema, RowsIn::Segment, |_, _, slot| Some(slot));
        restored.map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// Close the standard streams of the run: a reader of its output may wait for the end of that.
fn leave_the_terminal() {
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        let _ = (dup2_stdin(&nothing), dup2_stdout(&nothing), dup2_stderr(&nothing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_waited_for_and_other_obstacles_only_for_a_while() {
        let (disk, other) = (Obstacle::Disk("full".into()), Obstacle::Other("busy".into()));
        let mut attempts = Attempts::default();
        assert!((0..1_000).all(|_| !attempts.are_vain_after(&disk, false)));
        assert!((0..1_000).all(|_| !attempts.are_vain_after(&disk, true)), "not after a stop either: it would be lost");
        let tries = |attempts: &mut Attempts, is_stopped| (1..).find(|_| attempts.are_vain_after(&other, is_stopped)).unwrap();
        assert_eq!(tries(&mut attempts, true), ATTEMPTS_AFTER_A_STOP + 1);
        let mut attempts = Attempts::default();
        assert!((0..ATTEMPTS).all(|_| !attempts.are_vain_after(&other, false)));
        assert_eq!(tries(&mut attempts, true), ATTEMPTS_AFTER_A_STOP + 1, "counted from the stop");
        assert_eq!(tries(&mut Attempts::default(), false), ATTEMPTS + 1);
    }
}
