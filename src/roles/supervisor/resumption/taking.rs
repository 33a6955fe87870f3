//! Taking the folder of a run that has ended, once everybody is out of it that a killed supervisor may have left.

use std::time::{Duration, Instant};

use super::ResumeError;
use super::adoption::KeptRun;
use crate::rendezvous::{Liveliness, Registry};
use crate::run_name::announced;
use crate::segment::keeping::Wanted;
use crate::telemetry::{RunFolder, RunRecord};

/// How long the sentinel of a killed supervisor may take to write what was there.
const PATIENCE: Duration = Duration::from_mins(10);
/// Time between two looks at the folder.
const PAUSE: Duration = Duration::from_millis(5);
/// The same for a run of another machine: a server that both have their files from answers each look.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The wait for others to leave the folder of a run.
struct Wait<'a> {
    deadline: Instant,
    has_said: bool,
    say: &'a dyn Fn(&str),
}

impl<'a> Wait<'a> {
    fn begin(say: &'a dyn Fn(&str)) -> Self {
        Self { deadline: Instant::now() + PATIENCE, has_said: false, say }
    }

    /// Whether it has taken too long.
    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Wait for a moment. `what` is waited for is said the first time, unless `record` is of a run of another machine.
    fn rest(&mut self, folder: &RunFolder, record: &RunRecord, what: &str) -> Result<(), ResumeError> {
        let elsewhere = record.elsewhere();
        if self.is_over() {
            return Err(match elsewhere {
                Some(machine) => ResumeError::Elsewhere { folder: folder.path().into(), machine: machine.into() },
                None => ResumeError::Taken { folder: folder.path().into() },
            });
        }
        if !std::mem::replace(&mut self.has_said, true) {
            match elsewhere {
                Some(machine) => (self.say)(&format!("it was started on {machine}: waiting for it, or its lock, to be gone there")),
                None => (self.say)(what),
            }
        }
        std::thread::sleep(if elsewhere.is_some() { LONG_PAUSE } else { PAUSE });
        Ok(())
    }
}

/// The run in `folder` as a process keeps it in memory. Waits if the sentinel of its killed supervisor has not come
/// to that yet.
pub(super) fn wait_for_keeper(folder: &mut RunFolder, say: &dyn Fn(&str)) -> Result<KeptRun, ResumeError> {
    let mut wait = Wait::begin(say);
    loop {
        if let Some(kept) = KeptRun::of(folder)? {
            return Ok(kept);
        }
        let record = folder.record()?;
        if record.is_under_way() {
            return Err(ResumeError::running(folder, &record));
        }
        if folder.take_deserted()? {
            folder.give_back();
            // A keeper may have come between the look and the lock.
            return KeptRun::of(folder)?.ok_or_else(|| ResumeError::not_kept(folder, &record));
        }
        wait.rest(folder, &record, "its supervisor was killed: waiting for everybody to leave")?;
    }
}

/// Take the folder of a run that has ended. Waits if its supervisor is about to end it, or was killed and the sentinel
/// has not written yet what was there.
pub(super) fn take(folder: &mut RunFolder, say: &dyn Fn(&str)) -> Result<(), ResumeError> {
    let mut wait = Wait::begin(say);
    let mut has_asked = false;
    loop {
        let kept = KeptRun::of(folder)?;
        if let Some(kept) = &kept {
            if has_asked && kept.wanted() == Wanted::Nothing {
                return Err(ResumeError::StaysInMemory { folder: folder.path().into() });
            }
            has_asked |= kept.write_to_disk();
        }
        if folder.take_deserted()? {
            // While another process adopts the run from its keeper, the folder is free for a moment, and not for
            // this process.
            match KeptRun::of(folder) {
                Ok(None) => break,
                Ok(Some(_)) => folder.give_back(),
                Err(error) => {
                    folder.give_back();
                    return Err(error);
                }
            }
        }
        let record = folder.record()?;
        let is_orphaned = record.has_lost_its_supervisor();
        if !is_orphaned && (wait.is_over() || !record.is_ending()) {
            return Err(ResumeError::running(folder, &record));
        }
        let what = match kept {
            Some(_) => "it is kept in memory: waiting for it to be written to the disk",
            None if is_orphaned => "its supervisor was killed: waiting for what was there to be on the disk",
            None => "it is about to end: waiting for what it has learned to be on the disk",
        };
        wait.rest(folder, &record, what)?;
    }
    // If the file system has no locks, only its process says whether the run is under way. Where it has, somebody may have removed the
    // file that the run had locked, or this is a copy of its folder.
    let record = folder.record()?;
    let entry = Registry::existing().and_then(|registry| announced(&registry, folder, &record));
    // Of a run of another container the registry alone says whether it lives.
    let lives = entry.is_some_and(|entry| entry.state == Liveliness::Running);
    if record.finished.is_none() && (lives || !folder.is_locked() && record.is_under_way()) {
        return Err(ResumeError::running(folder, &record));
    }
    if record.finished.is_none()
        && !folder.is_locked()
        && let Some(machine) = record.elsewhere()
    {
        say(&format!("it was started on {machine} and noted no end, and this file system has no locks: see that it is gone there"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Finished;

    #[test]
    fn a_run_that_locks_its_folder_on_another_machine_is_not_said_to_have_been_killed() {
        let place = tempfile::tempdir().unwrap();
        let running = RunFolder::create(place.path(), "elsewhere", "").unwrap();
        let record = RunRecord { machine: "node07".into(), boot: Some("its own".into()), ..running.record().unwrap() };
        std::fs::write(running.record_path(), serde_json::to_string(&record).unwrap()).unwrap();
        let said = RefCell::new(Vec::new());
        let ends_when_waited_for = |what: &str| {
            said.borrow_mut().push(what.to_owned());
            running.give_back();
        };
        take(&mut RunFolder::open(running.path()).unwrap(), &ends_when_waited_for).unwrap();
        assert_eq!(said.into_inner(), ["it was started on node07: waiting for it, or its lock, to be gone there"]);
    }

    #[test]
    fn whoever_adopts_a_run_that_has_ended_is_offered_no_command_that_may_be_refused() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = RunFolder::create(place.path(), "ended", "").unwrap();
        let finished = Finished { at: Timestamp::now(), reason: "step limit".into(), summary: serde_json::Value::Null };
        folder.write_finished(finished).unwrap();
        folder.give_back();
        let error = wait_for_keeper(&mut folder, &|_| {}).map(drop).unwrap_err().to_string();
        // To go on beyond a limit takes an option that depends on the limit, which `inspect` tells.
        assert!(error.contains("has ended (step limit)") && error.contains("shoal inspect") && !error.contains("shoal resume"), "{error}");
    }
}
