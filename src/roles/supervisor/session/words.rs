//! What people are told of a process that has died.

use crate::config::RowKind;
use crate::readable::{counted, grouped};
use crate::replay::Repair;
use crate::segment::processes::Role;

/// What happened in one line, and below it, set off, what explains it, such as a traceback.
pub(super) fn with_details(event: String, details: &str) -> String {
    details.lines().fold(event, |text, line| format!("{text}\n    {line}"))
}

/// What a process has done that has counted so much itself.
pub(super) fn work_done(role: Role, work: u64) -> String {
    match role {
        Role::Learner => format!("{work} updates"),
        Role::Evaluator => "evaluating".into(),
        Role::Visualizer => "showing".into(),
        _ => format!("{work} environment steps"),
    }
}

/// What a death cost, in words. `leader` is who leads the learners that are left, and `staged` what it had staged.
pub(super) fn loss(repaired: &Repair, role: Role, leader: Option<usize>, staged: RowKind) -> String {
    let saved = repaired.completed + repaired.inserted;
    match (role, leader) {
        (Role::Learner, Some(leader)) => format!("its replacement goes on from the state of learner {leader}, which leads"),
        (Role::Learner, None) => "its replacement goes on from the last state that was published".into(),
        (Role::Evaluator, _) => "its evaluation is lost".into(),
        (Role::Visualizer, _) => "nothing of the run is lost".into(),
        _ if saved > 0 => {
            let row = match staged {
                RowKind::Transitions => "transition",
                RowKind::Fragments => "fragment",
            };
            format!("what it had staged was saved: {}", counted(saved, row))
        }
        _ => "nothing was staged".into(),
    }
}

/// Why an evaluation may not have been over at the end of the run, if no time limit of its environment is known: such episodes are cut off
/// after `limit_steps`.
pub(super) fn why_evaluation_was_late(limit_steps: u32) -> String {
    format!(
        "; no time limit of its environment is known, so an episode may have gone on towards the {} steps of \
         evaluator.episode_limit_steps: lower that, or give the environment a time limit",
        grouped(u64::from(limit_steps))
    )
}

/// What the death of a process that learns or evaluates cost at the end of the run, when nobody replaces it: of one that `was_closing` its
/// environments, nothing. What one has learned another may still publish.
pub(super) fn loss_at_end(role: Role, was_closing: bool) -> &'static str {
    match role {
        _ if was_closing => "nothing of the run is lost",
        Role::Evaluator => "what it had not reported is lost",
        _ => "what it had learned since the last publication, if nobody else has published it, is lost",
    }
}
