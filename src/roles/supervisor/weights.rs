//! The weights that a run leaves: the last ones, which the supervisor writes, and the best ones, which whoever evaluates wrote.

use std::time::Duration;

use super::Prepared;
use crate::checkpoint::{Keeper, Policy, WeightsMetadata};
use crate::roles::evaluator;
use crate::segment::Segment;
use crate::telemetry::Sinks;

/// How long the end of a run waits for room on the disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Save what learners published last. Returns whether that is on the disk, or there was nothing to save.
pub(super) fn save_last(prepared: &Prepared, segment: &Segment, sinks: &mut Sinks) -> bool {
    let Some(policy) = last(prepared, segment, sinks) else { return true };
    let mut keeper = Keeper::new(sinks.folder().last_weights());
    let saved = keeper.save(policy).and_then(|unsaved| {
        let Some(unsaved) = unsaved else { return Ok(true) };
        sinks.event(&format!("{}; the run waits up to {} s with its end", unsaved.message, PATIENCE.as_secs()));
        keeper.insist(PATIENCE)
    });
    match saved {
        Ok(true) => return true,
        Ok(false) => sinks.lose("the last weights, which could not be written".into()),
        Err(error) => sinks.event(&format!("the last weights could not be saved: {error}")),
    }
    false
}

/// Note the loss if the best policy, published as `version`, has not reached the disk, and neither has a better one.
pub(super) fn look_for_best(version: u64, sinks: &mut Sinks) {
    let saved = Policy::load(&sinks.folder().best_weights()).ok().map(|policy| policy.metadata.parameter_version);
    if saved < Some(version) {
        sinks.lose(format!("the best weights (version {version}), which could not be written"));
    }
}

fn last(prepared: &Prepared, segment: &Segment, sinks: &Sinks) -> Option<Policy> {
    let board = segment.parameter_board();
    let mut parameters = vec![0.0; board.len()];
    let (parameter_version, [updates, environment_steps, ..]) = board.read(&mut parameters)?;
    let evaluation = sinks.evaluation_of(parameter_version);
    let metadata = WeightsMetadata {
        algorithm: prepared.algorithm.name().into(),
        environment: prepared.environment.id.clone(),
        parameter_version,
        environment_steps,
        updates,
        evaluation: evaluation.and_then(|evaluated| evaluator::for_weights(evaluated.kind, &evaluated.statistics)),
        ..WeightsMetadata::default()
    };
    Some(Policy::new(prepared.algorithm.network().clone(), &parameters, metadata))
}
