//! What the arguments of an Atari game may say, and the refusal of anything else.

use serde_json::{Map, Value};

use crate::environments::EnvironmentError;
use crate::suggestion::nearest;

/// Emulated frames of a step.
pub(super) const FRAME_SKIP: u32 = 4;
/// A frame's side is at least a tenth of the screen's 210 rows.
pub(super) const SMALLEST: u64 = 21;
/// A frame's side is at most the screen's 160 columns: frames are shrunk, never enlarged.
const LARGEST: u64 = 160;
/// The most frames to wait at a game's start: a second of play. Gymnasium waits half a second at most.
const LONGEST_WAIT: u64 = 60;
/// Least frames of a game: more than any start of a game takes.
const SHORTEST_GAME: u64 = 1_000;
/// Most frames of a game: ALE counts them in 32 bits with a sign.
const LONGEST_GAME: u64 = i32::MAX as u64;
/// The two probabilities of repeated actions for which scores are published.
const STICKY: [f64; 2] = [0.0, 0.25];

/// How a game is played and shown. Names and defaults are those of `ALE/...-v5` and `AtariPreprocessing` in Gymnasium where it has
/// such a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Rows and columns of a frame.
    pub(super) screen_size: usize,
    /// A game begins with one to so many frames without an action; 0: with none.
    pub(super) noop_max: u32,
    /// Whether a game begins with a step of pressing the button, where the game has this action.
    pub(super) fire_reset: bool,
    /// How likely the emulator is to repeat the last frame's action instead of taking the next one.
    pub(super) repeat_action_probability: f64,
    /// Frames after which a game is truncated.
    pub(super) max_num_frames_per_episode: u32,
    /// In training: whether the loss of a life ends an episode (the game goes on in the next one).
    pub(super) terminal_on_life_loss: bool,
    /// In training: whether rewards are brought within -1 and 1.
    pub(super) clip_rewards: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            screen_size: 84,
            noop_max: 30,
            fire_reset: true,
            repeat_action_probability: 0.25,
            max_num_frames_per_episode: 108_000,
            terminal_on_life_loss: false,
            clip_rewards: true,
        }
    }
}

const NAMES: [&str; 7] = [
    "screen_size",
    "noop_max",
    "fire_reset",
    "repeat_action_probability",
    "max_num_frames_per_episode",
    "terminal_on_life_loss",
    "clip_rewards",
];

impl Options {
    /// The options that the environment `id` was given, and defaults for the others.
    ///
    /// # Errors
    /// [`EnvironmentError::UnknownArgument`] and [`EnvironmentError::InvalidArgument`].
    pub(super) fn read(id: &str, arguments: &Map<String, Value>) -> Result<Self, EnvironmentError> {
        if let Some(key) = arguments.keys().find(|key| !NAMES.contains(&key.as_str())) {
            let suggestion = nearest(key, NAMES).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
            return Err(EnvironmentError::UnknownArgument {
                id: id.into(),
                key: key.as_str().into(),
                suggestion: suggestion.into(),
                known: NAMES.join(", ").into(),
            });
        }
        let given = Given { id, arguments };
        let default = Self::default();
        Ok(Self {
            screen_size: given.whole("screen_size", SMALLEST, LARGEST, default.screen_size as u64)? as usize,
            noop_max: given.whole("noop_max", 0, LONGEST_WAIT, default.noop_max.into())? as u32,
            fire_reset: given.flag("fire_reset", default.fire_reset)?,
            repeat_action_probability: given.sticky("repeat_action_probability", default.repeat_action_probability)?,
            max_num_frames_per_episode: given.whole(
                "max_num_frames_per_episode",
                SHORTEST_GAME,
                LONGEST_GAME,
                default.max_num_frames_per_episode.into(),
            )? as u32,
            terminal_on_life_loss: given.flag("terminal_on_life_loss", default.terminal_on_life_loss)?,
            clip_rewards: given.flag("clip_rewards", default.clip_rewards)?,
        })
    }
}

/// The arguments, and whom they are for.
struct Given<'a> {
    id: &'a str,
    arguments: &'a Map<String, Value>,
}

impl Given<'_> {
    fn whole(&self, key: &'static str, least: u64, most: u64, default: u64) -> Result<u64, EnvironmentError> {
        let Some(value) = self.arguments.get(key) else { return Ok(default) };
        let expected = || format!("a whole number from {least} to {most}");
        value.as_u64().filter(|number| (least..=most).contains(number)).ok_or_else(|| self.invalid(key, value, expected()))
    }

    fn flag(&self, key: &'static str, default: bool) -> Result<bool, EnvironmentError> {
        let Some(value) = self.arguments.get(key) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.invalid(key, value, "true or false".into()))
    }

    fn sticky(&self, key: &'static str, default: f64) -> Result<f64, EnvironmentError> {
        let Some(value) = self.arguments.get(key) else { return Ok(default) };
        let [never, sometimes] = STICKY;
        let expected = || format!("{never} (actions are always taken) or {sometimes} (sticky actions, as in ALE/...-v5)");
        value.as_f64().filter(|number| STICKY.contains(number)).ok_or_else(|| self.invalid(key, value, expected()))
    }

    fn invalid(&self, key: &'static str, value: &Value, expected: String) -> EnvironmentError {
        EnvironmentError::InvalidArgument { id: self.id.into(), key, value: value.to_string().into(), expected: expected.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, String> {
        Options::read("atari:Pong", &serde_json::from_str(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_keeps_its_default() {
        assert_eq!(read("{}"), Ok(Options::default()));
        let changed = r#"{"screen_size": 42, "repeat_action_probability": 0, "fire_reset": false, "noop_max": 0}"#;
        let expected = Options { screen_size: 42, repeat_action_probability: 0.0, fire_reset: false, noop_max: 0, ..Options::default() };
        assert_eq!(read(changed), Ok(expected));
        let changed = r#"{"max_num_frames_per_episode": 1000, "terminal_on_life_loss": true, "clip_rewards": false}"#;
        let expected =
            Options { max_num_frames_per_episode: 1_000, terminal_on_life_loss: true, clip_rewards: false, ..Options::default() };
        assert_eq!(read(changed), Ok(expected));
    }

    #[test]
    fn each_limit_is_taken_and_what_lies_beyond_is_refused_with_it() {
        for (key, least, most) in
            [("screen_size", SMALLEST, LARGEST), ("noop_max", 0, LONGEST_WAIT), ("max_num_frames_per_episode", SHORTEST_GAME, LONGEST_GAME)]
        {
            for taken in [least, most] {
                read(&format!("{{\"{key}\": {taken}}}")).unwrap();
            }
            for refused in [least.saturating_sub(1), most + 1].into_iter().filter(|value| !(least..=most).contains(value)) {
                let message = read(&format!("{{\"{key}\": {refused}}}")).unwrap_err();
                assert!(message.contains(&format!("{key} = {refused}")), "{message}");
                assert!(message.contains(&format!("from {least} to {most}")), "{message}");
            }
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused_with_what_to_write() {
        for (text, value, expected) in [
            (r#"{"screen_size": "84"}"#, "screen_size = \"84\"", "a whole number"),
            (r#"{"screen_size": 84.5}"#, "screen_size = 84.5", "a whole number"),
            (r#"{"noop_max": -1}"#, "noop_max = -1", "a whole number"),
            (r#"{"clip_rewards": 1}"#, "clip_rewards = 1", "true or false"),
            (r#"{"repeat_action_probability": 0.3}"#, "repeat_action_probability = 0.3", "0.25 (sticky"),
            (r#"{"repeat_action_probability": true}"#, "repeat_action_probability = true", "0.25 (sticky"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(value) && message.contains(expected), "{message}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_one_that_was_meant() {
        for (asked, meant) in [("screensize", "screen_size"), ("noops_max", "noop_max"), ("clip_reward", "clip_rewards")] {
            let message = read(&format!("{{\"{asked}\": 1}}")).unwrap_err();
            assert!(message.contains(&format!("`{asked}`")) && message.contains(&format!("did you mean `{meant}`?")), "{message}");
        }
        let message = read(r#"{"colour": true}"#).unwrap_err();
        assert!(NAMES.iter().all(|name| message.contains(name)), "{message}");
    }
}
