//! The types that a key can have, and how each is spelled in TOML.
//!
//! TOML has no null, so an absent setting is spelled `"none"`: that is how a file switches off what is on by default.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use toml::Value;

/// How an absent optional setting is spelled.
pub(crate) const NONE: &str = "none";

/// The TOML type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A real number; a whole one is accepted.
    Number,
    /// A string.
    Text,
    /// One word of a fixed set.
    Choice(&'static [Choice]),
    /// An array of whole numbers.
    IntegerList,
    /// An array of arrays of three whole numbers each.
    TripleList,
}

/// One word of a [`Kind::Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The word as typed.
    pub word: &'static str,
    /// What it means.
    pub doc: &'static str,
}

impl Kind {
    /// Whether `value` has this type; its limits are checked apart.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match self {
            Kind::Boolean => value.is_bool(),
            Kind::Integer => value.is_integer(),
            Kind::Number => value.is_float() || value.is_integer(),
            Kind::Text | Kind::Choice(_) => value.is_str(),
            Kind::IntegerList => value.as_array().is_some_and(|items| items.iter().all(Value::is_integer)),
            Kind::TripleList => value.as_array().is_some_and(|items| items.iter().all(is_triple)),
        }
    }

    /// The noun for an error message.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Boolean => "true or false",
            Kind::Integer => "an integer",
            Kind::Number => "a number",
            Kind::Text | Kind::Choice(_) => "a string",
            Kind::IntegerList => "a list of integers",
            Kind::TripleList => "a list of lists of 3 integers",
        }
    }

    /// Whether the value is written between brackets.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Kind::IntegerList | Kind::TripleList)
    }

    /// Whether the value is written between quotes, so that `--set` accepts it without them.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::Choice(_))
    }
}

/// Whether a value is an array of three whole numbers.
pub(super) fn is_triple(value: &Value) -> bool {
    value.as_array().is_some_and(|numbers| numbers.len() == 3 && numbers.iter().all(Value::is_integer))
}

/// A type that a key of the configuration can have.
pub trait KeyType: Serialize + for<'de> Deserialize<'de> {
    /// Its TOML type.
    const KIND: Kind;
    /// Whether `"none"` is accepted as well.
    const OPTIONAL: bool = false;

    /// Writes the value as a user would type it.
    ///
    /// # Errors
    /// The errors of `serializer`.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    /// Reads what a user typed.
    ///
    /// # Errors
    /// A value of another type.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

macro_rules! settings {
    ($($type:ty => $kind:ident),+ $(,)?) => { $( impl KeyType for $type { const KIND: Kind = Kind::$kind; } )+ };
}

settings!(bool => Boolean, u32 => Integer, u64 => Integer, usize => Integer, f64 => Number, String => Text, Vec<usize> => IntegerList);
settings!(Vec<[usize; 3]> => TripleList);

impl<T: KeyType> KeyType for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            None if serializer.is_human_readable() => serializer.serialize_str(NONE),
            Some(value) if serializer.is_human_readable() => value.serialize(serializer),
            _ => self.serialize(serializer),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Self::deserialize(deserializer);
        }
        let value = Value::deserialize(deserializer)?;
        // First: a text could be this word, too.
        if value.as_str() == Some(NONE) { Ok(None) } else { T::deserialize(value).map(Some).map_err(D::Error::custom) }
    }
}

/// The pair of functions that serde's `with` attribute asks for.
pub(crate) mod field {
    use super::{Deserializer, KeyType, Serializer};

    pub(crate) fn serialize<T: KeyType, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.write(serializer)
    }

    pub(crate) fn deserialize<'de, T: KeyType, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}
