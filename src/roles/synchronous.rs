//! The synchronous trainer: actor, learner and evaluator in one process, one after the other, never looking at the
//! clock. From one seed it gives the same parameters, bit for bit. For debugging.

use ipc_channel::ipc::IpcSender;

use super::actor::Actor;
use super::evaluator::{EvaluationReport, Evaluator};
use super::learner::{Attempt, Learner};
use super::run::{RoleError, Run};
use crate::config::Rows;
use crate::segment::processes::Phase;

/// Train until the run's own conditions end it: since the supervisor looks at the clock, it does not decide here.
pub fn run(run: &Run<'_>, best_path: std::path::PathBuf, reports: &IpcSender<EvaluationReport>) -> Result<(), RoleError> {
    let mut actor = Actor::new(run)?;
    let mut learner = Learner::new(run, None)?;
    let mut evaluator = run.config.evaluator.enabled.then(|| Evaluator::new(run, best_path, 0)).transpose()?;
    if run.config.rows() == Rows::Fragments {
        // The policy that is learned draws from the first step on: its probabilities count.
        learner.join();
    }
    let interval = run.config.evaluator.synchronous_interval_steps;
    let mut next_evaluation = interval;
    while run.env_steps() < run.config.run.stop_env_steps && !run.is_over() {
        actor.step()?;
        // Without a ratio to hold, one update follows each step of the environments.
        let free = run.algorithm.experience().limiter().samples_per_insert.is_none();
        while learner.may_update() && learner.update()? == Attempt::Updated && !free && !run.is_over() {}
        if run.env_steps() >= next_evaluation
            && let Some(evaluator) = &mut evaluator
        {
            next_evaluation += interval;
            learner.leave();
            if evaluator.evaluate(reports, || goes_on(run))? {
                return evaluator.leave();
            }
        }
    }
    learner.leave();
    if let Some(evaluator) = &mut evaluator {
        evaluator.evaluate(reports, || goes_on(run))?;
        evaluator.leave()?;
    }
    Ok(())
}

/// Said between two steps of an evaluation, which may take longer than anybody may be silent.
fn goes_on(run: &Run<'_>) -> bool {
    run.process.enter(Phase::Evaluate);
    !run.is_over()
}
