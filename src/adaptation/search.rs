//! Which setting is tried next. The turns that were accepted last are repeated with a far stride as long as that
//! helps; otherwise the search goes through its stages. Settings that were rejected, or left for a better one, are
//! barred, and a knob rests before it returns to a value.

use std::collections::BTreeMap;

use super::objective::Objective;
use super::ranges::{Ranges, Stride, Turn};
use super::setting::{Knob, Setting};
use super::stage::{Seen, Stage};
use super::waiting::promising_ways;
use super::window::Window;

/// Seconds for which a knob does not return to a value that it has left, or that was rejected.
const REST_S: f64 = 60.0;

/// A setting to try instead of home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The turns that lead there: of one knob, or of two.
    pub(super) turns: Vec<Turn>,
    pub(super) setting: Setting,
}

/// What to try next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Try(Candidate),
    /// Candidates are left, but all of them turn a knob that rests.
    Later,
    Nothing,
}

/// A value to which a knob does not return for some time.
#[derive(Debug, Clone, Copy)]
struct Rest {
    knob: Knob,
    value: usize,
    until_s: f64,
}

/// What has been tried, and what that says about the rest.
#[derive(Debug, Clone)]
pub(super) struct Search {
    ranges: Ranges,
    objective: Objective,
    stage: Stage,
    /// Settings that are not tried again, with what was seen of those that were rejected. A setting that was left for a
    /// better one is among them, so that no search goes in circles.
    barred: BTreeMap<Setting, Option<Seen>>,
    resting: Vec<Rest>,
    /// The knob that was turned last.
    latest: Option<Knob>,
    /// The turns that were accepted last, if nothing was rejected since.
    momentum: Vec<Turn>,
}

impl Search {
    pub(super) fn new(ranges: Ranges, objective: Objective) -> Self {
        Self { ranges, objective, stage: Stage::Far, barred: BTreeMap::new(), resting: Vec::new(), latest: None, momentum: Vec::new() }
    }

    /// The candidate to try at `wall_s` instead of `home`. Which side waited in the windows `at_home` decides what is
    /// promising.
    pub(super) fn next(&mut self, home: Setting, at_home: &[Window], wall_s: f64) -> Choice {
        self.resting.retain(|rest| wall_s < rest.until_s);
        loop {
            let mut left = self.candidates(home, at_home);
            left.retain(|candidate| !self.barred.contains_key(&candidate.setting));
            if !left.is_empty() {
                return left.into_iter().find(|candidate| !self.rests(candidate)).map_or(Choice::Later, Choice::Try);
            }
            match self.stage.next() {
                Some(stage) => self.stage = stage,
                None => return Choice::Nothing,
            }
        }
    }

    /// Takes note that a round with this candidate starts.
    pub(super) fn start(&mut self, candidate: &Candidate) {
        self.latest = candidate.turns.first().map(|turn| turn.knob);
    }

    /// Takes note that the candidate is home now, instead of `left`.
    pub(super) fn accept(&mut self, candidate: &Candidate, left: Setting, wall_s: f64) {
        self.barred.insert(left, None);
        self.rest(candidate, left, wall_s);
        self.momentum.clone_from(&candidate.turns);
        self.stage = self.stage.at_new_home();
    }

    /// Takes note that the candidate is not tried again. `seen` is what was seen of it, if its probe was judged.
    pub(super) fn bar(&mut self, candidate: &Candidate, seen: Option<Seen>, wall_s: f64) {
        self.barred.insert(candidate.setting, seen);
        self.rest(candidate, candidate.setting, wall_s);
        self.momentum.clear();
    }

    /// Starts the search anew because the machine has changed and earlier results say nothing any more. Values go on
    /// resting.
    pub(super) fn reopen(&mut self) {
        *self = Self { resting: std::mem::take(&mut self.resting), ..Self::new(self.ranges, self.objective) };
    }

    /// The candidates of this stage, most promising first.
    fn candidates(&self, home: Setting, at_home: &[Window]) -> Vec<Candidate> {
        let strides = |(knob, direction)| self.stage.strides(knob).iter().map(move |&stride| Turn { knob, direction, stride });
        let turns = promising_ways(at_home, self.latest, self.objective, &self.ranges).into_iter().flat_map(strides);
        let singles: Vec<Candidate> = turns.filter_map(|turn| self.candidate(home, vec![turn])).collect();
        let fresh = if self.stage.is_pairs() { self.pairs(home, &singles) } else { singles };
        let again = self.momentum.iter().map(|&turn| Turn { stride: Stride::Far, ..turn }).collect();
        self.candidate(home, again).into_iter().chain(fresh).collect()
    }

    /// The candidate to which `turns` lead; `None` if one of them is at the end of its range, or if there are none.
    fn candidate(&self, home: Setting, turns: Vec<Turn>) -> Option<Candidate> {
        let setting = turns.iter().try_fold(home, |setting, &turn| self.ranges.turned(setting, turn))?;
        (setting != home).then_some(Candidate { turns, setting })
    }

    /// Every two of `singles` that may help together.
    fn pairs(&self, home: Setting, singles: &[Candidate]) -> Vec<Candidate> {
        let seen = |single: &Candidate| self.barred.get(&single.setting).copied().flatten();
        let mut pairs = Vec::new();
        for (index, one) in singles.iter().enumerate() {
            for other in &singles[index + 1..] {
                let is_of_two_knobs = one.turns.iter().all(|turn| other.turns.iter().all(|other| other.knob != turn.knob));
                let is_promising = seen(one).zip(seen(other)).is_some_and(|(one, other)| one.is_promising_with(other));
                if is_of_two_knobs && is_promising {
                    pairs.extend(self.candidate(home, [one.turns.as_slice(), &other.turns].concat()));
                }
            }
        }
        pairs
    }

    fn rests(&self, candidate: &Candidate) -> bool {
        let rests =
            |turn: &Turn| self.resting.iter().any(|rest| rest.knob == turn.knob && rest.value == candidate.setting.value(rest.knob));
        candidate.turns.iter().any(rests)
    }

    /// Keeps the knobs that the candidate turns from returning to their values in `setting` for some time.
    fn rest(&mut self, candidate: &Candidate, setting: Setting, wall_s: f64) {
        let rest = |turn: &Turn| Rest { knob: turn.knob, value: setting.value(turn.knob), until_s: wall_s + REST_S };
        self.resting.extend(candidate.turns.iter().map(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranges::{Direction, Range};
    use super::super::waiting::Side;
    use super::*;

    const RANGES: Ranges =
        Ranges { actors: Range { low: 1, high: 16 }, environments: Range { low: 1, high: 64 }, batch_size: Range { low: 32, high: 4_096 } };
    const HOME: Setting = Setting { actors: 4, environments: 8, batch_size: 256 };
    /// Nobody waits, and cores are idle.
    const BUSY: Window = Window { env_steps_per_s: 1.0, learned_per_s: 1.0, cores_used: 0.5, learners_wait: 0.0, actors_wait: 0.0 };
    const WORSE: Seen = Seen { gain: -0.2, freed: None };

    fn next(search: &mut Search, home: Setting, wall_s: f64) -> Candidate {
        let Choice::Try(candidate) = search.next(home, &[BUSY], wall_s) else { panic!("nothing to try at {wall_s} s") };
        search.start(&candidate);
        candidate
    }

    /// Everything that is tried, one setting every two minutes, if each is rejected with what `seen` returns.
    fn tried(seen: impl Fn(Setting) -> Seen) -> Vec<Setting> {
        let mut search = Search::new(RANGES, Objective::LearnedPerSecond);
        let mut tried = Vec::new();
        while let Choice::Try(candidate) = search.next(HOME, &[BUSY], 120.0 * tried.len() as f64) {
            search.start(&candidate);
            search.bar(&candidate, Some(seen(candidate.setting)), 120.0 * tried.len() as f64);
            tried.push(candidate.setting);
        }
        tried
    }

    fn differing(setting: Setting) -> usize {
        Knob::ALL.into_iter().filter(|&knob| setting.value(knob) != HOME.value(knob)).count()
    }

    #[test]
    fn far_settings_come_before_neighbours_and_each_is_tried_once() {
        let tried = tried(|_| WORSE);
        assert_eq!(tried.iter().collect::<std::collections::BTreeSet<_>>().len(), tried.len());
        let place = |setting: Setting| tried.iter().position(|&other| other == setting);
        assert!(place(HOME.with(Knob::BatchSize, 1_024)) < place(HOME.with(Knob::BatchSize, 512)));
        assert!(place(HOME.with(Knob::Actors, 5)) < place(HOME.with(Knob::Actors, 8)), "actors are counted before they are doubled");
        assert_eq!(tried.len(), 12, "two ways of three knobs, near and far: {tried:?}");
        assert!(tried.iter().all(|&setting| differing(setting) == 1), "there is no hope for two turns that are worse each");
    }

    #[test]
    fn turns_that_free_one_side_each_are_tried_together() {
        let seen = |setting: Setting| {
            let (more_acting, more_learning) = (setting.actors > HOME.actors, setting.batch_size > HOME.batch_size);
            let freed = if more_acting { Some(Side::Actors) } else { more_learning.then_some(Side::Learners) };
            Seen { gain: -0.01, freed }
        };
        let pairs: Vec<Setting> = tried(seen).into_iter().filter(|&setting| differing(setting) == 2).collect();
        assert_eq!(pairs.len(), 3, "{pairs:?}");
        assert!(pairs.iter().all(|pair| pair.actors > HOME.actors && pair.batch_size > HOME.batch_size));
    }

    #[test]
    fn turns_whose_gains_add_up_are_tried_together() {
        let seen = |setting: Setting| Seen { gain: if setting.actors < HOME.actors { -0.2 } else { 0.02 }, freed: None };
        let tried = tried(seen);
        assert!(tried.contains(&Setting { environments: 16, batch_size: 512, ..HOME }));
        assert!(!tried.iter().any(|&setting| setting.actors < HOME.actors && differing(setting) == 2));
    }

    #[test]
    fn what_was_accepted_is_repeated_with_a_far_stride() {
        let mut search = Search::new(RANGES, Objective::LearnedPerSecond);
        let first = next(&mut search, HOME, 0.0);
        assert_eq!(first.turns, [Turn { knob: Knob::Actors, direction: Direction::Up, stride: Stride::Near }]);
        search.accept(&first, HOME, 20.0);
        assert_eq!(next(&mut search, first.setting, 30.0).setting, HOME.with(Knob::Actors, 10));
    }

    #[test]
    fn what_was_left_is_not_returned_to_until_the_machine_changes_and_a_minute_has_passed() {
        let only_actors = Ranges { environments: Range::fixed(8), batch_size: Range::fixed(256), actors: Range { low: 4, high: 5 } };
        let mut search = Search::new(only_actors, Objective::LearnedPerSecond);
        let up = next(&mut search, HOME, 0.0);
        search.accept(&up, HOME, 20.0);
        assert_eq!(search.next(up.setting, &[BUSY], 30.0), Choice::Nothing);
        search.reopen();
        assert_eq!(search.next(up.setting, &[BUSY], 79.0), Choice::Later);
        assert_eq!(next(&mut search, up.setting, 80.0).setting, HOME);
    }
}
