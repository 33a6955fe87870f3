//! The checks that concern one entry: does its key exist, has its value the right type, is it allowed.

use toml::Value;

use super::advice;
use super::automatic::AUTO;
use super::document::{Entry, type_name};
use super::error::{ConfigError, Problem};
use super::key::Key;
use super::key_type::{Kind, NONE, is_triple};
use crate::suggestion::nearest;

/// Keys of SAC that other libraries leave to the program by `"auto"`, and that are `"none"` here for that.
const FOUND_IF_NONE: &[&str] = &["entropy_temperature", "target_entropy"];

/// The key that `entry` sets, or what is wrong with it. `algorithm` is the one whose defaults are advised.
pub(crate) fn check(entry: &Entry, algorithm: &str) -> Result<&'static Key, ConfigError> {
    let Some(key) = Key::find(&entry.path) else {
        let (table, name) = entry.path.split_once('.').expect("entries have the path table.key");
        let problem = Problem::UnknownKey(advice::for_key(table, name));
        return Err(ConfigError::new(entry.key_place.clone(), &entry.path, problem));
    };
    let Some(problem) = problem(key, &entry.value, key.default_for(algorithm)) else { return Ok(key) };
    Err(ConfigError { value: Some(entry.text.clone()), ..ConfigError::new(entry.value_place.clone(), &entry.path, problem) })
}

/// What is wrong with `value` as a value of `key`.
pub(super) fn problem(key: &Key, value: &Value, default: &Value) -> Option<Problem> {
    if !key.has_type_of(value) {
        Some(Problem::WrongType { expected: key.allowed(), found: type_name(value), advice: advice_on_type(key, value) })
    } else if !key.allows(value) {
        Some(Problem::NotAllowed { allowed: key.allowed(), advice: advice_on_value(key, value, default) })
    } else {
        None
    }
}

/// Advice how to write a value of the wrong type, if it is plain what was meant; else empty.
fn advice_on_type(key: &Key, value: &Value) -> String {
    match (key.kind, value) {
        (Kind::Integer, Value::Float(number)) if number.fract() == 0.0 && number.abs() < 1e15 => format!("; write {number}"),
        (Kind::Integer | Kind::Number | Kind::Boolean, Value::String(text)) if has_meaning(key, text) => {
            format!("; write {text} without quotes")
        }
        (Kind::Number, Value::String(text)) if text == AUTO && FOUND_IF_NONE.contains(&key.name) => {
            format!("; write {NONE:?}, which has Shoal find the number")
        }
        (Kind::Integer | Kind::Number | Kind::Boolean, Value::String(text)) => match meant_by(text) {
            Some(meant) if key.kind.admits(&meant) => format!("; write {meant}"),
            Some(meant) => advice_on_type(key, &meant),
            None => String::new(),
        },
        (Kind::IntegerList, Value::Integer(number)) => format!("; write [{number}]"),
        (Kind::TripleList, _) if is_triple(value) => format!("; write [{value}]"),
        (Kind::Text | Kind::Choice(_), Value::Integer(_) | Value::Float(_) | Value::Boolean(_)) => {
            format!("; write it in quotes: \"{value}\"")
        }
        _ => String::new(),
    }
}

/// What `text`, which is no TOML, means in other languages: Python has `.5`, `1.` and `True`.
fn meant_by(text: &str) -> Option<Value> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float);
    number.or_else(|| text.to_lowercase().parse().ok().map(Value::Boolean))
}

/// Whether `text` without its quotes is a value of `key`'s type.
fn has_meaning(key: &Key, text: &str) -> bool {
    toml::de::DeValue::parse(text).is_ok_and(|value| key.kind.admits(&super::document::plain(value.get_ref())))
}

/// A value to use instead of one that is not allowed: a word that looks alike, or the default.
fn advice_on_value(key: &Key, value: &Value, default: &Value) -> String {
    if let (Kind::Choice(choices), Some(typed)) = (key.kind, value.as_str())
        && let Some(word) = nearest(typed, choices.iter().map(|choice| choice.word))
    {
        return format!("did you mean {word:?}?");
    }
    if !key.allows(default) {
        return "it has no default".to_owned();
    }
    format!("the default is {default}")
}
