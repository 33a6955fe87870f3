//! Which side waits for the other, and which knobs that puts first.

use super::median::median;
use super::objective::Objective;
use super::ranges::{Direction, Ranges};
use super::setting::Knob;
use super::window::Window;

/// At home, a side waits if it does so for this share of its time; otherwise it is busy.
const WAITS_FROM: f64 = 0.2;
/// At a candidate, a side that waits for this share of its time was freed by the turn. The share is low because a
/// quarter more actors frees them of a fifth of their work at most.
const FREED_FROM: f64 = 0.1;
/// Cores are full if the run computes on this share of them: then each side's work keeps the other from its own.
const FULL_FROM: f64 = 0.9;

/// One side of the rate limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Actors,
    Learners,
}

impl Side {
    /// The side that a candidate has freed of a part of its work.
    pub(super) fn freed(at_candidate: &[Window]) -> Option<Self> {
        Self::waiting(at_candidate, FREED_FROM)
    }

    /// The side that waits for at least the share `least` of its time.
    fn waiting(windows: &[Window], least: f64) -> Option<Self> {
        if middle(windows, |window| window.learners_wait) >= least {
            Some(Self::Learners)
        } else if middle(windows, |window| window.actors_wait) >= least {
            Some(Self::Actors)
        } else {
            None
        }
    }
}

/// The ways to turn knobs, most promising first: those of the side that is waited for.
///
/// Knobs of the other side help little unless that side leaves cores to this one. They are tried only if the cores
/// are full, or if this side's knobs are all fixed in `ranges`. If both sides are busy, all knobs take turns,
/// beginning with the one after `latest`.
pub(super) fn promising_ways(at_home: &[Window], latest: Option<Knob>, objective: Objective, ranges: &Ranges) -> Vec<(Knob, Direction)> {
    let (first, then): (&[Knob], &[Knob]) = match Side::waiting(at_home, WAITS_FROM) {
        // A larger batch costs learners time that they have. If samples do not follow the inserts, it asks for no
        // more of these.
        Some(Side::Learners) if objective == Objective::BothRates => (&Knob::ALL, &[]),
        Some(Side::Learners) => (&[Knob::Actors, Knob::Environments], &[Knob::BatchSize]),
        Some(Side::Actors) => (&[Knob::BatchSize], &[Knob::Actors, Knob::Environments]),
        None => (&in_turn(latest), &[]),
    };
    let are_cores_full = middle(at_home, |window| window.cores_used) >= FULL_FROM;
    let are_fixed = first.iter().all(|&knob| ranges.of(knob).is_fixed());
    let groups = if are_cores_full || are_fixed { vec![first, then] } else { vec![first] };
    let both_ways =
        |knobs: &'_ [Knob]| Direction::BOTH.map(|direction| knobs.iter().map(|&knob| (knob, direction)).collect::<Vec<_>>()).concat();
    groups.into_iter().flat_map(both_ways).collect()
}

fn in_turn(latest: Option<Knob>) -> [Knob; 3] {
    let mut knobs = Knob::ALL;
    while latest.is_some_and(|latest| latest != knobs[knobs.len() - 1]) {
        knobs.rotate_left(1);
    }
    knobs
}

fn middle(windows: &[Window], share: impl Fn(&Window) -> f64) -> f64 {
    median(windows.iter().map(share)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::ranges::Range;
    use super::*;

    const OPEN: Range = Range { low: 1, high: 64 };
    const RANGES: Ranges = Ranges { actors: OPEN, environments: OPEN, batch_size: OPEN };

    fn ways(learners_wait: f64, actors_wait: f64, cores_used: f64, latest: Option<Knob>) -> Vec<(Knob, Direction)> {
        let window = Window { env_steps_per_s: 1.0, learned_per_s: 1.0, cores_used, learners_wait, actors_wait };
        promising_ways(&[window], latest, Objective::LearnedPerSecond, &RANGES)
    }

    fn knobs(ways: &[(Knob, Direction)]) -> Vec<Knob> {
        ways.iter().map(|&(knob, _)| knob).collect()
    }

    #[test]
    fn the_side_that_is_waited_for_is_turned_up_and_then_down() {
        use {Direction::*, Knob::*};
        assert_eq!(ways(0.3, 0.0, 0.5, None), [(Actors, Up), (Environments, Up), (Actors, Down), (Environments, Down)]);
        assert_eq!(ways(0.0, 0.3, 0.5, None), [(BatchSize, Up), (BatchSize, Down)]);
    }

    #[test]
    fn learners_that_wait_may_have_larger_batches_where_these_ask_for_no_more_inserts() {
        let window = Window { env_steps_per_s: 1.0, learned_per_s: 1.0, cores_used: 0.5, learners_wait: 0.3, actors_wait: 0.0 };
        let ways = promising_ways(&[window], None, Objective::BothRates, &RANGES);
        assert_eq!(knobs(&ways)[..3], [Knob::Actors, Knob::Environments, Knob::BatchSize]);
    }

    #[test]
    fn where_the_batch_is_fixed_actors_that_wait_are_turned_all_the_same() {
        use Knob::*;
        let window = Window { env_steps_per_s: 1.0, learned_per_s: 1.0, cores_used: 0.5, learners_wait: 0.0, actors_wait: 0.3 };
        let fixed = Ranges { batch_size: Range::fixed(64), ..RANGES };
        let ways = promising_ways(&[window], None, Objective::LearnedPerSecond, &fixed);
        assert_eq!(knobs(&ways)[2..], [Actors, Environments, Actors, Environments]);
    }

    #[test]
    fn where_the_cores_are_full_the_other_side_comes_after() {
        use Knob::*;
        assert_eq!(knobs(&ways(0.0, 0.3, 1.0, None)), [BatchSize, BatchSize, Actors, Environments, Actors, Environments]);
    }

    #[test]
    fn where_nobody_waits_all_knobs_take_turns() {
        use Knob::*;
        assert_eq!(knobs(&ways(0.1, 0.1, 0.5, None))[..3], [Actors, Environments, BatchSize]);
        assert_eq!(knobs(&ways(0.1, 0.1, 0.5, Some(Actors)))[..3], [Environments, BatchSize, Actors]);
        assert_eq!(knobs(&ways(0.1, 0.1, 0.5, Some(BatchSize)))[..3], [Actors, Environments, BatchSize]);
    }
}
