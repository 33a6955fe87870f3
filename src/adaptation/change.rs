//! What the tuner says: a change of the setting, and a record of every probe that has ended.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::median::Summary;
use super::objective::Objective;
use super::setting::{Knob, Setting};

/// A setting to put in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The whole setting.
    pub setting: Setting,
    /// Why it is to be put in force, for people.
    pub reason: Reason,
}

/// Why something was decided; `Display` makes a clause of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A candidate is tried, in this round of its probe.
    Trying {
        /// Number of the round, from 1.
        round: u32,
    },
    /// Home is measured again, to compare with.
    Comparing,
    /// The candidate is better.
    Gain {
        /// Its gain as a share of home.
        gain: f64,
    },
    /// The candidate is not better by enough.
    TooLittleGain {
        /// Its gain as a share of home.
        gain: f64,
        /// The gain that would have been enough.
        needed: f64,
    },
    /// The candidate costs too much of one of two rates.
    Costs {
        /// Name of the rate.
        rate: &'static str,
        /// Its loss as a share of home.
        cost: f64,
    },
    /// A process could not be started, or failed again and again; the message says how.
    ProcessFailed(String),
    /// Too little memory is left.
    Memory {
        /// Share of the memory that is used.
        used: f64,
        /// Share of the memory that may be used.
        limit: f64,
    },
    /// The run may use another number of cores.
    Cores {
        /// Number before.
        before: usize,
        /// Number from now on.
        now: usize,
    },
    /// The objective at home has drifted from what it was.
    Drift,
    /// Disturbances, such as crashes, came again and again.
    Disturbed {
        /// How many there were.
        times: u32,
    },
    /// The setting was not put in force, or nothing was learned with it.
    NothingMeasured {
        /// For how many windows.
        windows: u32,
    },
    /// The run is past the steps in which settings are tried.
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
            Self::Cores { before, now } => {
                let plural = if *now == 1 { "" } else { "s" };
                write!(formatter, "the run may use {now} core{plural} instead of {before}")
            }
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
    /// The candidate became home.
    Accepted,
    /// The candidate was judged, and home stays.
    Rejected,
    /// The probe ended without a judgement and home stays; or an accepted candidate could not be kept.
    Abandoned,
}

/// A probe that has ended: one line of `adaptation.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Seconds from the start of the run to the end of the probe.
    pub wall_s: f64,
    /// The knobs that were turned: one, or two at once.
    pub knobs: Vec<Knob>,
    /// Home.
    pub from: Setting,
    /// The candidate.
    pub to: Setting,
    /// What was compared.
    pub objective: Objective,
    /// Rounds that were completed.
    pub rounds: u32,
    /// The objective at home before each completed round; absent without one.
    pub before: Option<Summary>,
    /// The objective at the candidate; absent without a completed round.
    pub tried: Option<Summary>,
    /// The objective at home after each completed round; absent without one.
    pub after: Option<Summary>,
    /// How the probe ended.
    pub verdict: Verdict,
    /// Why it ended so.
    pub reason: Reason,
}
