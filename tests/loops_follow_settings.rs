//! The loops of an actor, a learner and an evaluator do what the configuration says: what they draw at random, what they explore with, when
//! they flush, how fast they learn, when they publish, how much they play, and what is proof of a goal.

mod support {
    pub(crate) mod scripted;
}

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ipc_channel::ipc;
use rand::Rng;
use shoal::algorithms::{ActionMut, Algorithm, AlgorithmError, Learning, Policy, Random, Sizes};
use shoal::config::Config;
use shoal::config::schema::{Exploration, StepSize};
use shoal::experience::{Choice, Experience};
use shoal::metrics::Metric;
use shoal::networks::{Network, NetworkSpec};
use shoal::roles::Run;
use shoal::roles::evaluator::Evaluator;
use shoal::roles::learner::{Learner, UpdateResult};
use shoal::segment::counters::Counter;
use shoal::segment::membership::Membership;
use shoal::segment::processes::Role;
use shoal::sync::Ordering;
use shoal::telemetry::{Evaluation, EvaluationKind, RunFolder, proven_return};
use shoal::values::Values;
use support::scripted::{ENVIRONMENTS, World, config};

#[test]
fn processes_that_differ_in_seed_role_number_or_incarnation_draw_different_random_numbers() {
    let configs = [1, 2].map(|seed| {
        let mut config = config("dqn");
        config.run.seed = seed;
        config
    });
    let world = World::new(config("dqn"), |algorithm| algorithm);
    let run = world.process(Role::Actor, 0);
    let mut drawn = BTreeSet::new();
    for config in &configs {
        for role in Role::ALL {
            for number in 0..3 {
                for incarnation in 1..4 {
                    let process = Run { config, role, number, incarnation, ..run };
                    let is_new = drawn.insert(process.random().next_u64());
                    assert!(is_new, "{role:?} {number} in incarnation {incarnation} with seed {} draws what another has", config.run.seed);
                }
            }
        }
    }
}

/// What a policy was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    AtRandom,
    Exploring(f32),
}

type Heard = Arc<Mutex<Vec<Asked>>>;

/// An algorithm of the library whose policies keep what they are asked for.
struct Overheard {
    algorithm: Box<dyn Algorithm>,
    heard: Heard,
}

impl Algorithm for Overheard {
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    fn experience(&self) -> &dyn Experience {
        self.algorithm.experience()
    }

    fn metrics(&self) -> &'static [Metric] {
        self.algorithm.metrics()
    }

    fn network(&self) -> &NetworkSpec {
        self.algorithm.network()
    }

    fn sizes(&self) -> Sizes {
        self.algorithm.sizes()
    }

    fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32 {
        self.algorithm.exploration(environment, of, env_steps)
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(OverheardPolicy { policy: self.algorithm.policy()?, heard: self.heard.clone() }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        self.algorithm.learning(seed)
    }
}

struct OverheardPolicy {
    policy: Box<dyn Policy>,
    heard: Heard,
}

impl Policy for OverheardPolicy {
    fn network(&mut self) -> &mut dyn Network {
        self.policy.network()
    }

    fn infer(&mut self, observations: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.policy.infer(observations, rows, outputs);
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        self.heard.lock().unwrap().push(Asked::Exploring(exploration));
        self.policy.choose(outputs, exploration, random, action)
    }

    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        self.heard.lock().unwrap().push(Asked::AtRandom);
        self.policy.choose_randomly(outputs, random, action)
    }
}

/// What the policy is asked for in each environment while `act` acts in a run that `config` describes.
fn asked(config: Config, act: impl FnOnce(&World)) -> Vec<Asked> {
    let heard = Heard::default();
    let world = World::new(config, |algorithm| Box::new(Overheard { algorithm, heard: heard.clone() }));
    act(&world);
    let heard = heard.lock().unwrap();
    heard.clone()
}

#[test]
fn the_first_steps_of_a_run_are_random_and_then_exploration_falls_along_its_schedule() {
    // Those of other actors count.
    const BEFORE: u64 = 6;
    let mut config = config("dqn");
    config.actor.random_steps = 12;
    (config.algorithm.epsilon_start, config.algorithm.epsilon_end, config.algorithm.epsilon_anneal_steps) = (0.75, 0.25, 32);
    let found = asked(config, |world| {
        world.segment.control().env_steps().store(BEFORE, Ordering::Relaxed);
        world.publish_parameters();
        world.act(0, 12);
    });
    let expected = (0..12).flat_map(|step| {
        let asked = match BEFORE + step * ENVIRONMENTS as u64 {
            0..12 => Asked::AtRandom,
            env_steps @ 12..32 => Asked::Exploring(0.75 - env_steps as f32 / 64.0),
            32.. => Asked::Exploring(0.25),
        };
        [asked; ENVIRONMENTS]
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn who_has_no_parameters_yet_acts_at_random() {
    assert_eq!(asked(config("dqn"), |world| world.act(0, 2)), [Asked::AtRandom; 2 * ENVIRONMENTS]);
}

/// How much an environment explores, by its position between the first (0) and the last (1) of the run.
type Measure = fn(f64) -> f64;

#[test]
fn each_environment_of_a_run_explores_in_its_own_measure() {
    let mut ape_x = config("dqn");
    ape_x.algorithm.exploration = Exploration::ApeX;
    (ape_x.algorithm.epsilon_end, ape_x.algorithm.epsilon_alpha) = (0.5, 3.0);
    let mut noise = config("ddpg");
    (noise.algorithm.exploration_noise_std, noise.algorithm.exploration_noise_spread) = (0.2, 0.25);
    let expected: [(Config, Measure); 2] =
        [(ape_x, |position| 0.5f64.powf(1.0 + 3.0 * position)), (noise, |position| 0.2 * 0.25f64.powf(position))];
    for (mut config, measure) in expected {
        config.actor.count = 2;
        // The last of these actors has joined the two of the run: then its environments are the last of all.
        for (number, environments) in [(0, 2 * ENVIRONMENTS), (1, 2 * ENVIRONMENTS), (3, 4 * ENVIRONMENTS)] {
            let found = asked(config.clone(), |world| {
                world.publish_parameters();
                world.act(number, 1);
            });
            let first = number * ENVIRONMENTS;
            let expected = (first..first + ENVIRONMENTS).map(|index| measure(index as f64 / (environments - 1) as f64) as f32);
            assert_eq!(found, expected.map(Asked::Exploring).collect::<Vec<_>>(), "{}, actor {number}", config.algorithm.name);
        }
    }
}

#[test]
fn staged_rows_wait_no_longer_than_the_interval_unless_nothing_may_depend_on_the_clock() {
    for (actors, interval_ms, inserted) in [(1, 1, ENVIRONMENTS), (1, 60_000, 0), (0, 1, 0)] {
        let mut config = config("dqn");
        (config.actor.count, config.actor.flush_interval_ms) = (actors, interval_ms);
        // A step takes longer than the shorter interval.
        config.environment.step_delay_us = 2_000;
        let world = World::new(config, |algorithm| algorithm);
        world.act(0, 1);
        let found = world.segment.control().inserted().load(Ordering::Relaxed);
        assert_eq!(found, inserted as u64, "{actors} actors, {interval_ms} ms");
    }
}

/// A run with the transitions of eight steps in it, of which a batch takes eight.
fn with_experience(mut config: Config) -> World {
    config.learner.batch_size = 8;
    // Nothing stays behind in the staging area, and an actor does not wait for the learner.
    (config.actor.count, config.actor.flush_transitions) = (0, 1);
    let world = World::new(config, |algorithm| algorithm);
    world.publish_parameters();
    world.act(0, 8);
    world
}

/// The parameters before and after the first update of a learner in a run that has taken `env_steps`, and the number of rows
/// in its batch, which was doubled `doublings` times.
fn learned(mut config: Config, env_steps: u64, doublings: i8) -> ([Vec<f32>; 2], u64) {
    config.learner.publish_interval_updates = 1;
    let world = with_experience(config);
    world.segment.control().env_steps().store(env_steps, Ordering::Relaxed);
    let mut membership = Membership::default();
    membership.enter(0);
    membership.double(doublings).store(world.segment.control().membership());
    let run = world.process(Role::Learner, 0);
    let mut learner = Learner::new(&run, None).unwrap();
    assert!(learner.join().unwrap());
    let before = world.parameters();
    assert_eq!(learner.update().unwrap(), UpdateResult::Updated);
    ([before, world.parameters()], run.process.counters().get(Counter::Sampled))
}

#[test]
fn a_learner_learns_at_the_rate_of_the_steps_that_the_run_has_taken_and_of_the_batch_that_its_view_has() {
    for (env_steps, doublings, rate, batch_size) in
        [(0, 0, 1e-2, 8), (500, 0, 5.5e-3, 8), (1_000, 0, 1e-3, 8), (0, -1, 5e-3, 4), (500, 1, 1.1e-2, 16)]
    {
        let mut config = config("dqn");
        (config.learner.learning_rate, config.learner.learning_rate_end, config.run.stop_env_steps) = (Some(1e-2), Some(1e-3), 1_000);
        config.adaptation.step_size = StepSize::Linear;
        let ([before, after], sampled) = learned(config, env_steps, doublings);
        // By the rate the first step of Adam moves every parameter that has a gradient, however large that is.
        let moved = before.iter().zip(after).map(|(before, after)| (after - before).abs()).fold(0.0, f32::max);
        assert!((moved / rate - 1.0).abs() < 0.01, "{moved} and not {rate} after {env_steps} steps with {doublings} doublings");
        assert_eq!(sampled, batch_size, "{doublings} doublings");
    }
}

#[test]
fn a_learner_weighs_the_entropy_by_the_steps_that_the_run_has_taken() {
    for algorithm in ["appo", "ppo"] {
        let after = |entropy_start: f64, env_steps: u64| {
            let mut config = config(algorithm);
            (config.algorithm.entropy_start, config.algorithm.entropy_end, config.algorithm.entropy_anneal_steps) =
                (entropy_start, 0.5, 1_000);
            config.fragments.length_steps = 2;
            let ([_, after], _) = learned(config, env_steps, 0);
            after
        };
        assert_ne!(after(0.0, 0), after(9.0, 0), "{algorithm}");
        assert_eq!(after(0.0, 1_000), after(9.0, 1_000), "{algorithm}: at the end the start counts no more");
    }
}

/// What an evaluator makes of the next `publications` of a run whose goal was reached `unconfirmed` times and not confirmed: its
/// evaluations, whether the last one confirms the goal, and how often it was reached and not confirmed by then.
fn evaluate(world: &World, publications: usize, unconfirmed: u64) -> (Vec<Evaluation>, bool, u64) {
    let folder = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(folder.path(), "run", "").unwrap();
    let (sender, receiver) = ipc::channel().unwrap();
    let run = world.process(Role::Evaluator, 0);
    let mut evaluator = Evaluator::new(&run, folder, unconfirmed).unwrap();
    let mut confirmed = false;
    for _ in 0..publications {
        world.publish_parameters();
        confirmed = evaluator.evaluate(&sender, || true).unwrap();
    }
    let evaluations = std::iter::from_fn(|| receiver.try_recv().ok()).map(|report| report.evaluation).collect();
    (evaluations, confirmed, evaluator.unconfirmed())
}

#[test]
fn an_evaluator_plays_as_many_episodes_as_long_and_with_as_much_exploration_as_asked_for() {
    // DQN, which knows no `evaluator.greedy`, stands for an algorithm of a program's own that does.
    for (algorithm, greedy, exploration) in [("sac", true, 0.0), ("sac", false, 1.0), ("dqn", false, 0.25)] {
        let mut config = config(algorithm);
        config.algorithm.epsilon_start = 0.25;
        (config.evaluator.episodes, config.evaluator.confirm_episodes, config.evaluator.greedy) = (3, 5, greedy);
        // Episodes have 4, 5 and 2 steps in turn.
        config.evaluator.episode_limit_steps = 3;
        let mut evaluations = Vec::new();
        let heard = asked(config, |world| (evaluations, ..) = evaluate(world, 1, 0));
        let played: Vec<_> =
            evaluations.into_iter().map(|found| (found.kind, found.returns.len(), found.lengths.into_iter().max())).collect();
        assert_eq!(played, [(EvaluationKind::Routine, 3, Some(3)), (EvaluationKind::Confirmation, 5, Some(3))]);
        assert!(heard.iter().all(|&asked| asked == Asked::Exploring(exploration)), "{algorithm}, greedy: {greedy}, {heard:?}");
    }
}

#[test]
fn an_evaluator_makes_as_many_environments_as_it_may_and_no_more_than_it_has_episodes() {
    for (most, made) in [(1, 1), (2, 2), (32, 3)] {
        let mut config = config("dqn");
        (config.evaluator.episodes, config.evaluator.confirm_episodes, config.evaluator.environments) = (3, 5, most);
        let world = World::new(config, |algorithm| algorithm);
        let (evaluations, ..) = evaluate(&world, 1, 0);
        let played: Vec<usize> = evaluations.iter().map(|evaluation| evaluation.returns.len()).collect();
        assert_eq!(played, [3, 5], "at most {most}");
        // An evaluation and its confirmation give a seed to each.
        assert_eq!(world.seeds().len(), 2 * made, "at most {most}");
    }
}

#[test]
fn weights_that_are_the_best_already_are_not_confirmed_again_in_other_lives_of_their_run() {
    let mut config = config("dqn");
    (config.evaluator.episodes, config.evaluator.confirm_episodes) = (3, 5);
    let world = World::new(config, |algorithm| algorithm);
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "run", "").unwrap();
    let (sender, receiver) = ipc::channel().unwrap();
    let run = world.process(Role::Evaluator, 0);
    let mut kinds = Vec::new();
    // Their returns follow from the script alone, and in half of these lives the routine evaluation looks better than the confirmation.
    for _ in 0..20 {
        world.publish_parameters();
        Evaluator::new(&run, folder.clone(), 0).unwrap().evaluate(&sender, || true).unwrap();
        kinds.extend(std::iter::from_fn(|| receiver.try_recv().ok()).map(|report| report.evaluation.kind));
    }
    let count = |wanted: EvaluationKind| kinds.iter().filter(|&&kind| kind == wanted).count();
    assert_eq!((count(EvaluationKind::Routine), count(EvaluationKind::Confirmation)), (20, 1), "{kinds:?}");
}

#[test]
fn no_evaluation_or_confirmation_plays_with_a_seed_of_another() {
    let mut config = config("dqn");
    // As many episodes as environments. Those of a confirmation are played in the same three.
    (config.evaluator.episodes, config.evaluator.confirm_episodes) = (3, 5);
    // Whatever is played reaches it, and so is played again to confirm it.
    config.run.stop_eval_return = Some(-1e6);
    let world = World::new(config, |algorithm| algorithm);
    let (evaluations, ..) = evaluate(&world, 2, 0);
    let kinds: Vec<_> = evaluations.iter().map(|evaluation| evaluation.kind).collect();
    assert_eq!(kinds, [EvaluationKind::Routine, EvaluationKind::Confirmation].repeat(2));
    let seeds = world.seeds();
    assert_eq!(seeds.len(), kinds.len() * 3);
    assert_eq!(seeds.iter().collect::<BTreeSet<_>>().len(), seeds.len(), "{seeds:?}");
}

#[test]
fn each_attempt_at_a_goal_that_was_not_confirmed_makes_an_evaluator_ask_for_more_proof() {
    let world = |goal: Option<f64>| {
        let mut config = config("dqn");
        (config.evaluator.episodes, config.evaluator.confirm_episodes, config.run.stop_eval_return) = (3, 5, goal);
        World::new(config, |algorithm| algorithm)
    };
    // The returns follow from the script alone, and so are the same in each of these runs.
    let (evaluations, ..) = evaluate(&world(None), 1, 0);
    let confirmation = evaluations.last().unwrap();
    assert_eq!(confirmation.kind, EvaluationKind::Confirmation);
    let proven = |attempt| proven_return(&confirmation.statistics(), attempt);
    // As much as attempt number `enough` proves reaches the goal in that attempt and before, and is too little after it.
    for enough in 1..4 {
        for failed in 0..4 {
            let (_, confirmed, unconfirmed) = evaluate(&world(proven(enough)), 1, failed);
            let expected = if failed < enough { (true, failed) } else { (false, failed + 1) };
            assert_eq!((confirmed, unconfirmed), expected, "attempt {} at what attempt {enough} proves", failed + 1);
        }
    }
}

#[test]
fn a_leader_publishes_when_it_begins_after_so_many_updates_and_when_it_leaves() {
    let mut config = config("dqn");
    config.learner.publish_interval_updates = 3;
    let world = with_experience(config);
    let mut membership = Membership::default();
    membership.enter(0).store(world.segment.control().membership());
    let run = world.process(Role::Learner, 0);
    let mut learner = Learner::new(&run, None).unwrap();
    assert!(learner.join().unwrap());
    assert_eq!(world.published_updates(), 0);
    let updates = |learner: &mut Learner<'_>, count: usize| -> Vec<u64> {
        let update = |_| {
            assert_eq!(learner.update().unwrap(), UpdateResult::Updated);
            world.published_updates()
        };
        (0..count).map(update).collect()
    };
    assert_eq!(updates(&mut learner, 7), [0, 0, 3, 3, 3, 6, 6]);
    // In another view batches begin anew, and from there updates are counted.
    membership.double(1).store(world.segment.control().membership());
    assert_eq!(updates(&mut learner, 4), [7, 7, 10, 10]);
    learner.leave();
    assert_eq!(world.published_updates(), 11);
}
