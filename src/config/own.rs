//! Table `[own]`: the keys of an algorithm that a program adds.
//!
//! A configuration is read before anybody knows what such an algorithm declares, so its keys are checked where the
//! algorithm is built ([`Config::resolve_own`]): by the same rules, with the same words, and at the same places of
//! the file.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use toml::Value;

use super::check;
use super::error::Problem;
use super::key::Key;
use super::key_type::Kind;
use super::limits::{Limits, between, whole};
use super::schema::Config;
use crate::suggestion::nearest;

/// Name of the table.
pub(crate) const OWN: &str = "own";

/// A key that an algorithm of your own uses: a key of table `[own]`, or a key of the library that only some
/// algorithms know.
#[derive(Debug, Clone, Copy)]
pub struct AlgorithmKey(Declared);

#[derive(Debug, Clone, Copy)]
enum Declared {
    Own { name: &'static str, kind: Kind, limits: Limits, default: Default },
    OfLibrary { path: &'static str },
}

#[derive(Debug, Clone, Copy)]
enum Default {
    Flag(bool),
    Whole(u64),
    Number(f64),
    Text(&'static str),
}

impl AlgorithmKey {
    /// `own.name`, which is true or false.
    pub const fn flag(name: &'static str, default: bool) -> Self {
        Self(Declared::Own { name, kind: Kind::Boolean, limits: Limits::Any, default: Default::Flag(default) })
    }

    /// `own.name`, a whole number within `limits`.
    pub const fn whole(name: &'static str, default: u64, limits: RangeInclusive<u64>) -> Self {
        let limits = whole(*limits.start(), *limits.end());
        Self(Declared::Own { name, kind: Kind::Integer, limits, default: Default::Whole(default) })
    }

    /// `own.name`, a real number within `limits`.
    pub const fn number(name: &'static str, default: f64, limits: RangeInclusive<f64>) -> Self {
        let limits = between(*limits.start(), *limits.end());
        Self(Declared::Own { name, kind: Kind::Number, limits, default: Default::Number(default) })
    }

    /// `own.name`, a text.
    pub const fn text(name: &'static str, default: &'static str) -> Self {
        Self(Declared::Own { name, kind: Kind::Text, limits: Limits::Any, default: Default::Text(default) })
    }

    /// A key of the library that only some algorithms know, such as `network.dueling`, and that this one heeds too.
    pub const fn of_library(path: &'static str) -> Self {
        Self(Declared::OfLibrary { path })
    }

    /// The name of a key of `[own]`; `None` for a key of the library.
    pub(crate) fn own_name(&self) -> Option<&'static str> {
        match self.0 {
            Declared::Own { name, .. } => Some(name),
            Declared::OfLibrary { .. } => None,
        }
    }

    /// What no configuration could make good, in words that follow "declares": a default that the key does not take,
    /// or a key that the library does not have.
    pub(crate) fn fault(&self) -> Option<String> {
        if let Declared::OfLibrary { path } = self.0 {
            let paths: Vec<String> = Key::all().map(Key::path).collect();
            let advice = || match nearest(path, paths.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "docs/configuration.md has all keys".to_owned(),
            };
            return Key::find(path).is_none().then(|| format!("the key `{path}`, which the library does not have; {}", advice()));
        }
        let (key, default) = self.own()?;
        (!key.allows(&default)).then(|| format!("{} with the default {default}, which must be {}", key.path(), key.allowed()))
    }

    /// The key of `[own]` as the checks know it, with its default; `None` for a key of the library.
    fn own(&self) -> Option<(Key, Value)> {
        let Declared::Own { name, kind, limits, default } = self.0 else { return None };
        let default = match default {
            Default::Flag(flag) => Value::Boolean(flag),
            Default::Whole(whole) => Value::Integer(i64::try_from(whole).unwrap_or(i64::MAX)),
            Default::Number(number) => Value::Float(number),
            Default::Text(text) => Value::String(text.to_owned()),
        };
        Some((Key { table: OWN, name, doc: "", kind, optional: false, limits, unit: "", algorithms: &[] }, default))
    }
}

/// The values of table `[own]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, std::default::Default)]
#[serde(transparent)]
pub struct OwnConfig(toml::Table);

/// Each method panics on a name that the algorithm has not declared with that type.
impl OwnConfig {
    /// The value of a key made by [`AlgorithmKey::flag`].
    pub fn flag(&self, name: &str) -> bool {
        self.declared(name, Value::as_bool)
    }

    /// The value of a key made by [`AlgorithmKey::whole`].
    pub fn whole(&self, name: &str) -> u64 {
        self.declared(name, |value| u64::try_from(value.as_integer()?).ok())
    }

    /// The value of a key made by [`AlgorithmKey::number`].
    pub fn number(&self, name: &str) -> f64 {
        self.declared(name, |value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64)))
    }

    /// The value of a key made by [`AlgorithmKey::text`].
    pub fn text(&self, name: &str) -> &str {
        self.declared(name, Value::as_str)
    }

    fn declared<'a, T>(&'a self, name: &str, read: impl Fn(&'a Value) -> Option<T>) -> T {
        let value = self.0.get(name).and_then(read);
        value.unwrap_or_else(|| panic!("the algorithm reads own.{name} and does not declare it with that type among its keys"))
    }

    /// The names of the keys with their values.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// A key that the chosen algorithm does not know, or a value that it does not take.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{problem}")]
pub struct AlgorithmKeyError {
    /// The path of the key.
    pub key: String,
    /// What is wrong, what is allowed, and what to do.
    pub problem: Box<Problem>,
}

impl Config {
    /// Checks the keys that the chosen algorithm, one that a program adds, declares, and gives those that nobody set
    /// their defaults.
    ///
    /// # Errors
    /// A key of `[own]` that is not declared, or whose value is not allowed; or a key of the library that only other
    /// algorithms know, that is not declared, and that differs from its default.
    pub fn resolve_own(&mut self, declared: &[AlgorithmKey]) -> Result<(), AlgorithmKeyError> {
        let own: Vec<(Key, Value)> = declared.iter().filter_map(AlgorithmKey::own).collect();
        let error = |key: &str, problem| AlgorithmKeyError { key: key.to_owned(), problem: Box::new(problem) };
        for (name, value) in self.own.lines() {
            let path = format!("{OWN}.{name}");
            let Some((key, default)) = own.iter().find(|(key, _)| key.name == name) else {
                return Err(error(&path, Problem::UnknownKey(self.advice(name, &own))));
            };
            if let Some(problem) = check::problem(key, value, default) {
                return Err(error(&path, problem));
            }
        }
        self.refuse_keys_of_others(declared)?;
        for (key, default) in own {
            self.own.0.entry(key.name).or_insert(default);
        }
        Ok(())
    }

    /// What to write instead of the unknown key `typed` of `[own]`.
    fn advice(&self, typed: &str, own: &[(Key, Value)]) -> String {
        let names = || own.iter().map(|(key, _)| key.name);
        let all = || names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match nearest(typed, names()) {
            Some(name) => format!("did you mean `{name}`?"),
            None if own.is_empty() => format!("{} has no keys of its own; remove it", self.algorithm.name),
            None => format!("the keys of {} are {}", self.algorithm.name, all()),
        }
    }

    /// Refuses keys that have an effect on other algorithms alone, unless they have their defaults, which deceive
    /// nobody. For the algorithms of this library that was checked when the configuration was read; an algorithm that
    /// a program adds counts as learning from transitions, as in [`Config::rows`].
    fn refuse_keys_of_others(&self, declared: &[AlgorithmKey]) -> Result<(), AlgorithmKeyError> {
        if Key::any_names(&self.algorithm.name) {
            return Ok(());
        }
        let values = self.to_table();
        let is_heeded = |key: &Key| declared.iter().any(|one| matches!(one.0, Declared::OfLibrary { path } if path == key.path()));
        let of_others = Key::all().filter(|key| !key.is_for_transitions() && !is_heeded(key));
        let mut changed = of_others.filter(|key| values[key.table][key.name] != *key.default_value());
        changed.next().map_or(Ok(()), |key| {
            let problem = Problem::WithoutEffect { algorithm: self.algorithm.name.clone(), known_to: key.algorithms };
            Err(AlgorithmKeyError { key: key.path(), problem: Box::new(problem) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[AlgorithmKey] = &[
        AlgorithmKey::number("epsilon", 0.1, 0.0..=1.0),
        AlgorithmKey::whole("rounds", 3, 1..=9),
        AlgorithmKey::flag("eager", true),
        AlgorithmKey::text("style", "plain"),
        AlgorithmKey::of_library("network.dueling"),
    ];

    fn config(lines: &str) -> Config {
        let text = format!("[environment]\nid = \"CartPole-v1\"\n[algorithm]\nname = \"mine\"\n{lines}");
        Config::parse(&text, "mine.toml", &[]).unwrap().config
    }

    #[test]
    fn what_nobody_set_has_its_default_and_the_resolved_configuration_says_so() {
        let mut config = config("[own]\nepsilon = 1\n[network]\ndueling = true");
        config.resolve_own(KEYS).unwrap();
        let read = |own: &OwnConfig| (own.number("epsilon"), own.whole("rounds"), own.flag("eager"), own.text("style").to_owned());
        assert_eq!(read(&config.own), (1.0, 3, true, "plain".into()));
        let again = Config::parse(&config.to_toml(), "resolved.toml", &[]).unwrap().config;
        assert_eq!(again, config, "{}", config.to_toml());
    }

    #[test]
    fn a_variant_that_declares_the_keys_of_dqn_takes_its_presets_and_the_page_names_these_keys() {
        let paths: Vec<String> =
            Key::all().filter(|key| key.algorithms.contains(&"dqn") && !key.is_for_transitions()).map(Key::path).collect();
        let page = include_str!("../../docs/own.md");
        let unnamed: Vec<_> = paths.iter().filter(|path| !page.contains(&format!("`{path}`"))).collect();
        assert!(unnamed.is_empty(), "docs/own.md does not name {unnamed:?}");
        let declared: Vec<_> = paths.into_iter().map(|path| AlgorithmKey::of_library(path.leak())).collect();
        for preset in [include_str!("../../configs/cartpole_dqn.toml"), include_str!("../../configs/rally_dqn.toml")] {
            let mut variant = Config::parse(preset, "preset.toml", &["algorithm.name=mine".into()]).unwrap().config;
            assert!(variant.clone().resolve_own(&[]).is_err());
            variant.resolve_own(&declared).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        for (lines, key, told) in [
            ("[own]\nepsilom = 0.5", "own.epsilom", "did you mean `epsilon`?"),
            ("[own]\ncolour = 1", "own.colour", "the keys of mine are `epsilon`, `rounds`, `eager`, `style`"),
            ("[own]\nepsilon = 1.5", "own.epsilon", "must be a number from 0 to 1; the default is 0.1"),
            ("[own]\nrounds = 0", "own.rounds", "must be an integer from 1 to 9; the default is 3"),
            ("[own]\neager = 1", "own.eager", "expected true or false, found an integer"),
            ("double = false", "algorithm.double", "it has no effect on mine, only on dqn"),
        ] {
            let error = config(lines).resolve_own(KEYS).unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.to_string().contains(told), "{error}");
        }
        let error = config("[own]\nepsilon = 1.0").resolve_own(&[]).unwrap_err();
        assert!(error.to_string().contains("mine has no keys of its own"), "{error}");
    }

    #[test]
    fn a_key_of_an_algorithm_of_ones_own_may_be_changed_like_any_other() {
        let changes = ["own.epsilon=0.25", "own.style=bold"].map(str::to_owned);
        let mut loaded = Config::parse("[environment]\nid = \"CartPole-v1\"", "mine.toml", &changes).unwrap();
        loaded.config.resolve_own(KEYS).unwrap();
        assert_eq!((loaded.config.own.number("epsilon"), loaded.config.own.text("style")), (0.25, "bold"));
        let refusal = loaded.error_at("own.epsilon", "too much".into()).to_string();
        assert_eq!(refusal, "--set own.epsilon=0.25: own.epsilon = 0.25: too much");
    }
}
