//! How a process ended, and how that is told.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::child::{DIVERGED_EXIT_CODE, ERROR_EXIT_CODE};
use super::hang::Hang;
use super::slots::ActorSetting;
use crate::readable::headline_and_details;
use crate::segment::pidfd::Pidfd;
use crate::segment::system::PANIC_EXIT_CODE;

/// How long a process that was killed may take to be gone.
pub(super) const DYING_PATIENCE: Duration = Duration::from_secs(10);

/// Why the supervisor killed a process.
pub(super) enum KillCause {
    /// It gave no sign of life.
    Hang(Hang),
    /// It was asked to leave, and had not left in time.
    Late,
    /// It stood still inside an operation on the replay, and a repair cannot wait for it.
    Stuck,
}

impl KillCause {
    /// For people: how the process ended, which had nothing left to do but close its environments if it `was_closing`.
    pub(super) fn describe(&self, was_closing: bool) -> String {
        match self {
            Self::Hang(hang) => hang.describe(),
            Self::Late if was_closing => "did not close its environments in time and was killed".into(),
            Self::Late => "did not leave in time and was killed".into(),
            Self::Stuck => "stood still in the middle of an operation and was killed".into(),
        }
    }
}

/// A kill by the supervisor.
pub(super) struct Kill {
    /// Why.
    pub(super) cause: KillCause,
    pub(super) at: Instant,
}

impl Kill {
    /// A kill at this moment.
    pub(super) fn now(cause: KillCause) -> Self {
        Self { cause, at: Instant::now() }
    }

    /// How long whoever was killed may still take to be gone. One that takes longer waits in the kernel, for a device or a disk. It does
    /// nothing of its own any more, so nobody need wait for it.
    pub(super) fn patience_left(&self, now: Instant) -> Duration {
        (self.at + DYING_PATIENCE).saturating_duration_since(now)
    }

    /// Whether the `process` that was killed is still waited for: it has time left, or is gone and still to be seen off.
    pub(super) fn waits_for(&self, process: &Pidfd, now: Instant) -> bool {
        !self.patience_left(now).is_zero() || process.has_ended()
    }
}

/// The end of a process, with all that is known of it.
pub(super) struct Death {
    /// How the process ended.
    pub(super) ending: Ending,
    /// Process id.
    pub(super) pid: Pid,
    /// The work that was counted in the slot before the process began.
    pub(super) work_before: u64,
    /// The setting of actors that the process was started for.
    pub(super) setting: ActorSetting,
    /// The process's Python stack, if it wrote one.
    pub(super) stack: String,
    /// Why the supervisor killed the process, if that is how it ended.
    pub(super) killed: Option<KillCause>,
}

impl Death {
    /// For people: a line, and below it what explains it. `last_words` are what the process itself left, and
    /// `was_closing` is as for [`KillCause::describe`].
    pub(super) fn describe(&self, last_words: &str, was_closing: bool) -> (String, String) {
        let (headline, details) = headline_and_details(last_words);
        match (&self.killed, self.ending) {
            (Some(cause), _) => (cause.describe(was_closing), self.stack.clone()),
            (None, Ending::Signal(_)) => (self.ending.describe(headline), self.stack.clone()),
            (None, Ending::Exit(_)) => (self.ending.describe(headline), details.to_owned()),
        }
    }

    /// Whether the process brought it about by itself, so that a replacement is likely to end alike.
    pub(super) fn is_own_fault(&self) -> bool {
        matches!(self.killed, Some(KillCause::Hang(_))) || self.ending.is_own_fault()
    }

    /// Whether the process was killed because it had not left in time.
    pub(super) fn was_late(&self) -> bool {
        matches!(self.killed, Some(KillCause::Late))
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The process returned this code.
    Exit(i32),
    /// The signal with this number killed the process. It may have no name, as real-time signals have none.
    Signal(i32),
}

impl Ending {
    /// Whether the process left of its own will.
    pub(super) fn is_orderly(self) -> bool {
        self == Self::Exit(0)
    }

    /// Whether the process brought its end about by itself: by an exit code, or by a signal that a crash raises and
    /// nobody sends.
    pub(super) fn is_own_fault(self) -> bool {
        use Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
        match self {
            Self::Exit(code) => code != 0,
            Self::Signal(_) => matches!(self.signal(), Some(SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP)),
        }
    }

    /// Whether the process ended because training has diverged.
    pub(super) fn is_divergence(self) -> bool {
        self == Self::Exit(DIVERGED_EXIT_CODE)
    }

    /// The signal that killed the process, if it has a name.
    pub(super) fn signal(self) -> Option<Signal> {
        match self {
            Self::Exit(_) => None,
            Self::Signal(number) => Signal::try_from(number).ok(),
        }
    }

    /// For people, with the first line of what the process last said.
    pub(super) fn describe(self, headline: &str) -> String {
        match self {
            Self::Signal(number) => match self.signal() {
                Some(Signal::SIGKILL) => "was killed by SIGKILL (somebody's `kill -9`, or the kernel when memory ran out)".into(),
                Some(signal) => format!("was killed by {signal}"),
                None => format!("was killed by signal {number}"),
            },
            Self::Exit(PANIC_EXIT_CODE | ERROR_EXIT_CODE | DIVERGED_EXIT_CODE) if !headline.is_empty() => format!("failed: {headline}"),
            Self::Exit(code) => format!("exited with code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_names_its_cause() {
        assert_eq!(Ending::Exit(1).describe("the environment is gone"), "failed: the environment is gone");
        assert_eq!(Ending::Exit(7).describe("anything"), "exited with code 7");
        assert_eq!(Ending::Signal(Signal::SIGSEGV as i32).describe(""), "was killed by SIGSEGV");
    }
}
