//! Where a setting was written, so that an error leads there.

use std::fmt;

/// Where a setting was written. Places sort as a reader meets them: the file from top to bottom, then the overrides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere.
    Default,
    /// The file as a whole.
    File {
        /// Its name as given.
        file: String,
    },
    /// A character of the file.
    Position {
        /// The file's name as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The argument of a command that stands for a configuration.
    Argument {
        /// What was typed.
        text: String,
    },
    /// An override.
    Override {
        /// Its index among the overrides.
        index: usize,
        /// `KEY=VALUE` as typed.
        text: String,
    },
}

impl Place {
    /// The place of the byte at `offset` of `text`, the content of `file`.
    pub(crate) fn at(file: &str, text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::Position { file: file.to_owned(), line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    pub(crate) fn is_override(&self) -> bool {
        matches!(self, Place::Override { .. })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Default => out.write_str("the default"),
            Place::File { file } => write!(out, "{file}"),
            Place::Position { file, line, column } => write!(out, "{file}:{line}:{column}"),
            Place::Argument { text } => out.write_str(text),
            Place::Override { text, .. } => write!(out, "--set {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_start_at_one() {
        let text = "a = 1\n\"é\" = 2\n";
        assert_eq!(Place::at("f", text, 0).to_string(), "f:1:1");
        assert_eq!(Place::at("f", text, text.find('2').unwrap()).to_string(), "f:2:7");
        assert_eq!(Place::at("f", text, text.len()).to_string(), "f:3:1");
    }
}
