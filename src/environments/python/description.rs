//! What Python says of an environment, read into an [`EnvironmentSpec`].

use serde::Deserialize;

use crate::environments::{ActionArrays, ActionSpace, EnvironmentSpec, ObservationSpace};
use crate::values::ValueType;

/// The answer of `describe` in `bridge.py`.
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    observation: Shape,
    action: Actions,
    action_arrays: Option<ActionArrays>,
    time_limit_steps: Option<u32>,
    reward_threshold: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Shape {
    element: ValueType,
    shape: Vec<usize>,
    #[serde(flatten)]
    bounds: Bounds,
}

/// Bounds in words, since JSON has no infinity.
#[derive(Debug, Deserialize)]
struct Bounds {
    low: Vec<String>,
    high: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Actions {
    Discrete(usize),
    Box(Bounds),
}

impl Description {
    /// The description of the environment `id`, or what is wrong with it.
    pub(super) fn into_spec(self, id: &str) -> Result<EnvironmentSpec, String> {
        let Self { observation: Shape { element, shape, bounds }, action, action_arrays, time_limit_steps, reward_threshold } = self;
        let (low, high) = bounds.numbers()?;
        let observation = ObservationSpace { element, shape, stack: 1, is_sliding: true, low, high };
        if observation.is_empty() {
            return Err("its observations hold no values".into());
        }
        let action = match action {
            Actions::Discrete(n) => ActionSpace::Discrete { n },
            Actions::Box(bounds) => {
                let (low, high) = bounds.numbers()?;
                if low.is_empty() {
                    return Err("its actions hold no values".into());
                }
                ActionSpace::Box { low, high }
            }
        };
        Ok(EnvironmentSpec { id: id.into(), observation, action, time_limit_steps, reward_threshold, frame_stack: 1, action_arrays })
    }
}

impl Bounds {
    fn numbers(self) -> Result<(Vec<f32>, Vec<f32>), String> {
        let number = |word: &String| word.parse::<f32>().map_err(|_| format!("one of its bounds is {word:?}"));
        let numbers = |words: &[String]| words.iter().map(number).collect::<Result<Vec<f32>, String>>();
        Ok((numbers(&self.low)?, numbers(&self.high)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_bounds_and_either_kind_of_action_are_read() {
        let text = r#"{"observation": {"element": "f32", "shape": [2, 1], "low": ["-inf", "0.5"], "high": ["inf", "1e3"]}, "action": {"discrete": 3},
                       "time_limit_steps": 500, "reward_threshold": null}"#;
        let spec = serde_json::from_str::<Description>(text).unwrap().into_spec("x").unwrap();
        assert_eq!(spec.observation.shape, [2, 1]);
        assert_eq!((spec.observation.low, spec.observation.high), (vec![f32::NEG_INFINITY, 0.5], vec![f32::INFINITY, 1e3]));
        assert_eq!((spec.action, spec.time_limit_steps), (ActionSpace::Discrete { n: 3 }, Some(500)));

        assert_eq!(spec.action_arrays, None);

        let as_arrays = r#"{"discrete": 3}, "action_arrays": {"counts": [1, 3], "start": [0, -1], "shape": [2], "dtype": "int8"}"#;
        let arrays = ActionArrays { counts: vec![1, 3], start: vec![0, -1], shape: vec![2], dtype: "int8".into() };
        let spec = serde_json::from_str::<Description>(&text.replace(r#"{"discrete": 3}"#, as_arrays)).unwrap().into_spec("x").unwrap();
        assert_eq!((spec.action, spec.action_arrays), (ActionSpace::Discrete { n: 3 }, Some(arrays)));

        let text = text.replace(r#"{"discrete": 3}"#, r#"{"box": {"low": ["-1.0"], "high": ["2.0"]}}"#);
        let spec = serde_json::from_str::<Description>(&text).unwrap().into_spec("x").unwrap();
        assert_eq!(spec.action, ActionSpace::Box { low: vec![-1.0], high: vec![2.0] });
    }

    #[test]
    fn an_observation_or_action_without_values_is_refused() {
        let refused = |observation: &str, action: &str| {
            let text =
                format!(r#"{{"observation": {observation}, "action": {action}, "time_limit_steps": null, "reward_threshold": null}}"#);
            serde_json::from_str::<Description>(&text).unwrap().into_spec("x").unwrap_err()
        };
        let nothing = r#"{"element": "u8", "shape": [0], "low": [], "high": []}"#;
        assert_eq!(refused(nothing, r#"{"discrete": 3}"#), "its observations hold no values");
        let something = r#"{"element": "f32", "shape": [1], "low": ["0.0"], "high": ["1.0"]}"#;
        assert_eq!(refused(something, r#"{"box": {"low": [], "high": []}}"#), "its actions hold no values");
    }
}
