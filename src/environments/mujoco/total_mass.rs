//! Keeps MuJoCo quiet about an attribute that Gymnasium's half cheetah has and MuJoCo is about to retire.
//!
//! Its parser answers `settotalmass` with a warning, on the terminal and in a file MUJOCO_LOG.TXT in the folder where the user
//! stands, once per process. The compiler behind it takes the same number without a word, and makes the same model of it.

use std::borrow::Cow;

const ATTRIBUTE: &str = " settotalmass=\"";

/// The text without the attribute, and its value in kilograms. A text without it, or with a value that is no number, stays as
/// it is and is left to the parser.
pub(super) fn take(text: &str) -> (Cow<'_, str>, Option<f64>) {
    let parts = || {
        let (before, rest) = text.split_once(ATTRIBUTE)?;
        let (value, after) = rest.split_once('"')?;
        let total_mass_kg: f64 = value.trim().parse().ok()?;
        Some((Cow::Owned(format!("{before}{after}")), Some(total_mass_kg)))
    };
    parts().unwrap_or((Cow::Borrowed(text), None))
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn the_attribute_is_taken_out_with_its_value() {
        let (text, total_mass_kg) = take(r#"<compiler angle="radian" settotalmass="14"/>"#);
        assert_eq!(text, r#"<compiler angle="radian"/>"#);
        assert_eq!(total_mass_kg, Some(14.0));
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in [r#"<compiler angle="radian"/>"#, r#"<compiler settotalmass="heavy"/>"#, r#"<compiler settotalmass="14"#] {
            assert_eq!(take(text), (text.into(), None));
        }
    }
}
