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
use crate::config::Rows;
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
    let began = run.env_steps();
    let next_multiple = |interval: u64| (began / interval + 1) * interval;
    let interval = run.config.evaluator.synchronous_interval_steps;
    let mut next_evaluation = next_multiple(interval);
    // A checkpoint gives up unfinished fragments, so it waits for whole ones, or for the end. Otherwise a run with intervals shorter
    // than fragments would never complete any.
    let unit = match run.config.rows() {
        Rows::Fragments => (run.config.actor.environments * run.config.fragments.length_steps) as u64,
        Rows::Transitions => 1,
    };
    let end = run.config.run.stop_env_steps;
    let checkpoint = run.config.checkpoint.synchronous_interval_steps.map(|interval| {
        let due = next_multiple(interval);
        let with_whole_fragments = began + (due - began).next_multiple_of(unit);
        if due <= end { with_whole_fragments.min(end) } else { with_whole_fragments }
    });
    while run.env_steps() < end && !run.is_over() {
        actor.step()?;
        let checkpoint_is_due = checkpoint.is_some_and(|checkpoint| run.env_steps() >= checkpoint);
        // Without a ratio to hold, one update follows each step of the environments. A checkpoint gives up batches of fragments with the
        // updates that they have left, so these are made before.
        let is_free = run.algorithm.experience().limiter().samples_per_insert.is_none();
        let uses_batches_up = checkpoint_is_due && run.config.rows() == Rows::Fragments;
        while learner.may_update() {
            if learner.update()? != UpdateResult::Updated || (is_free && !uses_batches_up) || run.is_over() {
                break;
            }
        }
        // What is learned in the end is evaluated below, once it is published for the last time.
        if run.env_steps() >= next_evaluation
            && run.env_steps() < end
            && let Some(evaluator) = &mut evaluator
        {
            next_evaluation += interval;
            learner.leave();
            if evaluator.evaluate(reports, || !run.is_over())? {
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
