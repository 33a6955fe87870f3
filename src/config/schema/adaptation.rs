//! Table `[adaptation]`.

use super::TRANSITION_ALGORITHMS;
use super::actor::{MOST_ACTORS, MOST_ENVIRONMENTS};
use super::learner::LARGEST_BATCH;
use crate::adaptation::Hold;
use crate::config::define::{choice, table};
use crate::config::limits::{Limits, between, whole};
use crate::config::{Choice, KeyType, Kind};

table! {
    /// A run that fits itself to the machine while it trains (docs/adaptation.md).
    [adaptation] AdaptationConfig {
        /// In the first part of the run, try other numbers of actors and of their environments, and other batches,
        /// and keep what is faster.
        enabled: bool = false, Limits::Any, "";
        /// The fewest actors that are tried.
        fewest_actors: usize = 1, whole(1, MOST_ACTORS), "processes";
        /// The most actors that are tried. `"none"` takes two for each core that the run may use (eight with
        /// `environment.step_delay_us`), or `actor.count` if that is more; it takes fewer if the replay has no room
        /// for what so many insert at once, or if fragments would be too old for learners.
        most_actors: Option<usize> = None, whole(1, MOST_ACTORS), "processes";
        /// The fewest environments of each actor that are tried.
        fewest_environments: usize = 1, whole(1, MOST_ENVIRONMENTS), "environments";
        /// The most environments of each actor that are tried. `"none"` takes four times `actor.environments`, or
        /// fewer for the reasons given for `most_actors`.
        most_environments: Option<usize> = None, whole(1, MOST_ENVIRONMENTS), "environments";
        /// The smallest batch that is tried. `"none"` takes `learner.batch_size`.
        smallest_batch: Option<usize> = None, whole(1, LARGEST_BATCH), "transitions", only TRANSITION_ALGORITHMS;
        /// The largest batch that is tried. `"none"` takes `learner.batch_size`, since larger batches may learn
        /// less from the same data.
        largest_batch: Option<usize> = None, whole(1, LARGEST_BATCH), "transitions", only TRANSITION_ALGORITHMS;
        /// What stays the same when the batch changes.
        hold: Hold = Hold::SamplesPerInsert, Limits::Any, "", only TRANSITION_ALGORITHMS;
        /// How Adam's step size follows the batch.
        step_size: StepSize = StepSize::None, Limits::Any, "", only TRANSITION_ALGORITHMS;
        /// The part of `run.stop_env_steps`, or of `run.stop_wall_s`, after which nothing more is tried.
        freeze_after: f64 = 0.2, between(0.0, 1.0), "of the run";
    }
}

impl KeyType for Hold {
    const KIND: Kind = Kind::Choice(&[
        Choice { word: "samples_per_insert", doc: "Each transition is drawn as often as before, so a larger batch makes fewer updates." },
        Choice {
            word: "updates_per_step",
            doc: "There are as many updates per environment step as before, so a larger batch draws each transition more often.",
        },
    ]);
}

choice! {
    /// How the step size follows the batch.
    StepSize {
        /// The step size stays as configured.
        None = "none",
        /// The step size grows with the square root of the batch, as the gradient's noise falls: the usual rule for
        /// Adam.
        Sqrt = "sqrt",
        /// The step size grows in proportion to the batch, as if the updates of several small batches were made at
        /// once: the usual rule for plain gradient descent.
        Linear = "linear",
    }
}

impl StepSize {
    /// The factor on the configured step size for a batch that is the configured one doubled `doublings` times, or
    /// halved so often if that is negative.
    pub fn factor(self, doublings: i8) -> f64 {
        let ratio = f64::from(doublings).exp2();
        match self {
            Self::None => 1.0,
            Self::Sqrt => ratio.sqrt(),
            Self::Linear => ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_beginning_outside_of_its_ranges_is_refused_with_both_numbers() {
        let refused = |changes: &[&str]| {
            let all: Vec<String> = ["adaptation.enabled=true"].iter().chain(changes).map(|&change| change.to_owned()).collect();
            Config::parse("[environment]\nid = \"CartPole-v1\"\n", "preset.toml", &all).err().map(|errors| errors.to_string())
        };
        assert_eq!(refused(&["adaptation.largest_batch=512", "adaptation.smallest_batch=1"]), None, "64 doubled and halved");
        for (changes, said) in [
            (&["actor.count=0"][..], "set actor.count to at least 1"),
            (&["actor.count=3", "adaptation.most_actors=2"], "actor.count 3, which is above adaptation.most_actors 2"),
            (&["adaptation.fewest_environments=9"], "actor.environments 8, which is below adaptation.fewest_environments 9"),
            (&["adaptation.largest_batch=100"], "largest_batch of 100 is not a learner.batch_size of 64 that is doubled"),
            (&["learner.count=2", "adaptation.smallest_batch=1"], "smallest_batch of 1 is not a learner.batch_size of 64"),
            (&["algorithm.name=ppo", "learner.batch_size=256", "adaptation.largest_batch=512"], "largest_batch"),
            (
                &["adaptation.largest_batch=512", "adaptation.step_size=linear", "learner.learning_rate=0.25"],
                "a learning rate of 0.25 becomes 2.0 with batches of 512 transitions",
            ),
        ] {
            let told = refused(changes).unwrap_or_default();
            assert!(told.contains(said), "{changes:?}: {told}");
        }
    }

    #[test]
    fn the_step_size_follows_the_batch_by_its_rule() {
        let factors = |doublings| [StepSize::None, StepSize::Sqrt, StepSize::Linear].map(|rule| rule.factor(doublings));
        assert_eq!(factors(0), [1.0, 1.0, 1.0]);
        assert_eq!(factors(2), [1.0, 2.0, 4.0]);
        assert_eq!(factors(-2), [1.0, 0.5, 0.25]);
    }
}
