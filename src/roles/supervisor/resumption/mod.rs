//! A run that goes on from a checkpoint, or in the memory in which it was kept: which one, what may be changed, and what is put back.

mod adoption;
mod earlier_settings;
mod error;
mod taking;

pub(super) use adoption::{KeptRun, ROWS};
pub use error::ResumeError;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::earlier_settings::EarlierSettings;
use super::fitting::part_over;
use super::record::SupervisorRecord;
use super::remarks::next_update;
use super::starting_point::different_field;
use super::weights::remembered_in;
use super::{Plan, Prepared, SupervisorError};
use crate::algorithms::{Algorithm, Statistics};
use crate::catalogue::Catalogue;
use crate::checkpoint::{CheckpointError, Checkpoints, Filled, Restored, RowsIn, RunCheckpoint, SavedStatistics};
use crate::config::{Config, Loaded, Resume, RowKind, changes_that_do_not_fit, overrides_that_do_not_fit};
use crate::rendezvous::Registry;
use crate::replay::Schema;
use crate::roles::evaluator;
use crate::run_name::RunName;
use crate::segment::processes::Role;
use crate::segment::{Segment, SegmentSizes};
use crate::shell::word;
use crate::telemetry::{Remembered, RunFolder, RunRecord, TelemetryError, folders_of};

/// A run that goes on.
pub struct Resumption {
    /// Folder of the run, taken for this process.
    folder: RunFolder,
    checkpoint: RunCheckpoint,
    supervisor_record: SupervisorRecord,
    /// The memory in which its replay stayed, until that becomes the segment of this run.
    kept: Option<KeptRun>,
    /// Where what fits of its replay is.
    rows: RowsIn,
    settings: EarlierSettings,
}

impl Resumption {
    /// The run in `folder`, from its newest checkpoint or from the one that is the folder `from`, or has that name. `say` is told what is
    /// waited for.
    ///
    /// # Errors
    /// The folder holds no run, the run is under way, or it has no checkpoint that is whole.
    pub fn find(folder: &Path, from: Option<&Path>, say: &dyn Fn(&str)) -> Result<Self, ResumeError> {
        let mut folder = RunFolder::open(folder)?;
        taking::take(&mut folder, say)?;
        let checkpoints = folder.checkpoints();
        let checkpoint = match from {
            None => Checkpoints::new(checkpoints).newest().map_err(|error| without_checkpoint(error, &folder))?,
            Some(from) => {
                let named = checkpoints.join(from);
                RunCheckpoint::open(if !from.exists() && named.is_dir() { named.as_path() } else { from })?
            }
        };
        let lies_in = checkpoint.path().canonicalize().ok().and_then(|path| Some(path.parent()?.to_path_buf()));
        if lies_in != folder.checkpoints().canonicalize().ok() {
            return Err(ResumeError::OfAnotherRun { path: checkpoint.path().into(), folder: folder.path().into() });
        }
        let settings = EarlierSettings::find(&folder, &checkpoint, from.is_some(), say)?;
        Self::of(folder, checkpoint, settings)
    }

    /// The run that is kept in memory after the death of the supervisor `run` names, or of the one whose results went to the folder it
    /// names. Nothing is claimed yet.
    ///
    /// # Errors
    /// There is no such run, it is under way, or it is not kept in memory.
    pub fn adopt(run: &RunName, say: &dyn Fn(&str)) -> Result<Self, SupervisorError> {
        let path = match run {
            RunName::Supervisor(pid) => Registry::open()?.find(*pid)?.record.run_folder.into(),
            RunName::Folder(path) => path.clone(),
        };
        let found = || -> Result<Self, ResumeError> {
            let mut folder = RunFolder::open(&path)?;
            let kept = taking::wait_for_keeper(&mut folder, say)?;
            let checkpoint = Checkpoints::new(folder.kept()).newest()?;
            let settings = EarlierSettings::find(&folder, &checkpoint, false, say)?;
            Ok(Self { kept: Some(kept), rows: RowsIn::Segment, ..Self::of(folder, checkpoint, settings)? })
        };
        Ok(found()?)
    }

    fn of(folder: RunFolder, checkpoint: RunCheckpoint, settings: EarlierSettings) -> Result<Self, ResumeError> {
        let supervisor_record = serde_json::from_value(checkpoint.manifest().supervisor_record.clone())
            .map_err(|error| CheckpointError::Damaged { path: checkpoint.path().into(), problem: error.to_string() })?;
        Ok(Self { folder, checkpoint, supervisor_record, kept: None, rows: RowsIn::Checkpoint, settings })
    }

    /// The newest run of this user with the name and seed of `prepared`, if `run.resume` asks for it, it has a checkpoint, and it was
    /// killed, was terminated or gave up. `None` also if it had reached its goal, or if it noted an end and the configuration now differs
    /// in a key that may not change: then its user has mended something.
    ///
    /// # Errors
    /// Its newest checkpoint is damaged, nobody here knows whether it runs on another machine, or the system would not say which runs and
    /// checkpoints there are.
    pub(super) fn of_a_broken_run(prepared: &Prepared, say: &dyn Fn(&str)) -> Result<Option<Self>, ResumeError> {
        let config = &prepared.loaded.config;
        if config.run.resume == Resume::Never {
            return Ok(None);
        }
        let root = Path::new(&config.run.folder);
        let Some(newest) = newest_own(root, folders_of(root, &name_of_folders(config))?, say) else { return Ok(None) };
        // A run that noted no end has left nothing to go on from, which is nothing to tell.
        let begin_anew = |record: &RunRecord, why: &str| {
            if let Some(finished) = &record.finished {
                // To go on beyond a limit takes an option that depends on the limit, and not every end leaves a checkpoint.
                say(&format!(
                    "{} has ended ({}){why}: a new run begins; `shoal inspect {}` shows what that one reached and, if it left a \
                     checkpoint, how to go on with it",
                    newest.display(),
                    finished.headline(),
                    word(&newest)
                ));
            }
            Ok(None)
        };
        let folder = RunFolder::open(&newest)?;
        let record = folder.record()?;
        if record.has_come_to_its_end() {
            return begin_anew(&record, "");
        }
        let found = match Self::find(&newest, None, say) {
            // A scheduler may have repeated its command too early.
            Err(ResumeError::Running { folder, pid }) => {
                // In another container its process id is none of here.
                let stops = if record.is_under_way() { format!("; `kill {pid}` stops that one") } else { String::new() };
                say(&format!("{} is under way (process {pid}), so this is a new run beside it{stops}", folder.display()));
                return Ok(None);
            }
            Err(ResumeError::Checkpoint(CheckpointError::NoneYet { .. }) | ResumeError::WritesNone { .. }) => {
                return begin_anew(&folder.record()?, "");
            }
            found => found?,
        };
        // It may have been waited for.
        let record = found.folder.record()?;
        if record.has_come_to_its_end() {
            return begin_anew(&record, "");
        }
        if found.goal_reached(config)?.is_some() {
            return begin_anew(&record, ", after it had reached its goal");
        }
        let differs = || {
            let keys = found.keys_that_do_not_fit(&found.config_to_go_on_with(&prepared.loaded), &prepared.catalogue)?;
            Ok::<_, ResumeError>(!keys.is_empty())
        };
        if record.finished.is_some() && differs()? {
            return begin_anew(&record, ", and another configuration cannot go on with it");
        }
        Ok(Some(found))
    }

    /// The configuration that the run goes on with, and the changes in `overrides`.
    ///
    /// # Errors
    /// What is wrong with those.
    pub fn load(&self, overrides: &[String]) -> Result<Loaded, SupervisorError> {
        let parse = |overrides: &[String]| Config::parse(&self.settings.text, &self.settings.path.display().to_string(), overrides);
        let mut loaded = parse(overrides).map_err(|errors| -> SupervisorError {
            // Most of what that file says has no effect with another algorithm, say; nobody wrote it, and that is not what is wrong.
            let keys = parse(&[]).map_or_else(|_| Vec::new(), |before| overrides_that_do_not_fit(&before.config, overrides));
            if keys.is_empty() { errors.into() } else { ResumeError::Fixed { keys }.into() }
        })?;
        if loaded.is_typed("run.start_from") {
            return Err(ResumeError::HasStarted { folder: self.folder.path().into() }.into());
        }
        // What it began with need not be there any more.
        loaded.config.run.start_from = None;
        Ok(loaded)
    }

    /// What the run began with: the checkpoint of another.
    pub(super) fn started_from(&self) -> Option<String> {
        self.settings.started_from()
    }

    /// The configuration of `loaded`, by which the run was found, with what the run keeps of its own: the path of its folder, however that
    /// is spelled now and wherever it was moved, and the samples per insert, where nobody sets them and they would follow another batch.
    pub(super) fn config_to_go_on_with(&self, loaded: &Loaded) -> Config {
        let mut config = loaded.config.clone();
        if let Some(before) = self.settings.at_checkpoint() {
            before.run.folder.clone_into(&mut config.run.folder);
            if config.has_critics() && !loaded.is_set("replay.samples_per_insert") {
                config.replay.samples_per_insert = before.replay.samples_per_insert;
            }
        }
        config
    }

    /// The upper ends of actors and environments for which its frames have room, if it has frames and fitted itself to the machine.
    pub(super) fn ends_of_frames(&self) -> Option<[Option<usize>; 2]> {
        self.settings.upper_ends().filter(|_| self.checkpoint.manifest().layout.frames > 0)
    }

    /// The keys in which `config` differs from what the checkpoint was written with, and may not. `catalogue` has its algorithm.
    fn keys_that_do_not_fit(&self, config: &Config, catalogue: &Catalogue) -> Result<Vec<String>, ResumeError> {
        // What cannot be read any more is a matter for the sizes.
        let Ok(mut before) = Config::parse(&self.checkpoint.config_toml()?, "config.toml", &[]) else { return Ok(Vec::new()) };
        // An algorithm of one's own may declare keys since then, which have their defaults. What it declares no longer is told as a change.
        let _ = catalogue.algorithms().resolve(&mut before.config);
        Ok(changes_that_do_not_fit(&before.config, config))
    }

    /// Whether the run goes on from its newest checkpoint, and not from an older one that was named.
    fn is_of_the_end(&self) -> Result<bool, CheckpointError> {
        let checkpoints = Checkpoints::new(self.folder.checkpoints()).list()?;
        Ok(checkpoints.last().is_some_and(|newest| newest.file_name() == self.checkpoint.path().file_name()))
    }

    /// Refuse a configuration, and sizes, with which the run cannot go on.
    pub(super) fn check(&mut self, prepared: &Prepared, sizes: &SegmentSizes) -> Result<(), ResumeError> {
        let config = &prepared.loaded.config;
        let keys = self.keys_that_do_not_fit(config, &prepared.catalogue)?;
        if !keys.is_empty() {
            return Err(ResumeError::Fixed { keys });
        }
        self.check_end(config)?;
        if config.evaluator.enabled && !self.repeats(config) {
            evaluator::best_weights(&self.folder.best_weights())?;
        }
        let manifest = self.checkpoint.manifest();
        let other =
            |what, found: String, expected: String| ResumeError::OtherShape { path: self.checkpoint.path().into(), what, found, expected };
        let schema = prepared.algorithm().schema();
        if let Some([found, expected]) = different_field(&manifest.fields, &schema) {
            return Err(other("other observations or actions:", found, expected));
        }
        let saved = &manifest.layout;
        // Fragments are of use for moments only: others may have room for other numbers of them.
        let fits = config.row_kind() == RowKind::Transitions || saved.capacity == sizes.capacity;
        if !fits && self.kept.is_none() {
            self.rows = RowsIn::Nothing;
        }
        let capacity = if fits { saved.capacity } else { sizes.capacity };
        for (what, found, expected) in [
            ("a replay.capacity of", capacity, sizes.capacity),
            ("words in a row:", saved.row_words, sizes.row_words),
            (
                "other actor.environments, numbers of actors, adaptation.most_actors or adaptation.most_environments, or another version \
                 of this program, so that its frames are",
                saved.frames,
                sizes.frames,
            ),
            ("bytes in a frame:", saved.frame_bytes, sizes.frame_bytes),
            (
                "another number of actions, or another version of this program, so that its published values are",
                saved.published_values,
                sizes.published_values,
            ),
            ("values of the learners' state:", saved.learner_state_values, sizes.learner_state_values),
            ("statistics:", saved.statistics_values, sizes.statistics_values),
        ] {
            if found != expected {
                return Err(other(what, found.to_string(), expected.to_string()));
            }
        }
        let fields = schema.describe();
        if manifest.fields != fields {
            return Err(other("other fields of a row:", format!("{:?}", manifest.fields), format!("{fields:?}")));
        }
        match &self.kept {
            Some(kept) if !kept.differences_from(sizes).is_empty() => {
                Err(ResumeError::OtherMemory { folder: self.folder.path().into(), sizes: kept.differences_from(sizes) })
            }
            _ => Ok(()),
        }
    }

    /// The goal of `config`, if the run reached that before the checkpoint was written.
    fn goal_reached(&self, config: &Config) -> Result<Option<f64>, ResumeError> {
        let goal = self.folder.record()?.reached().and_then(|reached| reached.goal_of(&config.run));
        Ok(if self.is_of_the_end()? { goal } else { None })
    }

    /// Refuse a run that has reached its goal, or come to a limit of `config`: a killed run only if it did not go by that limit before.
    fn check_end(&self, config: &Config) -> Result<(), ResumeError> {
        if let Some(goal) = self.goal_reached(config)? {
            return Err(ResumeError::Solved { folder: self.folder.path().into(), goal });
        }
        let record = self.folder.record()?;
        let (env_steps, limit) = (self.checkpoint.manifest().env_steps, config.run.stop_env_steps);
        let wall_s = self.supervisor_record.wall_s;
        let folder = || self.folder.path().into();
        // A run that was killed at its very end still has weights to evaluate and a report to write. One that had further to go when it was
        // killed would only lose its replay.
        let has_ended = record.has_come_to_its_end();
        if env_steps >= limit && (has_ended || !self.settings.went_by(|before| before.stop_env_steps == limit)) {
            return Err(ResumeError::Complete { folder: folder(), env_steps, limit });
        }
        match config.run.stop_wall_s {
            Some(limit_s) if wall_s >= limit_s && (has_ended || !self.settings.went_by(|before| before.stop_wall_s == Some(limit_s))) => {
                Err(ResumeError::OutOfTime { folder: folder(), wall_s, limit_s })
            }
            _ => Ok(()),
        }
    }

    /// Read what is read when the run goes on: its replay, where the checkpoint has that.
    pub(super) fn check_replay(&self) -> Result<(), ResumeError> {
        match self.rows {
            RowsIn::Checkpoint => self.checkpoint.check_replay().map_err(|error| self.with_the_one_before(error)),
            RowsIn::Segment | RowsIn::Nothing => Ok(()),
        }
    }

    fn with_the_one_before(&self, error: CheckpointError) -> ResumeError {
        Checkpoints::new(self.folder.checkpoints()).with_the_one_before(error, self.checkpoint.path()).into()
    }

    /// Bytes of memory that the run has already.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, KeptRun::bytes)
    }

    /// Claim what is to be adopted, with its folder. Whoever dies from here on leaves it to its keeper.
    pub(super) fn claim(&mut self, schema: Schema) -> Result<(), ResumeError> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.claim(&mut self.folder, self.checkpoint.path(), schema))
    }

    /// The memory that was claimed; nothing where the run goes on in a segment of its own.
    pub(super) fn take_kept(&mut self) -> Option<KeptRun> {
        self.kept.take()
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// What its supervisor remembered of its processes.
    pub(super) fn supervisor_record(&self) -> &SupervisorRecord {
        &self.supervisor_record
    }

    /// Whether what came after the checkpoint is about to be repeated: it was a synchronous run, goes on as one with its replay, and
    /// nothing was changed that it depends on.
    fn repeats(&self, config: &Config) -> bool {
        self.rows == RowsIn::Checkpoint && self.checkpoint.has_replay() && self.settings.come_again_with(config)
    }

    /// What was recorded up to now. A run that repeats what came after the checkpoint finds it again; any other learns something else, and
    /// what the evaluator has found since then stays found.
    pub(super) fn remembered(&self, config: &Config) -> Remembered {
        if self.repeats(config) {
            return self.supervisor_record.remembered.clone();
        }
        remembered_in(&self.folder, config, self.checkpoint.manifest().env_steps)
    }

    /// How long the run has taken up to the checkpoint.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::try_from_secs_f64(self.supervisor_record.wall_s).unwrap_or_default()
    }

    /// The part of the run that was over at the checkpoint, by the limits of `config`.
    pub(super) fn part_over(&self, config: &Config) -> f64 {
        part_over(self.checkpoint.manifest().env_steps, config.run.stop_env_steps, self.supervisor_record.wall_s, config.run.stop_wall_s)
    }

    /// Put what was saved into `segment`, which nobody uses yet. Returns what became of its rows.
    pub(super) fn restore(&self, segment: &Segment, algorithm: &dyn Algorithm, plan: &Plan) -> Result<Filled, ResumeError> {
        let slot_of = |role: Role, number: usize, slot: usize| match role {
            // Their places are anybody's; what they counted stays a line of its own.
            Role::AttachedActor => plan.attach_slots.contains(&slot).then_some(slot),
            _ => plan.processes.iter().find(|planned| planned.role == role && planned.number == number).map(|planned| planned.slot),
        };
        let restored = self.checkpoint.restore(segment, &algorithm.schema(), self.rows, slot_of);
        let Restored { filled, without_board } = restored.map_err(|error| self.with_the_one_before(error))?;
        count_as_seen_by_the_first(&without_board, segment, algorithm.normalisation().length);
        Ok(filled)
    }

    /// Make the best weights those of that moment where what came later is about to be repeated.
    pub(super) fn restore_best_weights(&self, config: &Config) -> Result<(), ResumeError> {
        let path = self.folder.best_weights();
        let restored = if self.repeats(config) { self.checkpoint.restore_best_weights(&path) } else { Ok(()) };
        Ok(restored.map_err(TelemetryError::file("replace", &path))?)
    }

    /// For people: from where the run goes on, as `config` says.
    pub(super) fn describe(&self, config: &Config) -> String {
        let manifest = self.checkpoint.manifest();
        let (env_steps, updates) = (manifest.env_steps, manifest.updates);
        let from = match self.rows {
            RowsIn::Segment => {
                return format!(
                    "goes on in the memory in which it was kept: {env_steps} environment steps, {updates} updates, with the replay"
                );
            }
            RowsIn::Checkpoint if self.checkpoint.has_replay() => "with the replay".to_owned(),
            RowsIn::Checkpoint | RowsIn::Nothing => {
                let left = config.run.stop_env_steps.saturating_sub(env_steps);
                format!("with an empty replay; {}", next_update(config, left))
            }
        };
        let version = match manifest.program_version == env!("CARGO_PKG_VERSION") {
            true => String::new(),
            false => format!(", written by version {}", manifest.program_version),
        };
        format!("goes on from checkpoint {}{version}: {env_steps} environment steps, {updates} updates, {from}", manifest.sequence)
    }
}

/// The newest of `folders`, which are sorted, that is this user's: several may share their `root`, and have runs of one name there.
fn newest_own(root: &Path, mut folders: Vec<PathBuf>, say: &dyn Fn(&str)) -> Option<PathBuf> {
    let newest = folders.last()?.clone();
    // What is made on the disk of another machine may get another owner than this process has.
    let made = tempfile::Builder::new().prefix(".shoal-check-").tempdir_in(root).and_then(|made| fs::metadata(made.path()));
    let user = made.map_or_else(|_| nix::unistd::geteuid().as_raw(), |made| made.uid());
    let owner_of = |folder: &PathBuf| fs::symlink_metadata(folder).map_or(user, |found| found.uid());
    // Root, as in a container, gets what it made back as the files of whoever has the folder of all runs.
    let of_root = nix::unistd::geteuid().is_root().then(|| fs::metadata(root).ok()).flatten().map(|found| found.uid());
    let is_own = |folder: &PathBuf| owner_of(folder) == user || Some(owner_of(folder)) == of_root;
    folders.retain(is_own);
    if !is_own(&newest) {
        say(&passed_over(&newest, owner_of(&newest), nix::unistd::geteuid().is_root()));
    }
    folders.pop()
}

/// What is said of the newest run, in `folder`, if that is of the user `owner`. Nobody else but root may lock it, and others read it.
fn passed_over(folder: &Path, owner: u32, is_root: bool) -> String {
    let command = if is_root {
        format!("`shoal resume {}` does", word(folder))
    } else {
        format!("`--set run.resume=never --set run.start_from={}` begins a new one with what it has learned", word(folder))
    };
    format!("{} is of user {owner}, so no run here goes on with it by itself; {command}", folder.display())
}

/// The `error` for which no checkpoint of the run in `folder` can be used, or why that run wrote none.
fn without_checkpoint(error: CheckpointError, folder: &RunFolder) -> ResumeError {
    let key = || {
        let text = fs::read_to_string(folder.config()).ok()?;
        Config::parse(&text, "config.toml", &[]).ok()?.config.key_without_checkpoints()
    };
    let is_missing = matches!(error, CheckpointError::NoneYet { .. });
    match is_missing.then(key).flatten() {
        Some(key) => ResumeError::WritesNone { folder: folder.path().into(), key },
        None => error.into(),
    }
}

/// Adds statistics that have no board in `segment` to those of the first process that stages, which goes on from them, so that
/// everybody normalises as before. Observations have `length` elements.
fn count_as_seen_by_the_first(without_board: &[SavedStatistics], segment: &Segment, length: usize) {
    let Some(board) = segment.statistics_board(0).filter(|_| !without_board.is_empty()) else { return };
    let (mut statistics, mut values) = (Statistics::new(length), vec![0.0; board.len()]);
    if let Some((_, [observations, returns, ..])) = board.read(&mut values) {
        statistics.merge(&values, [observations, returns]);
    }
    for (values, counts) in without_board {
        statistics.merge(values, *counts);
    }
    let [observations, returns] = statistics.publish(&mut values);
    board.publish(&[&values], [observations, returns, 0, 0]);
}

/// The name under which the folders of the runs of a configuration are found.
pub(super) fn name_of_folders(config: &Config) -> String {
    format!("{}-seed{}", config.run.name, config.run.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_another_user_is_offered_with_a_command_that_may_be_given() {
        let offered = |is_root| passed_over(Path::new("runs/a run"), 1_000, is_root);
        assert!(offered(true).contains("is of user 1000") && offered(true).contains("`shoal resume 'runs/a run'`"), "{}", offered(true));
        let others = offered(false);
        assert!(others.contains("--set run.start_from='runs/a run'` begins a new one") && !others.contains("shoal resume"), "{others}");
    }
}
