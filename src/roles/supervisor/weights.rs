//! The weights that a run leaves. The supervisor writes the last ones. An evaluator wrote the best ones, and a run
//! that goes on remembers those.

use std::time::Duration;

use super::Prepared;
use crate::checkpoint::{PolicySaver, PolicySpaces, PolicyWeights, WeightsMetadata};
use crate::config::Config;
use crate::roles::evaluator;
use crate::segment::Segment;
use crate::telemetry::{EvaluatedWeights, EvaluationKind, Remembered, RunFolder, Sinks};

/// How long the end of a run waits for room on the disk.
pub(super) const ROOM_PATIENCE: Duration = Duration::from_secs(10);

/// Save what learners published last. Returns whether it is on the disk, or there was nothing to save.
pub(super) fn save_last(prepared: &Prepared, segment: &Segment, sinks: &mut Sinks) -> bool {
    let Some(policy) = last(prepared, segment, sinks) else {
        let was_published = segment.parameter_board().version() > 0;
        if was_published {
            sinks.lose("the last weights, which are damaged in the shared memory of the run".into());
        }
        return !was_published;
    };
    let folder = sinks.folder().clone();
    let mut saver = PolicySaver::new(move || folder.current().last_weights());
    let saved = saver.save(policy).and_then(|unsaved| {
        let Some(unsaved) = unsaved else { return Ok(true) };
        sinks.event(&format!("{}; the run waits up to {} s with its end", unsaved.message, ROOM_PATIENCE.as_secs()));
        saver.insist(ROOM_PATIENCE)
    });
    match saved {
        Ok(true) => return true,
        Ok(false) => sinks.lose("the last weights, which could not be written".into()),
        Err(error) => sinks.lose(format!("the last weights, which could not be saved: {error}")),
    }
    false
}

/// Best weights that were not on the disk yet when the evaluator reported them.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsavedBest {
    /// Their version and environment steps.
    which: (u64, u64),
    /// Those of the weights that were on the disk then, if there were any.
    instead: Option<(u64, u64)>,
}

impl UnsavedBest {
    /// The weights with this version and so many environment steps, which have just been reported in the run of `folder`.
    pub(super) fn reported(version: u64, env_steps: u64, folder: &RunFolder) -> Self {
        Self { which: (version, env_steps), instead: best_on_disk(folder) }
    }

    /// Note the loss if they have not reached the disk. What is there instead may have a higher version, of a life of the run that was
    /// given up. But what is there only since then is better: an evaluator saves nothing else, and may have been killed before it
    /// reported it.
    pub(super) fn look_for(self, sinks: &mut Sinks) {
        let there = best_on_disk(sinks.folder());
        if there != Some(self.which) && (there.is_none() || there == self.instead) {
            sinks.lose(format!("the best weights (version {}), which could not be written", self.which.0));
        }
    }
}

/// Version and environment steps of the best weights on the disk, wherever `folder` was moved.
fn best_on_disk(folder: &RunFolder) -> Option<(u64, u64)> {
    let metadata = PolicyWeights::load(&folder.current().best_weights()).ok()?.metadata;
    Some((metadata.parameter_version, metadata.environment_steps))
}

/// What the files in `folder` tell of a run with this configuration that has taken `env_steps`. The best weights
/// are those in the file, whatever the lines say: a full disk may have kept a line or its weights from being
/// written, and a kill may come between the two. The lines are believed only if the file cannot be read: it may be
/// readable later.
pub(super) fn remembered_in(folder: &RunFolder, config: &Config, env_steps: u64) -> Remembered {
    let remembered = Remembered::of_files(folder, config.run.stop_eval_return, env_steps);
    let Ok(weights) = evaluator::best_weights(&folder.best_weights()) else { return remembered };
    let best = weights.and_then(|weights| confirmed(&weights.metadata));
    let which = EvaluatedWeights::version_and_steps;
    // If the newest such line is about the same weights, it says more of them.
    if best.map(which) == remembered.best.map(which) { remembered } else { Remembered { best, ..remembered } }
}

/// The weights that `metadata` was written beside, if they are confirmed.
fn confirmed(metadata: &WeightsMetadata) -> Option<EvaluatedWeights> {
    let evaluation = metadata.confirmation()?;
    Some(EvaluatedWeights {
        version: metadata.parameter_version,
        env_steps: metadata.environment_steps,
        kind: EvaluationKind::Confirmation,
        statistics: evaluator::statistics_of(evaluation),
    })
}

fn last(prepared: &Prepared, segment: &Segment, sinks: &Sinks) -> Option<PolicyWeights> {
    let board = segment.parameter_board();
    let mut parameters = vec![0.0; board.len()];
    let (parameter_version, [updates, environment_steps, ..]) = board.read(&mut parameters)?;
    let evaluation = sinks.evaluation_of(parameter_version);
    let metadata = WeightsMetadata {
        algorithm: prepared.algorithm().name().into(),
        environment: prepared.environment.id.clone(),
        parameter_version,
        environment_steps,
        updates,
        spaces: PolicySpaces::of(&prepared.environment),
        evaluation: evaluation.and_then(|evaluated| evaluator::for_weights(evaluated.kind, &evaluated.statistics)),
        ..WeightsMetadata::default()
    };
    Some(PolicyWeights::new(prepared.algorithm().network().clone(), &parameters, metadata))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::networks::{Head, NetworkSpec};
    use crate::roles::supervisor::Plan;
    use crate::segment::{Description, Region};
    use crate::sync::Ordering;
    use crate::telemetry::bottleneck::Context;
    use crate::telemetry::{Abilities, Console, Snapshot, StopReason};

    fn sinks_in(root: &Path, config: Config) -> Sinks {
        let folder = RunFolder::create(root, "test", &config.to_toml()).unwrap();
        let console = Console::on(File::create(root.join("printed")).unwrap(), Abilities::NONE).unwrap();
        Sinks::open(folder, console, Context::new(config, 1), None).unwrap()
    }

    fn weights_metadata() -> WeightsMetadata {
        WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() }
    }

    #[test]
    fn best_weights_of_a_life_that_was_given_up_do_not_stand_in_for_those_that_could_not_be_saved() {
        let root = tempfile::tempdir().unwrap();
        let mut sinks = sinks_in(root.path(), Config::for_environment("CartPole-v1"));
        let spec = NetworkSpec::perceptron(4, &[4], Head::Linear { outputs: 2 });
        let parameters = vec![0.5; spec.parameter_count()];
        let metadata = WeightsMetadata { parameter_version: 40_500, environment_steps: 162_000, ..weights_metadata() };
        PolicyWeights::new(spec, &parameters, metadata).save(&sinks.folder().best_weights()).unwrap();
        for (version, env_steps) in [(40_500, 162_000), (35_000, 140_000)] {
            UnsavedBest::reported(version, env_steps, sinks.folder()).look_for(&mut sinks);
        }
        let losses = sinks.finish(StopReason::StepLimit, &Snapshot::default()).losses;
        assert!(matches!(losses.as_slice(), [loss] if loss.contains("the best weights (version 35000)")), "{losses:?}");
    }

    #[test]
    fn best_weights_are_not_lost_where_an_evaluator_has_saved_better_ones_and_was_killed_before_it_reported_them() {
        let root = tempfile::tempdir().unwrap();
        let mut sinks = sinks_in(root.path(), Config::for_environment("CartPole-v1"));
        let save = |parameter_version: u64, sinks: &Sinks| {
            let spec = NetworkSpec::perceptron(4, &[4], Head::Linear { outputs: 2 });
            let metadata = WeightsMetadata { parameter_version, environment_steps: 10 * parameter_version, ..weights_metadata() };
            let parameters = vec![0.5; spec.parameter_count()];
            PolicyWeights::new(spec, &parameters, metadata).save(&sinks.folder().best_weights()).unwrap();
        };
        let never_saved = UnsavedBest::reported(3, 30, sinks.folder());
        save(5, &sinks);
        let unsaved = UnsavedBest::reported(10, 100, sinks.folder());
        save(20, &sinks);
        never_saved.look_for(&mut sinks);
        unsaved.look_for(&mut sinks);
        assert_eq!(sinks.finish(StopReason::StepLimit, &Snapshot::default()).losses, [""; 0]);
    }

    #[test]
    fn last_weights_that_have_diverged_or_are_damaged_are_lost_and_not_nothing_to_save() {
        let root = tempfile::tempdir().unwrap();
        let text = "[environment]\nid = \"CartPole-v1\"\n[network]\nhidden = [4]\n[replay]\ncapacity = 1_000\n";
        let prepared = Prepared::new(Config::parse(text, "test", &[]).unwrap(), &Catalogue::default()).unwrap();
        let config = prepared.loaded.config.clone();
        let layout = Plan::new(&config, prepared.algorithm(), &[0], &[]).unwrap().layout;
        let segment = Segment::create_private(layout, &Description::default()).unwrap();
        let mut sinks = sinks_in(root.path(), config);
        assert!(save_last(&prepared, &segment, &mut sinks), "nothing was published");
        let board = segment.parameter_board();
        board.publish(&[&vec![0.5; board.len()]], [1; 4]);
        assert!(save_last(&prepared, &segment, &mut sinks) && sinks.folder().last_weights().is_file());
        board.publish(&[&vec![f32::NAN; board.len()]], [2; 4]);
        assert!(!save_last(&prepared, &segment, &mut sinks), "no file holds such numbers");
        // The version stays, and of no buffer is it the mark.
        segment.words(Region::Parameters)[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        assert!(!save_last(&prepared, &segment, &mut sinks));
        let losses = sinks.finish(StopReason::StepLimit, &Snapshot::default()).losses;
        assert!(losses.iter().all(|loss| loss.starts_with("the last weights, which ")), "{losses:?}");
        assert!(matches!(losses.as_slice(), [diverged, damaged] if diverged.contains("NaN") && damaged.contains("damaged")), "{losses:?}");
    }
}
