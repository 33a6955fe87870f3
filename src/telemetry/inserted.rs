//! How much each process inserted, which shows whether the rate limiter gives every actor its share.

use std::fmt;

use serde::Serialize;

use crate::readable::grouped;

/// Up to this many processes are named one by one; of more, those with the least and the most.
const NAMED: usize = 8;

/// What one process inserted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inserted {
    /// Role and number of the process.
    pub process: String,
    /// Transitions or fragments that it inserted.
    #[serde(rename = "transitions")]
    pub rows: u64,
}

/// What each process inserted, in the order of the process table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct InsertedByProcess(pub Vec<Inserted>);

impl InsertedByProcess {
    /// Whether there is anything to compare.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }
}

impl fmt::Display for InsertedByProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.0.iter().map(|inserted| inserted.rows).sum();
        let share = |inserted: &Inserted| format!("{} {:.1} %", inserted.process, 100.0 * inserted.rows as f64 / all.max(1) as f64);
        let extremes = (self.0.iter().min_by_key(|inserted| inserted.rows), self.0.iter().max_by_key(|inserted| inserted.rows));
        let named: Vec<String> = match extremes {
            (Some(least), Some(most)) if self.0.len() > NAMED => {
                let equal = format!("each of {} would have {:.1} %", self.0.len(), 100.0 / self.0.len() as f64);
                vec![format!("least {}", share(least)), format!("most {}", share(most)), equal]
            }
            _ => self.0.iter().map(share).collect(),
        };
        write!(formatter, "{} rows: {}", grouped(all), named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(rows: &[u64]) -> InsertedByProcess {
        let inserted = |(number, &rows)| Inserted { process: format!("actor {number}"), rows };
        InsertedByProcess(rows.iter().enumerate().map(inserted).collect())
    }

    #[test]
    fn few_actors_are_named_one_by_one_and_of_many_the_extremes() {
        assert_eq!(shares(&[30_000, 10_000]).to_string(), "40,000 rows: actor 0 75.0 %, actor 1 25.0 %");
        let many = shares(&[100, 100, 40, 100, 100, 160, 100, 100, 100, 100]);
        assert_eq!(many.to_string(), "1,000 rows: least actor 2 4.0 %, most actor 5 16.0 %, each of 10 would have 10.0 %");
        assert!(many.are_several() && !shares(&[5]).are_several());
    }
}
