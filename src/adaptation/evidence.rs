//! Whether a setting is better than home, from the rounds of a probe.
//!
//! A round is A-B-A: windows at home, at the candidate, and at home again. The candidate has to exceed the windows
//! before as well as those after, so that a machine that becomes faster meanwhile is not taken for a better setting.
//!
//! Windows scatter. A gain that has to be three median absolute deviations is often too small to be seen in five of
//! them. So one round decides what is clear, and the rest gets another round. With all rounds put together, a gain is
//! uncertain by about the deviation divided by the root of the number of rounds, the *doubt*. A candidate is
//!
//! - accepted when its gain is at least 5 % and three doubts (with one round: three deviations);
//! - rejected when even a gain of one doubt more would be less than 5 %;
//! - tried again otherwise. After the last round two doubts are enough, and everything less is rejected.

use super::change::Reason;
use super::median::{Summary, median};
use super::objective::Objective;
use super::stage::Seen;
use super::waiting::Side;
use super::window::Window;

/// The least gain for which a setting is changed, and the largest cost that is accepted for it.
const WORTHWHILE: f64 = 0.05;
/// Doubts that a gain has to reach, and that a cost has to exceed to be proven.
const DOUBTS: f64 = 3.0;
/// Doubts that a gain has to reach after the last round.
const LAST_DOUBTS: f64 = 2.0;
/// The last round, after which the candidate is accepted or rejected.
const MOST_ROUNDS: u32 = 8;

/// What the rounds of a probe have shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    /// Windows at home before each round.
    before: Vec<Window>,
    /// Windows at the candidate.
    tried: Vec<Window>,
    /// Windows at home after each round.
    after: Vec<Window>,
    /// Windows at home after the last round. Those after the rounds before are mostly in `before`, too.
    latest: Vec<Window>,
    rounds: u32,
}

/// What follows from the evidence.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Judgement {
    Accept(Reason),
    Reject(Reason),
    LookAgain,
}

/// How a rate at the candidate compares with the rate at home.
struct Comparison {
    /// What it has more than home before or home after, whichever was more; as a share.
    gain: f64,
    /// What it has more than home before and after together; as a share.
    over_home: f64,
    /// How uncertain both shares are.
    doubt: f64,
}

impl Evidence {
    pub(super) fn add_round(&mut self, before: &[Window], tried: &[Window], after: &[Window]) {
        self.before.extend_from_slice(before);
        self.tried.extend_from_slice(tried);
        self.after.extend_from_slice(after);
        self.latest = after.to_vec();
        self.rounds += 1;
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The objective at home before, at the candidate, and at home after.
    pub(super) fn summaries(&self, objective: Objective) -> [Option<Summary>; 3] {
        [&self.before, &self.tried, &self.after].map(|windows| {
            let values: Vec<f64> = windows.iter().map(|window| objective.value(window)).collect();
            Summary::of(&values)
        })
    }

    /// What to remember of the candidate when it is rejected.
    pub(super) fn seen(&self, objective: Objective) -> Option<Seen> {
        let comparison = self.compare(|window| objective.value(window))?;
        Some(Seen { gain: comparison.over_home, freed: Side::freed(&self.tried) })
    }

    pub(super) fn judge(&self, objective: Objective) -> Judgement {
        let is_last = self.rounds >= MOST_ROUNDS;
        let Some(Comparison { gain, over_home, doubt }) = self.compare(|window| objective.value(window)) else {
            return Judgement::Reject(Reason::TooLittleGain { gain: 0.0, needed: WORTHWHILE });
        };
        let needed = WORTHWHILE.max(doubt * if is_last { LAST_DOUBTS } else { DOUBTS });
        let is_enough = gain >= needed;
        if over_home + doubt < WORTHWHILE || is_last && !is_enough {
            return Judgement::Reject(Reason::TooLittleGain { gain, needed });
        }
        let mut is_free = true;
        for rate in objective.guarded() {
            let Some(Comparison { over_home, doubt, .. }) = self.compare(rate.of) else { continue };
            let cost = -over_home;
            // One round shows a cost by chance too often, since either of two rates may show it.
            let is_proven = self.rounds > 1 && cost > WORTHWHILE.max(DOUBTS * doubt);
            if is_proven || is_last && cost > WORTHWHILE {
                return Judgement::Reject(Reason::Costs { rate: rate.name, cost });
            }
            is_free &= cost <= WORTHWHILE;
        }
        if is_enough && is_free { Judgement::Accept(Reason::Gain { gain }) } else { Judgement::LookAgain }
    }

    /// Compares the candidate with home by `rate`; `None` if the rate at home is zero, to which nothing compares.
    fn compare(&self, rate: impl Fn(&Window) -> f64) -> Option<Comparison> {
        let middle = |windows: &[Window]| median(windows.iter().map(&rate)).filter(|&middle| middle > 0.0);
        let home = [self.before.as_slice(), &self.latest].concat();
        let at_home = middle(&home)?;
        let before = middle(&self.before)?;
        let after = middle(&self.after)?;
        let tried = middle(&self.tried).unwrap_or(0.0);
        let scatter =
            |windows: &[Window], middle: f64| windows.iter().map(|window| (rate(window) / middle - 1.0).abs()).collect::<Vec<_>>();
        let mut deviations = scatter(&home, at_home);
        if tried > 0.0 {
            deviations.extend(scatter(&self.tried, tried));
        }
        let doubt = median(deviations)? / f64::from(self.rounds).sqrt();
        Some(Comparison { gain: tried / before.max(after) - 1.0, over_home: tried / at_home - 1.0, doubt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows with this rate, which scatter by about 6 %.
    fn leg(rate: f64) -> Vec<Window> {
        both(rate, rate)
    }

    fn both(env_steps_per_s: f64, learned_per_s: f64) -> Vec<Window> {
        let window = |factor: f64| Window {
            env_steps_per_s: env_steps_per_s * factor,
            learned_per_s: learned_per_s * factor,
            cores_used: 0.5,
            learners_wait: 0.0,
            actors_wait: 0.0,
        };
        [0.90, 0.94, 1.0, 1.06, 1.10].map(window).to_vec()
    }

    /// What follows from rounds with these windows at home and at the candidate.
    fn judged(objective: Objective, home: &[Window], tried: &[Window], rounds: u32) -> Judgement {
        let mut evidence = Evidence::default();
        (0..rounds).for_each(|_| evidence.add_round(home, tried, home));
        evidence.judge(objective)
    }

    fn by_gain(gain: f64, rounds: u32) -> Judgement {
        judged(Objective::LearnedPerSecond, &leg(100.0), &leg(100.0 * (1.0 + gain)), rounds)
    }

    #[test]
    fn one_round_decides_what_is_clear_and_more_rounds_decide_the_rest() {
        assert!(matches!(by_gain(0.3, 1), Judgement::Accept(_)), "more than three deviations");
        assert!(matches!(by_gain(-0.1, 1), Judgement::Reject(_)));
        assert_eq!([0.0, 0.05, 0.15].map(|gain| by_gain(gain, 1)), [const { Judgement::LookAgain }; 3]);
        assert!(matches!(by_gain(0.0, 3), Judgement::Reject(_)));
        assert!(matches!(by_gain(0.15, 3), Judgement::Accept(_)));
    }

    #[test]
    fn the_last_round_decides() {
        assert!(matches!(by_gain(0.06, MOST_ROUNDS), Judgement::Accept(_)));
        assert!(matches!(by_gain(0.04, MOST_ROUNDS), Judgement::Reject(_)));
    }

    #[test]
    fn a_setting_has_to_exceed_what_came_before_and_what_came_after() {
        for (before, after) in [(100.0, 130.0), (130.0, 100.0)] {
            let mut evidence = Evidence::default();
            evidence.add_round(&leg(before), &leg(130.0), &leg(after));
            assert!(!matches!(evidence.judge(Objective::LearnedPerSecond), Judgement::Accept(_)), "{before}, 130, {after}");
        }
    }

    #[test]
    fn free_running_neither_rate_is_bought_with_the_other() {
        let (home, bought) = (both(100.0, 100.0), both(80.0, 200.0));
        assert_eq!(judged(Objective::BothRates, &home, &bought, 1), Judgement::LookAgain, "one round does not prove a cost");
        let Judgement::Reject(reason) = judged(Objective::BothRates, &home, &bought, 2) else { panic!("a cost of 20 % is accepted") };
        assert!(reason.to_string().contains("costs 20.0 % of the environment steps per second"), "{reason}");
        assert!(matches!(judged(Objective::BothRates, &home, &both(98.0, 200.0), 1), Judgement::Accept(_)));
        assert!(matches!(judged(Objective::LearnedPerSecond, &home, &bought, 1), Judgement::Accept(_)));
    }

    #[test]
    fn a_setting_with_which_nothing_is_done_is_rejected_at_once() {
        assert!(matches!(judged(Objective::LearnedPerSecond, &leg(100.0), &leg(0.0), 1), Judgement::Reject(_)));
    }
}
