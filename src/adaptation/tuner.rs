//! The tuner: statuses in, at most one change out.
//!
//! ```text
//!                     something to try             accepted
//!         Searching ------------------> Trying ---------------> Adopting
//!          |   ^  ^                       |                        |
//!          |   |  +-----------------------+                        |
//!          |   |   rejected, abandoned, look again                 |
//!          |   +---------------------------------------------------+
//!          |   ^           settled, or could not be kept
//!  nothing |   | drift, or
//!     left v   | other cores
//!          Locked                   from all but Adopting, late in the run: Frozen
//! ```
//!
//! *Home* is the best setting known so far, and a *candidate* is a setting that is tried. The wanted setting is home
//! in all phases but Trying.

use super::budget::Budget;
use super::change::{Change, Probe, Reason, Verdict};
use super::drift::DriftWatch;
use super::evidence::Judgement;
use super::open_probe::{LEG_WINDOWS, Next, OpenProbe};
use super::ranges::Range;
use super::rules::Rules;
use super::search::{Choice, Search};
use super::setting::{Knob, Setting};
use super::status::{Incident, Status};
use super::steady::{Admission, SETTLING_WINDOWS, Steady};
use super::window::Window;

/// Above this share of the memory a setting is given up and none is tried.
const MOST_MEMORY: f64 = 0.85;
/// Windows that a round takes at the candidate and at home again, settling included, if nothing delays it.
const ROUND_WINDOWS: f64 = 2.0 * (SETTLING_WINDOWS + LEG_WINDOWS) as f64;

/// What the tuner answers to one status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The setting to put in force now, if another one is wanted.
    pub change: Option<Change>,
    /// The probe that has just ended.
    pub probe: Option<Probe>,
}

/// Fits the setting to the machine. The module `adaptation` documents the rules, and this file the phases.
#[derive(Debug, Clone)]
pub struct Tuner {
    rules: Rules,
    phase: Phase,
    home: Setting,
    /// The latest windows at home, up to a leg of a round: a round begins with them.
    at_home: Vec<Window>,
    steady: Steady,
    search: Search,
    drift: DriftWatch,
    budget: Budget,
    usable_cores: Option<usize>,
    /// Whether the run has begun to learn.
    has_learned: bool,
    /// Why nothing is tried, although there is time and may be something to try.
    held_back: Option<Reason>,
}

#[derive(Debug, Clone)]
enum Phase {
    /// At home, until there are enough windows to compare with and time to try something. A probe that needs another
    /// round waits for both.
    Searching(Option<OpenProbe>),
    /// At a candidate, or back at home to compare.
    Trying(OpenProbe),
    /// At the accepted candidate of this probe, which is home now and has to prove that it can be kept.
    Adopting(OpenProbe),
    /// At home, with nothing left to try until the machine changes.
    Locked,
    /// At home for the rest of the run.
    Frozen,
}

impl Tuner {
    /// A tuner that begins with the setting `start`, which is taken to be in force.
    ///
    /// # Panics
    /// If a range begins at 0, or `start` lies outside of one. The rules of the configuration exclude both.
    pub fn new(rules: Rules, start: Setting) -> Self {
        let is_within = |knob| {
            let Range { low, high } = rules.ranges.of(knob);
            low > 0 && (low..=high).contains(&start.value(knob))
        };
        assert!(Knob::ALL.into_iter().all(is_within), "{start:?} is not within {}", rules.ranges);
        Self {
            rules,
            phase: Phase::Searching(None),
            home: start,
            at_home: Vec::new(),
            steady: Steady::new(start),
            search: Search::new(rules.ranges, rules.objective),
            drift: DriftWatch::default(),
            budget: Budget::default(),
            usable_cores: None,
            has_learned: false,
            held_back: None,
        }
    }

    /// The best setting known so far.
    pub fn home(&self) -> Setting {
        self.home
    }

    /// Why nothing is tried at present, although there is time and may be something to try; `None` if nothing holds the
    /// search back.
    pub fn held_back(&self) -> Option<&Reason> {
        self.held_back.as_ref()
    }

    /// Whether the search is over, until the machine changes.
    pub fn is_locked(&self) -> bool {
        matches!(self.phase, Phase::Locked)
    }

    /// Whether the wanted setting has yet to prove itself: it is being tried, or was accepted and has not yet lasted.
    pub fn is_on_trial(&self) -> bool {
        matches!(self.phase, Phase::Trying(_) | Phase::Adopting(_))
    }

    /// The record of a probe that has no judgement when the run ends at `wall_s`, if there is one.
    pub fn unfinished(&self, wall_s: f64) -> Option<Probe> {
        match &self.phase {
            Phase::Trying(probe) | Phase::Searching(Some(probe)) => Some(probe.record(wall_s, Verdict::Abandoned, Reason::RunEnded)),
            Phase::Searching(None) | Phase::Adopting(_) | Phase::Locked | Phase::Frozen => None,
        }
    }

    /// Takes in what happened in one window, and answers with at most one change.
    pub fn step(&mut self, status: &Status) -> Step {
        if matches!(self.phase, Phase::Frozen) {
            return Step::default();
        }
        self.budget.pass(status.wall_s, matches!(self.phase, Phase::Trying(_)));
        if let Some(step) = self.interruption(status) {
            return step;
        }
        let is_learning = self.is_learning(status);
        match self.steady.admit(status.in_force, is_learning) {
            Admission::Counts => self.count(status),
            Admission::NotYet => Step::default(),
            Admission::GivenUp { windows } => self.give_up(status, Reason::NothingMeasured { windows }),
        }
    }

    /// Whether a window says something about its setting: once the run has begun to learn, all windows do, also those
    /// in which nothing was learned.
    fn is_learning(&mut self, status: &Status) -> bool {
        let objective = self.rules.objective.value(&status.window);
        self.has_learned |= objective > 0.0;
        objective.is_finite() && self.has_learned
    }

    /// Takes in a window that counts: the wanted setting was in force and has settled.
    fn count(&mut self, status: &Status) -> Step {
        let is_home = self.steady.wanted() == self.home;
        if is_home && self.drift.add(self.rules.objective.value(&status.window)) {
            let step = self.abandon(status, Reason::Drift);
            self.reopen();
            return step;
        }
        match &mut self.phase {
            Phase::Trying(probe) => match probe.add(status.window) {
                Next::MoreWindows => Step::default(),
                Next::GoHome => Step { change: self.go_to(self.home, Reason::Comparing), probe: None },
                Next::Judged(judgement) => {
                    let probe = probe.clone();
                    self.conclude(status, probe, judgement)
                }
            },
            Phase::Searching(_) | Phase::Adopting(_) => Step { change: self.stay_home(status), probe: None },
            Phase::Locked | Phase::Frozen => Step::default(),
        }
    }

    /// Takes in a window at home, outside of any round. Once there are enough, an adopted setting is kept, and the
    /// search goes on.
    fn stay_home(&mut self, status: &Status) -> Option<Change> {
        if self.at_home.len() == LEG_WINDOWS {
            self.at_home.remove(0);
        }
        self.at_home.push(status.window);
        if self.at_home.len() < LEG_WINDOWS {
            return None;
        }
        if matches!(self.phase, Phase::Adopting(_)) {
            self.phase = Phase::Searching(None);
        }
        self.search_on(status)
    }

    /// Begins the next round, of the probe that waits for one or of the next candidate, unless there is no time, too
    /// little memory, or nothing left to try.
    fn search_on(&mut self, status: &Status) -> Option<Change> {
        // All this comes before the search is asked, which goes on to its next stage if it has nothing to try.
        self.held_back = None;
        if self.is_late(status) || !self.budget.allows(ROUND_WINDOWS) {
            return None;
        }
        if status.memory_used > MOST_MEMORY {
            self.held_back = Some(Reason::Memory { used: status.memory_used, limit: MOST_MEMORY });
            return None;
        }
        let unfinished = if let Phase::Searching(unfinished) = &mut self.phase { unfinished.take() } else { None };
        let mut probe = match unfinished {
            Some(probe) => probe,
            None => match self.search.next(self.home, &self.at_home, status.wall_s) {
                Choice::Try(candidate) => OpenProbe::new(self.home, candidate, self.rules.objective),
                Choice::Later => return None,
                Choice::Nothing => {
                    self.phase = Phase::Locked;
                    self.budget.end_first_search();
                    return None;
                }
            },
        };
        let setting = probe.candidate.setting;
        let round = probe.begin_round(std::mem::take(&mut self.at_home));
        self.search.start(&probe.candidate);
        self.phase = Phase::Trying(probe);
        self.go_to(setting, Reason::Trying { round })
    }

    /// Draws the conclusion from a round that has ended. Home was measured in it, so the next round can begin at once.
    fn conclude(&mut self, status: &Status, probe: OpenProbe, judgement: Judgement) -> Step {
        self.at_home = probe.at_home();
        match judgement {
            Judgement::LookAgain => {
                self.phase = Phase::Searching(Some(probe));
                Step { change: self.search_on(status), probe: None }
            }
            Judgement::Reject(reason) => {
                self.search.bar(&probe.candidate, probe.seen(), status.wall_s);
                self.phase = Phase::Searching(None);
                let record = probe.record(status.wall_s, Verdict::Rejected, reason);
                Step { change: self.search_on(status), probe: Some(record) }
            }
            Judgement::Accept(reason) => {
                self.search.accept(&probe.candidate, self.home, status.wall_s);
                let probe = probe.adopted();
                self.move_to(probe.candidate.setting);
                let record = probe.record(status.wall_s, Verdict::Accepted, reason.clone());
                self.phase = Phase::Adopting(probe);
                Step { change: self.go_to(self.home, reason), probe: Some(record) }
            }
        }
    }

    /// The answer to anything that ends a probe before it is judged, or begins a leg of it anew; `None` if nothing
    /// does.
    fn interruption(&mut self, status: &Status) -> Option<Step> {
        // A setting that is being adopted has been judged. It stays, unless it turns out that it cannot be kept.
        if self.is_late(status) && !matches!(self.phase, Phase::Adopting(_)) {
            return Some(self.freeze(status));
        }
        let now = status.usable_cores;
        let before = self.usable_cores.replace(now).unwrap_or(now);
        if now != before {
            return Some(self.cores_changed(status, before));
        }
        if status.memory_used > MOST_MEMORY && matches!(self.phase, Phase::Trying(_) | Phase::Adopting(_)) {
            return Some(self.abandon(status, Reason::Memory { used: status.memory_used, limit: MOST_MEMORY }));
        }
        match &status.incident {
            None => None,
            Some(Incident::ProcessFailed(message)) => Some(self.give_up(status, Reason::ProcessFailed(message.clone()))),
            Some(Incident::Disturbed) => Some(self.disturbed(status)),
        }
    }

    /// Whether the run is past the steps in which settings are tried.
    fn is_late(&self, status: &Status) -> bool {
        status.progress >= self.rules.freeze_after
    }

    /// Ends the search for good, with a last change back home if a candidate is in force.
    fn freeze(&mut self, status: &Status) -> Step {
        let step = self.abandon(status, Reason::Frozen);
        self.phase = Phase::Frozen;
        step
    }

    /// Begins the search anew: all that was tried was tried with other cores. A candidate that is being tried when
    /// cores are taken away stays barred.
    fn cores_changed(&mut self, status: &Status, before: usize) -> Step {
        let now = status.usable_cores;
        if now < before {
            self.reopen();
        }
        let step = self.abandon(status, Reason::Cores { before, now });
        if now > before {
            self.reopen();
        }
        step
    }

    fn disturbed(&mut self, status: &Status) -> Step {
        if let Phase::Trying(probe) | Phase::Adopting(probe) = &mut self.phase
            && let Err(reason) = probe.disturb()
        {
            return self.abandon(status, reason);
        }
        self.measure_anew()
    }

    /// Gives up a setting that is tried or adopted because something went wrong with it. If something goes wrong at
    /// home, home is only measured anew.
    fn give_up(&mut self, status: &Status, reason: Reason) -> Step {
        match self.phase {
            Phase::Trying(_) | Phase::Adopting(_) => self.abandon(status, reason),
            Phase::Searching(_) | Phase::Locked | Phase::Frozen => self.measure_anew(),
        }
    }

    /// Ends a probe that cannot be judged, or takes back a setting that cannot be kept: it is barred, and home is
    /// restored. Without a probe, only home is measured anew.
    fn abandon(&mut self, status: &Status, reason: Reason) -> Step {
        let probe = match std::mem::replace(&mut self.phase, Phase::Searching(None)) {
            Phase::Trying(probe) | Phase::Adopting(probe) | Phase::Searching(Some(probe)) => probe,
            phase @ (Phase::Searching(None) | Phase::Locked | Phase::Frozen) => {
                self.phase = phase;
                return self.measure_anew();
            }
        };
        self.search.bar(&probe.candidate, None, status.wall_s);
        self.move_to(probe.home);
        let record = probe.record(status.wall_s, Verdict::Abandoned, reason.clone());
        Step { change: self.go_to(self.home, reason), probe: Some(record) }
    }

    /// Drops what was measured in the wanted setting.
    fn measure_anew(&mut self) -> Step {
        self.at_home.clear();
        self.steady.settle_again();
        Step::default()
    }

    /// Begins a new search at home, because the machine has changed.
    fn reopen(&mut self) {
        self.search.reopen();
        self.drift = DriftWatch::default();
        if matches!(self.phase, Phase::Locked) {
            self.phase = Phase::Searching(None);
        }
    }

    /// Makes `setting` home. Nothing that was measured at home before counts for it.
    fn move_to(&mut self, setting: Setting) {
        self.home = setting;
        self.at_home.clear();
        self.drift = DriftWatch::default();
    }

    /// Makes `setting` the wanted one, and returns a change unless it was wanted already.
    fn go_to(&mut self, setting: Setting, reason: Reason) -> Option<Change> {
        let is_change = self.steady.wanted() != setting;
        self.steady.go_to(setting);
        is_change.then_some(Change { setting, reason })
    }
}
