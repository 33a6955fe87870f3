//! From the text of a file to entries: every key with its value and both their places.

use toml::Value;
use toml::de::{DeTable, DeValue};

use super::advice;
use super::error::{ConfigError, Problem};
use super::key::Table;
use super::key_type::NONE;
use super::own::OWN;
use super::place::Place;

/// One assignment, of a file or an override.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `table.key` as written.
    pub(crate) path: String,
    /// The value, without places.
    pub(crate) value: Value,
    /// The value as written, on one line.
    pub(crate) text: String,
    /// Where the key is.
    pub(crate) key_place: Place,
    /// Where the value is.
    pub(crate) value_place: Place,
}

impl Entry {
    /// An entry for a text that is neither in a file nor in an override.
    pub(super) fn unwritten(path: &str, text: &str, place: Place) -> Self {
        Self {
            path: path.to_owned(),
            value: Value::String(text.to_owned()),
            text: text.to_owned(),
            key_place: place.clone(),
            value_place: place,
        }
    }

    /// Whether the key is one of `[own]`, which only the algorithm can check.
    pub(super) fn is_own(&self) -> bool {
        self.path.split('.').next() == Some(OWN)
    }
}

/// The entries of a file.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Every `table.key = value`.
    pub(crate) entries: Vec<Entry>,
    /// Where each table begins.
    pub(crate) tables: Vec<(String, Place)>,
    /// Whether the text is not TOML, so that entries may be missing.
    pub(crate) is_broken: bool,
}

/// Reads `text`, the content of `file`; what is wrong with its form goes to `errors`.
pub(crate) fn read(text: &str, file: &str, errors: &mut Vec<ConfigError>) -> Document {
    let (root, syntax_errors) = DeTable::parse_recoverable(text);
    let place = |offset: usize| Place::at(file, text, offset);
    let mut document = Document { is_broken: !syntax_errors.is_empty(), ..Document::default() };
    for error in &syntax_errors {
        let at = error.span().map_or(0, |span| span.start);
        let problem = Problem::Syntax(in_words(error.message(), &text[at.min(text.len())..]));
        errors.push(ConfigError::new(place(at), "", problem));
    }
    if document.is_broken {
        // What a parser recovers from broken text is a guess; more errors about guesses would only hide the real one.
        return document;
    }
    for (name, content) in root.get_ref() {
        let table = name.get_ref().as_ref();
        let table_place = place(name.span().start);
        match content.get_ref() {
            DeValue::Table(keys) if is_table(table) => {
                for (key, value) in keys {
                    document.entries.push(Entry {
                        path: format!("{table}.{}", key.get_ref()),
                        value: plain(value.get_ref()),
                        text: one_line(&text[value.span()]),
                        key_place: place(key.span().start),
                        value_place: place(value.span().start),
                    });
                }
                document.tables.push((table.to_owned(), table_place));
            }
            value => errors.push(stray(table, value, table_place)),
        }
    }
    document
}

/// The parser's `message`, or a clearer one for the text `rest` at which it stopped.
fn in_words(message: &str, rest: &str) -> String {
    if rest.split_whitespace().next() == Some(NONE) { format!("`{NONE}` stands in quotes: \"{NONE}\"") } else { message.to_owned() }
}

/// Whether `name` is a table: one that the schema declares, or `[own]`, whose keys the schema does not know.
pub(super) fn is_table(name: &str) -> bool {
    name == OWN || Table::find(name).is_some()
}

/// The error for what stands at the top level and is no known table.
fn stray(name: &str, value: &DeValue<'_>, place: Place) -> ConfigError {
    let problem = match value {
        DeValue::Table(_) => Problem::UnknownTable(advice::for_table(name)),
        _ if is_table(name) => Problem::WrongType {
            expected: format!("the table [{name}]"),
            found: type_name(&plain(value)),
            advice: format!("; write [{name}] on a line of its own and its keys below"),
        },
        _ => Problem::UnknownKey(advice::for_bare_key(name)),
    };
    ConfigError::new(place, name, problem)
}

/// `value` without its places. An integer beyond 64 bits becomes infinite: no key allows either.
pub(crate) fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => {
            i64::from_str_radix(digits.as_str(), digits.radix()).map_or(Value::Float(f64::INFINITY), Value::Integer)
        }
        DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| plain(item.get_ref())).collect()),
        DeValue::Table(keys) => Value::Table(keys.iter().map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref()))).collect()),
    }
}

/// The type of `value` as a noun.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(number) if number.is_infinite() => "a number beyond 64 bits",
        Value::Float(_) => "a float",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// `text` cut to one line of at most 60 characters.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 60;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}
