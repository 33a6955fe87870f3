//! Processes that hang: suspected by their heartbeat, asked for their Python stack, then killed.
//!
//! Only a process that steps environments in Python can be asked: its interpreter answers SIGUSR1, even in the middle
//! of native code, by writing its stack to a file in memory that it inherited. All others ignore the signal.
//!
//! Time in which the supervisor itself did not run counts against no process: a user may stop a whole run, let it
//! go on, and finds all of it alive ([`LookClock`]). Such times are left out, but do not start the count anew, so
//! that a supervisor that a slow disk holds up again and again still finds who hangs.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::fs::MemfdFlags;

use super::death::KillCause;
use super::watch::Watched;
use crate::roles::configured_environment::STARTING_PATIENCE;
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::sync::monotonic_ns;

/// How many times as long as other processes a visualizer may be silent: busy cores leave it a hundredth of one,
/// and nobody waits for it.
const VISUALIZER_PATIENCE_FACTOR: u32 = 10;
/// How long a process that hangs may take to write its stack.
const STACK_PATIENCE: Duration = Duration::from_millis(500);
/// The longest stack that is read.
const LONGEST_STACK_BYTES: usize = 16 << 10;
/// Marks of lines in a stack that say nothing about the environment: frames of Shoal's own bridge, and the list of
/// imported modules.
const NOISE: [&str; 2] = ["File \"<shoal", "Extension modules: "];

/// The longest time between two looks of a supervisor that runs; its loop takes milliseconds.
const LONGEST_GAP: Duration = Duration::from_secs(1);

/// When the supervisor last looked at the run. It looks in every turn of its loop, unless something holds it up.
pub(super) struct LookClock {
    last_look: Instant,
}

impl LookClock {
    /// A clock whose first look is `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { last_look: now }
    }

    /// Look `now`, and return for how long nobody had looked: zero if that was no longer than a turn of the loop.
    pub(super) fn look(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.last_look);
        self.last_look = now;
        if since > LONGEST_GAP { since } else { Duration::ZERO }
    }
}

/// For how long nobody looked since a process last gave a sign of life.
#[derive(Default)]
pub(super) struct Unwatched {
    heartbeat_ns: u64,
    time: Duration,
}

impl Unwatched {
    /// To be called at every look. `silence` is the time since this heartbeat, and `pause` the time before this look
    /// in which the supervisor itself did not look. Returns the silence without all such pauses since the heartbeat;
    /// of a pause in which the heartbeat came, only the part after it is left out.
    pub(super) fn look(&mut self, heartbeat_ns: u64, silence: Duration, pause: Duration) -> Duration {
        if heartbeat_ns != self.heartbeat_ns {
            *self = Self { heartbeat_ns, time: Duration::ZERO };
        }
        self.time = (self.time + pause).min(silence);
        silence - self.time
    }
}

/// A file in memory, shared with one process, for its stack.
pub(super) struct StackFile(File);

impl StackFile {
    /// An empty file.
    pub(super) fn create() -> io::Result<Self> {
        Ok(Self(File::from(rustix::fs::memfd_create("shoal-stack", MemfdFlags::CLOEXEC)?)))
    }

    /// A descriptor of the file for the process.
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
    /// How long the process had been silent when it was noticed.
    pub(super) silent: Duration,
    role: Role,
    /// The value of `machine.hang_timeout_s`, or what stands for it while a process starts.
    limit: Duration,
    phase: &'static str,
    /// The length of its stack at the last look.
    stack_bytes: usize,
}

impl Hang {
    /// For people: how the process ended that was killed for it.
    pub(super) fn describe(&self) -> String {
        format!("gave no sign of life {} and was killed", self.circumstances())
    }

    fn circumstances(&self) -> String {
        let (silent_s, limit_s) = (self.silent.as_secs_f64(), self.limit.as_secs_f64());
        let advice = match self.role {
            Role::Visualizer => {
                format!(
                    "it may be for {VISUALIZER_PATIENCE_FACTOR} times machine.hang_timeout_s; if it needs longer, raise that above \
                     {limit_s}"
                )
            }
            _ => format!("if it needs longer, raise machine.hang_timeout_s above {limit_s}"),
        };
        format!("for {silent_s:.0} s in phase `{}` ({advice})", self.phase)
    }
}

/// How long a process with this role may be silent, if `limit` is the time for most of them.
fn patience(role: Role, limit: Duration) -> Duration {
    if role == Role::Visualizer { limit * VISUALIZER_PATIENCE_FACTOR } else { limit }
}

impl Watched {
    /// Kill the process if it has been silent for longer than `limit`: than a minute while it starts, and for much
    /// longer if it is a visualizer. It first has a moment to write its stack, if it can. A `pause` before this
    /// look, in which nobody looked, is not counted as silence. Returns what is to be said when the process is
    /// killed.
    pub(super) fn kill_if_hung(&mut self, slot: ProcessSlot<'_>, limit: Duration, pause: Duration) -> Option<String> {
        let living = self.living.as_ref()?;
        if living.killed.is_some() {
            // A sign of life between the decision and the kill changes nothing.
            return None;
        }
        let silent = self.unwatched.look(slot.heartbeat_ns(), silence(slot), pause);
        let limit = if slot.phase() == Some(Phase::Starting) { limit.max(STARTING_PATIENCE) } else { limit };
        if silent <= patience(self.planned.role, limit) {
            // The process has woken up, if it was suspected at all.
            self.hang = None;
            return None;
        }
        let Some(hang) = &mut self.hang else {
            let phase = slot.phase().map_or("unknown", |phase| phase.name());
            let role = self.planned.role;
            self.hang = Some(Hang { noticed: Instant::now(), silent, role, limit, phase, stack_bytes: 0 });
            if living.stack_file.is_some() {
                self.signal(Signal::SIGUSR1);
                return None;
            }
            return self.kill_hung();
        };
        let stack_bytes = living.stack_file.as_ref().map_or(0, |file| file.text().len());
        let complete = stack_bytes > 0 && stack_bytes == hang.stack_bytes;
        hang.stack_bytes = stack_bytes;
        if complete || hang.noticed.elapsed() >= STACK_PATIENCE { self.kill_hung() } else { None }
    }

    fn kill_hung(&mut self) -> Option<String> {
        let hang = self.hang.take()?;
        let event = format!("{} has been silent {}: killing it", self.planned.name(), hang.circumstances());
        self.kill(KillCause::Hang(hang)).then_some(event)
    }
}

/// How long ago the process in `slot` gave its last sign of life.
pub(super) fn silence(slot: ProcessSlot<'_>) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(slot.heartbeat_ns()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use nix::unistd::Pid;

    use super::super::death::Kill;
    use super::super::slots::{ActorSetting, PlannedProcess};
    use super::*;

    fn hang(role: Role, silent_ms: u64) -> Hang {
        let (silent, limit, phase) = (Duration::from_millis(silent_ms), STARTING_PATIENCE, Phase::Starting.name());
        Hang { noticed: Instant::now(), silent, role, limit, phase, stack_bytes: 0 }
    }

    #[test]
    fn a_stack_is_read_without_the_frames_that_are_not_the_users() {
        let file = StackFile::create().unwrap();
        assert_eq!(file.text(), "");
        let stack = "Fatal Python error: Aborted\n\n  File \"task.py\", line 3 in wait\n  File \"<shoal>\", line 9 in \
         step\n\nExtension modules: a\n";
        File::from(file.for_process().unwrap()).write_all(stack.as_bytes()).unwrap();
        assert_eq!(file.text(), "Fatal Python error: Aborted\n  File \"task.py\", line 3 in wait");
    }

    #[test]
    fn what_is_said_of_a_hang_names_the_key_and_what_to_raise_it_above() {
        let said = |role, silent_ms| hang(role, silent_ms).describe();
        assert_eq!(
            said(Role::Actor, 60_200),
            "gave no sign of life for 60 s in phase `starting` (if it needs longer, raise machine.hang_timeout_s above 60) and was killed"
        );
        assert_eq!(
            said(Role::Visualizer, 600_200),
            "gave no sign of life for 600 s in phase `starting` (it may be for 10 times machine.hang_timeout_s; if it needs longer, raise \
             that above 60) and was killed"
        );
    }

    #[test]
    fn whoever_the_supervisor_killed_has_died_of_the_cause_of_that_and_nobody_else_has() {
        let end = |script: &str, killed: Option<KillCause>| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let mut watched = Watched::new(PlannedProcess { slot: 0, role: Role::Actor, number: 0, cores: Vec::new() });
            watched.started(Pid::from_raw(child.id() as i32), None, ActorSetting { actors: 1, environments: 1 }, 0).unwrap();
            // A suspicion alone ends no process.
            watched.hang = Some(hang(Role::Actor, 60_200));
            let living = watched.living.as_mut().unwrap();
            living.killed = killed.map(Kill::now);
            assert!(living.process.ends_within(Duration::from_secs(60)));
            let death = watched.reap().expect("it has ended");
            child.wait().unwrap_err();
            let (how, _) = death.describe("the wheels came off", false);
            (how, death.is_own_fault())
        };
        let causes = || [None, Some(KillCause::Hang(hang(Role::Actor, 60_200))), Some(KillCause::Late), Some(KillCause::Stuck)];
        for cause in causes() {
            assert_eq!(end("exit 1", cause), ("failed: the wheels came off".to_owned(), true), "it failed before a kill could meet it");
        }
        for cause in causes() {
            assert_eq!(end("exit 0", cause), ("exited with code 0".to_owned(), false));
        }
        let expected = [
            ("was killed by SIGKILL", false),
            ("gave no sign of life for 60 s", true),
            ("did not leave in time and was killed", false),
            ("stood still in the middle of an operation and was killed", false),
        ];
        for (cause, (beginning, of_its_own)) in causes().into_iter().zip(expected) {
            let (how, is_own_fault) = end("kill -9 $$", cause);
            assert!(how.starts_with(beginning) && is_own_fault == of_its_own, "{how}");
        }
    }

    #[test]
    fn whoever_has_only_the_cores_that_others_leave_may_be_silent_for_longer() {
        let limit = Duration::from_mins(1);
        assert_eq!(patience(Role::Visualizer, limit), Duration::from_mins(10));
        assert!([Role::Actor, Role::Learner, Role::Evaluator, Role::Synchronous].iter().all(|&role| patience(role, limit) == limit));
    }

    #[test]
    fn a_time_in_which_the_supervisor_did_not_look_is_no_silence_and_ends_none() {
        let start = Instant::now();
        let (mut look_clock, mut unwatched) = (LookClock::new(start), Unwatched::default());
        let ms = Duration::from_millis;
        let mut look = |at, heartbeat, silence| unwatched.look(heartbeat, ms(silence), look_clock.look(start + ms(at))).as_millis();
        assert_eq!(look(50, 1, 50), 50);
        assert_eq!(look(1_050, 1, 1_050), 1_050, "a blink");
        assert_eq!(look(9_050, 2, 8_020), 20, "it had a sign of life just before the pause");
        assert_eq!(look(9_100, 2, 8_070), 70);
        assert_eq!(look(12_150, 2, 11_120), 70, "of a supervisor that is held up again and again all but the pauses counts");
        assert_eq!(look(20_150, 3, 30), 0, "it had one during the pause");
        assert_eq!(look(20_200, 3, 80), 50);
    }
}
