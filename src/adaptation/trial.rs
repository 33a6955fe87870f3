//! One probe under way: it gathers windows where it tries a setting and at home, round after round.

use super::change::{Probe, Reason, Verdict};
use super::evidence::{Evidence, Judgement};
use super::objective::Objective;
use super::search::Candidate;
use super::setting::{Knob, Setting};
use super::stage::Seen;
use super::window::Window;

/// Windows of each leg of a round.
pub(super) const LEG_WINDOWS: usize = 5;
/// Disturbances after which the setting counts as what causes them.
const MOST_DISTURBANCES: u32 = 3;

/// A probe under way.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) home: Setting,
    pub(super) candidate: Candidate,
    objective: Objective,
    evidence: Evidence,
    /// Windows of the round under way: at home, at the candidate, and at home again.
    before: Vec<Window>,
    tried: Vec<Window>,
    after: Vec<Window>,
    disturbances: u32,
}

/// What a trial needs next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    MoreWindows,
    GoHome,
    Judged(Judgement),
}

impl Trial {
    pub(super) fn new(home: Setting, candidate: Candidate, objective: Objective) -> Self {
        let (evidence, [before, tried, after]) = (Evidence::default(), [const { Vec::new() }; 3]);
        Self { home, candidate, objective, evidence, before, tried, after, disturbances: 0 }
    }

    /// Begins a round with the latest windows at home, and returns its number, counted from one.
    pub(super) fn begin_round(&mut self, at_home: Vec<Window>) -> u32 {
        self.before = at_home;
        self.tried.clear();
        self.after.clear();
        self.evidence.rounds() + 1
    }

    /// One more window of the round.
    pub(super) fn add(&mut self, window: Window) -> Next {
        if self.tried.len() < LEG_WINDOWS {
            self.tried.push(window);
            return if self.tried.len() == LEG_WINDOWS { Next::GoHome } else { Next::MoreWindows };
        }
        self.after.push(window);
        if self.after.len() < LEG_WINDOWS {
            return Next::MoreWindows;
        }
        self.evidence.add_round(&self.before, &self.tried, &self.after);
        Next::Judged(self.evidence.judge(self.objective))
    }

    /// The last windows at home, once a round has been completed.
    pub(super) fn at_home(&self) -> Vec<Window> {
        self.after.clone()
    }

    /// Something happened that may have nothing to do with the setting: the leg is begun again.
    ///
    /// # Errors
    /// That has happened so often that it has to do with it.
    pub(super) fn disturb(&mut self) -> Result<(), Reason> {
        self.disturbances += 1;
        if self.disturbances > MOST_DISTURBANCES {
            return Err(Reason::Disturbed { times: self.disturbances });
        }
        let is_home = self.tried.len() == LEG_WINDOWS;
        if is_home {
            self.after.clear()
        } else {
            self.tried.clear()
        }
        Ok(())
    }

    /// The same once it is accepted: what disturbs it from here on is counted anew.
    pub(super) fn adopted(self) -> Self {
        Self { disturbances: 0, ..self }
    }

    /// What to remember of the candidate when it is rejected.
    pub(super) fn seen(&self) -> Option<Seen> {
        self.evidence.seen(self.objective)
    }

    /// What is written about it once it has ended.
    pub(super) fn record(&self, wall_s: f64, verdict: Verdict, reason: Reason) -> Probe {
        let knobs: Vec<Knob> = self.candidate.turns.iter().map(|turn| turn.knob).collect();
        let [before, tried, after] = self.evidence.summaries(self.objective);
        let (from, to, objective, rounds) = (self.home, self.candidate.setting, self.objective, self.evidence.rounds());
        Probe { wall_s, knobs, from, to, objective, rounds, before, tried, after, verdict, reason }
    }
}
