//! The numbers that are fitted to the machine (knobs), and a choice of a value for each of them (a setting).

use serde::{Deserialize, Serialize, Serializer};

/// A number that the tuner may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// How many processes act.
    Actors,
    /// Environments that each of them steps with one batched inference.
    Environments,
    /// Transitions per update, over all learners.
    BatchSize,
}

impl Knob {
    /// Every knob, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Actors, Self::Environments, Self::BatchSize];

    /// The key of the configuration that the knob changes.
    pub fn key(self) -> &'static str {
        match self {
            Self::Actors => "actor.count",
            Self::Environments => "actor.environments",
            Self::BatchSize => "learner.batch_size",
        }
    }
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

/// A value for every knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Setting {
    /// Actor processes.
    pub actors: usize,
    /// Environments of each actor.
    pub environments: usize,
    /// Transitions per update.
    pub batch_size: usize,
}

impl Setting {
    /// The value of `knob`.
    pub fn value(&self, knob: Knob) -> usize {
        match knob {
            Knob::Actors => self.actors,
            Knob::Environments => self.environments,
            Knob::BatchSize => self.batch_size,
        }
    }

    /// This setting with another value for `knob`.
    #[must_use]
    pub fn with(self, knob: Knob, value: usize) -> Self {
        match knob {
            Knob::Actors => Self { actors: value, ..self },
            Knob::Environments => Self { environments: value, ..self },
            Knob::BatchSize => Self { batch_size: value, ..self },
        }
    }

    /// The options that start a run with this setting:
    /// `--set actor.count=3 --set actor.environments=8 --set learner.batch_size=512`.
    pub fn flags(&self) -> String {
        Knob::ALL.map(|knob| format!("--set {}={}", knob.key(), self.value(knob))).join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_what_a_user_would_type() {
        let setting = Setting { actors: 3, environments: 8, batch_size: 512 };
        assert_eq!(setting.flags(), "--set actor.count=3 --set actor.environments=8 --set learner.batch_size=512");
    }

    #[test]
    fn a_changed_knob_leaves_the_others() {
        let setting = Setting { actors: 3, environments: 8, batch_size: 512 };
        for knob in Knob::ALL {
            let changed = setting.with(knob, 7);
            assert!(Knob::ALL.iter().all(|&other| changed.value(other) == if other == knob { 7 } else { setting.value(other) }));
        }
    }
}
