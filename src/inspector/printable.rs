//! Strings from a segment, made harmless.
//!
//! A hostile run could name itself with escape codes that rewrite the terminal; what reaches a report has none left.

/// Characters of a string that are kept.
const LIMIT_CHARACTERS: usize = 400;

/// The text with control and direction characters spelled out, cut to a sane length.
pub(super) fn printable(text: &str) -> String {
    let mut kept = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == LIMIT_CHARACTERS {
            kept.push('…');
            break;
        }
        let turns_direction = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns_direction {
            kept.extend(character.escape_default());
        } else {
            kept.push(character);
        }
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
