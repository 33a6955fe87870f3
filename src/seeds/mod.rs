//! The same run with several seeds: started beside each other, then put side by side as a table and a plot.
//!
//! Each seed has a supervisor of its own, with a run folder of its own below one folder for all seeds. Nothing here
//! computes: the results of a run are read from its files.

mod curves;
mod error;
mod launch;
mod plot;
mod progress;
mod report;

pub use error::SeedsError;
pub use launch::{Ended, Event, Launch, Outcome};
pub use progress::Progress;
pub use report::{Report, SeedResult};

use std::collections::BTreeSet;
use std::str::FromStr;

/// Most seeds that one command may ask for.
const MOST_SEEDS: usize = 1_000;

/// A list of seeds as a user types it: `1-5`, `1,3,8-10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedList(Vec<u64>);

impl SeedList {
    /// The seeds, ascending.
    pub fn seeds(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for SeedList {
    type Err = SeedsError;

    fn from_str(text: &str) -> Result<Self, SeedsError> {
        let malformed = || SeedsError::List { text: text.to_owned(), limit: MOST_SEEDS };
        let mut seeds = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u64>().map_err(|_| malformed());
            let first = number(first)?;
            let last = number(last)?;
            if first > last {
                return Err(SeedsError::Order { first, last });
            }
            // `run.seed` is an integer of TOML.
            if last - first >= MOST_SEEDS as u64 || i64::try_from(last).is_err() {
                return Err(malformed());
            }
            seeds.extend(first..=last);
        }
        if seeds.len() > MOST_SEEDS { Err(malformed()) } else { Ok(Self(seeds.into_iter().collect())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges_each_once() {
        let seeds = |text: &str| text.parse::<SeedList>().map(|list| list.seeds().to_vec());
        assert_eq!(seeds("1-5").unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(seeds("8, 1,3-4,3").unwrap(), [1, 3, 4, 8]);
        for wrong in ["", "a", "5-1", "1-", "-3", "1-1001", "0-500,600-1200", "9223372036854775808"] {
            let error = seeds(wrong).unwrap_err().to_string();
            assert!(error.contains("1-5"), "{error}");
        }
        let downwards = seeds("3-1").unwrap_err().to_string();
        assert!(downwards.contains("3 is above 1"), "{downwards}");
    }
}
