//! What the tuner says: a change of the setting, and a record of every probe that has ended.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::objective::Objective;
use super::setting::{Knob, Setting};
use super::statistics::Summary;

/// A setting to put in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// All of it.
    pub setting: Setting,
    /// Why, for people.
    pub reason: Reason,
}

/// Why something was decided; `Display` makes a clause of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A neighbour is tried, in this round of its probe.
    Trying {
        /// Counted from one.
        round: u32,
    },
    /// Home is measured again, to compare with.
    Comparing,
    /// The neighbour is better.
    Gain {
        /// By this share.
        gain: f64,
    },
    /// The neighbour is not better by enough.
    TooLittleGain {
        /// What was measured.
        gain: f64,
        /// What would have been enough.
        needed: f64,
    },
    /// The neighbour costs too much of one of two rates.
    Costs {
        /// The rate.
        rate: &'static str,
        /// What was measured.
        cost: f64,
    },
    /// A process could not be started, or failed again and again.
    ProcessFailed(String),
    /// Too little memory is left.
    Memory {
        /// The share that is used.
        used: f64,
        /// The share up to which that is accepted.
        limit: f64,
    },
    /// The run may use other cores than before.
    Cores {
        /// Before.
        before: usize,
        /// From now on.
        now: usize,
    },
    /// The objective at home has become another one.
    Drift,
    /// Processes crashed again and again.
    Disturbed {
        /// How often.
        times: u32,
    },
    /// The setting was not put in force, or nothing was learned with it.
    NothingMeasured {
        /// For how long.
        windows: u32,
    },
    /// The run is so far that nothing is tried any more.
    Frozen,
    /// The run has ended.
    RunEnded,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        match self {
            Self::Trying { round } => write!(formatter, "to try it, round {round}"),
            Self::Comparing => write!(formatter, "to compare with"),
            Self::Gain { gain } => write!(formatter, "{} more", percent(*gain)),
            Self::TooLittleGain { gain, needed } => {
                let than_home = if *gain < 0.0 { "less" } else { "more" };
                write!(formatter, "{} {than_home}, and less than {} more is not worth it", percent(gain.abs()), percent(*needed))
            }
            Self::Costs { rate, cost } => write!(formatter, "it costs {} of the {rate}", percent(*cost)),
            Self::ProcessFailed(message) => write!(formatter, "a process failed: {message}"),
            Self::Memory { used, limit } => write!(formatter, "{} of the memory is used, above {}", percent(*used), percent(*limit)),
            Self::Cores { before, now } => write!(formatter, "the run may use {now} cores instead of {before}"),
            Self::Drift => write!(formatter, "the machine has become faster or slower"),
            Self::Disturbed { times } => write!(formatter, "the probe was disturbed {times} times"),
            Self::NothingMeasured { windows } => {
                write!(formatter, "not in force, or nothing learned, for {windows} windows")
            }
            Self::Frozen => write!(formatter, "the run is past the steps in which settings are tried"),
            Self::RunEnded => write!(formatter, "the run ended"),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The neighbour became home.
    Accepted,
    /// Home stays.
    Rejected,
    /// Home stays, and nothing was judged.
    Abandoned,
}

/// A probe that has ended: one line of `adaptation.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Seconds since the run began, at its end.
    pub wall_s: f64,
    /// The knobs that were turned: one, or two at once.
    pub knobs: Vec<Knob>,
    /// Home.
    pub from: Setting,
    /// The neighbour.
    pub to: Setting,
    /// What was compared.
    pub objective: Objective,
    /// Rounds that were completed.
    pub rounds: u32,
    /// The objective at home before each of them; absent before the first.
    pub before: Option<Summary>,
    /// At the neighbour.
    pub tried: Option<Summary>,
    /// At home again.
    pub after: Option<Summary>,
    /// How it ended.
    pub verdict: Verdict,
    /// Why so.
    pub reason: Reason,
}
