//! A key and a table of the configuration, as declared in [`schema`](super::schema), and how to find one by name.

use once_cell::race::OnceBox;
use toml::Value;

use super::automatic::{self, AUTO};
use super::key_type::{Kind, NONE};
use super::limits::Limits;
use super::schema::{AlgorithmConfig, CRITIC_ALGORITHMS, Config, FRAGMENT_ALGORITHMS, TABLES, TRANSITION_ALGORITHMS};

/// The algorithms, in groups with the same defaults. Any other algorithm has those of the first group.
pub(super) const GROUPS: [&[&str]; 3] = [&["dqn"], &CRITIC_ALGORITHMS, &FRAGMENT_ALGORITHMS];

/// The default of every key for the algorithm with this name, table by table.
pub(super) fn defaults_of(algorithm: &str) -> &'static toml::Table {
    // Not behind a lock: if a process forks while one of its threads holds the lock, as one that attaches may, the
    // lock stays locked for ever in the child.
    static DEFAULTS: OnceBox<[toml::Table; GROUPS.len()]> = OnceBox::new();
    // The name itself has one default, whatever is chosen.
    let table = |group: &[&str]| Config { algorithm: AlgorithmConfig::default(), ..Config::for_algorithm(group[0]) }.to_table();
    let tables = DEFAULTS.get_or_init(|| Box::new(GROUPS.map(table)));
    &tables[GROUPS.iter().position(|group| group.contains(&algorithm)).unwrap_or(0)]
}

/// One TOML table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name: `learner` for `[learner]`.
    pub name: &'static str,
    /// What its keys are about.
    pub doc: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The table that it belongs to.
    pub table: &'static str,
    /// Its name within the table.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether `"none"` is accepted.
    pub optional: bool,
    /// The values that it may take.
    pub limits: Limits,
    /// The unit of its number; empty if the number is pure.
    pub unit: &'static str,
    /// The algorithms on which it has an effect; empty for all.
    pub algorithms: &'static [&'static str],
}

impl Table {
    /// The table of that name.
    pub(crate) fn find(name: &str) -> Option<&'static Table> {
        TABLES.iter().find(|table| table.name == name)
    }
}

impl Key {
    /// Every key of every table, in the order of the reference.
    pub fn all() -> impl Iterator<Item = &'static Key> {
        TABLES.iter().flat_map(|table| table.keys)
    }

    /// The key with the path `table.name`.
    pub fn find(path: &str) -> Option<&'static Key> {
        let (table, name) = path.split_once('.')?;
        Table::find(table)?.keys.iter().find(|key| key.name == name)
    }

    /// `table.name`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// Whether the key has an effect on `algorithm`. An algorithm that no key names may use all of them: the keys
    /// that it declares are checked when it is built.
    pub fn is_known_to(&self, algorithm: &str) -> bool {
        self.algorithms.is_empty() || self.algorithms.contains(&algorithm) || !Self::any_names(algorithm)
    }

    /// Whether any key names `algorithm`: keys name the algorithms of this library.
    pub(crate) fn any_names(algorithm: &str) -> bool {
        Self::all().any(|key| key.algorithms.contains(&algorithm))
    }

    /// Whether the key has an effect on every algorithm that learns from transitions.
    pub(crate) fn is_for_transitions(&self) -> bool {
        self.algorithms.is_empty() || TRANSITION_ALGORITHMS.iter().all(|algorithm| self.algorithms.contains(algorithm))
    }

    /// The largest whole number that the key with this path takes.
    pub(crate) fn most_of(path: &str) -> usize {
        match Self::find(path).map(|key| key.limits) {
            Some(Limits::Whole { most, .. }) => usize::try_from(most).unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    /// Whether `value` has the type of this key.
    pub(crate) fn has_type_of(&self, value: &Value) -> bool {
        self.kind.admits(value) || self.is_none(value) || self.is_automatic(value)
    }

    /// Whether `value`, which has the type of this key, is one of those allowed.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        if self.is_none(value) || self.is_automatic(value) {
            return true;
        }
        match self.kind {
            Kind::Choice(choices) => choices.iter().any(|choice| value.as_str() == Some(choice.word)),
            _ => self.limits.admit(value),
        }
    }

    /// The value that the key has when nobody sets it, unless the algorithm has a default of its own.
    pub(crate) fn default_value(&self) -> &'static Value {
        self.default_for("")
    }

    /// The value that the key has when nobody sets it, for the algorithm with this name.
    pub(super) fn default_for(&self, algorithm: &str) -> &'static Value {
        &defaults_of(algorithm)[self.table][self.name]
    }

    /// Whether the key has to be set: its default is then none of the allowed values.
    pub fn is_required(&self) -> bool {
        !self.allows(self.default_value())
    }

    /// The allowed values in words: `an integer from 1 to 65536 (transitions)`.
    pub(crate) fn allowed(&self) -> String {
        let mut words = match (self.kind, self.limits) {
            (Kind::Choice(choices), _) => {
                let words: Vec<String> = choices.iter().map(|choice| format!("{:?}", choice.word)).collect();
                words.join(" or ")
            }
            (_, limits @ (Limits::Text { .. } | Limits::List { .. } | Limits::Triples { .. })) => limits.to_string(),
            (kind, Limits::Any) => kind.noun().to_owned(),
            (kind, limits) => format!("{} {limits}", kind.noun()).trim_end().to_owned(),
        };
        if !self.unit.is_empty() {
            words = format!("{words} ({})", self.unit);
        }
        if self.optional {
            words = format!("{words}, or {NONE:?}");
        }
        if self.may_be_automatic() {
            words = format!("{words}, or {AUTO:?}");
        }
        words
    }

    /// Whether `value` leaves the number to the machine.
    pub(super) fn is_automatic(&self, value: &Value) -> bool {
        value.as_str() == Some(AUTO) && self.may_be_automatic()
    }

    fn may_be_automatic(&self) -> bool {
        automatic::KEYS.contains(&self.path().as_str())
    }

    fn is_none(&self, value: &Value) -> bool {
        self.optional && value.as_str() == Some(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_structs_is_declared_and_every_declared_key_is_a_field() {
        let mut spelled: Vec<String> = defaults_of("")
            .iter()
            .flat_map(|(table, keys)| keys.as_table().unwrap().keys().map(move |key| format!("{table}.{key}")))
            .collect();
        let mut declared: Vec<String> = Key::all().map(Key::path).collect();
        spelled.sort();
        declared.sort();
        assert_eq!(spelled, declared);
    }

    #[test]
    fn every_default_but_that_of_a_required_key_is_allowed() {
        for (key, group) in Key::all().flat_map(|key| GROUPS.map(|group| (key, group))) {
            let default = key.default_for(group[0]);
            assert!(key.has_type_of(default), "{} has a default of another type", key.path());
            assert_eq!(key.allows(default), !key.is_required(), "{}", key.path());
        }
        let required: Vec<String> = Key::all().filter(|key| key.is_required()).map(Key::path).collect();
        assert_eq!(required, ["environment.id"]);
    }

    #[test]
    fn the_defaults_break_no_rule() {
        Config::for_environment("CartPole-v1").validate().unwrap();
    }

    #[test]
    fn every_key_is_documented_by_a_sentence() {
        for key in Key::all() {
            assert!(key.doc.trim().ends_with('.'), "{} is not documented by a sentence", key.path());
        }
    }
}
