//! Games of the Atari 2600, by the names that Gymnasium gives them: `atari:Pong`, `atari:SpaceInvaders`.
//!
//! The emulator is ALE's, from the Python package `ale-py`, whose methods are called directly in the interpreter of the actor's
//! process (`ale`). What makes a learner's frames of its screens is Rust (`game`, `area`), and equals Gymnasium's wrappers byte
//! for byte. docs/atari.md says what can be set.

#[cfg(feature = "python-environments")]
mod ale;
#[cfg(any(feature = "python-environments", test))]
mod area;
#[cfg(any(feature = "python-environments", test))]
mod emulator;
#[cfg(any(feature = "python-environments", test))]
mod environment;
#[cfg(any(feature = "python-environments", test))]
mod game;
mod options;
#[cfg(test)]
mod scripted;
#[cfg(any(feature = "python-environments", test))]
mod shades;
#[cfg(any(feature = "python-environments", test))]
mod starts;

use serde::Deserialize;
use serde_json::json;

use super::origin::Origin;
use super::python::probe;
use super::request::{EnvironmentRequest, Examined};
use super::{ActionSpace, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace};
use options::{FRAME_SKIP, Options};

/// Begins the name of every environment in this folder.
pub(super) const PREFIX: &str = "atari:";

/// The functions that run inside of Python.
const CONSOLE: &str = include_str!("console.py");

/// Games that an emulator in this process plays.
pub(super) struct AtariGames;

/// The answer of `examine` in `console.py`.
#[derive(Deserialize)]
struct Console {
    actions: usize,
    software: Vec<(String, String)>,
}

impl Origin for AtariGames {
    #[cfg(feature = "python-environments")]
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        let (game, options) = read(request)?;
        let emulator = ale::Ale::new(request, game, &options)?;
        Ok(Box::new(environment::Atari::new(&request.id, emulator, &options, request.purpose)))
    }

    #[cfg(not(feature = "python-environments"))]
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        Err(EnvironmentError::interpreter(&request.id, crate::machine::PythonError::NotBuilt))
    }

    fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
        let (game, options) = read(request)?;
        let question = json!([game, options.repeat_action_probability, options.max_num_frames_per_episode]);
        let Console { actions, software } = probe::ask(request, Some(CONSOLE), &question)?;
        Ok(Examined { spec: spec(&request.id, actions, &options), software, remark: None })
    }

    fn needs_python(&self) -> bool {
        true
    }
}

/// What is fixed about the game `id`, which knows so many actions.
fn spec(id: &str, actions: usize, options: &Options) -> EnvironmentSpec {
    let size = options.screen_size;
    EnvironmentSpec {
        // At most: frames that a game waits at its start count, too.
        time_limit_steps: Some(options.max_num_frames_per_episode.div_ceil(FRAME_SKIP)),
        // What moves, and where to, does not show in one frame.
        frame_stack: 4,
        ..EnvironmentSpec::new(id, ObservationSpace::bytes(&[size, size]), ActionSpace::Discrete { n: actions })
    }
}

/// The name of the game, and how it is played.
fn read(request: &EnvironmentRequest) -> Result<(&str, Options), EnvironmentError> {
    let game = request.id.strip_prefix(PREFIX).unwrap_or_default();
    if game.is_empty() {
        let reason = "write the name of a game after the colon, such as atari:Pong".into();
        return Err(EnvironmentError::Unusable { id: request.id.clone(), reason });
    }
    Ok((game, Options::read(&request.id, &request.arguments()?)?))
}
