//! From the configuration to environments: what it asks for, and where that is found.

use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::environments::video::RecordVideo;
use crate::environments::{
    Environment, EnvironmentError, EnvironmentRequest, EnvironmentSpec, ObservationOptions, Purpose, delayed, limited, names, python,
};

/// The least time that a process has to set up, however short `machine.hang_timeout_s` is: interpreters and simulators are
/// read from the disk then.
pub(super) const STARTING_PATIENCE: Duration = Duration::from_mins(1);

/// The environment that the configuration asks for, to train in.
pub fn request(config: &Config) -> EnvironmentRequest {
    let environment = &config.environment;
    EnvironmentRequest {
        id: environment.id.clone(),
        keyword_arguments: environment.keyword_arguments.clone(),
        python: environment.python.clone(),
        search_folders: env::split_paths(&environment.python_path).filter(|folder| !folder.as_os_str().is_empty()).collect(),
        purpose: Purpose::Training,
        drawn: false,
        patience: Duration::from_secs_f64(config.machine.hang_timeout_s).max(STARTING_PATIENCE),
    }
}

/// The environment that the configuration asks for, to evaluate or show the agent in.
///
/// # Errors
/// `environment.evaluation_arguments`, or the arguments that they go with, are no JSON object.
pub fn evaluation_request(config: &Config) -> Result<EnvironmentRequest, EnvironmentError> {
    let request = EnvironmentRequest { purpose: Purpose::Evaluation, ..request(config) };
    request.with_arguments(&config.environment.evaluation_arguments)
}

/// The environment of this program that is the same task as Gymnasium's of this `id`, and is stepped without Python.
pub fn without_python(id: &str) -> Option<&'static str> {
    let task = id.strip_prefix("gymnasium:")?;
    names().find(|name| name.rsplit(':').next() == Some(task))
}

/// How the agent that `config` describes observes the environment.
pub fn observation_options(catalogue: &Catalogue, config: &Config) -> ObservationOptions {
    ObservationOptions {
        frames_per_observation: config.environment.frames_per_observation,
        frame_stack: config.environment.frame_stack,
        as_floats: config.algorithm.normalise_observations || !catalogue.algorithms().learns_from_bytes(&config.algorithm.name),
    }
}

/// Whether anybody looks at an environment.
#[derive(Clone, Copy)]
pub(super) enum Look<'a> {
    Never,
    /// It is asked for pictures.
    Drawn,
    /// A video is made of its next episode.
    Recorded(&'a RecordVideo),
}

/// One environment for `purpose`, as the configuration describes it and `catalogue` knows it, not yet reset. Some take seconds to make.
///
/// # Errors
/// It cannot be made, its observations do not consist of the promised frames, or it is to be recorded and cannot be drawn.
pub(super) fn make(
    catalogue: &Catalogue,
    config: &Config,
    purpose: Purpose,
    look: Look<'_>,
) -> Result<Box<dyn Environment>, EnvironmentError> {
    let drawn = !matches!(look, Look::Never);
    let request = match purpose {
        Purpose::Training => request(config),
        Purpose::Evaluation => evaluation_request(config)?,
    };
    let request = EnvironmentRequest { drawn, ..request };
    let environment = delayed(catalogue.environments().make(&request)?, config.environment.step_delay_us);
    let environment = match purpose {
        Purpose::Training => environment,
        Purpose::Evaluation => limited(environment, config.evaluator.episode_limit_steps),
    };
    observation_options(catalogue, config).of(match look {
        Look::Recorded(video) => video.of(environment)?,
        Look::Never | Look::Drawn => environment,
    })
}

/// Let this process step the environment that the configuration asks for.
///
/// # Errors
/// As [`python::become_ready`].
pub fn become_ready(config: &Config) -> Result<(), EnvironmentError> {
    python::become_ready(&request(config))
}

/// Write into the configuration what it leaves to its surroundings, as absolute paths: which Python, and where modules of
/// the user's own are searched. `source` is the file whose folder relative ones begin at; an empty one stands for the
/// current folder. Processes that join or replay the run from another folder then find the same environment.
///
/// # Errors
/// There is no Python that fits, or the name of a folder has a colon in it or is no UTF-8.
pub fn resolve(config: &mut Config, source: &Path) -> Result<(), EnvironmentError> {
    let request = request(config);
    if !request.needs_python() {
        return Ok(());
    }
    let beside = source.parent().unwrap_or(Path::new("")).to_path_buf();
    let relative = if request.search_folders.is_empty() {
        vec![beside, PathBuf::new()]
    } else {
        request.search_folders.iter().map(|folder| beside.join(folder)).collect()
    };
    let current = env::current_dir().unwrap_or_default();
    let mut folders: Vec<PathBuf> = relative.iter().map(|folder| plain(&current.join(folder))).collect();
    folders.dedup();
    let refuse = |reason: String| EnvironmentError::Unusable { id: request.id.clone(), reason };
    let joined =
        env::join_paths(folders).map_err(|_| refuse("its folders are joined by colons, and one has a colon in its name".into()))?;
    config.environment.python_path = joined.into_string().map_err(|_| refuse("one of its folders has a name that is no UTF-8".into()))?;

    config.environment.python = python::interpreter_of(&request)?.executable.display().to_string();
    Ok(())
}

/// `path` without the `.` and the closing slash that joining may leave.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// The words of an error about a run that another program may have started, with advice if this program does not know a name.
pub(super) fn advised<E: Display>(error: &E, is_unknown: impl Fn(&E) -> bool) -> String {
    let advice = if is_unknown(error) { "; if the program that started the run has added that name, use that program" } else { "" };
    format!("{error}{advice}")
}

/// Refuse an environment with other observations or actions than the `planned` ones, which the run was made for: a file in Python may have
/// been edited since.
pub(super) fn check_unchanged(found: &EnvironmentSpec, planned: &str) -> Result<(), EnvironmentError> {
    let found_spaces = found.spaces_in_words();
    if found_spaces == planned {
        return Ok(());
    }
    Err(EnvironmentError::Changed { id: found.id.clone(), found: found_spaces, planned: planned.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::registry;

    #[test]
    fn a_native_environment_needs_no_surroundings() {
        let mut config = Config::for_environment("CartPole-v1");
        resolve(&mut config, Path::new("configs/x.toml")).unwrap();
        assert_eq!(config, Config::for_environment("CartPole-v1"));
    }

    #[test]
    fn an_agent_is_evaluated_with_the_arguments_for_that_and_trained_without_them() {
        let mut config = Config::for_environment("python:task:Task");
        config.environment.keyword_arguments = r#"{"shaped":true,"size":3}"#.into();
        config.environment.evaluation_arguments = r#"{"shaped": false}"#.into();
        let (training, evaluation) = (request(&config), evaluation_request(&config).unwrap());
        assert_eq!((training.purpose, &*training.keyword_arguments), (Purpose::Training, r#"{"shaped":true,"size":3}"#));
        assert_eq!((evaluation.purpose, &*evaluation.keyword_arguments), (Purpose::Evaluation, r#"{"shaped":false,"size":3}"#));
    }

    #[test]
    fn an_agent_observes_as_many_frames_as_configured_and_in_the_form_that_its_algorithm_takes() {
        let mut config = Config::for_environment("CartPole-v1");
        (config.environment.frames_per_observation, config.environment.frame_stack) = (4, Some(3));
        for (algorithm, normalise, as_floats) in [("dqn", false, false), ("dqn", true, true), ("sac", false, true)] {
            (config.algorithm.name, config.algorithm.normalise_observations) = (algorithm.into(), normalise);
            let expected = ObservationOptions { frames_per_observation: 4, frame_stack: Some(3), as_floats };
            assert_eq!(observation_options(&Catalogue::default(), &config), expected, "{algorithm}");
        }
    }

    #[test]
    fn an_environment_of_another_size_is_refused() {
        let spec = |id| registry::spec(id).unwrap();
        check_unchanged(&spec("CartPole-v1"), &spec("CartPole-v1").spaces_in_words()).unwrap();
        let refusal = check_unchanged(&spec("Acrobot-v1"), &spec("CartPole-v1").spaces_in_words()).unwrap_err().to_string();
        assert!(refusal.contains("6 observed values") && refusal.contains("4 observed values"), "{refusal}");
    }
}
