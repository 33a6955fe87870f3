//! The folder of a run that has ended, taken once those are out of it that a killed supervisor may have left.

use std::time::{Duration, Instant};

use super::ResumeError;
use super::adoption::KeptRun;
use crate::segment::keeping::Wanted;
use crate::telemetry::RunFolder;

/// How long the sentinel of a killed supervisor may take to write what was there.
const PATIENCE: Duration = Duration::from_mins(10);
/// Time between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(5);

/// The run in `folder` as somebody keeps it in memory, if need be once the sentinel of its killed supervisor has come to that.
pub(super) fn wait_for_keeper(folder: &mut RunFolder, say: &dyn Fn(&str)) -> Result<KeptRun, ResumeError> {
    let (deadline, mut has_said) = (Instant::now() + PATIENCE, false);
    loop {
        if let Some(kept) = KeptRun::of(folder)? {
            return Ok(kept);
        }
        let record = folder.record()?;
        let (path, pid) = (folder.path().into(), record.supervisor_pid);
        if record.finished.is_none() && !record.has_lost_its_supervisor() {
            return Err(ResumeError::Running { folder: path, pid });
        }
        if folder.take()? {
            folder.give_back();
            // It may have come between the look and the lock.
            return KeptRun::of(folder)?.ok_or(ResumeError::NotKept { folder: path });
        }
        if Instant::now() >= deadline {
            return Err(ResumeError::Taken { folder: path });
        }
        if !std::mem::replace(&mut has_said, true) {
            say("its supervisor was killed: waiting for everybody to leave");
        }
        std::thread::sleep(PAUSE);
    }
}

/// Take the folder of a run that has ended, if need be once the sentinel of its killed supervisor has written what was there.
pub(super) fn take(folder: &mut RunFolder, say: &dyn Fn(&str)) -> Result<(), ResumeError> {
    let (deadline, mut has_said, mut has_asked) = (Instant::now() + PATIENCE, false, false);
    loop {
        let kept = KeptRun::of(folder)?;
        if let Some(kept) = &kept {
            if has_asked && kept.wanted() == Wanted::Nothing {
                return Err(ResumeError::StaysInMemory { folder: folder.path().into() });
            }
            has_asked |= kept.write_to_disk();
        }
        if folder.take()? {
            // While one process keeps it and another adopts it, the folder is free for a moment, and not for this one.
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
        if !record.has_lost_its_supervisor() {
            return Err(ResumeError::Running { folder: folder.path().into(), pid: record.supervisor_pid });
        }
        if Instant::now() >= deadline {
            return Err(ResumeError::Taken { folder: folder.path().into() });
        }
        if !std::mem::replace(&mut has_said, true) {
            say(match kept {
                Some(_) => "it is kept in memory: waiting for it to be written to the disk",
                None => "its supervisor was killed: waiting for what was there to be on the disk",
            });
        }
        std::thread::sleep(PAUSE);
    }
    // Where the file system has no locks, nothing but its process says that it is under way.
    let record = folder.record()?;
    if !folder.is_locked() && record.finished.is_none() && !record.has_lost_its_supervisor() {
        return Err(ResumeError::Running { folder: folder.path().into(), pid: record.supervisor_pid });
    }
    Ok(())
}
