//! From `--set learner.batch_size=512` to entries.
//!
//! The value is TOML. For a key that takes text the quotes may be left out, because a shell would eat them. The types
//! of the keys of `[own]` are not known yet: a value of theirs that is no TOML is a text.

use toml::Value;
use toml::de::DeValue;

use super::advice;
use super::document::{Entry, is_table, plain};
use super::error::{ConfigError, Problem};
use super::key::Key;
use super::key_type::NONE;
use super::place::Place;

/// Reads the overrides in their order; those that are no assignments go to `errors`.
pub(crate) fn read(overrides: &[String], errors: &mut Vec<ConfigError>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, text) in overrides.iter().enumerate() {
        let place = Place::Override { index, text: text.clone() };
        match entry(text, &place) {
            Ok(entry) => entries.push(entry),
            Err((key, problem)) => errors.push(ConfigError::new(place, key, problem)),
        }
    }
    entries
}

fn entry(text: &str, place: &Place) -> Result<Entry, (String, Problem)> {
    let (path, value) = text.split_once('=').ok_or((String::new(), Problem::NotAnAssignment))?;
    let (path, value) = (path.trim(), value.trim());
    let takes_nothing = || Key::find(path).is_some_and(|key| key.kind.is_text());
    if path.is_empty() || (value.is_empty() && !takes_nothing()) {
        return Err((path.to_owned(), Problem::NotAnAssignment));
    }
    let Some((table, _)) = path.split_once('.') else {
        return Err((path.to_owned(), Problem::UnknownKey(advice::for_bare_key(path))));
    };
    if !is_table(table) {
        return Err((path.to_owned(), Problem::UnknownTable(advice::for_table(table))));
    }
    let parsed = parse(value, Key::find(path)).map_err(|problem| (path.to_owned(), problem))?;
    Ok(Entry { path: path.to_owned(), value: parsed, text: value.to_owned(), key_place: place.clone(), value_place: place.clone() })
}

fn parse(text: &str, key: Option<&Key>) -> Result<Value, Problem> {
    let is_quoted = text.starts_with(['"', '\'']);
    if !is_quoted && (key.is_some_and(|key| key.kind.is_text()) || text == NONE) {
        return Ok(Value::String(text.to_owned()));
    }
    match DeValue::parse(text) {
        Ok(value) => Ok(plain(value.get_ref())),
        // A key of `[own]`, or an unknown key, which is refused by its name later.
        Err(_) if key.is_none() && !is_quoted => Ok(Value::String(text.to_owned())),
        Err(_) if text.chars().all(|letter| letter.is_alphanumeric() || "_-./:".contains(letter)) => Ok(Value::String(text.to_owned())),
        Err(_) if key.is_some_and(|key| key.kind.is_list()) && !text.starts_with('[') => {
            Err(Problem::Syntax(format!("a list stands in brackets: [{text}]")))
        }
        Err(error) => Err(Problem::Syntax(error.message().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(text: &str) -> Value {
        let mut errors = Vec::new();
        let entries = read(&[text.to_owned()], &mut errors);
        assert_eq!(errors, [], "{text} was refused");
        entries[0].value.clone()
    }

    #[test]
    fn quotes_may_be_left_out_where_a_key_takes_text() {
        assert_eq!(value_of("learner.device=cuda:0"), Value::String("cuda:0".into()));
        assert_eq!(value_of("run.folder=2024-01-01"), Value::String("2024-01-01".into()));
        assert_eq!(value_of("environment.python_path="), Value::String(String::new()));
        assert_eq!(value_of("run.folder=\"my runs\""), Value::String("my runs".into()));
        assert_eq!(value_of("replay.samples_per_insert=none"), Value::String("none".into()));
        assert_eq!(value_of("own.style=two words"), Value::String("two words".into()));
    }

    #[test]
    fn a_list_without_its_brackets_is_shown_with_them() {
        let mut errors = Vec::new();
        assert!(read(&["network.hidden=256,256".to_owned()], &mut errors).is_empty());
        assert!(errors[0].to_string().contains("a list stands in brackets: [256,256]"), "{}", errors[0]);
    }

    #[test]
    fn values_are_toml() {
        assert_eq!(value_of("learner.batch_size = 1_024"), Value::Integer(1024));
        assert_eq!(value_of("learner.learning_rate=3e-4"), Value::Float(3e-4));
        assert_eq!(value_of("network.hidden=[64, 64]"), Value::Array(vec![Value::Integer(64), Value::Integer(64)]));
    }
}
