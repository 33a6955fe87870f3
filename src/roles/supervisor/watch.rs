//! Watching processes: who died, and when its replacement starts.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::WaitOptions;

use super::death::{Death, Ending, Kill, KillCause};
use super::hang::{Hang, StackFile, Unwatched};
use super::slots::{ActorSetting, PlannedProcess};
use crate::roles::run::LEAVING_PATIENCE;
use crate::segment::counters::Counter;
use crate::segment::pidfd::Pidfd;
use crate::segment::processes::{ProcessSlot, Role};

/// Longest wait before a replacement.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);
/// Time between two attempts to start a process for which the system has no room.
const START_PAUSE: Duration = Duration::from_secs(1);
/// If a process lived this long, its failure counts as one for a new reason.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(60);
/// For how long a death counts against `machine.max_restarts`.
const A_DAY: Duration = Duration::from_hours(24);
/// Updates of a learner, or steps of each environment of an actor, that lie beyond a start: a process that has come so
/// far can work, so that its failure counts as one for a new reason as well.
const PROGRESS_FROM: u64 = 200;

/// A process of the plan, alive or waiting for its replacement.
pub(super) struct Watched {
    /// What it does.
    pub(super) planned: PlannedProcess,
    /// The living process.
    pub(super) living: Option<Living>,
    /// How often it was replaced.
    pub(super) restarts: u32,
    /// The deaths of the last day that count against `machine.max_restarts`.
    counted: Vec<Instant>,
    /// The suspicion that it hangs.
    pub(super) hang: Option<Hang>,
    /// Time that does not count as silence of the process.
    pub(super) unwatched: Unwatched,
    /// When the process was asked to leave, if it was, because others are to act or the run ends.
    dismissed: Option<Instant>,
    /// The details of the last death, as the user was told them.
    told: String,
    /// Deaths in a row, each soon after the one before and without progress in between.
    consecutive: u32,
    /// Those of them in a row that the process brought about itself.
    own_faults: u32,
    /// Whether the living or last process reported an evaluation.
    pub(super) has_reported: bool,
    restart_at: Option<Instant>,
}

/// A process that the kernel has not yet reported dead.
pub(super) struct Living {
    /// Process id.
    pub(super) pid: Pid,
    /// The process's descriptor.
    pub(super) process: Pidfd,
    /// Where the process writes its Python stack when it is asked to; `None` if it runs no Python.
    pub(super) stack_file: Option<StackFile>,
    /// The setting of actors that the process was started for.
    pub(super) setting: ActorSetting,
    /// The work that was counted in the slot before the process began.
    pub(super) work_before: u64,
    /// The supervisor's kill of the process, if it has killed it.
    pub(super) killed: Option<Kill>,
    started: Instant,
}

/// The descriptor of a child that has just been forked. If there is none, the child is killed, since nobody could
/// watch over it.
pub(super) fn descriptor_of_child(pid: Pid) -> rustix::io::Result<Pidfd> {
    // A child cannot disappear before it is waited for, so this is surely its descriptor.
    Pidfd::open(pid.as_raw().cast_unsigned()).inspect_err(|_| {
        let _ = kill(pid, Signal::SIGKILL);
        while waitpid(pid, None) == Err(Errno::EINTR) {}
    })
}

impl Watched {
    /// A process that is still to be started.
    pub(super) fn new(planned: PlannedProcess) -> Self {
        Self {
            planned,
            living: None,
            restarts: 0,
            counted: Vec::new(),
            hang: None,
            unwatched: Unwatched::default(),
            dismissed: None,
            told: String::new(),
            consecutive: 0,
            own_faults: 0,
            has_reported: false,
            restart_at: None,
        }
    }

    /// Note that the process has been forked. `work_before` is the work of those that had its slot before.
    pub(super) fn started(
        &mut self,
        pid: Pid,
        stack_file: Option<StackFile>,
        setting: ActorSetting,
        work_before: u64,
    ) -> rustix::io::Result<()> {
        let process = descriptor_of_child(pid)?;
        self.living = Some(Living { pid, process, stack_file, setting, work_before, killed: None, started: Instant::now() });
        self.hang = None;
        self.restart_at = None;
        self.has_reported = false;
        Ok(())
    }

    /// How the process ended, if it has. It is then no longer `living`.
    pub(super) fn reap(&mut self) -> Option<Death> {
        let living = self.living.as_ref()?;
        let pid = rustix::process::Pid::from_raw(living.pid.as_raw());
        let (_, status) = rustix::process::waitpid(pid, WaitOptions::NOHANG).ok().flatten()?;
        let ending = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, Some(signal)) => Ending::Signal(signal),
            (None, None) => return None,
        };
        let living = self.living.take()?;
        let suspicion = self.hang.take();
        // The time in which the process hung does not count as time in which it worked.
        let silent = match (living.killed.as_ref().map(|kill| &kill.cause), &suspicion) {
            (Some(KillCause::Hang(hang)), _) | (_, Some(hang)) => hang.silent,
            _ => Duration::ZERO,
        };
        if living.started.elapsed().saturating_sub(silent) >= STABLE_AFTER {
            self.forgive();
        }
        let stack = living.stack_file.map(|file| file.text()).unwrap_or_default();
        // A process may have ended of another cause before the kill met it.
        let killed = living.killed.filter(|_| ending.signal() == Some(Signal::SIGKILL)).map(|kill| kill.cause);
        Some(Death { ending, pid: living.pid, work_before: living.work_before, setting: living.setting, stack, killed })
    }

    /// Arrange a replacement and return the wait before it: none at first, then 1, 2, 4 ... 30 seconds.
    pub(super) fn schedule_restart(&mut self, is_own_fault: bool) -> Duration {
        let wait = match self.consecutive {
            0 => Duration::ZERO,
            failures => Duration::from_secs(1 << (failures - 1).min(5)).min(LONGEST_BACK_OFF),
        };
        self.consecutive += 1;
        self.own_faults = if is_own_fault { self.own_faults + 1 } else { 0 };
        self.restarts += 1;
        self.restart_at = Some(Instant::now() + wait);
        wait
    }

    /// Note that the process has died, which counts unless it `is_excused`. Returns how many of its deaths count within a day.
    pub(super) fn count_death(&mut self, now: Instant, is_excused: bool) -> usize {
        self.counted.retain(|&death| now.duration_since(death) < A_DAY);
        if !is_excused {
            self.counted.push(now);
        }
        self.counted.len()
    }

    /// The `details` of a death, or a note that they are the same as those of the death before: a traceback is read
    /// once.
    pub(super) fn untold(&mut self, details: String) -> String {
        if !details.is_empty() && details == self.told {
            return "(as before)".to_owned();
        }
        self.told.clone_from(&details);
        details
    }

    /// How often in a row the process has failed by itself.
    pub(super) fn failures_in_a_row(&self) -> u32 {
        self.own_faults
    }

    /// Ask the process to leave. If it is asked again much later, it is killed.
    pub(super) fn dismiss(&mut self) {
        match self.dismissed {
            None => {
                self.dismissed = Some(Instant::now());
                self.signal(Signal::SIGTERM);
            }
            Some(since) if since.elapsed() >= LEAVING_PATIENCE => {
                self.kill(KillCause::Late);
            }
            Some(_) => {}
        }
    }

    /// Give the process as much time more to leave, if it was asked to: for a `pause` nobody looked at the run.
    pub(super) fn put_off_dismissal(&mut self, pause: Duration) {
        if let Some(since) = &mut self.dismissed {
            *since += pause;
        }
    }

    /// Kill the process for this `cause`, unless it has ended or been killed for another. Returns whether this killed
    /// it.
    pub(super) fn kill(&mut self, cause: KillCause) -> bool {
        let Some(living) = self.living.as_mut().filter(|living| living.killed.is_none() && !living.process.has_ended()) else {
            return false;
        };
        living.killed = Some(Kill::now(cause));
        self.signal(Signal::SIGKILL);
        true
    }

    /// Note that the end of the run asks the process to leave, if nothing has before.
    pub(super) fn leave_with_run(&mut self) {
        self.dismissed.get_or_insert_with(Instant::now);
    }

    /// Whether the process was asked to leave and has not left.
    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.is_some()
    }

    /// Whether the process that has just ended was asked to leave.
    pub(super) fn take_dismissed(&mut self) -> bool {
        self.dismissed.take().is_some()
    }

    /// Whether the process lives on: it has not ended, and the supervisor has not just killed it.
    pub(super) fn lives_on(&self) -> bool {
        self.living.as_ref().is_some_and(|living| living.killed.is_none() && !living.process.has_ended())
    }

    /// Whether the end of the run waits for the process: it has not been reaped, and was not killed in vain.
    pub(super) fn is_waited_for(&self, now: Instant) -> bool {
        let is_waited_for = |living: &Living| living.killed.as_ref().is_none_or(|kill| kill.waits_for(&living.process, now));
        self.living.as_ref().is_some_and(is_waited_for)
    }

    /// Whether a replacement has been arranged.
    pub(super) fn is_awaited(&self) -> bool {
        self.restart_at.is_some()
    }

    /// Forget the failures so far: they say nothing of what comes.
    pub(super) fn forgive(&mut self) {
        (self.consecutive, self.own_faults) = (0, 0);
    }

    /// Note that the process could not be started: it is tried again after some time.
    pub(super) fn postpone(&mut self) {
        self.restart_at = Some(Instant::now() + START_PAUSE);
    }

    /// Arrange that the process is replaced no more.
    pub(super) fn give_up(&mut self) {
        self.restart_at = None;
    }

    /// Whether the replacement is due.
    pub(super) fn is_due(&self) -> bool {
        self.living.is_none() && self.restart_at.is_some_and(|at| Instant::now() >= at)
    }

    /// Send the process a signal, if it lives.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(living) = &self.living {
            // ESRCH would mean that it has just ended, which the descriptor will say.
            let _ = kill(living.pid, signal);
        }
    }
}

/// The work that is counted in a slot, of all processes that ever had this role in it.
pub(super) fn work_counted(slot: ProcessSlot<'_>, role: Role) -> u64 {
    slot.counters().get(if role == Role::Learner { Counter::Updates } else { Counter::EnvSteps })
}

/// Whether a process that has counted so much `work` itself had got well beyond its start. An evaluator counts none:
/// its reports show its progress.
pub(super) fn has_made_progress(role: Role, work: u64, setting: ActorSetting) -> bool {
    match role {
        Role::Actor => work >= PROGRESS_FROM * setting.environments as u64,
        Role::Learner => work >= PROGRESS_FROM,
        _ => false,
    }
}

/// Wait until one of `descriptors` is ready, a signal comes or `patience` is over. Returns whether one is.
pub(super) fn wait_for(descriptors: &mut [PollFd<'_>], patience: Duration) -> bool {
    poll(descriptors, Timespec::try_from(patience).ok().as_ref()).is_ok_and(|ready| ready > 0)
}

/// Whether there is something to read, the end included.
pub(super) fn is_readable(descriptor: &impl AsFd) -> bool {
    wait_for(&mut [PollFd::new(descriptor, PollFlags::IN)], Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::death::DYING_PATIENCE;
    use super::*;

    fn actor() -> Watched {
        Watched::new(PlannedProcess { slot: 0, role: Role::Actor, number: 0, cores: Vec::new() })
    }

    #[test]
    fn the_wait_before_a_replacement_doubles_up_to_its_limit() {
        let mut watched = actor();
        let waits: Vec<u64> = (0..8).map(|_| watched.schedule_restart(false).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn only_what_a_process_brought_about_itself_counts_as_its_failures_in_a_row() {
        let mut watched = actor();
        let [killed, crashed] = [Signal::SIGKILL, Signal::SIGSEGV].map(|signal| Ending::Signal(signal as i32));
        let endings = [Ending::Exit(1), killed, Ending::Exit(0), crashed, Ending::Exit(1)];
        let failures = endings.map(|ending| {
            watched.schedule_restart(ending.is_own_fault());
            watched.failures_in_a_row()
        });
        assert_eq!(failures, [1, 0, 0, 1, 2]);
    }

    #[test]
    fn only_a_process_that_got_well_beyond_its_start_has_made_progress() {
        let setting = ActorSetting { actors: 2, environments: 8 };
        let progress = |role, work| has_made_progress(role, work, setting);
        // A crash in the hundredth step comes in every environment at once.
        assert_eq!([0, 800, 1_599, 1_600].map(|work| progress(Role::Actor, work)), [false, false, false, true]);
        assert_eq!([0, 199, 200].map(|work| progress(Role::Learner, work)), [false, false, true]);
        assert!(![Role::Evaluator, Role::Visualizer].into_iter().any(|role| progress(role, 0)));
    }

    #[test]
    fn a_failure_after_progress_begins_a_new_row() {
        let mut watched = actor();
        let failures = [false, false, true, true, false].map(|has_made_progress| {
            if has_made_progress {
                watched.forgive();
            }
            let wait_s = watched.schedule_restart(true).as_secs();
            (watched.failures_in_a_row(), wait_s)
        });
        assert_eq!(failures, [(1, 0), (2, 1), (1, 0), (1, 0), (2, 1)]);
        assert_eq!(watched.restarts, 5);
    }

    #[test]
    fn a_death_counts_for_a_day_unless_it_is_excused() {
        let began = Instant::now();
        let counted = |deaths: &[(u64, bool)]| {
            let mut watched = actor();
            let count = |&(hour, is_excused)| watched.count_death(began + Duration::from_hours(hour), is_excused);
            deaths.iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(counted(&[(0, false), (1, false), (1, true), (23, false)]), [1, 2, 2, 3]);
        assert_eq!(counted(&[(0, false), (24, false), (48, false), (71, false)]), [1, 1, 1, 2]);
    }

    #[test]
    fn a_process_that_was_asked_to_leave_has_more_time_after_a_pause_in_which_nobody_looked() {
        let mut watched = actor();
        watched.put_off_dismissal(LEAVING_PATIENCE);
        assert!(!watched.is_dismissed());
        // Its input ends with this test.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        watched.started(Pid::from_raw(child.id() as i32), None, ActorSetting { actors: 1, environments: 1 }, 0).unwrap();
        watched.leave_with_run();
        *watched.dismissed.as_mut().unwrap() -= LEAVING_PATIENCE;
        watched.put_off_dismissal(LEAVING_PATIENCE);
        watched.dismiss();
        assert!(watched.lives_on());
        *watched.dismissed.as_mut().unwrap() -= LEAVING_PATIENCE;
        watched.dismiss();
        assert!(!watched.lives_on());
        child.wait().unwrap();
    }

    #[test]
    fn the_end_of_a_run_waits_for_a_process_until_it_is_reaped_or_was_killed_in_vain() {
        let mut watched = actor();
        // Its input ends with this test.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        watched.started(Pid::from_raw(child.id() as i32), None, ActorSetting { actors: 1, environments: 1 }, 0).unwrap();
        // No signal is sent: that is how a process looks which its kill does not end.
        let kill = Kill::now(KillCause::Late);
        let (killed_at, too_late) = (kill.at, kill.at + DYING_PATIENCE);
        assert!(watched.is_waited_for(too_late), "nobody has killed it");
        watched.living.as_mut().unwrap().killed = Some(kill);
        assert!(watched.is_waited_for(killed_at) && !watched.is_waited_for(too_late));
        drop(child.stdin.take());
        assert!(watched.living.as_ref().unwrap().process.ends_within(Duration::from_secs(60)));
        assert!(watched.is_waited_for(too_late), "what it left is still to be repaired");
        assert!(watched.reap().is_some() && !watched.is_waited_for(killed_at));
        child.wait().unwrap_err();
    }

    #[test]
    fn a_death_by_a_real_time_signal_is_noticed() {
        let mut child = Command::new("sh").args(["-c", "kill -34 $$"]).spawn().unwrap();
        let mut watched = actor();
        watched.started(Pid::from_raw(child.id() as i32), None, ActorSetting { actors: 1, environments: 1 }, 0).unwrap();
        assert!(watched.living.as_ref().unwrap().process.ends_within(Duration::from_secs(60)));
        let ending = watched.reap().expect("it has ended").ending;
        assert_eq!((ending, ending.describe("")), (Ending::Signal(34), "was killed by signal 34".to_owned()));
        assert!(watched.living.is_none() && !ending.is_own_fault());
        child.wait().unwrap_err();
    }
}
