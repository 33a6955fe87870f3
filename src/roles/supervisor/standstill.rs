//! A run that stands still although every process gives signs of life: noticed and said, never acted upon.
//!
//! A process that waits keeps renewing its heartbeat. A wait that nobody ends, such as that of learners for each other,
//! therefore looks healthy to the watch over heartbeats (`hang`); what gives it away is that no count of the run
//! changes. It is given as long as a single process may be silent, `machine.hang_timeout_s`, pauses of the supervisor
//! itself not counted. Silences with a cause start the time anew:
//!
//! * a process that is silent itself, as one that was stopped: it moves on or counts as hung;
//! * a process that starts, or is at work in its environments: however long they take one after the other, nobody holds it up;
//! * a process that has died and whose replacement waits for its turn;
//! * an evaluation in the synchronous trainer, during which nothing else is to happen.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::hang::silence;
use super::watch::Watched;
use crate::segment::Segment;
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::sync::Ordering;

/// Processes that are named per phase; the others are counted.
const MOST_NAMES: usize = 8;

/// Environment steps, inserts, samples and updates of a run.
type Counts = [u64; 4];

/// The watch over a run's counts.
pub(super) struct Standstill {
    limit: Duration,
    counts: Counts,
    /// When the time in which nothing advanced began.
    since: Instant,
    is_said: bool,
}

/// What is to be said.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// Nothing has advanced for this long.
    StandsStill(Duration),
    /// Something advances again, after this long.
    GoesOn(Duration),
}

impl Standstill {
    /// Watch a run that starts `now`, whose processes may be silent for `hang_timeout`.
    pub(super) fn new(hang_timeout: Duration, now: Instant) -> Self {
        Self { limit: hang_timeout, counts: [0; 4], since: now, is_said: false }
    }

    /// Look at the run after a `pause` in which nobody looked, and return what is to be said of it: a line, and
    /// below it what explains it.
    pub(super) fn look(&mut self, segment: &Segment, watched: &[Watched], pause: Duration) -> Option<(String, String)> {
        let control = segment.control();
        let words = [control.env_steps(), control.inserted(), control.sampled(), control.updates()];
        let counts = words.map(|word| word.load(Ordering::Relaxed));
        // Half of the limit: two shorter silences in a row are then within it.
        let patience = self.limit / 2;
        // A synchronous trainer that waits for a checkpoint is to wait.
        let waits_for_checkpoint = control.checkpoint_wanted().load(Ordering::Relaxed) != 0;
        let is_excused = waits_for_checkpoint
            || watched.iter().any(|watched| watched.excuses_silence(segment.processes().slot(watched.planned.slot), patience));
        Some(match self.take_note(Instant::now(), counts, is_excused, pause)? {
            News::StandsStill(silent) => (
                format!(
                    "nothing has advanced for {:.0} s, no environment step, insert, sample or update, although every process gives \
                     signs of life",
                    silent.as_secs_f64()
                ),
                explain(segment),
            ),
            News::GoesOn(silent) => (format!("the run goes on; it stood still for {:.0} s", silent.as_secs_f64()), String::new()),
        })
    }

    fn take_note(&mut self, now: Instant, counts: Counts, is_excused: bool, pause: Duration) -> Option<News> {
        if counts != self.counts {
            let silent = now.saturating_duration_since(self.since);
            (self.counts, self.since) = (counts, now);
            return std::mem::take(&mut self.is_said).then_some(News::GoesOn(silent));
        }
        if self.is_said {
            return None;
        }
        self.since = if is_excused { now } else { self.since + pause };
        let silent = now.saturating_duration_since(self.since);
        self.is_said = silent >= self.limit;
        self.is_said.then_some(News::StandsStill(silent))
    }
}

impl Watched {
    /// Whether the run may well stand still because of this process: because it is silent or absent, which others
    /// see to, because it has work that takes long, or because it evaluates on behalf of all. Nobody ever waits for
    /// an evaluator or a visualizer.
    fn excuses_silence(&self, slot: ProcessSlot<'_>, patience: Duration) -> bool {
        match self.planned.role {
            Role::Evaluator | Role::Visualizer => false,
            Role::Synchronous if slot.phase() == Some(Phase::Evaluate) => true,
            // One that nobody has asked for is no reason to wait.
            _ if self.living.is_none() => self.is_awaited(),
            _ => matches!(slot.phase(), Some(Phase::Environment | Phase::Starting)) || silence(slot) > patience,
        }
    }
}

/// What everybody does, phase by phase, and what can be done about it.
fn explain(segment: &Segment) -> String {
    let mut phases: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for slot in segment.processes().living() {
        let (Some((role, number)), Some(phase)) = (slot.role(), slot.phase()) else { continue };
        phases.entry(phase.name()).or_default().push(format!("{} {number} (pid {})", role.name(), slot.pid()));
    }
    let mut lines: Vec<String> = phases.iter().map(|(phase, names)| format!("{phase}: {}", enumerate(names))).collect();
    let pid = segment.identity().supervisor_pid;
    lines.push(format!(
        "`shoal inspect {pid}` shows more. `kill -9` of one that waits in vain has it replaced without harm to the others; Ctrl+C ends the \
         run and keeps its last parameters"
    ));
    lines.push(format!(
        "This should never be: please report it as a bug in Shoal, with these lines and the output of `shoal inspect --json {pid}`"
    ));
    lines.join("\n")
}

/// The first names, and how many more there are.
fn enumerate(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    names[..names.len() - more].join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(50);
    const STILL: Counts = [4, 3, 2, 1];

    /// A watch with a limit of a minute, and its clock.
    struct Clocked(Standstill, Instant);

    impl Clocked {
        fn new() -> Self {
            let now = Instant::now();
            let mut watch = Standstill::new(Duration::from_mins(1), now);
            assert_eq!(watch.take_note(now, STILL, false, Duration::ZERO), None);
            Self(watch, now)
        }

        /// Look in every tick for `seconds`, and return what is said and after how many of them.
        fn look_for(&mut self, seconds: u64, counts: Counts, is_excused: bool) -> Vec<(u64, News)> {
            let start = self.1;
            let ticks = seconds * 20;
            let mut said = Vec::new();
            for _ in 0..ticks {
                self.1 += TICK;
                let news = self.0.take_note(self.1, counts, is_excused, Duration::ZERO);
                said.extend(news.map(|news| ((self.1 - start).as_secs(), news)));
            }
            said
        }
    }

    #[test]
    fn a_standstill_is_said_once_and_so_is_its_end() {
        let mut run = Clocked::new();
        assert_eq!(run.look_for(59, STILL, false), []);
        assert_eq!(run.look_for(600, STILL, false), [(1, News::StandsStill(Duration::from_mins(1)))]);
        let Some((0, News::GoesOn(silent))) = run.look_for(1, [5, 3, 2, 1], false).pop() else { panic!("nobody said that it goes on") };
        assert_eq!(silent.as_secs(), 659);
        assert_eq!(run.look_for(59, [5, 3, 2, 1], false), [], "the time starts anew");
        assert_eq!(run.look_for(2, [5, 3, 2, 1], false).len(), 1, "and a second standstill is said again");
    }

    #[test]
    fn any_count_that_changes_is_an_advance_even_one_that_goes_back() {
        let mut run = Clocked::new();
        for counts in [[5, 3, 2, 1], [5, 4, 2, 1], [5, 4, 3, 1], [5, 4, 3, 2], [5, 4, 3, 1]] {
            assert_eq!(run.look_for(59, counts, false), []);
        }
    }

    #[test]
    fn a_silence_with_a_cause_starts_the_time_anew() {
        let mut run = Clocked::new();
        assert_eq!(run.look_for(59, STILL, false), []);
        assert_eq!(run.look_for(300, STILL, true), []);
        assert_eq!(run.look_for(59, STILL, false), []);
        assert_eq!(run.look_for(2, STILL, false).len(), 1);
        assert_eq!(run.look_for(300, STILL, true), [], "what was said is not taken back by an excuse");
        assert_eq!(run.look_for(300, STILL, false), [], "nor said twice");
    }

    #[test]
    fn a_run_that_was_stopped_as_a_whole_did_not_stand_still() {
        let mut run = Clocked::new();
        for _ in 0..3 {
            let pause = Duration::from_hours(1);
            run.1 += pause;
            assert_eq!(run.0.take_note(run.1, STILL, false, pause), None);
        }
        assert_eq!(run.look_for(59, STILL, false), []);
        assert_eq!(run.look_for(2, STILL, false).len(), 1);
    }

    #[test]
    fn a_crowd_is_counted() {
        let names: Vec<String> = (0..11).map(|number| format!("actor {number}")).collect();
        assert_eq!(enumerate(&names[..2]), "actor 0, actor 1");
        assert_eq!(enumerate(&names), format!("{} and 3 more", names[..8].join(", ")));
    }
}
