//! A search neither goes in circles nor probes without end or late in a run; and what makes it begin again.

use std::collections::BTreeSet;

use shoal::adaptation::{Knob, Probe, Range, Ranges, Reason, Setting, Verdict, Window};

use super::grid::Grid;
use super::machine::Machine;
use super::run::Run;
use super::shapes::{self, Shape, Start};
use super::{GOOD, LONGEST_SEARCH_WINDOWS, MUST_FIND, SEARCHES};

/// Share of the time that probes may take after the first search.
const MOST_PROBING: f64 = 0.1;
/// How long a knob does not return to a value that it has left.
const REST_S: f64 = 60.0;
/// Windows within which a search that may take a tenth of the time has to end.
const LONGEST_LATER_SEARCH_WINDOWS: usize = 40_000;

fn locked(shape: &Shape, seed: u64) -> Run {
    let mut run = Run::new(shape.machine, shape.rules(), shape.start(Start::Auto), seed);
    assert!(run.until_locked(LONGEST_SEARCH_WINDOWS), "{}: seed {seed} still searches", shape.name());
    run
}

#[test]
fn no_setting_that_was_left_is_returned_to() {
    for shape in shapes::all() {
        for seed in 0..SEARCHES {
            for start in [Start::Auto, Start::Lowest] {
                let mut run = Run::new(shape.machine, shape.rules(), shape.start(start), seed);
                run.windows(1_000);
                let mut left = BTreeSet::new();
                for probe in run.accepted() {
                    left.insert(probe.from);
                    assert!(!left.contains(&probe.to), "{}: seed {seed} returns to {:?}", shape.name(), probe.to);
                }
            }
        }
    }
}

#[test]
fn a_knob_rests_for_a_minute_before_it_returns_to_a_value() {
    for shape in shapes::all() {
        let run = locked(&shape, 0);
        let begins = run.changes.iter().filter(|(_, change)| change.reason == Reason::Trying { round: 1 }).map(|(wall_s, _)| *wall_s);
        let probes: Vec<(f64, &Probe)> = begins.zip(&run.probes).collect();
        for (index, (_, probe)) in probes.iter().enumerate() {
            let left = if probe.verdict == Verdict::Accepted { probe.from } else { probe.to };
            for (began_s, later) in &probes[index + 1..] {
                let returns = |knob: &Knob| later.knobs.contains(knob) && later.to.value(*knob) == left.value(*knob);
                let is_rested = began_s - probe.wall_s >= REST_S;
                assert!(is_rested || !probe.knobs.iter().any(returns), "{}: {probe:?}, then {later:?}", shape.name());
            }
        }
    }
}

#[test]
fn a_search_that_is_over_stays_over_while_the_machine_stays_the_same() {
    stay_over(&shapes::all(), SEARCHES);
}

#[test]
fn a_search_that_is_over_stays_over_with_error_bands_and_in_bursts() {
    // It begins while neither side has to wait, and goes on for long after one has.
    stay_over(&[shapes::with_bands(), shapes::in_bursts()].concat(), SEARCHES / 10);
}

fn stay_over(shapes: &[Shape], searches: u64) {
    for shape in shapes {
        for seed in 0..searches {
            let mut run = locked(shape, seed);
            let changes = run.changes.len();
            run.windows(1_000);
            assert!(run.tuner.is_locked() && run.changes.len() == changes, "{}: seed {seed}", shape.name());
        }
    }
}

#[test]
fn a_search_goes_on_when_the_run_may_use_other_cores_and_finds_what_is_best_there() {
    assert_finds_again(&StepChange::of_cores());
}

#[test]
fn a_search_goes_on_when_the_machine_drifts_and_finds_what_is_best_there() {
    assert_finds_again(&StepChange::of_environments());
}

fn assert_finds_again(changes: &[StepChange]) {
    for change in changes {
        let good = change.good(0..SEARCHES);
        assert!(good >= MUST_FIND, "{}: {good} of {SEARCHES} as fast as the best after the change", change.name());
    }
}

/// A machine that becomes another one after the search on it is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepChange {
    before: Shape,
    after: Shape,
    /// Windows within which the search has to begin anew.
    begins_within_windows: usize,
}

impl StepChange {
    /// The run may use half of its cores, or twice as many.
    pub(crate) fn of_cores() -> [Self; 2] {
        [(8, 4), (4, 8)].map(|(before, after)| Self { before: computing(before), after: computing(after), begins_within_windows: 1 })
    }

    /// Steps of the environments become cheap, on few cores and on many.
    pub(crate) fn of_environments() -> [Self; 2] {
        [4, 8].map(|cores| {
            let before = computing(cores);
            let after = Shape { environment: "cheap", machine: Machine { environment_s: 5e-6, ..before.machine } };
            Self { before, after, begins_within_windows: 60 }
        })
    }

    /// How many searches with these seeds begin anew, as they must, and end nearly as fast as the best on the changed machine.
    pub(crate) fn good(&self, seeds: impl Iterator<Item = u64>) -> usize {
        let Self { before, after, begins_within_windows } = *self;
        let grid = Grid::new(after.machine, before.ranges(), before.objective());
        let is_good = |seed: &u64| {
            let mut run = locked(&before, *seed);
            run.windows(60);
            run.machine = after.machine;
            let name = self.name();
            assert!(run.until(begins_within_windows, |run| !run.tuner.is_locked()), "{name}: seed {seed} does not see it");
            assert!(run.until_locked(LONGEST_LATER_SEARCH_WINDOWS), "{name}: seed {seed} still searches");
            grid.share_of_best(run.tuner.home()) >= GOOD
        };
        seeds.filter(is_good).count()
    }

    pub(crate) fn name(&self) -> String {
        format!("{}, then {}", self.before.name(), self.after.name())
    }
}

/// The rate-limited run with environments that compute, on a machine with `cores` cores.
fn computing(cores: usize) -> Shape {
    let is_it =
        |shape: &Shape| shape.machine.cores == cores && shape.machine.environment_s == 1e-3 && shape.machine.samples_per_insert.is_some();
    shapes::all().into_iter().find(is_it).expect("there is such a shape")
}

#[test]
fn after_the_first_search_probes_take_a_tenth_of_the_time_at_any_moment() {
    for shape in shapes::all() {
        let mut run = locked(&shape, 0);
        let locked_s = run.wall_s;
        run.windows(100);
        run.machine.cores *= 2;
        run.windows(3_000);
        let later: Vec<f64> = run.probing_windows.iter().copied().filter(|&wall_s| wall_s > locked_s).collect();
        assert!(!later.is_empty(), "{}: nothing was tried again", shape.name());
        for (index, wall_s) in later.iter().enumerate() {
            let (probed_s, passed_s) = (index as f64 + 1.0, wall_s - locked_s);
            assert!(probed_s <= MOST_PROBING * passed_s, "{}: {probed_s} of {passed_s} s", shape.name());
        }
    }
}

#[test]
fn nothing_is_tried_late_in_a_run() {
    for shape in shapes::all() {
        // The middle of a search, at different places of a probe.
        for freeze_s in 100..130 {
            let mut run = Run::new(shape.machine, shape.rules(), shape.start(Start::Lowest), 0);
            run.progress_per_window = shape.rules().freeze_after / f64::from(freeze_s);
            run.windows(1_000);
            assert!(run.changes.iter().all(|(wall_s, _)| *wall_s <= f64::from(freeze_s)), "{}: frozen at {freeze_s} s", shape.name());
            assert!(run.in_force == run.tuner.home(), "{}: frozen away from home", shape.name());
            let changes_at_home = run.changes.iter().filter(|(_, change)| change.reason == Reason::Frozen);
            assert!(changes_at_home.count() <= 1);
        }
    }
}

#[test]
fn fixed_knobs_stay_and_with_all_of_them_fixed_nothing_is_tried() {
    let shape = shapes::all()[0];
    let start = shape.start(Start::Lowest);
    let mut rules = shape.rules();
    rules.ranges.batch_size = Range::fixed(start.batch_size);
    let mut run = Run::new(shape.machine, rules, start, 0);
    assert!(run.until_locked(LONGEST_SEARCH_WINDOWS) && !run.changes.is_empty());
    assert!(run.changes.iter().all(|(_, change)| change.setting.batch_size == start.batch_size));

    let Setting { actors, environments, batch_size } = start;
    rules.ranges = Ranges { actors: Range::fixed(actors), environments: Range::fixed(environments), batch_size: Range::fixed(batch_size) };
    let mut run = Run::new(shape.machine, rules, start, 0);
    assert!(run.until_locked(10));
    assert!(run.changes.is_empty());
}

#[test]
fn a_machine_that_becomes_faster_during_a_probe_is_not_taken_for_a_better_setting() {
    let shape = shapes::all()[0];
    let rate = |rate: f64| Window { env_steps_per_s: rate, learned_per_s: rate, cores_used: 0.5, learners_wait: 0.0, actors_wait: 0.0 };
    for faster_from in 1..60 {
        let mut run = Run::new(shape.machine, shape.rules(), shape.start(Start::Auto), 0);
        for window in 0..200 {
            // The same whatever the setting. The scatter is small, so that chance decides nothing.
            let scatter = 1.0 + 0.01 * f64::from(window % 3);
            run.window_of(rate(scatter * if window < faster_from { 100.0 } else { 150.0 }), None);
        }
        assert!(run.accepted().next().is_none(), "faster from window {faster_from}: {:?}", run.accepted().next());
    }
}
