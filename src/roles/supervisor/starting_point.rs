//! The checkpoint of another run that a new one begins with (`run.start_from`): which one, whether it fits, and what is taken.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Prepared, SupervisorError};
use crate::checkpoint::{CheckpointError, Checkpoints, Learned, RunCheckpoint};
use crate::config::schema::Split;
use crate::config::{Config, INITIAL_KEYS, Loaded, Resume, settings_to_begin_with};
use crate::replay::Schema;
use crate::segment::Segment;
use crate::segment::description::FieldDescription;
use crate::telemetry::{RunFolder, TelemetryError};

/// What a new run begins with.
pub(super) struct StartingPoint {
    checkpoint: RunCheckpoint,
    /// Read before anything is made for the run: the other one may remove its checkpoint at any time.
    learned: Learned,
}

/// Why a run cannot begin with what another has learned. The value of the key is shown beside it.
#[derive(Debug, Error)]
pub(super) enum StartError {
    /// It leads nowhere.
    #[error("it cannot be found ({0}); name the folder of a run, such as runs/latest, or that of one of its checkpoints")]
    Missing(io::ErrorKind),
    /// It leads nowhere because nobody has made a path of it.
    #[error("no shell has expanded this \"~\"; write the path of that home")]
    Home,
    /// Weights alone.
    #[error(
        "a file of weights holds a policy, and not all that learning goes on from (targets, critics, the optimizer); name the \
         folder of its run, or that of a checkpoint"
    )]
    Weights,
    /// Something else.
    #[error("this is neither the folder of a run nor that of a checkpoint; name one of these, such as runs/latest")]
    Neither,
    /// A run whose records are damaged, say.
    #[error("{0}; name one of the checkpoints in that folder")]
    Run(TelemetryError),
    /// A run without any.
    #[error(
        "this run has no complete checkpoint: one is written each checkpoint.interval_s (each checkpoint.synchronous_interval_steps where \
         actor.count is 0) and at the end; name another run"
    )]
    NoneYet,
    /// No configuration can hold where it is.
    #[error("the path {} is not UTF-8, and the records of a run cannot hold it; rename it", .0.display())]
    NotUtf8(PathBuf),
    /// It cannot be read.
    #[error("{0}; name another checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// It was written too early.
    #[error("this checkpoint was written before the first update, and has learned nothing; name another")]
    NothingLearned,
    /// Another algorithm keeps other things.
    #[error("what it holds was learned by {learned:?}, and algorithm.name is {begins:?} here; name a run of the same algorithm")]
    OtherAlgorithm {
        /// Algorithm of the checkpoint.
        learned: String,
        /// That of the run.
        begins: String,
    },
    /// Other layers, say.
    #[error("what it holds was learned with {}; set the same here, or name another run", .0.join(", "))]
    OtherSettings(Vec<String>),
    /// Other observations or actions.
    #[error(
        "what it holds was learned from {learned} in {}, and {} has {begins}; name a run in an environment with the same \
         observations and actions",
        environments[0], environments[1]
    )]
    OtherSpaces {
        /// A field of the checkpoint's rows, for people.
        learned: String,
        /// The same one in the environment of the run.
        begins: String,
        /// Both environments.
        environments: [String; 2],
    },
    /// Anything else that decides how much there is.
    #[error(
        "it holds {learned} {what}, and this run has {begins}: another number of actions, other layers, or another learner.split; name \
         another run"
    )]
    OtherLength {
        /// Which values.
        what: &'static str,
        /// How many the checkpoint has.
        learned: usize,
        /// How many the run has.
        begins: usize,
    },
}

/// A field of a row, for people.
fn told(field: &FieldDescription) -> String {
    format!("`{}` of {} {:?}", field.name, field.element, field.shape)
}

/// The first of the `fields` of a checkpoint's rows that has other values in rows of this `schema`, and what it is there,
/// for people. How the same values are stored is the replay's concern.
pub(super) fn different_field(fields: &[FieldDescription], schema: &Schema) -> Option<[String; 2]> {
    let is_other = |(one, other): &(&FieldDescription, FieldDescription)| (&one.element, &one.shape) != (&other.element, &other.shape);
    let (one, other) = fields.iter().zip(schema.describe()).find(is_other)?;
    Some([told(one), told(&other)])
}

/// Let `loaded` name the checkpoint that it begins with, by a path that leads there from anywhere and from now on: a run writes others, and
/// `runs/latest` will lead to this one.
///
/// # Errors
/// There is none; but where another run may go on instead, that needs none.
pub(super) fn resolve(loaded: &mut Loaded) -> Result<(), SupervisorError> {
    let Some(path) = &loaded.config.run.start_from else { return Ok(()) };
    let found = checkpoint_at(Path::new(path)).and_then(|path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or(StartError::NotUtf8(path))
    });
    match found {
        Ok(path) => loaded.config.run.start_from = Some(path),
        Err(_) if loaded.config.run.resume == Resume::Auto => {}
        Err(error) => return Err(about_start(loaded, &error)),
    }
    Ok(())
}

/// The checkpoint in the folder `path`, or the newest of the run there.
fn checkpoint_at(path: &Path) -> Result<PathBuf, StartError> {
    let real =
        path.canonicalize().map_err(|error| if path.starts_with("~") { StartError::Home } else { StartError::Missing(error.kind()) })?;
    if RunCheckpoint::is_at(&real) {
        return Ok(real);
    }
    match RunFolder::open(&real) {
        Ok(run) => Checkpoints::new(run.checkpoints()).list()?.pop().ok_or(StartError::NoneYet),
        Err(_) if real.extension().is_some_and(|ending| ending == "safetensors") => Err(StartError::Weights),
        Err(TelemetryError::NotARunFolder { .. }) => Err(StartError::Neither),
        Err(error) => Err(StartError::Run(error)),
    }
}

fn about_start(loaded: &Loaded, error: &StartError) -> SupervisorError {
    loaded.error_at("run.start_from", error.to_string()).into()
}

impl Prepared {
    /// What the run begins with, if that is what another has learned.
    ///
    /// # Errors
    /// There is no checkpoint, it is damaged, or it does not fit; or a key was typed that then has no effect.
    pub(super) fn starting_point(&self) -> Result<Option<StartingPoint>, SupervisorError> {
        let Some(path) = &self.loaded.config.run.start_from else { return Ok(None) };
        if let Some(key) = INITIAL_KEYS.iter().find(|key| self.loaded.is_typed(key)) {
            let message = "it has no effect, since what learning begins with is taken from run.start_from; leave one of the two out";
            return Err(self.loaded.error_at(key, message.into()).into());
        }
        let found = || {
            let checkpoint = RunCheckpoint::open_to_begin(&checkpoint_at(Path::new(path))?)?;
            let point = StartingPoint { learned: checkpoint.learned()?, checkpoint };
            point.check(self).map(|()| point)
        };
        found().map(Some).map_err(|error| about_start(&self.loaded, &error))
    }
}

impl StartingPoint {
    /// Refuse what does not fit the run, by the setting, the observation or the action that differs, or else by a length.
    fn check(&self, run: &Prepared) -> Result<(), StartError> {
        let (manifest, config) = (self.checkpoint.manifest(), &run.loaded.config);
        if manifest.algorithm != config.algorithm.name {
            return Err(StartError::OtherAlgorithm { learned: manifest.algorithm.clone(), begins: config.algorithm.name.clone() });
        }
        // What cannot be read any more is a matter for the lengths.
        let learned = Config::parse(&self.checkpoint.config_toml()?, "config.toml", &[]).ok();
        let began_with_another = learned.as_ref().is_some_and(|learned| learned.config.run.start_from.is_some());
        if manifest.updates == 0 && !began_with_another {
            return Err(StartError::NothingLearned);
        }
        if let Some(learned) = learned {
            let settings = settings_to_begin_with(&learned.config, config);
            if !settings.is_empty() {
                return Err(StartError::OtherSettings(settings));
            }
            self.check_spaces(&learned.config, run)?;
        }
        let (layout, sizes) = (&manifest.layout, run.algorithm().sizes());
        let handed_over = if config.learner.split == Split::None { 0 } else { run.algorithm().handed_over() };
        let lengths = [
            ("published values", layout.published_values, sizes.published),
            ("values of the learners' state", layout.learner_state_values, sizes.state),
            ("statistics", layout.statistics_values, run.algorithm().normalisation().statistics_values()),
            ("values that one half hands to the other", layout.handed_over_values, handed_over),
        ];
        let different = lengths.into_iter().find(|(_, learned, begins)| learned != begins);
        different.map_or(Ok(()), |(what, learned, begins)| Err(StartError::OtherLength { what, learned, begins }))
    }

    /// Refuse other observations and actions: the rows of the checkpoint's run, with its own settings, would be
    /// others in the environment of this `run`.
    fn check_spaces(&self, learned: &Config, run: &Prepared) -> Result<(), StartError> {
        let manifest = self.checkpoint.manifest();
        let Ok(algorithm) = run.catalogue.algorithms().build(learned, &run.environment) else { return Ok(()) };
        different_field(&manifest.fields, &algorithm.schema()).map_or(Ok(()), |[learned, begins]| {
            let environments = [manifest.environment.clone(), run.environment.id.clone()];
            Err(StartError::OtherSpaces { learned, begins, environments })
        })
    }

    /// Put what was learned into the `segment` of the run that `loaded` describes, which nobody uses yet.
    pub(super) fn put_into(self, segment: &Segment, loaded: &Loaded) -> Result<(), SupervisorError> {
        self.learned.put_into(segment).map_err(|error| about_start(loaded, &error.into()))
    }

    /// For people: what the run starts from.
    pub(super) fn describe(&self) -> String {
        let manifest = self.checkpoint.manifest();
        let (path, environment) = (self.checkpoint.path().display(), &manifest.environment);
        format!("starts from {path}: {} environment steps, {} updates in {environment}", manifest.env_steps, manifest.updates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{EnvironmentSpec, ObservationSpace, registry};
    use crate::experience::transition;

    #[test]
    fn rows_of_other_observations_are_told_by_their_shapes() {
        let cart_pole = registry::spec("CartPole-v1").unwrap();
        let rows = |length| transition::schema(&EnvironmentSpec { observation: ObservationSpace::unbounded(length), ..cart_pole.clone() });
        let different = different_field(&rows(2).describe(), &rows(3)).unwrap();
        assert_eq!(different, ["`observation` of f32 [2]", "`observation` of f32 [3]"]);
        assert_eq!(different_field(&rows(2).describe(), &rows(2)), None);
    }
}
