//! Numbers and durations as people read them, messages by their first line, paths as text, and text that steers no terminal.
//!
//! A hostile run could name itself with escape codes that rewrite the terminal. What is printed of it has none.

use std::path::PathBuf;

use serde::Serializer;

/// A count or rate with three significant digits: `950`, `8.42k`, `1.5M`.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    // A larger unit begins where rounding to three digits would show 1000 of the smaller one.
    let (scaled, prefix) = match magnitude {
        m if m < 999.5 => (value, ""),
        m if m < 999.5e3 => (value / 1e3, "k"),
        m if m < 999.5e6 => (value / 1e6, "M"),
        m if m < 999.5e9 => (value / 1e9, "G"),
        _ => return format!("{value:.2e}"),
    };
    let whole_count = prefix.is_empty() && value.fract() == 0.0;
    let decimals = match scaled.abs() {
        _ if whole_count => 0,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{scaled:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{prefix}")
}

/// A return, with a fixed number of decimals at each size, so that a line that changes does not jump.
pub(crate) fn score(value: f64) -> String {
    match value.abs() {
        s if s < 9.995 => format!("{value:.2}"),
        s if s < 9999.5 => format!("{value:.1}"),
        s if s < 999_999.5 => format!("{value:.0}"),
        _ => short(value),
    }
}

/// A duration: `0:34`, `12:05`, `3:04:05`, `2d 03:04`.
pub(crate) fn clock(seconds: f64) -> String {
    let total = seconds.max(0.0).round() as u64;
    let (days, hours, minutes, rest) = (total / 86_400, total / 3600 % 24, total / 60 % 60, total % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{rest:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

/// A count with its digits in groups: `212,480`.
pub(crate) fn grouped(count: u64) -> String {
    indicatif::HumanCount(count).to_string()
}

/// A share as a whole percentage: `71 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A count of something with a regular plural: `1 core`, `3,000 evaluations`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// The first line of a message, and the lines below that explain it, such as a traceback.
pub(crate) fn headline_and_details(message: &str) -> (&str, &str) {
    message.split_once('\n').unwrap_or((message, ""))
}

/// Serialises any path nearly as it is: serde refuses one that is not UTF-8, and with it all that the path is part of.
pub(crate) fn as_text<'a, S: Serializer>(path: impl Into<Option<&'a PathBuf>>, serializer: S) -> Result<S::Ok, S::Error> {
    match path.into() {
        Some(path) => serializer.collect_str(&path.display()),
        None => serializer.serialize_none(),
    }
}

/// The lines of the text, whole, with all other control and direction characters spelled out.
pub(crate) fn harmless(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        if character == '\n' { kept.push(character) } else { spell_out(character, &mut kept) }
    }
    kept
}

/// Adds the character to `text`, spelled out if it controls a terminal or turns the direction of what follows.
pub(crate) fn spell_out(character: char, text: &mut String) {
    let turns_direction = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns_direction {
        text.extend(character.escape_default());
    } else {
        text.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_steers_a_terminal_the_ends_of_lines_alone_survive() {
        let long = "x".repeat(10_000);
        assert_eq!(harmless(&format!("two\nlines\u{1b}[2J\r{long}")), format!("two\nlines\\u{{1b}}[2J\\r{long}"));
    }

    #[test]
    fn counts_keep_three_digits_at_every_prefix() {
        let shown = [0.0, 7.0, 0.25, 999.0, 999.6, 1000.0, 8421.0, 212_480.0, 999_499.0, 999_600.0, 1_500_000.0, 2.5e9, -8421.0].map(short);
        assert_eq!(shown, ["0", "7", "0.25", "999", "1k", "1k", "8.42k", "212k", "999k", "1M", "1.5M", "2.5G", "-8.42k"]);
    }

    #[test]
    fn durations_grow_from_minutes_to_days() {
        let shown = [0.0, 34.2, 725.0, 11_045.0, 183_840.0].map(clock);
        assert_eq!(shown, ["0:00", "0:34", "12:05", "3:04:05", "2d 03:04"]);
    }

    #[test]
    fn scores_keep_their_decimals() {
        assert_eq!([1.5, -150.25, 500.0, 12_345.0, 1.5e6].map(score), ["1.50", "-150.2", "500.0", "12345", "1.5M"]);
    }
}
