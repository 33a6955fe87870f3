//! The values that a key may take, as data: one declaration checks the value, words the error and fills the reference.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use toml::Value;

/// The values that a key may take within its type.
#[derive(Debug, Clone, Copy)]
pub enum Limits {
    /// Whatever the type allows.
    Any,
    /// Whole numbers, both ends included.
    Whole {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A few whole numbers.
    OneOf(&'static [usize]),
    /// Finite real numbers.
    Real {
        /// Lower end.
        low: Bound<f64>,
        /// Upper end.
        high: Bound<f64>,
    },
    /// Texts of a certain form.
    Text {
        /// The form in words.
        form: &'static str,
        /// Whether a text has it.
        accepts: fn(&str) -> bool,
    },
    /// A list of whole numbers that is not empty.
    List {
        /// Most items.
        longest: usize,
        /// The smallest item.
        least: u64,
        /// The largest item.
        most: u64,
    },
    /// A list of three whole numbers each, which may be empty.
    Triples {
        /// Most items.
        longest: usize,
        /// The smallest number.
        least: u64,
        /// The largest number.
        most: u64,
    },
}

/// TOML integers end here, so no whole number is larger.
pub(crate) const LARGEST: u64 = i64::MAX as u64;

pub(crate) const fn whole(least: u64, most: u64) -> Limits {
    Limits::Whole { least, most }
}

pub(crate) const fn at_least(least: u64) -> Limits {
    whole(least, LARGEST)
}

/// `[low, high]`.
pub(crate) const fn between(low: f64, high: f64) -> Limits {
    Limits::Real { low: Bound::Included(low), high: Bound::Included(high) }
}

/// `[low, high)`.
pub(crate) const fn below(low: f64, high: f64) -> Limits {
    Limits::Real { low: Bound::Included(low), high: Bound::Excluded(high) }
}

/// `(0, high]`.
pub(crate) const fn positive_up_to(high: f64) -> Limits {
    Limits::Real { low: Bound::Excluded(0.0), high: Bound::Included(high) }
}

/// `(0, infinity)`.
pub(crate) const fn positive() -> Limits {
    Limits::Real { low: Bound::Excluded(0.0), high: Bound::Unbounded }
}

/// Every finite real number.
pub(crate) const fn finite() -> Limits {
    Limits::Real { low: Bound::Unbounded, high: Bound::Unbounded }
}

impl Limits {
    /// Whether `value`, already known to have the key's type, lies within the limits.
    pub(crate) fn admit(&self, value: &Value) -> bool {
        match *self {
            Limits::Any => true,
            Limits::Whole { least, most } => is_within(value, least, most),
            Limits::OneOf(numbers) => numbers.iter().any(|&number| is_within(value, number as u64, number as u64)),
            Limits::Real { low, high } => {
                let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                number.is_some_and(|number| number.is_finite() && (low, high).contains(&number))
            }
            Limits::Text { accepts, .. } => value.as_str().is_some_and(accepts),
            Limits::List { longest, least, most } => value
                .as_array()
                .is_some_and(|items| (1..=longest).contains(&items.len()) && items.iter().all(|item| is_within(item, least, most))),
            Limits::Triples { longest, least, most } => value.as_array().is_some_and(|items| {
                let mut numbers = items.iter().flat_map(|item| item.as_array().into_iter().flatten());
                items.len() <= longest && numbers.all(|number| is_within(number, least, most))
            }),
        }
    }
}

fn is_within(value: &Value, least: u64, most: u64) -> bool {
    value.as_integer().and_then(|number| u64::try_from(number).ok()).is_some_and(|number| (least..=most).contains(&number))
}

impl fmt::Display for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limits::Any => Ok(()),
            Limits::Whole { least, most: LARGEST } => write!(out, "of at least {least}"),
            Limits::Whole { least, most } => write!(out, "from {least} to {most}"),
            Limits::OneOf(numbers) => {
                let (last, others) = numbers.split_last().expect("a choice among numbers has at least one");
                let others: Vec<String> = others.iter().map(usize::to_string).collect();
                write!(out, "among {} and {last}", others.join(", "))
            }
            Limits::Real { low, high } => match (low, high) {
                (Bound::Included(low), Bound::Included(high)) => write!(out, "from {low} to {high}"),
                (Bound::Included(low), Bound::Excluded(high)) => write!(out, "of at least {low} and below {high}"),
                (Bound::Excluded(low), Bound::Included(high)) => write!(out, "above {low} and at most {high}"),
                (Bound::Excluded(low), _) => write!(out, "above {low}"),
                _ => Ok(()),
            },
            Limits::Text { form, .. } => write!(out, "{form}"),
            Limits::List { longest, least, most } => write!(out, "a list of 1 to {longest} integers from {least} to {most}"),
            Limits::Triples { longest, least, most } => {
                write!(out, "a list of at most {longest} lists of 3 integers from {least} to {most}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_limits_include_and_exclude_their_ends() {
        let number = |value: f64| Value::Float(value);
        assert!(between(0.0, 1.0).admit(&number(0.0)) && between(0.0, 1.0).admit(&number(1.0)));
        assert!(below(0.0, 1.0).admit(&number(0.0)) && !below(0.0, 1.0).admit(&number(1.0)));
        assert!(!positive_up_to(1.0).admit(&number(0.0)) && positive_up_to(1.0).admit(&number(1.0)));
        assert!(!positive().admit(&number(0.0)) && positive().admit(&number(1e300)));
    }

    #[test]
    fn numbers_that_are_not_finite_are_never_within_limits() {
        for limits in [finite(), positive(), between(0.0, 1.0)] {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(!limits.admit(&Value::Float(value)), "{limits:?} let {value} through");
            }
        }
    }

    #[test]
    fn whole_limits_refuse_negative_numbers() {
        assert!(!whole(0, 8).admit(&Value::Integer(-1)));
        assert!(whole(0, 8).admit(&Value::Integer(8)) && !whole(0, 8).admit(&Value::Integer(9)));
    }

    #[test]
    fn a_list_is_neither_empty_nor_longer_than_allowed() {
        let limits = Limits::List { longest: 2, least: 1, most: 9 };
        let list = |items: &[i64]| Value::Array(items.iter().copied().map(Value::Integer).collect());
        assert!(!limits.admit(&list(&[])) && limits.admit(&list(&[1, 9])));
        assert!(!limits.admit(&list(&[1, 2, 3])) && !limits.admit(&list(&[0])));
    }

    #[test]
    fn a_list_of_triples_may_be_empty_and_limits_every_number() {
        let limits = Limits::Triples { longest: 2, least: 1, most: 9 };
        let admits = |text: &str| limits.admit(&text.parse::<toml::Table>().unwrap()["list"]);
        assert!(admits("list = []") && admits("list = [[1, 9, 2], [3, 3, 3]]"));
        assert!(!admits("list = [[1, 2, 10]]") && !admits("list = [[0, 2, 1]]"));
        assert!(!admits("list = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]"));
    }
}
