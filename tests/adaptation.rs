//! Adaptation, proved on machines on paper: what a search finds there is compared with every setting.

#[path = "adaptation/failures.rs"]
mod failures;
#[path = "adaptation/flow.rs"]
mod flow;
#[path = "adaptation/grid.rs"]
mod grid;
#[path = "adaptation/machine.rs"]
mod machine;
#[path = "adaptation/quiet.rs"]
mod quiet;
#[path = "adaptation/run.rs"]
mod run;
#[path = "adaptation/shapes.rs"]
mod shapes;

use grid::Grid;
use machine::Machine;
use quiet::StepChange;
use run::Run;
use shapes::{Shape, Start};
use shoal::adaptation::{Hold, Objective};

/// Searches for each shape, each with noise of its own.
const SEARCHES: u64 = 100;
/// How many of [`SEARCHES`] must succeed.
const MUST_FIND: usize = 95;
/// How many searches of any one shape must succeed where only all shapes together must reach [`MUST_FIND`]. From the worst corner a search
/// takes so many steps that chance plays a part: with other seeds, up to six more or fewer of a hundred searches of a shape succeed.
const MUST_FIND_OF_ANY: usize = 90;
/// Windows within which a first search has to end.
const LONGEST_SEARCH_WINDOWS: usize = 5_000;
/// Share of the best objective at which a search has found the best, whatever the setting.
const GOOD: f64 = 0.9;

/// What the searches of one shape found.
#[derive(Default)]
struct Found {
    /// Searches that ended at the best setting or a turn away from it.
    near_best: usize,
    /// Searches that ended at any setting within 5 % of the best, or a turn away from it.
    near_alike: usize,
    /// Objective at the end, as a share of the best, ascending.
    shares: Vec<f64>,
    /// Seconds until the search was over, ascending.
    seconds: Vec<f64>,
    probes: usize,
}

impl Found {
    fn by(shape: &Shape, start: Start, seeds: impl Iterator<Item = u64>) -> Self {
        let grid = Grid::new(shape.machine, shape.ranges(), shape.objective());
        let mut found = Self::default();
        for seed in seeds {
            let mut run = Run::new(shape.machine, shape.rules(), shape.start(start), seed);
            assert!(run.until_locked(LONGEST_SEARCH_WINDOWS), "{}: seed {seed} still searches", shape.name());
            let home = run.tuner.home();
            found.near_best += usize::from(grid.is_near_best(home));
            found.near_alike += usize::from(grid.is_near_alike(home));
            found.shares.push(grid.share_of_best(home));
            found.seconds.push(run.wall_s);
            found.probes += run.probes.len();
        }
        found.shares.sort_by(f64::total_cmp);
        found.seconds.sort_by(f64::total_cmp);
        found
    }

    fn good(&self) -> usize {
        self.shares.iter().filter(|&&share| share >= GOOD).count()
    }
}

#[test]
fn a_search_from_the_automatic_choice_ends_within_a_turn_of_the_best_and_of_its_speed() {
    for shape in shapes::all() {
        let found = Found::by(&shape, Start::Auto, 0..SEARCHES);
        assert!(found.near_alike >= MUST_FIND, "{}: {} of {SEARCHES} near the best", shape.name(), found.near_alike);
        assert!(found.good() >= MUST_FIND, "{}: {} of {SEARCHES} as fast as the best", shape.name(), found.good());
    }
}

#[test]
fn a_search_from_the_worst_corner_ends_nearly_as_fast_as_the_best() {
    assert_fast(&shapes::all(), Start::Lowest, MUST_FIND);
}

#[test]
fn a_search_ends_nearly_as_fast_as_the_best_with_error_bands_wider_than_a_probe() {
    assert_fast(&shapes::with_bands(), Start::Auto, MUST_FIND);
    assert_fast(&shapes::with_bands(), Start::Lowest, MUST_FIND_OF_ANY);
}

#[test]
fn a_search_ends_nearly_as_fast_as_the_best_in_runs_that_learn_in_bursts() {
    assert_fast(&shapes::in_bursts(), Start::Auto, MUST_FIND);
    assert_fast(&shapes::in_bursts(), Start::Lowest, MUST_FIND);
}

/// Asserts that `least` searches of each shape, and [`MUST_FIND`] on average over the shapes, end nearly as fast as the best.
fn assert_fast(shapes: &[Shape], start: Start, least: usize) {
    let mut all = 0;
    for shape in shapes {
        let good = Found::by(shape, start, 0..SEARCHES).good();
        assert!(good >= least, "{}, {start:?}: {good} of {SEARCHES} as fast as the best", shape.name());
        all += good;
    }
    assert!(all >= MUST_FIND * shapes.len(), "{start:?}: {all} as fast as the best, with {} shapes", shapes.len());
}

#[test]
fn a_larger_batch_is_not_bought_with_environment_steps_where_updates_per_step_are_held() {
    // Learners are the slower side here, and train more transitions per second with every doubling of the batch while the run gets slower.
    let is_meant = |shape: &Shape| shape.machine.cores == 8 && shape.environment == "cheap";
    let holding = |shape: Shape| Shape { machine: Machine { hold: Hold::UpdatesPerStep, ..shape.machine }, ..shape };
    let env_steps = |run: &Run, start| run.machine.window(run.tuner.home()).env_steps_per_s / run.machine.window(start).env_steps_per_s;
    for shape in [vec![shapes::all()[2]], shapes::with_bands()].concat().into_iter().filter(is_meant).map(holding) {
        let start = shape.start(Start::Auto);
        for seed in 0..SEARCHES {
            let mut run = Run::new(shape.machine, shape.rules(), start, seed);
            assert!(run.until_locked(LONGEST_SEARCH_WINDOWS));
            let kept = env_steps(&run, start);
            assert!(kept >= 0.9, "{}: seed {seed}: {:?} has {kept:.2} of the steps", shape.name(), run.tuner.home());
        }
    }
    let shape = holding(shapes::all()[2]);
    let start = shape.start(Start::Auto);
    let mut rules = shape.rules();
    rules.objective = Objective::LearnedPerSecond;
    let mut run = Run::new(shape.machine, rules, start, 0);
    assert!(
        run.until_locked(LONGEST_SEARCH_WINDOWS) && env_steps(&run, start) < 0.5,
        "the other objective would do as well: {:?}",
        run.tuner.home()
    );
}

#[test]
#[ignore = "prints the table of the module's documentation"]
#[expect(clippy::print_stderr, reason = "This is what it is for.")]
fn table() {
    let first: u64 = std::env::var("FIRST_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    eprintln!(
        "| begins with | machine and run | share of best at the start | near best | near 5 % | within 10 % | median | worst | seconds \
         | most | probes |"
    );
    for start in [Start::Auto, Start::Lowest] {
        for shape in [shapes::all(), shapes::with_bands(), shapes::in_bursts()].concat() {
            let found = Found::by(&shape, start, first..first + SEARCHES);
            let grid = Grid::new(shape.machine, shape.ranges(), shape.objective());
            let middle = found.shares.len() / 2;
            eprintln!(
                "| {start:?} | {} | {:.2} | {} | {} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {} |",
                shape.name(),
                grid.share_of_best(shape.start(start)),
                found.near_best,
                found.near_alike,
                found.good(),
                found.shares[middle],
                found.shares[0],
                found.seconds[middle],
                found.seconds[found.seconds.len() - 1],
                found.probes / found.shares.len(),
            );
        }
    }
    eprintln!("\n| step change | within 10 % after it |");
    for change in [StepChange::of_cores(), StepChange::of_environments()].concat() {
        eprintln!("| {} | {} |", change.name(), change.good(first..first + SEARCHES));
    }
}
