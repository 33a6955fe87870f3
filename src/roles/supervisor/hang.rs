//! Processes that hang: suspected by their heartbeat, asked for their Python stack, then killed.
//!
//! Only a process that steps environments in Python can be asked: its interpreter answers SIGUSR1, even in the middle
//! of native code, by writing its stack to a file in memory that it inherited. All others ignore the signal.
//!
//! Nobody is blamed for a time in which the supervisor itself did not run: whoever stops a whole run and lets it go on
//! finds all of it alive ([`Vigil`]).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::fs::MemfdFlags;

use super::watch::Watched;
use crate::roles::environments::STARTING_PATIENCE;
use crate::segment::processes::{Phase, ProcessSlot};
use crate::sync::monotonic_ns;

/// How long a process that hangs may take to write its stack.
const STACK_PATIENCE: Duration = Duration::from_millis(500);
/// The longest stack that is read.
const LONGEST_STACK_BYTES: usize = 16 << 10;
/// Marks of lines that say nothing about the environment: frames of Shoal's own bridge, and all that was ever imported.
const NOISE: [&str; 2] = ["File \"<shoal", "Extension modules: "];

/// The longest time between two looks of a supervisor that runs; its loop takes milliseconds.
const LONGEST_BLINK: Duration = Duration::from_secs(1);

/// Since when the supervisor has looked at the run without a pause.
pub(super) struct Vigil {
    since: Instant,
    last_look: Instant,
}

impl Vigil {
    /// It begins `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, last_look: now }
    }

    /// Look `now`, and return since when there was no pause.
    pub(super) fn look(&mut self, now: Instant) -> Instant {
        if now.saturating_duration_since(self.last_look) > LONGEST_BLINK {
            self.since = now;
        }
        self.last_look = now;
        self.since
    }
}

/// A file in memory, shared with one process, for its stack.
pub(super) struct StackFile(File);

impl StackFile {
    /// An empty one.
    pub(super) fn create() -> io::Result<Self> {
        Ok(Self(File::from(rustix::fs::memfd_create("shoal-stack", MemfdFlags::CLOEXEC)?)))
    }

    /// The process's end.
    pub(super) fn for_process(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// What is in it, without the frames of Shoal's own bridge.
    pub(super) fn text(&self) -> String {
        let mut bytes = vec![0; LONGEST_STACK_BYTES];
        let length = self.0.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let telling = |line: &&str| !line.is_empty() && !NOISE.iter().any(|mark| line.contains(mark));
        text.lines().filter(telling).collect::<Vec<_>>().join("\n")
    }
}

/// A process that gives no sign of life.
pub(super) struct Hang {
    noticed: Instant,
    /// How long it had been silent then.
    pub(super) silent: Duration,
    phase: &'static str,
    /// The length of its stack at the last look.
    stack_bytes: usize,
    killed: bool,
}

impl Hang {
    /// For people: how it ended.
    pub(super) fn describe(&self) -> String {
        format!("gave no sign of life for {:.0} s in phase `{}` and was killed", self.silent.as_secs_f64(), self.phase)
    }
}

impl Watched {
    /// Kill the process if it has been silent for longer than `limit`, or than a minute while it starts, after a moment
    /// to write its stack if it can. Only the time since `vigil`, from when on the supervisor has looked without a
    /// pause, counts as silence. Returns what is to be said of it, when it is killed.
    pub(super) fn kill_if_hung(&mut self, slot: ProcessSlot<'_>, limit: Duration, vigil: Instant) -> Option<String> {
        let living = self.living.as_ref()?;
        let silent = silence(slot).min(vigil.elapsed());
        let limit = if slot.phase() == Some(Phase::Starting) { limit.max(STARTING_PATIENCE) } else { limit };
        if silent <= limit {
            // It has woken up, if it was suspected at all.
            self.hang = None;
            return None;
        }
        let Some(hang) = &mut self.hang else {
            let phase = slot.phase().map_or("unknown", |phase| phase.name());
            self.hang = Some(Hang { noticed: Instant::now(), silent, phase, stack_bytes: 0, killed: false });
            if living.stack_file.is_some() {
                self.signal(Signal::SIGUSR1);
                return None;
            }
            return self.kill_hung();
        };
        if hang.killed {
            return None;
        }
        let stack_bytes = living.stack_file.as_ref().map_or(0, |file| file.text().len());
        let complete = stack_bytes > 0 && stack_bytes == hang.stack_bytes;
        hang.stack_bytes = stack_bytes;
        if complete || hang.noticed.elapsed() >= STACK_PATIENCE { self.kill_hung() } else { None }
    }

    fn kill_hung(&mut self) -> Option<String> {
        self.signal(Signal::SIGKILL);
        let hang = self.hang.as_mut()?;
        hang.killed = true;
        let (who, silent_s) = (self.planned.name(), hang.silent.as_secs_f64());
        Some(format!("{who} has been silent for {silent_s:.0} s in phase `{}`: killing it", hang.phase))
    }
}

/// How long ago the process in `slot` gave its last sign of life.
pub(super) fn silence(slot: ProcessSlot<'_>) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(slot.heartbeat_ns()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_stack_is_read_without_the_frames_that_are_not_the_users() {
        let file = StackFile::create().unwrap();
        assert_eq!(file.text(), "");
        let stack = "Fatal Python error: Aborted\n\n  File \"task.py\", line 3 in wait\n  File \"<shoal>\", line 9 in step\n\nExtension modules: a\n";
        File::from(file.for_process().unwrap()).write_all(stack.as_bytes()).unwrap();
        assert_eq!(file.text(), "Fatal Python error: Aborted\n  File \"task.py\", line 3 in wait");
    }

    #[test]
    fn a_pause_of_the_supervisor_begins_its_vigil_anew() {
        let start = Instant::now();
        let after_ms = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut vigil = Vigil::new(start);
        assert_eq!(vigil.look(after_ms(50)), start);
        assert_eq!(vigil.look(after_ms(1_050)), start);
        assert_eq!(vigil.look(after_ms(9_000)), after_ms(9_000));
        assert_eq!(vigil.look(after_ms(9_050)), after_ms(9_000));
    }
}
