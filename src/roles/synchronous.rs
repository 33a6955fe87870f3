//! The synchronous trainer: actor, learner and evaluator in one process, one after the other, never looking at the
//! clock. From one seed it gives the same parameters, bit for bit. For debugging.

use ipc_channel::ipc::IpcSender;

use super::actor::Actor;
use super::evaluator::{EvaluationReport, Evaluator};
use super::learner::{Attempt, Learner};
use super::run::{RoleError, Run};
use crate::segment::processes::Phase;

/// Train until the run's own conditions end it: since the supervisor looks at the clock, it does not decide here.
pub fn run(run: &Run<'_>, best_path: std::path::PathBuf, reports: &IpcSender<EvaluationReport>) -> Result<(), RoleError> {
    let mut actor = Actor::new(run)?;
    let mut learner = Learner::new(run)?;
    let mut evaluator = run.config.evaluator.enabled.then(|| Evaluator::new(run, best_path, f64::NEG_INFINITY)).transpose()?;
    let interval = run.config.evaluator.synchronous_interval_steps;
    let mut next_evaluation = interval;
    while run.env_steps() < run.config.run.stop_env_steps && !run.is_over() {
        actor.step()?;
        // Without a ratio to hold, one update follows each step of the environments.
        let free = run.config.replay.samples_per_insert.is_none();
        while learner.may_update() && learner.update()? == Attempt::Updated && !free {}
        if run.env_steps() >= next_evaluation
            && let Some(evaluator) = &mut evaluator
        {
            next_evaluation += interval;
            learner.leave();
            if evaluate(run, evaluator, reports)? {
                return evaluator.leave();
            }
        }
    }
    learner.leave();
    if let Some(evaluator) = &mut evaluator {
        evaluate(run, evaluator, reports)?;
        evaluator.leave()?;
    }
    Ok(())
}

/// Evaluate and report; returns whether the goal was reached.
fn evaluate(run: &Run<'_>, evaluator: &mut Evaluator<'_>, reports: &IpcSender<EvaluationReport>) -> Result<bool, RoleError> {
    let go_on = || {
        run.process.enter(Phase::Evaluate);
        !run.is_over()
    };
    let Some(report) = evaluator.evaluate(go_on)? else { return Ok(false) };
    let mean = report.mean();
    reports.send(report).map_err(|error| RoleError::Report { reason: error.to_string() })?;
    Ok(run.config.run.stop_eval_return.is_some_and(|goal| mean >= goal))
}
