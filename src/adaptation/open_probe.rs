//! A probe under way: it gathers windows at the candidate and at home, round after round.

use super::change::{Probe, Reason, Verdict};
use super::evidence::{Evidence, Judgement};
use super::objective::Objective;
use super::search::Candidate;
use super::setting::Setting;
use super::stage::Seen;
use super::window::Window;

/// Windows of each leg of a round.
pub(super) const LEG_WINDOWS: usize = 5;
/// Disturbances that are put down to chance. More of them count as the setting's fault.
const MOST_DISTURBANCES: u32 = 3;

/// A probe under way.
#[derive(Debug, Clone)]
pub(super) struct OpenProbe {
    pub(super) home: Setting,
    pub(super) candidate: Candidate,
    objective: Objective,
    evidence: Evidence,
    /// Windows of the round under way at home, before the candidate.
    before: Vec<Window>,
    /// Windows of the round under way at the candidate.
    tried: Vec<Window>,
    /// Windows of the round under way at home, after the candidate.
    after: Vec<Window>,
    disturbances: u32,
}

/// What a probe needs next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    MoreWindows,
    GoHome,
    Judged(Judgement),
}

impl OpenProbe {
    pub(super) fn new(home: Setting, candidate: Candidate, objective: Objective) -> Self {
        Self {
            home,
            candidate,
            objective,
            evidence: Evidence::default(),
            before: Vec::new(),
            tried: Vec::new(),
            after: Vec::new(),
            disturbances: 0,
        }
    }

    /// Begins a round with the latest windows at home, and returns its number, from 1.
    pub(super) fn begin_round(&mut self, at_home: Vec<Window>) -> u32 {
        self.before = at_home;
        self.tried.clear();
        self.after.clear();
        self.evidence.rounds() + 1
    }

    /// Adds a window to the round, and returns what the probe needs next.
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

    /// The windows at home after the candidate in the newest round; a complete leg once the round is complete.
    pub(super) fn at_home(&self) -> Vec<Window> {
        self.after.clone()
    }

    /// Begins the leg under way anew, because of something that may have nothing to do with the setting.
    ///
    /// # Errors
    /// The setting was disturbed too often to blame chance.
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

    /// This probe, once its candidate is accepted: disturbances are counted anew.
    pub(super) fn adopted(self) -> Self {
        Self { disturbances: 0, ..self }
    }

    /// What to remember of the candidate when it is rejected.
    pub(super) fn seen(&self) -> Option<Seen> {
        self.evidence.seen(self.objective)
    }

    /// The record of this probe, which has ended at `wall_s`.
    pub(super) fn record(&self, wall_s: f64, verdict: Verdict, reason: Reason) -> Probe {
        let [before, tried, after] = self.evidence.summaries(self.objective);
        Probe {
            wall_s,
            knobs: self.candidate.turns.iter().map(|turn| turn.knob).collect(),
            from: self.home,
            to: self.candidate.setting,
            objective: self.objective,
            rounds: self.evidence.rounds(),
            before,
            tried,
            after,
            verdict,
            reason,
        }
    }
}
