//! A saved policy and the configuration of its run: what is needed to act as it did.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::super::configured_environment;
use super::PlayError;
use crate::algorithms::{self, LATENT, VALUE};
use crate::checkpoint::{Checkpoints, PolicyWeights, RunCheckpoint};
use crate::config::schema::AutoEncoderConfig;
use crate::config::{Config, Key, RowKind};
use crate::environments::EnvironmentError;
use crate::networks::NetworkSpec;
use crate::shell::word;
use crate::telemetry::RunFolder;

/// Which weights of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The best that fresh episodes confirmed; the last ones if no weights were confirmed.
    Best,
    /// The last ones; of a run that has not ended, or could not save them when it ended again, those of its newest checkpoint, if there
    /// are others that say what the network is.
    Last,
}

/// What was saved of a policy.
#[derive(Debug, Clone)]
pub struct SavedPolicy {
    /// Weights file, or the folder of the checkpoint.
    pub path: PathBuf,
    /// Number of the checkpoint that they were taken from, if they were.
    pub checkpoint: Option<u64>,
    /// Whether they are the last ones of a run that has no best ones yet, though the best were asked for.
    pub instead_of_best: bool,
    /// The network, and where it comes from.
    pub weights: PolicyWeights,
    /// The configuration of the run in whose folder the weights lie, or else the defaults of their environment, with the network that was
    /// saved. For an algorithm of a program's own, the network is as the run's configuration has it.
    pub config: Config,
    /// Whether the code may run that the id of the environment names: where the weights alone name it, only if the user does so too.
    pub may_run_code: bool,
}

impl SavedPolicy {
    /// The policy at `path`, a run folder or a weights file; that of a file in the environment that the user has `named`, if any.
    ///
    /// # Errors
    /// There is neither at `path`, or it is damaged.
    pub fn open(path: &Path, which: Which, named: Option<&str>) -> Result<Self, PlayError> {
        let Some(folder) = folder_at(path)? else { return Self::in_file(path.to_owned(), path, named) };
        let best = folder.best_weights();
        let has_best = best.exists();
        match which {
            _ if !has_best && !folder.last_weights().exists() => Err(PlayError::NoWeights { folder: path.to_owned() }),
            Which::Best if has_best => Self::in_file(best, path, named),
            Which::Best | Which::Last => Ok(Self { instead_of_best: which == Which::Best, ..Self::last_of(&folder, path)? }),
        }
    }

    /// The last policy of the run in `folder`, which was found at `path`, and which has saved its last weights or its best.
    fn last_of(folder: &RunFolder, path: &Path) -> Result<Self, PlayError> {
        let last = folder.last_weights();
        let has_last = last.exists();
        let in_file = Self::in_file(if has_last { last } else { folder.best_weights() }, path, None)?;
        let record = has_last.then(|| folder.record()).transpose()?;
        // Those of a run that goes on are of an earlier end, and so are those of one that could not save others when it ended again.
        if let Some((resumptions, finished)) = record.and_then(|record| Some((record.resumptions, record.finished?))) {
            let updates = |saved: &Self| saved.weights.metadata.updates;
            let at_end = |key: &str| finished.summary[key].as_u64();
            // With more steps than at the end, the file is of a life of which this one went on from an earlier checkpoint.
            let is_of_another_life = Some(in_file.weights.metadata.environment_steps) > at_end("env_steps");
            let is_newer = |newest: &Self| is_of_another_life || updates(newest) > updates(&in_file);
            let is_of_this_end = |newest: &Self| is_newer(newest) && Some(updates(newest)) <= at_end("updates");
            let newest = if resumptions > 0 { in_file.in_newest_checkpoint(folder).ok().flatten() } else { None };
            return Ok(newest.filter(is_of_this_end).unwrap_or(in_file));
        }
        match in_file.in_newest_checkpoint(folder)? {
            Some(newest) => Ok(newest),
            None if has_last => Ok(in_file),
            None => Err(PlayError::NoLastWeights { folder: folder.path().to_owned() }),
        }
    }

    /// The policy in `file`, which was found at `path`.
    fn in_file(file: PathBuf, path: &Path, named: Option<&str>) -> Result<Self, PlayError> {
        let weights = PolicyWeights::load(&file)?;
        let (config, may_run_code) = config_at(path, named)?;
        Ok(Self { path: file, checkpoint: None, instead_of_best: false, weights, config, may_run_code })
    }

    /// The policy in the newest checkpoint of the run in `folder`, from which this one is; `None` if it has none yet.
    fn in_newest_checkpoint(&self, folder: &RunFolder) -> Result<Option<Self>, PlayError> {
        let checkpoints = Checkpoints::new(folder.checkpoints());
        while let Some(path) = checkpoints.list()?.pop() {
            let read = RunCheckpoint::open_to_begin(&path)
                .and_then(|checkpoint| Ok((checkpoint.manifest().sequence, checkpoint.policy(self.weights.clone())?)));
            match read {
                Ok((sequence, weights)) => {
                    return Ok(weights.map(|weights| Self { path, checkpoint: Some(sequence), weights, ..self.clone() }));
                }
                // A run under way may have written another meanwhile, and then removed this one.
                Err(_) if checkpoints.list()?.last() != Some(&path) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The policy, ready to act in the environment for which the `algorithm` that the configuration names was built.
    ///
    /// # Errors
    /// The network does not fit that environment.
    pub(super) fn policy_of(&self, algorithm: &dyn algorithms::Algorithm) -> Result<Box<dyn algorithms::Policy>, PlayError> {
        let published = self.weights.published();
        let found = [self.weights.parameters.len(), published.len()];
        let expected = [algorithm.network().parameter_count(), algorithm.sizes().published];
        if found != expected {
            return Err(PlayError::Shape {
                path: self.path.clone(),
                found: found[1],
                expected: expected[1],
                difference: difference(&self.weights.spec, algorithm.network()),
                algorithm: self.weights.metadata.algorithm.clone(),
                environment: self.weights.metadata.environment.clone(),
            });
        }
        let mut policy = algorithm.policy()?;
        policy.set_parameters(&published);
        Ok(policy)
    }
}

/// Refuse the environment of `config` if that names code which may not run.
pub(super) fn check_code(config: &Config, may_run_code: bool) -> Result<(), EnvironmentError> {
    let id = &config.environment.id;
    if may_run_code {
        return Ok(());
    }
    let reason = format!(
        "it is code that a file of weights names, and the file does not lie in its run's folder, or that is a third user's; name that \
         folder, or if you trust the code, evaluate with `--environment {}` (in Python with `environment={id:?}`)",
        word(Path::new(id))
    );
    Err(EnvironmentError::Unusable { id: id.clone(), reason })
}

/// Which observations or outputs of the `saved` network are not those of the `needed` one, in parentheses.
fn difference(saved: &NetworkSpec, needed: &NetworkSpec) -> String {
    let [was, is] = [saved, needed].map(|spec| &spec.input.shape);
    if was != is {
        return format!(" (observations were {was:?}, are {is:?})");
    }
    let [had, has] = [saved, needed].map(NetworkSpec::outputs);
    if had == has { String::new() } else { format!(" (its outputs, which decide actions, were {had}, are {has})") }
}

/// The run folder at `path`; `None` if there is a file, or nothing.
fn folder_at(path: &Path) -> Result<Option<RunFolder>, PlayError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Some(RunFolder::open(path)?)),
        Ok(found) if !found.is_file() => Err(PlayError::NoFile { path: path.to_owned() }),
        _ => Ok(None),
    }
}

/// The configuration in the folder of a run, which may have come from another machine, or have been moved with its project: an
/// interpreter that is not here is looked for anew, and modules in the current folder where one of theirs is not here.
fn config_of(folder: &RunFolder) -> Result<Config, PlayError> {
    let mut config = Config::load(&folder.config(), &[])?.config;
    if !Path::new(&config.environment.python).exists() {
        config.environment.python.clear();
    }
    let of_modules = configured_environment::request(&config).search_folders;
    if of_modules.iter().any(|folder| !folder.is_dir()) {
        look_in(&mut config, of_modules.into_iter().filter(|folder| folder.is_dir()).chain(env::current_dir()));
    }
    Ok(config)
}

/// Have the modules of `config` looked for in `folders`, unless the current one has a name that no such list can hold.
fn look_in(config: &mut Config, folders: impl Iterator<Item = PathBuf>) {
    if let Some(joined) = env::join_paths(folders).ok().and_then(|joined| joined.into_string().ok()) {
        config.environment.python_path = joined;
    }
}

/// Let `config` be of the environment `id`, whose module is looked for in the current folder first, and leave the rest as it is, but for
/// arguments that it does not take.
fn change_environment(config: &mut Config, id: &str) -> Result<(), EnvironmentError> {
    id.clone_into(&mut config.environment.id);
    let request = configured_environment::request(config);
    if !request.needs_python() {
        (config.environment.keyword_arguments, config.environment.evaluation_arguments) = ("{}".into(), "{}".into());
    }
    look_in(config, env::current_dir().into_iter().chain(request.search_folders));
    configured_environment::resolve(config, Path::new(""))
}

/// The folders of the runs that a file of weights at this path may be of: it lies in one, in its `weights`, or in a checkpoint.
fn folders_of(file: &Path) -> impl Iterator<Item = &Path> {
    let is_called = |folder: &Path, names: &[&str]| folder.file_name().is_some_and(|name| names.iter().any(|known| name == *known));
    let lies_in = file.parent();
    let around_weights = lies_in.filter(|folder| is_called(folder, &["weights"]));
    let around_checkpoint = lies_in.and_then(Path::parent).filter(|folder| is_called(folder, &["checkpoints", "kept"]));
    [lies_in, around_weights.and_then(Path::parent), around_checkpoint.and_then(Path::parent)].into_iter().flatten()
}

/// The run in `folder`, if it is this user's, root's or that of whoever owns the weights in `file`. Anybody may have put another there,
/// whose configuration names a program.
fn run_around(file: &Path, folder: &Path) -> Option<RunFolder> {
    let owners = [0, nix::unistd::geteuid().as_raw(), fs::metadata(file).ok()?.uid()];
    // Of a link itself: where it leads may change.
    let is_theirs = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| owners.contains(&found.uid()));
    let folder = RunFolder::open(folder).ok()?;
    (is_theirs(folder.path()) && is_theirs(&folder.config())).then_some(folder)
}

/// The configuration of the run whose folder, or a file in whose folder, is at `path`; for weights that lie elsewhere, what they say of
/// their configuration; for a file, in the environment that the user has `named`, if any. With it, whether the code may run that its id
/// names.
pub(super) fn config_at(path: &Path, named: Option<&str>) -> Result<(Config, bool), PlayError> {
    if let Some(folder) = folder_at(path)? {
        return Ok((config_of(&folder)?, true));
    }
    let weights = PolicyWeights::load(path)?;
    let id = named.unwrap_or(&weights.metadata.environment);
    // In weights/, or in a checkpoint. A link to it may lie anywhere, also in the folder of another run, and the file in the folder may be
    // a link to where no run is.
    let places = [path.canonicalize(), std::path::absolute(path)].map(Result::unwrap_or_default);
    let of_run = places.iter().find_map(|file| folders_of(file).find_map(|folder| run_around(file, folder)));
    if let Some(folder) = of_run {
        let mut config = config_of(&folder)?;
        let is_of_file = [id, weights.metadata.environment.as_str()].contains(&config.environment.id.as_str());
        if is_of_file && config.algorithm.name == weights.metadata.algorithm {
            if config.environment.id != id {
                change_environment(&mut config, id)?;
            }
            // The file may be of another run. How an algorithm of a program's own comes to its network, only a configuration tells.
            return Ok((if Key::any_names(&config.algorithm.name) { with_network_of(&weights, config) } else { config }, true));
        }
    }
    let mut config = Config::for_environment(id);
    let may_run_code = named.is_some() || !configured_environment::request(&config).names_code();
    if may_run_code {
        configured_environment::resolve(&mut config, Path::new(""))?;
    }
    config.algorithm.name.clone_from(&weights.metadata.algorithm);
    Ok((with_network_of(&weights, config), may_run_code))
}

/// `config` with the network of `weights`, and with scaled observations where they have scaling.
fn with_network_of(PolicyWeights { spec, metadata, .. }: &PolicyWeights, mut config: Config) -> Config {
    config.algorithm.normalise_observations = metadata.input_scaling.is_some();
    config.network.convolutions = spec.convolutions();
    config.network.hidden = spec.hidden();
    config.network.dueling = spec.is_dueling();
    if config.row_kind() == RowKind::Fragments {
        config.network.separate_value = Some(spec.head_outputs(VALUE).is_none());
        // Any weight: whoever acts has no decoder.
        let encoded = |latent| AutoEncoderConfig { coefficient: 1.0, latent };
        config.auto_encoder = spec.head_outputs(LATENT).map_or_else(AutoEncoderConfig::default, encoded);
    }
    config
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::checkpoint::WeightsMetadata;
    use crate::environments::{ActionSpace, EnvironmentSpec, spec};
    use crate::networks::Head;

    fn policy_in(environment: &EnvironmentSpec, saved: &SavedPolicy) -> Result<Box<dyn algorithms::Policy>, PlayError> {
        saved.policy_of(&*algorithms::registry::build(&saved.config, environment)?)
    }

    #[test]
    fn the_configuration_of_a_run_stays_as_it_is_and_elsewhere_the_network_is_that_of_the_file() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::for_environment("CartPole-v1");
        (config.algorithm.name, config.network.hidden) = ("mine".into(), vec![16]);
        let run = RunFolder::create(root.path(), "mine", &config.to_toml()).unwrap();
        // What an algorithm makes of its configuration is its own affair.
        let spec = NetworkSpec::perceptron(4, &[16, 8], Head::Dueling { outputs: 2 });
        let metadata = WeightsMetadata { algorithm: "mine".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
        let parameters = vec![0.5; spec.parameter_count()];
        PolicyWeights::new(spec, &parameters, metadata).save(&run.last_weights()).unwrap();
        for path in [run.path(), &run.last_weights()] {
            let network = SavedPolicy::open(path, Which::Last, None).unwrap().config.network;
            assert_eq!((network.hidden, network.dueling), (vec![16], false), "{}", path.display());
        }

        config.network.hidden = vec![32];
        let other = RunFolder::create(root.path(), "other", &config.to_toml()).unwrap();
        let elsewhere = root.path().join("alone.safetensors");
        for link in [root.path().join("link.safetensors"), other.path().join("link.safetensors")] {
            symlink(run.last_weights(), &link).unwrap();
            let linked = SavedPolicy::open(&link, Which::Last, None).unwrap().config.network;
            assert_eq!(linked.hidden, vec![16], "a link is the file that it leads to");
        }
        fs::rename(run.last_weights(), &elsewhere).unwrap();
        symlink(&elsewhere, run.last_weights()).unwrap();
        let moved = SavedPolicy::open(&run.last_weights(), Which::Last, None).unwrap().config.network;
        assert_eq!(moved.hidden, vec![16], "the file in the folder may be a link");
        let config = SavedPolicy::open(&elsewhere, Which::Last, None).unwrap().config;
        assert_eq!((config.algorithm.name.as_str(), config.network.hidden, config.network.dueling), ("mine", vec![16, 8], true));
    }

    #[test]
    fn modules_of_a_project_that_was_moved_are_looked_for_in_the_current_folder() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::for_environment("python:my_task:MyTask");
        let searched = |config: &Config| {
            let run = RunFolder::create(root.path(), "mine", &config.to_toml()).unwrap();
            config_of(&run).unwrap().environment.python_path
        };
        let present = root.path().display().to_string();
        config.environment.python_path.clone_from(&present);
        assert_eq!(searched(&config), present, "nothing was moved");
        config.environment.python_path = format!("/gone:{present}");
        assert_eq!(searched(&config), format!("{present}:{}", env::current_dir().unwrap().display()));
    }

    #[test]
    fn a_policy_of_other_observations_or_actions_is_refused_by_these() {
        let (config, environment) = (Config::for_environment("CartPole-v1"), spec("CartPole-v1").unwrap());
        let network = algorithms::registry::build(&config, &environment).unwrap().network().clone();
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
        let weights = PolicyWeights::new(network.clone(), &vec![0.5; network.parameter_count()], metadata);
        let saved =
            SavedPolicy { path: "best.safetensors".into(), checkpoint: None, instead_of_best: false, weights, config, may_run_code: true };
        let refusal = |environment: &EnvironmentSpec| {
            let policy = policy_in(environment, &saved);
            policy.err().map_or_else(String::new, |error| error.to_string())
        };
        assert_eq!(refusal(&environment), "");
        let observed = refusal(&spec("Acrobot-v1").unwrap());
        assert!(observed.contains("(observations were [4], are [6])"), "{observed}");
        let acting = refusal(&EnvironmentSpec { action: ActionSpace::Discrete { n: 3 }, ..environment });
        assert!(acting.contains("were 2, are 3)"), "{acting}");
    }

    #[test]
    fn a_file_in_the_folder_of_another_run_is_played_with_the_network_and_scaling_of_the_file() {
        let root = tempfile::tempdir().unwrap();
        let environment = crate::environments::spec("CartPole-v1").unwrap();
        let runs = [("plain", 16, false), ("scaled", 8, true)].map(|(name, units, is_scaled)| {
            let mut config = Config::for_environment("CartPole-v1");
            (config.network.hidden, config.algorithm.normalise_observations) = (vec![units], is_scaled);
            let run = RunFolder::create(root.path(), name, &config.to_toml()).unwrap();
            let algorithm = algorithms::registry::build(&config, &environment).unwrap();
            let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
            let published = vec![0.5; algorithm.sizes().published];
            PolicyWeights::new(algorithm.network().clone(), &published, metadata).save(&run.last_weights()).unwrap();
            run
        });
        for (from, to, units, is_scaled) in [(&runs[0], &runs[1], 16, false), (&runs[1], &runs[0], 8, true)] {
            let file = to.last_weights().with_file_name("another.safetensors");
            fs::copy(from.last_weights(), &file).unwrap();
            let mut saved = SavedPolicy::open(&file, Which::Last, None).unwrap();
            assert_eq!(saved.config.network.hidden, [units]);
            assert_eq!(saved.config.algorithm.normalise_observations, is_scaled);
            assert!(policy_in(&environment, &saved).is_ok());

            // As an algorithm of a program's own is left.
            saved.config.algorithm.normalise_observations = !is_scaled;
            let refused = policy_in(&environment, &saved);
            assert!(matches!(refused, Err(PlayError::Shape { found, expected, .. }) if found.abs_diff(expected) == 8));
        }
    }

    #[test]
    fn a_file_of_a_run_is_played_in_an_environment_that_is_named_with_the_rest_of_the_configuration_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::for_environment("CartPole-v1");
        config.evaluator.episode_limit_steps = 7;
        let given = r#"{"length":40,"size":3}"#;
        config.environment.keyword_arguments = r#"{"length":40}"#.into();
        config.environment.evaluation_arguments = r#"{"size":3}"#.into();
        let run = RunFolder::create(root.path(), "mine", &config.to_toml()).unwrap();
        let spec = NetworkSpec::perceptron(4, &[8], Head::Linear { outputs: 2 });
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
        PolicyWeights::new(spec.clone(), &vec![0.5; spec.parameter_count()], metadata).save(&run.best_weights()).unwrap();
        // Without Python it takes no arguments.
        for (named, arguments) in [(None, given), (Some("CartPole-v1"), given), (Some("Acrobot-v1"), "{}")] {
            let (played, _) = config_at(&run.best_weights(), named).unwrap();
            assert_eq!(played.environment.id, named.unwrap_or("CartPole-v1"));
            assert_eq!(configured_environment::evaluation_request(&played).unwrap().keyword_arguments, arguments);
            assert_eq!((played.evaluator.episode_limit_steps, played.network.hidden), (7, vec![8]));
        }
        // It keeps them whether there is a Python here or not.
        let _ = change_environment(&mut config, "gymnasium:Acrobot-v1");
        assert_eq!(configured_environment::evaluation_request(&config).unwrap().keyword_arguments, given);
    }

    #[test]
    fn a_configuration_near_a_file_that_its_run_did_not_put_there_says_nothing_of_it() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::for_environment("CartPole-v1");
        config.evaluator.episode_limit_steps = 7;
        let run = RunFolder::create(root.path(), "mine", &config.to_toml()).unwrap();
        let spec = NetworkSpec::perceptron(4, &[8], Head::Linear { outputs: 2 });
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
        let weights = PolicyWeights::new(spec.clone(), &vec![0.5; spec.parameter_count()], metadata);
        let limit_at = |place: &str| {
            let file = run.path().join(place).join("best.safetensors");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            weights.save(&file).unwrap();
            SavedPolicy::open(&file, Which::Best, None).unwrap().config.evaluator.episode_limit_steps
        };
        for place in ["", "weights", "checkpoints/000001-step1", "kept/000001-step1"] {
            assert_eq!(limit_at(place), 7, "a run has weights in `{place}`");
        }
        for place in ["x", "x/y", "weights/x", "x/checkpoints"] {
            assert_ne!(limit_at(place), 7, "no run has weights in `{place}`");
        }
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(run.config(), Some(65_534), None).unwrap();
            assert_ne!(limit_at("weights"), 7, "it is of a user who is neither this one nor the owner of the weights");
            std::os::unix::fs::chown(run.path(), Some(65_534), None).unwrap();
            let named = SavedPolicy::open(run.path(), Which::Best, None).unwrap().config;
            assert_eq!(named.evaluator.episode_limit_steps, 7, "its folder was named");
        }
        fs::write(run.config(), "broken").unwrap();
        assert_ne!(limit_at("x/y"), 7, "and its damage is none of the file's");
    }
}
