//! The synchronous trainer: actor, learner and evaluator in one process, one after the other, never looking at the
//! clock. From one seed it gives the same parameters, bit for bit. For debugging.
//!
//! At each checkpoint the trainer starts over from the segment alone: new random numbers, environments that are reset, the state
//! that the learner published. A run that is resumed from that checkpoint therefore repeats exactly what the first run did after it.

use std::time::Duration;

use ipc_channel::ipc::IpcSender;

use super::actor::Actor;
use super::evaluator::{EvaluationReport, Evaluator};
use super::learner::{Learner, UpdateResult};
use super::run::{RoleError, Run};
use crate::config::{Config, RowKind};
use crate::segment::processes::Phase;
use crate::sync::Ordering;
use crate::telemetry::RunFolder;

/// Time between two looks whether the supervisor has written a checkpoint.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(1);

/// Why a stretch of training ended.
enum End {
    /// The run is over.
    OfRun,
    /// A checkpoint is due, after so many evaluations that reached the goal and were not confirmed.
    AtCheckpoint { unconfirmed: u64 },
}

/// Train until the run's own conditions end it: the supervisor, which would go by the clock, does not decide here. `unconfirmed`
/// evaluations reached the goal in an earlier life of the run and were not confirmed.
///
/// # Errors
/// Those of the actor, the learner and the evaluator.
pub fn run(run: &mut Run<'_>, folder: &RunFolder, mut unconfirmed: u64, reports: &IpcSender<EvaluationReport>) -> Result<(), RoleError> {
    while let End::AtCheckpoint { unconfirmed: so_far } = train(run, folder, unconfirmed, reports)? {
        unconfirmed = so_far;
        wait_for_checkpoint(run);
        // Nothing may change any more: the checkpoint may be under way.
        if run.is_over() {
            break;
        }
        run.incarnation += 1;
    }
    Ok(())
}

/// Train until the run ends or a checkpoint is due.
fn train(run: &Run<'_>, folder: &RunFolder, unconfirmed: u64, reports: &IpcSender<EvaluationReport>) -> Result<End, RoleError> {
    let mut actor = Actor::new(run)?;
    let mut learner = Learner::new(run, None)?;
    let mut evaluator = run.config.evaluator.enabled.then(|| Evaluator::new(run, folder.clone(), unconfirmed)).transpose()?;
    if run.algorithm.experience().is_on_policy() {
        // The policy that is learned draws from the first step on: its probabilities count.
        learner.join()?;
    }
    let mut schedule = Schedule::new(run.config, run.env_steps());
    while run.env_steps() < schedule.end && !run.is_over() {
        actor.step()?;
        let checkpoint_is_due = schedule.checkpoint_is_due(run.env_steps());
        learn(run, &mut learner, checkpoint_is_due)?;
        if schedule.evaluation_is_due(run.env_steps())
            && let Some(evaluator) = &mut evaluator
        {
            // It plays what was published last, as in every run: a publication for its sake would change what the actor does from there on.
            if evaluator.evaluate(reports, || !run.is_over())? {
                learner.leave();
                evaluator.leave()?;
                run.process.enter(Phase::Leaving);
                return Ok(End::OfRun);
            }
        }
        if checkpoint_is_due && !run.is_over() {
            actor.leave();
            learner.leave();
            evaluator.iter_mut().try_for_each(Evaluator::leave)?;
            return Ok(End::AtCheckpoint { unconfirmed: evaluator.map_or(unconfirmed, |evaluator| evaluator.unconfirmed()) });
        }
    }
    // A run that is over before the first update has weights all the same.
    learner.join()?;
    learner.leave();
    if let Some(evaluator) = &mut evaluator {
        evaluator.evaluate(reports, || !run.is_over())?;
        evaluator.leave()?;
    }
    // Only environments are still to be closed.
    run.process.enter(Phase::Leaving);
    Ok(End::OfRun)
}

/// Make the updates that follow a step of the environments.
fn learn(run: &Run<'_>, learner: &mut Learner<'_>, checkpoint_is_due: bool) -> Result<(), RoleError> {
    // Without a ratio to hold, it is one. A checkpoint gives up batches of fragments with the updates that they have left, so these are
    // made before.
    let is_free = run.algorithm.experience().limiter().samples_per_insert.is_none();
    let uses_batches_up = checkpoint_is_due && run.config.row_kind() == RowKind::Fragments;
    while learner.may_update() {
        if learner.update()? != UpdateResult::Updated || (is_free && !uses_batches_up) || run.is_over() {
            break;
        }
    }
    Ok(())
}

/// The environment steps with which something is due in a stretch of training.
struct Schedule {
    next_evaluation: u64,
    evaluation_interval: u64,
    /// The checkpoint that ends the stretch.
    checkpoint: Option<u64>,
    /// The end of the run.
    end: u64,
}

impl Schedule {
    /// The schedule of a stretch that begins after `began` steps.
    fn new(config: &Config, began: u64) -> Self {
        let next_multiple = |interval: u64| (began / interval + 1) * interval;
        let evaluation_interval = config.evaluator.synchronous_interval_steps;
        // A checkpoint gives up what is unfinished, so it waits for whole fragments, for the first transitions of several steps, or for
        // the end. Otherwise a run with shorter intervals would never complete any.
        let of_all = |steps: usize| (config.actor.environments * steps) as u64;
        let (unit, least) = match config.row_kind() {
            RowKind::Fragments => (of_all(config.fragments.length_steps), 0),
            RowKind::Transitions => (1, of_all(config.algorithm.n_step)),
        };
        let end = config.run.stop_env_steps;
        let checkpoint = config.checkpoint.synchronous_interval_steps.map(|interval| {
            let due = next_multiple(interval);
            let with_whole_rows = began + (due - began).next_multiple_of(unit).max(least);
            if due <= end { with_whole_rows.min(end) } else { with_whole_rows }
        });
        Self { next_evaluation: next_multiple(evaluation_interval), evaluation_interval, checkpoint, end }
    }

    fn checkpoint_is_due(&self, env_steps: u64) -> bool {
        self.checkpoint.is_some_and(|checkpoint| env_steps >= checkpoint)
    }

    /// Whether an evaluation is due, which is asked once: the next one is due an interval later. What is learned in the end is evaluated
    /// after the stretch, once it is published for the last time.
    fn evaluation_is_due(&mut self, env_steps: u64) -> bool {
        let is_due = (self.next_evaluation..self.end).contains(&env_steps);
        if is_due {
            self.next_evaluation += self.evaluation_interval;
        }
        is_due
    }
}

/// Let the supervisor write a checkpoint of this moment.
fn wait_for_checkpoint(run: &Run<'_>) {
    let wanted = run.control().checkpoint_wanted();
    // Release: whoever sees that one is wanted sees all that was done before.
    wanted.store(run.incarnation, Ordering::Release);
    while wanted.load(Ordering::Acquire) != 0 && !run.is_over() {
        run.process.enter(Phase::Idle);
        std::thread::sleep(CHECKPOINT_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schedule from `began` to 1,000 steps, of two environments with transitions of 20 steps, or with fragments of 8 steps if the
    /// algorithm is PPO.
    fn schedule(algorithm: &str, began: u64, checkpoint_interval: u64) -> Schedule {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = algorithm.into();
        (config.actor.environments, config.fragments.length_steps, config.run.stop_env_steps) = (2, 8, 1_000);
        config.algorithm.n_step = 20;
        config.checkpoint.synchronous_interval_steps = Some(checkpoint_interval);
        config.evaluator.synchronous_interval_steps = 400;
        Schedule::new(&config, began)
    }

    #[test]
    fn a_checkpoint_waits_for_whole_rows_and_not_beyond_the_end() {
        let due = |algorithm, began, interval| schedule(algorithm, began, interval).checkpoint.unwrap();
        assert_eq!([due("dqn", 0, 100), due("dqn", 100, 100), due("dqn", 102, 100)], [100, 200, 200]);
        assert_eq!([due("dqn", 0, 3), due("dqn", 42, 3), due("dqn", 990, 3)], [40, 82, 1_000]);
        assert_eq!([due("ppo", 0, 100), due("ppo", 112, 100), due("ppo", 0, 3)], [112, 208, 16]);
        assert_eq!([due("ppo", 0, 999), due("ppo", 0, 1_001)], [1_000, 1_008]);
        let schedule = schedule("dqn", 0, 100);
        assert_eq!([99, 100, 102].map(|env_steps| schedule.checkpoint_is_due(env_steps)), [false, true, true]);
    }

    #[test]
    fn each_evaluation_is_due_once_and_none_at_the_end() {
        let mut whole = schedule("dqn", 0, 100);
        let due = |schedule: &mut Schedule| (0..=1_000).filter(|&env_steps| schedule.evaluation_is_due(env_steps)).collect::<Vec<_>>();
        assert_eq!(due(&mut whole), [400, 800]);
        assert_eq!(due(&mut schedule("dqn", 600, 100)), [800]);
        assert!(!schedule("dqn", 800, 100).evaluation_is_due(1_000));
    }
}
