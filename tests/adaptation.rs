//! Adaptation, proved on machines on paper: what a search finds there is compared with every setting.

#[path = "adaptation/failures.rs"]
mod failures;
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
use run::Run;
use shapes::{Shape, Start};
use shoal::adaptation::{Hold, Objective};

/// Searches of every shape, each with noise of its own.
const SEARCHES: u64 = 100;
/// Of those, as many have to find what there is to find.
const MUST_FIND: usize = 95;
/// Windows within which a first search has to end.
const LONGEST_SEARCH_WINDOWS: usize = 5_000;
/// A search that ends within so much of the best has found it, wherever that is.
const GOOD: f64 = 0.9;

/// What the searches of one shape found.
#[derive(Default)]
struct Found {
    /// Searches that ended at the best setting or a turn away from it.
    near_best: usize,
    /// The same with any setting within 5 % of the best.
    near_alike: usize,
    /// Objective at the end, as a share of the best, ascending.
    shares: Vec<f64>,
    /// Windows until the search was over, ascending.
    windows: Vec<f64>,
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
            found.windows.push(run.wall_s);
            found.probes += run.probes.len();
        }
        found.shares.sort_by(f64::total_cmp);
        found.windows.sort_by(f64::total_cmp);
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
    for shape in shapes::all() {
        let found = Found::by(&shape, Start::Lowest, 0..SEARCHES);
        assert!(found.good() >= MUST_FIND, "{}: {} of {SEARCHES} as fast as the best", shape.name(), found.good());
    }
}

#[test]
fn a_larger_batch_is_not_bought_with_environment_steps_where_updates_per_step_are_held() {
    // Learners are the slower side here, and train more transitions per second with every doubling of the batch while the run gets slower.
    let mut shape = shapes::all()[2];
    shape.machine.hold = Hold::UpdatesPerStep;
    let start = shape.start(Start::Auto);
    let env_steps = |run: &Run| run.machine.window(run.tuner.home()).env_steps_per_s / run.machine.window(start).env_steps_per_s;
    for seed in 0..SEARCHES {
        let mut run = Run::new(shape.machine, shape.rules(), start, seed);
        assert!(run.until_locked(LONGEST_SEARCH_WINDOWS));
        assert!(env_steps(&run) >= 0.9, "seed {seed}: {:?} has {:.2} of the steps", run.tuner.home(), env_steps(&run));
    }
    let mut rules = shape.rules();
    rules.objective = Objective::LearnedPerSecond;
    let mut run = Run::new(shape.machine, rules, start, 0);
    assert!(
        run.until_locked(LONGEST_SEARCH_WINDOWS) && env_steps(&run) < 0.5,
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
        "| begins with | machine and run | share of best at the start | near best | near 5 % | within 10 % | median | worst | windows | most | probes |"
    );
    for start in [Start::Auto, Start::Lowest] {
        for shape in shapes::all() {
            let found = Found::by(&shape, start, first..first + SEARCHES);
            let grid = Grid::new(shape.machine, shape.ranges(), shape.objective());
            let middle = found.shares.len() / 2;
            eprintln!(
                "| {start:?} | {} | {:.2} | {} | {} | {} | {:.2} | {:.2} | {} | {} | {} |",
                shape.name(),
                grid.share_of_best(shape.start(start)),
                found.near_best,
                found.near_alike,
                found.good(),
                found.shares[middle],
                found.shares[0],
                found.windows[middle],
                found.windows[found.windows.len() - 1],
                found.probes / found.shares.len(),
            );
        }
    }
}
