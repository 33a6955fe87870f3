//! Learners in processes of their own run the real loop: they come to the same sums and parameters bit for bit, and
//! normalise with the same statistics, whoever is killed or stopped and whenever and however far actors step meanwhile,
//! nobody waits for the dead, what a living learner knows is not lost, and who waits for one that computes nothing
//! sleeps.
//!
//! What they learn is made up (`made_up`), so that each can check every sum it is given. The test plays the supervisor.

#[path = "segment_gradients/made_up.rs"]
mod made_up;
#[path = "support"]
mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use std::ops::Range;
use std::time::Duration;

use made_up::{MadeUp, NORMALISATION, SNAPSHOT_INTERVAL_UPDATES, Stop};
use rand::RngExt;
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::environments::registry;
use shoal::machine::core_time::CoreTime;
use shoal::roles::{RoleError, Run as RoleRun, learner};
use shoal::segment::Region;
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::membership::{Membership, View};
use shoal::segment::processes::{Phase, Role};
use shoal::sync::Ordering;
use support::forked::{self, Family, Identity, Run, Sizes};

const PARAMETERS: usize = 1_003;
const LEARNERS: usize = 3;
/// The slot of the process that filled the replay: this one.
const FILLER: usize = 7;
/// Rows that it has inserted when the learners start.
const ROWS: u32 = 32;

/// How long a learner is watched while it waits.
const WAIT: Duration = Duration::from_millis(100);

/// The learners of a run, and the membership that a supervisor would keep.
struct Learners<'r> {
    run: &'r Run,
    family: Family<'r>,
    membership: Membership,
}

impl<'r> Learners<'r> {
    /// Learners `0..count` of a run with something to sample.
    fn start(run: &'r Run, count: usize) -> Self {
        run.segment.control().set_run_state(RunState::Running);
        let filler = run.slot(FILLER);
        assert!(filler.reserve(Role::Actor, 0).is_some_and(|generation| filler.occupy(std::process::id(), generation)));
        insert(run, 0..ROWS);
        let mut learners = Self { run, family: Family::new(run), membership: Membership::default() };
        (0..count).for_each(|number| learners.add(number, MadeUp::default()));
        learners
    }

    /// Start learner `number`, as the supervisor does.
    fn add(&mut self, number: usize, made_up: MadeUp) {
        let run = self.run;
        self.add_with(number, || learn(run, number, made_up));
    }

    /// Start learner `number`, which does what `body` does.
    fn add_with(&mut self, number: usize, body: impl FnOnce()) {
        self.membership.enter(number).store(self.run.segment.control().membership());
        self.family.start(number, Role::Learner, body);
    }

    /// See to a learner whose end has been waited for, as the supervisor does.
    fn remove(&mut self, number: usize) {
        self.membership.remove(number).store(self.run.segment.control().membership());
        self.run.segment.control().signal_progress();
        self.family.repair_patiently(number);
    }

    fn kill(&mut self, number: usize) {
        self.family.kill(&[number]);
        self.remove(number);
    }

    /// Stop learner `number` where it is in nobody's way but the other learners': else a supervisor would have to kill
    /// it.
    fn stop_outside_operations(&self, number: usize) {
        self.family.stop(number);
        while self.run.slot(number).in_operation() {
            self.family.go_on(number);
            self.family.stop(number);
        }
    }

    fn updates(&self) -> u64 {
        self.run.segment.control().updates().load(Ordering::Relaxed)
    }

    /// Updates that learner `number` has taken part in, in all its lives.
    fn updates_of(&self, number: usize) -> u64 {
        self.run.slot(number).counters().get(Counter::Updates)
    }

    /// Wait until every member has taken part in `count` more updates. Meanwhile the environment steps of the run rise, and what was seen
    /// changes, as with actors, so that learners that look at them in the same round find different numbers.
    fn await_updates(&self, count: u64) {
        let control = self.run.segment.control();
        let statistics = self.run.segment.statistics_board(FILLER).expect("a board where something is normalised");
        for number in View::load(control.membership()).learners() {
            let goal = self.updates_of(number) + count;
            self.family.wait_until(|| {
                let seen = control.env_steps().fetch_add(1, Ordering::Relaxed);
                statistics.publish(&[&vec![seen as f32; statistics.len()]], [seen, seen, 0, 0]);
                self.updates_of(number) >= goal
            });
        }
    }

    /// Wait until learner `number` waits for others.
    fn await_waiting(&self, number: usize) {
        self.family.wait_until(|| self.run.slot(number).phase() == Some(Phase::Exchange));
    }

    /// Assert that learner `number`, until it has counted [`WAIT`] more as `counted`, has a core for less than half of that, and counts
    /// less than half as much as `other`.
    fn assert_sleeps(&self, number: usize, counted: Counter, other: Counter) {
        let slot = self.run.slot(number);
        let count = |counter| Duration::from_nanos(slot.counters().get(counter));
        let core_time = || CoreTime::of_process(slot.pid()).expect("a learner that lives");
        let (counted_before, other_before, core_time_before) = (count(counted), count(other), core_time());
        let ran = || (core_time() - core_time_before).running;
        self.family.wait_until(|| count(counted) >= counted_before + WAIT || ran() >= WAIT / 2);
        assert!(ran() < WAIT / 2, "learner {number} does not sleep");
        assert!(count(other) - other_before < WAIT / 2, "learner {number} counts its wait as another one");
    }

    /// Updates in the newest state on the learner board.
    fn updates_published(&self) -> u64 {
        let board = self.run.segment.learner_boards().next().unwrap();
        let Some((_, [_, updates, ..])) = board.read(&mut vec![0.0; board.len()]) else { panic!("no state was published") };
        updates
    }

    /// Let everybody leave in order.
    fn end(mut self) {
        self.run.segment.control().set_run_state(RunState::Stopping);
        self.family.join();
    }
}

/// Insert rows with these numbers.
fn insert(run: &Run, numbers: Range<u32>) {
    let rows = numbers.len();
    numbers.for_each(|number| run.payload.stage(run.area(FILLER), Identity { life: 0, number }, None));
    assert_eq!(run.replay(FILLER).flush(run.area(FILLER)), rows);
}

/// The learner's own loop, with what it learns made up.
fn learn(run: &Run, number: usize, made_up: MadeUp) {
    as_learner(run, number, made_up, |role_run| learner::run(role_run).unwrap());
}

/// What `act` does as learner `number`, with what it learns made up.
fn as_learner<T>(run: &Run, number: usize, made_up: MadeUp, act: impl FnOnce(&RoleRun<'_>) -> T) -> T {
    let mut config = Config::for_environment("CartPole-v1");
    config.learner.count = LEARNERS;
    config.learner.batch_size = 8 * LEARNERS;
    // With every environment step the rate is another one, also as a float of 32 bits.
    (config.learner.learning_rate, config.learner.learning_rate_end, config.run.stop_env_steps) = (Some(1.0), Some(0.5), 1_000_000);
    let algorithm = made_up.algorithm(&run.segment, &config, run.payload.schema().clone(), number, PARAMETERS);
    let role_run = RoleRun {
        segment: &run.segment,
        config: &config,
        algorithm: &algorithm,
        environment: &registry::spec("CartPole-v1").unwrap(),
        catalogue: &Catalogue::default(),
        process: run.slot(number),
        role: Role::Learner,
        number,
        incarnation: run.slot(number).generation(),
        supervisor_alive: &|| true,
    };
    act(&role_run)
}

fn run() -> Run {
    let statistics_values = NORMALISATION.statistics_values();
    Run::new(Sizes { network_parameters: PARAMETERS, learners: LEARNERS, statistics_values, ..Sizes::default() })
}

#[test]
fn one_to_three_learners_come_to_the_same_sums_parameters_and_scales_bit_for_bit() {
    for count in 1..=LEARNERS {
        let run = run();
        let learners = Learners::start(&run, count);
        learners.await_updates(2_000);
        learners.end();
    }
}

#[test]
fn learners_go_on_without_a_dead_one_and_take_its_replacement_in() {
    let run = run();
    let mut learners = Learners::start(&run, LEARNERS);
    for victim in [1, 0, 2, 1] {
        learners.await_updates(300);
        learners.kill(victim);
        learners.await_updates(300);
        learners.add(victim, MadeUp::default());
    }
    learners.await_updates(300);
    learners.end();
}

/// The publisher wakes up after the replacement has joined and has waited for it: it leads still.
#[test]
fn a_leader_stopped_while_it_publishes_leads_on_when_it_wakes_up() {
    for stop in [Stop::InState, Stop::InParameters] {
        let run = run();
        let mut learners = Learners::start(&run, 1);
        learners.add(1, MadeUp { stop: Some((stop, 500)), ..MadeUp::default() });
        learners.await_updates(200);
        learners.kill(0);
        learners.family.await_stop(1);
        let before = learners.updates();
        learners.add(0, MadeUp::default());
        learners.await_waiting(0);
        assert_eq!(learners.updates(), before, "somebody learned without a member of the view");
        learners.family.go_on(1);
        learners.await_updates(500);
        learners.end();
    }
}

#[test]
fn a_newcomer_with_a_lower_number_does_not_lead_before_a_member_that_is_up_to_date() {
    let run = run();
    let mut learners = Learners::start(&run, LEARNERS);
    learners.await_updates(250);
    learners.kill(1);
    learners.await_updates(50);
    // The leader stands still, so that the newcomer has nothing to load when the leader dies.
    learners.stop_outside_operations(0);
    learners.add(1, MadeUp::default());
    learners.await_waiting(1);
    let before = learners.updates();
    learners.kill(0);
    learners.await_updates(1);
    assert!(learners.updates_published() + 1 >= before, "{} of {before} updates are left", learners.updates_published());
    learners.await_updates(200);
    learners.end();
}

#[test]
fn a_newcomer_whose_leader_dies_first_leads_from_the_newest_state() {
    let run = run();
    let mut learners = Learners::start(&run, 1);
    learners.await_updates(250);
    learners.stop_outside_operations(0);
    let newcomer = MadeUp { most_lost: SNAPSHOT_INTERVAL_UPDATES, ..MadeUp::default() };
    learners.add(1, newcomer);
    learners.await_waiting(1);
    let before = learners.updates();
    learners.kill(0);
    learners.add(0, newcomer);
    learners.await_updates(1);
    assert!(learners.updates_published() + SNAPSHOT_INTERVAL_UPDATES >= before, "{} of {before}", learners.updates_published());
    learners.await_updates(200);
    learners.end();
}

#[test]
fn when_all_are_dead_the_first_replacement_leads_from_the_newest_state() {
    let run = run();
    let mut learners = Learners::start(&run, LEARNERS);
    learners.await_updates(250);
    let before = learners.updates();
    learners.family.kill(&[0, 1, 2]);
    (0..LEARNERS).for_each(|number| learners.remove(number));
    for number in [2, 0, 1] {
        learners.add(number, MadeUp { most_lost: SNAPSHOT_INTERVAL_UPDATES, ..MadeUp::default() });
    }
    learners.await_updates(1);
    assert!(learners.updates_published() + SNAPSHOT_INTERVAL_UPDATES >= before, "{} of {before}", learners.updates_published());
    learners.await_updates(200);
    learners.end();
}

#[test]
fn a_learner_does_not_begin_from_scratch_where_what_was_learned_is_damaged() {
    let run = run();
    run.segment.control().set_run_state(RunState::Running);
    let mut membership = Membership::default();
    membership.enter(0).store(run.segment.control().membership());
    let slot = run.slot(0);
    assert!(slot.reserve(Role::Learner, 0).is_some_and(|generation| slot.occupy(std::process::id(), generation)));
    let join = || as_learner(&run, 0, MadeUp::default(), |role_run| learner::Learner::new(role_run, None).unwrap().join());
    assert!(join().expect("a first life has no state to go on from"));
    assert!(join().expect("a second goes on from that of the first"));
    // The version stays, and of no buffer is it the mark.
    run.segment.words(Region::LearnerState)[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let error = join().unwrap_err();
    assert!(matches!(error, RoleError::StateLost { version: 2 }) && error.to_string().contains("resume it from its last"), "{error}");
}

#[test]
fn a_learner_that_leads_only_once_the_run_is_over_publishes_what_it_knows() {
    let run = run();
    let mut learners = Learners::start(&run, LEARNERS);
    learners.await_updates(250);
    [1, 2].into_iter().for_each(|number| learners.stop_outside_operations(number));
    learners.kill(0);
    let before = learners.updates();
    run.segment.control().set_run_state(RunState::Stopping);
    [1, 2].into_iter().for_each(|number| learners.family.go_on(number));
    learners.family.join();
    let published = learners.updates_published();
    assert_eq!(published, learners.updates());
    assert!(published + 1 >= before, "{published} of {before} updates are left");
}

#[test]
fn learners_sleep_while_another_is_starting_or_waits_for_rows_and_count_that_wait_as_what_it_is() {
    let run = run();
    let mut learners = Learners::start(&run, 2);
    learners.await_updates(50);
    learners.add_with(2, || {
        loop {
            std::thread::park();
        }
    });
    for number in [0, 1] {
        learners.await_waiting(number);
        learners.assert_sleeps(number, Counter::ExchangeNs, Counter::LimiterWaitNs);
    }
    learners.kill(2);
    learners.await_updates(50);
    // One row more than there are.
    learners.add(2, MadeUp { min_size: u64::from(ROWS) + 1, ..MadeUp::default() });
    learners.family.wait_until(|| (0..LEARNERS).all(|number| run.slot(number).phase() == Some(Phase::LimiterWait)));
    [0, 1].into_iter().for_each(|number| learners.assert_sleeps(number, Counter::LimiterWaitNs, Counter::ExchangeNs));
    insert(&run, ROWS..ROWS + 1);
    learners.await_updates(50);
    learners.end();
}

/// As long as one of them lives that has taken part, a learner that joins misses one update at most: `made_up` checks
/// it.
#[test]
fn learners_killed_and_stopped_at_any_moment_lose_nothing_that_a_living_one_knows() {
    let kills = forked::count_from_environment("SHOAL_TEST_KILLS", 300);
    let run = run();
    let mut learners = Learners::start(&run, LEARNERS);
    learners.await_updates(10);
    let mut random = forked::random(11);
    for _ in 0..kills {
        // One learner is not killed, but stands still for a while in every other round.
        let spared = random.random_range(0..LEARNERS);
        let stopped = random.random_bool(0.5);
        if stopped {
            learners.stop_outside_operations(spared);
        }
        let victims: Vec<usize> = (0..LEARNERS).filter(|&number| number != spared).take(random.random_range(1..LEARNERS)).collect();
        (0..random.random_range(0..20_000)).for_each(|_| std::hint::spin_loop());
        for &victim in &victims {
            learners.kill(victim);
            if random.random_bool(0.5) {
                learners.add(victim, MadeUp::default());
            }
        }
        if stopped {
            learners.family.go_on(spared);
        }
        let members = View::load(run.segment.control().membership());
        victims.into_iter().filter(|&victim| !members.contains(victim)).for_each(|victim| learners.add(victim, MadeUp::default()));
        learners.await_updates(random.random_range(1..5));
    }
    learners.end();
}
