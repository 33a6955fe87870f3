//! Strings from a segment or a run's folder, made harmless and cut to a sane length.

use crate::readable::spell_out;

/// Characters of a string that are kept.
const LIMIT_CHARACTERS: usize = 400;
/// Characters of a path that are kept: Linux opens none that is longer.
const LIMIT_OF_PATHS: usize = 4_096;

/// The text with control and direction characters spelled out, cut to a sane length.
pub(super) fn printable(text: &str) -> String {
    cut(text, LIMIT_CHARACTERS)
}

/// The path with control and direction characters spelled out, whole.
pub(super) fn printable_path(path: &str) -> String {
    cut(path, LIMIT_OF_PATHS)
}

fn cut(text: &str, limit_characters: usize) -> String {
    let mut characters = text.chars();
    let mut kept = String::new();
    characters.by_ref().take(limit_characters).for_each(|character| spell_out(character, &mut kept));
    if characters.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_survives() {
        assert_eq!(printable("CartPole-v1 ü"), "CartPole-v1 ü");
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{9b}d\\u{202e}");
        assert_eq!(printable(&"x".repeat(10_000)).chars().count(), LIMIT_CHARACTERS + 1);
    }
}
