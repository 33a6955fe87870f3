//! What an actor writes into the replay is what happened in its environments, up to the ends of their episodes, how urgent a row is
//! follows from its error, and how old its choice was is counted.

mod support {
    pub(crate) mod scripted;
}

use shoal::config::Config;
use shoal::config::schema::InitialPriority;
use shoal::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, is_terminated, is_truncated};
use shoal::replay::{Batch, Element, ReplayView};
use shoal::roles::actor::Actor;
use shoal::roles::learner::{Learner, UpdateResult};
use shoal::segment::counters::Counter;
use shoal::segment::membership::Membership;
use shoal::segment::processes::Role;
use shoal::sync::Ordering;
use shoal::values::Values;
use support::scripted::{ENVIRONMENTS, Happened, Observation, World, config};

/// Steps of each environment: several episodes of every kind.
const STEPS: usize = 40;
/// Its powers are exact.
const GAMMA: f32 = 0.5;

/// A row of the replay.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    observation: Observation,
    action: f32,
    reward: f32,
    discount: f32,
    terminated: bool,
    truncated: bool,
    next_observation: Observation,
}

/// A run in which an actor has recorded transitions of `n_step` steps.
fn recorded(algorithm: &str, n_step: usize, change: impl FnOnce(&mut Config)) -> World {
    let mut config = config(algorithm);
    (config.algorithm.n_step, config.algorithm.gamma) = (n_step, GAMMA.into());
    // Nothing depends on the clock, and nothing stays behind in the staging area.
    (config.actor.count, config.actor.flush_transitions) = (0, 1);
    change(&mut config);
    let world = World::new(config, |algorithm| algorithm);
    world.publish_parameters();
    world.act(0, STEPS);
    world
}

/// The rows in the replay with their priorities, in the order in which they start, environment after environment.
fn rows(world: &World) -> Vec<(Row, f64)> {
    let view = ReplayView::new(&world.segment, world.algorithm.schema());
    let mut batch = Batch::new(view.schema(), view.len());
    for slot in 0..view.len() {
        view.reader().read(slot, &mut batch.as_rows(), slot, &mut Vec::new()).unwrap();
    }
    let floats = |field: usize| batch.column(field).as_f32();
    let observation = |field: usize, slot: usize| [floats(field)[2 * slot], floats(field)[2 * slot + 1]];
    let is_discrete = batch.column(ACTION).element() == Element::I32;
    let mut rows: Vec<(Row, f64)> = (0..view.len())
        .map(|slot| {
            let flags = batch.column(FLAGS).as_i32()[slot];
            let row = Row {
                observation: observation(OBSERVATION, slot),
                action: if is_discrete { batch.column(ACTION).as_i32()[slot] as f32 } else { floats(ACTION)[slot] },
                reward: floats(REWARD)[slot],
                discount: floats(DISCOUNT)[slot],
                terminated: is_terminated(flags),
                truncated: is_truncated(flags),
                next_observation: observation(NEXT_OBSERVATION, slot),
            };
            (row, view.tree().unwrap().raw_priority(slot).to_f64())
        })
        .collect();
    rows.sort_by(|(a, _), (b, _)| a.observation.partial_cmp(&b.observation).unwrap());
    rows
}

/// The rows of what happened in an environment: one from each step on, once it is `n_step` steps long or its episode has ended.
fn rows_of(happened: &[Happened], n_step: usize) -> Vec<Row> {
    let is_end = |step: &usize| happened.get(*step).is_some_and(|step| step.terminated || step.truncated);
    let row = |first: usize| {
        let last = (first..first + n_step).find(is_end).unwrap_or(first + n_step - 1);
        let (start, end) = (happened[first], happened.get(last)?);
        Some(Row {
            observation: start.observation,
            action: start.action,
            reward: happened[first..=last].iter().rfold(0.0, |later, step| step.reward + GAMMA * later),
            discount: happened[first..=last].iter().map(|_| GAMMA).product(),
            terminated: end.terminated,
            truncated: end.truncated,
            next_observation: end.next_observation,
        })
    };
    (0..happened.len()).filter_map(row).collect()
}

#[test]
fn each_row_tells_what_happened_from_its_first_step_to_its_last_and_how_that_one_ended() {
    for algorithm in ["dqn", "ddpg", "td3", "sac"] {
        for n_step in [1, 3] {
            let world = recorded(algorithm, n_step, |_| ());
            let expected: Vec<Row> = world.happened().iter().flat_map(|happened| rows_of(happened, n_step)).collect();
            for end in [(false, false), (true, false), (false, true), (true, true)] {
                assert!(expected.iter().any(|row| (row.terminated, row.truncated) == end), "no row ends with {end:?}");
            }
            let found: Vec<Row> = rows(&world).into_iter().map(|(row, _)| row).collect();
            assert_eq!(found, expected, "{algorithm}, {n_step} steps");
        }
    }
}

/// What is added to each error before it becomes a priority.
const EPSILON: f32 = 0.25;
/// The power of that sum.
const ALPHA: f64 = 0.5;

/// How urgent a row is as long as its values are those of the newest parameters.
fn urgency(world: &World) -> impl FnMut(&Row) -> f64 {
    let mut policy = world.algorithm.policy().unwrap();
    policy.set_parameters(&world.parameters());
    let mut values_in = move |observation: Observation| {
        let mut values = [0.0; 2];
        policy.infer(Values::F32(&observation), 1, &mut values);
        values
    };
    move |row| {
        let [left, right] = values_in(row.next_observation);
        // Nothing follows what is terminated, and something would follow what is only truncated.
        let later = if row.terminated { 0.0 } else { row.discount * left.max(right) };
        let error = row.reward + later - values_in(row.observation)[row.action as usize];
        f64::from(error.abs() + EPSILON).powf(ALPHA)
    }
}

#[test]
fn a_new_row_is_as_urgent_as_its_error_by_the_values_that_the_actor_acts_by() {
    for n_step in [1, 3] {
        let world = recorded("dqn", n_step, |config| {
            config.replay.initial_priority = InitialPriority::TdError;
            (config.replay.priority_epsilon, config.replay.alpha) = (EPSILON.into(), ALPHA);
        });
        let mut urgency = urgency(&world);
        let rows = rows(&world);
        assert!(rows.len() > STEPS, "{} rows", rows.len());
        for (row, priority) in rows {
            let expected = urgency(&row);
            assert!((priority - expected).abs() < 1e-3, "{priority} and not {expected} for {row:?} of {n_step} steps");
        }
    }
}

#[test]
fn a_row_that_was_learned_from_is_as_urgent_as_the_error_that_the_learner_found_in_it() {
    const BATCH_SIZE: usize = 8;
    for n_step in [1, 3] {
        let world = recorded("dqn", n_step, |config| {
            config.learner.batch_size = BATCH_SIZE;
            (config.replay.priority_epsilon, config.replay.alpha) = (EPSILON.into(), ALPHA);
        });
        Membership::default().enter(0).store(world.segment.control().membership());
        let run = world.process(Role::Learner, 0);
        let mut learner = Learner::new(&run, None).unwrap();
        assert!(learner.join().unwrap());
        // By the parameters that the learner begins with. The actor acted by others.
        let mut urgency = urgency(&world);
        let new = rows(&world);
        assert_eq!(learner.update().unwrap(), UpdateResult::Updated);
        let changed: Vec<(Row, f64)> = rows(&world).into_iter().zip(new).filter(|(now, new)| now.1 != new.1).map(|(now, _)| now).collect();
        assert!((1..=BATCH_SIZE).contains(&changed.len()), "{changed:?} by a batch of {BATCH_SIZE}");
        for (row, priority) in changed {
            let expected = urgency(&row);
            assert!((priority - expected).abs() < 1e-3, "{priority} and not {expected} for {row:?} of {n_step} steps");
        }
    }
}

#[test]
fn the_policy_lag_of_a_row_is_the_updates_from_the_parameters_that_chose_it_to_the_newest() {
    let mut config = config("dqn");
    // Each step inserts a row for each environment.
    (config.actor.count, config.actor.flush_transitions, config.algorithm.n_step) = (0, 1, 1);
    let world = World::new(config, |algorithm| algorithm);
    world.publish_parameters();
    let run = world.process(Role::Actor, 0);
    let mut actor = Actor::new(&run).unwrap();
    let mut rows_sum_and_largest_after = |steps: usize| {
        (0..steps).for_each(|_| assert!(actor.step().unwrap()));
        [Counter::Inserted, Counter::LaggedRows, Counter::PolicyLagSum, Counter::PolicyLagMax]
            .map(|counter| run.process.counters().get(counter))
    };
    let of_a_step = ENVIRONMENTS as u64;
    // Parameters of no update act after three.
    world.segment.control().updates().store(3, Ordering::Relaxed);
    assert_eq!(rows_sum_and_largest_after(4), [4 * of_a_step, 4 * of_a_step, 4 * of_a_step * 3, 3]);
    // Those of two updates are taken up at once.
    world.segment.parameter_board().publish(&[&world.parameters()], [2, 0, 0, 0]);
    assert_eq!(rows_sum_and_largest_after(5), [9 * of_a_step, 9 * of_a_step, (4 * 3 + 5) * of_a_step, 3]);
}

/// Mean and variance.
fn moments(values: &[f64]) -> [f64; 2] {
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mean = mean_of(values);
    [mean, mean_of(&values.iter().map(|value| (value - mean).powi(2)).collect::<Vec<_>>())]
}

#[test]
fn an_actor_publishes_the_statistics_of_what_it_saw_and_of_its_discounted_returns() {
    let world = recorded("dqn", 1, |config| {
        (config.algorithm.normalise_observations, config.algorithm.normalise_rewards) = (true, true);
    });
    let board = world.segment.statistics_board(0).unwrap();
    let mut found = vec![0.0; board.len()];
    let (_, [observations, returns, ..]) = board.read(&mut found).unwrap();
    assert_eq!([observations, returns], [(ENVIRONMENTS * STEPS) as u64; 2]);

    let happened = world.happened();
    let [of_first, of_second] = [0, 1].map(|element| {
        let seen = happened.iter().flatten().map(|step| f64::from(step.observation[element]));
        moments(&seen.collect::<Vec<_>>())
    });
    let mut returns = Vec::new();
    for steps in &happened {
        let mut discounted = 0.0;
        for step in steps {
            discounted = discounted * f64::from(GAMMA) + f64::from(step.reward);
            returns.push(discounted);
            if step.terminated || step.truncated {
                discounted = 0.0;
            }
        }
    }
    let of_returns = moments(&returns);
    let expected = [of_first[0], of_second[0], of_first[1], of_second[1], of_returns[0], of_returns[1]];
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((f64::from(found) - expected).abs() < 1e-4, "{found} is not {expected}");
    }
}
