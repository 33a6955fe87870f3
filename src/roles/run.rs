//! What every role of a run is given: the segment, the configuration, and its own slot in the process table.

use std::panic;
use std::sync::Mutex;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use thiserror::Error;

use super::configured_environment::{self, Look};
use crate::algorithms::{Algorithm, AlgorithmError, Random};
use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::environments::{EnvironmentError, EnvironmentSpec, Purpose, VectorEnvironment};
use crate::networks;
use crate::replay::{Replay, StagingArea};
use crate::segment::control::Control;
use crate::segment::counters::Counter;
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::segment::{Segment, system};
use crate::sync::{Ordering, monotonic_ns};

/// How long a process may take to leave, once it was asked to or the run ends, before it is killed.
pub(super) const LEAVING_PATIENCE: Duration = Duration::from_secs(10);

/// A gradient that is not finite within so few updates follows from the size of what was seen: steps have not led far yet.
const FIRST_UPDATES: u64 = 10;

/// Why a role had to give up. It ends up in the process's last words and in the supervisor's report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RoleError {
    /// The environment failed.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The algorithm could not be set up.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// There was no batch.
    #[error(transparent)]
    Source(#[from] crate::experience::SourceError),
    /// The gradient is no longer a number.
    #[error("the gradient of update {update} is not finite ({metrics}): training has diverged; {remedy}")]
    Diverged {
        /// Number of the update.
        update: u64,
        /// What it says of itself.
        metrics: String,
        /// What to change.
        remedy: String,
    },
    /// No learner has the learners' state in its memory, and what they published of it is damaged.
    #[error(
        "the learners' state in the run's shared memory is damaged: of version {version}, published last, nothing whole can be \
         read; end the run and resume it from its last checkpoint"
    )]
    StateLost {
        /// The version.
        version: u64,
    },
    /// A file could not be written.
    #[error(transparent)]
    Weights(#[from] crate::checkpoint::WeightsError),
    /// The supervisor could not be told.
    #[error("the supervisor did not take the evaluation: {reason}")]
    Report {
        /// What the channel said.
        reason: String,
    },
}

impl RoleError {
    /// The gradient of this `update`, which says `metrics` of itself, is no longer a number in a run that `config` describes.
    pub(super) fn diverged(config: &Config, update: u64, metrics: String) -> Self {
        let mut smaller_steps = "lower learner.learning_rate".to_owned();
        if config.learner.max_gradient_norm.is_none() {
            smaller_steps += ", or set learner.max_gradient_norm";
        }
        let mut normalised = Vec::new();
        // An auto-encoder takes bytes as they are.
        if !config.algorithm.normalise_observations && config.auto_encoder.coefficient == 0.0 {
            normalised.push("algorithm.normalise_observations=true");
        }
        if !config.algorithm.normalise_rewards {
            let with_priority = "algorithm.normalise_rewards=true and replay.initial_priority=max";
            normalised.push(if config.estimates_priorities() { with_priority } else { "algorithm.normalise_rewards=true" });
        }
        // No run that goes on may change what is normalised.
        let anew = format!("begin a new run with {}", normalised.join(", or "));
        let remedy = match update {
            _ if normalised.is_empty() => smaller_steps,
            ..=FIRST_UPDATES => format!("observations or rewards may be too large: {anew}, or {smaller_steps}"),
            _ => format!("{smaller_steps}, or {anew}"),
        };
        Self::Diverged { update, metrics, remedy }
    }
}

/// A run, as one of its processes sees it.
pub struct Run<'a> {
    /// The shared memory.
    pub segment: &'a Segment,
    /// The resolved configuration.
    pub config: &'a Config,
    /// The algorithm.
    pub algorithm: &'a dyn Algorithm,
    /// The environment's facts.
    pub environment: &'a EnvironmentSpec,
    /// What the program knows by name.
    pub catalogue: &'a Catalogue,
    /// This process's slot.
    pub process: ProcessSlot<'a>,
    /// What this process does.
    pub role: Role,
    /// Its number among its kind.
    pub number: usize,
    /// How often the slot has been given to a process, its generation. The synchronous trainer adds one after every checkpoint, where it
    /// starts over within the same process. Part of the seed, so that no two incarnations draw the same random numbers.
    pub incarnation: u64,
    /// Whether the supervisor still lives; only attached processes have to ask.
    pub supervisor_alive: &'a dyn Fn() -> bool,
}

impl<'a> Run<'a> {
    /// The run-wide words.
    pub fn control(&self) -> Control<'a> {
        self.segment.control()
    }

    /// The replay, as this process.
    pub fn replay(&self) -> Replay<'a> {
        Replay::new(self.segment, self.algorithm.schema(), self.process)
    }

    /// This process's staging area.
    pub fn staging_area(&self) -> StagingArea<'a> {
        StagingArea::of(self.segment, self.process.index())
    }

    /// Random numbers of this process: other roles, numbers and incarnations get others.
    pub fn random(&self) -> Random {
        Random::seed_from_u64(self.seed())
    }

    /// Seed of this process.
    pub fn seed(&self) -> u64 {
        let mixed = self.config.run.seed ^ (self.role as u64) << 56 ^ (self.number as u64) << 32 ^ self.incarnation << 16;
        // Neighbouring seeds lead far apart (Steele et al. 2014).
        SplitMix64::seed_from_u64(mixed).next_u64()
    }

    /// `count` environments for `purpose`, as the configuration describes them, not yet reset, for a process that starts.
    ///
    /// # Errors
    /// They cannot be made, or have changed since the run was planned.
    pub fn environments(&self, count: usize, purpose: Purpose) -> Result<VectorEnvironment, EnvironmentError> {
        let make = |_| {
            self.process.enter(Phase::Starting);
            configured_environment::make(self.catalogue, self.config, purpose, Look::Never)
        };
        let made = VectorEnvironment::new((0..count).map(make).collect::<Result<_, _>>()?)?;
        configured_environment::check_unchanged(made.spec(), &self.environment.spaces_in_words())?;
        Ok(made)
    }

    /// Whether the run ends, or this process was asked to leave.
    pub fn is_over(&self) -> bool {
        self.control().run_state().is_over() || system::stop_requested() || !(self.supervisor_alive)()
    }

    /// Before every sleep at the rate limiter: count the wait so far, for whoever looks meanwhile. Whether to wait on.
    pub fn waits_on(&self, laps: &mut Laps) -> bool {
        self.count_lap(Counter::LimiterWaitNs, laps);
        self.process.enter(Phase::LimiterWait);
        !self.is_over()
    }

    /// Count the time since the last lap.
    pub(super) fn count_lap(&self, counter: Counter, laps: &mut Laps) {
        self.process.counters().add(counter, laps.lap());
    }

    /// Count what this process's networks have computed since this was last called.
    pub fn count_products(&self) {
        self.process.counters().add(Counter::Products, networks::take_products());
    }

    /// Environment steps of the run.
    pub fn env_steps(&self) -> u64 {
        self.control().env_steps().load(Ordering::Relaxed)
    }
}

/// A clock that attributes time to what was just done.
pub struct Laps {
    last_ns: u64,
}

impl Laps {
    /// Start now.
    pub fn start() -> Self {
        Self { last_ns: monotonic_ns() }
    }

    /// Nanoseconds since the last lap.
    pub fn lap(&mut self) -> u64 {
        let now = monotonic_ns();
        let elapsed = now.saturating_sub(self.last_ns);
        self.last_ns = now;
        elapsed
    }

    /// When the last lap ended, in nanoseconds of the monotonic clock.
    pub fn last_lap_at_ns(&self) -> u64 {
        self.last_ns
    }
}

/// The message of the last panic, with its place.
static PANIC_MESSAGE: Mutex<String> = Mutex::new(String::new());

/// Run `body`; if it panics, leave the panic's message in the slot and return `None`.
pub fn catch_panic<T>(slot: ProcessSlot<'_>, body: impl FnOnce() -> T) -> Option<T> {
    panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("without a message");
        let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        if let Ok(mut kept) = PANIC_MESSAGE.lock() {
            *kept = format!("panicked{place}: {message}");
        }
    }));
    panic::catch_unwind(panic::AssertUnwindSafe(body))
        .inspect_err(|_| {
            if let Ok(message) = PANIC_MESSAGE.lock() {
                slot.set_last_words(&message);
            }
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::InitialPriority;

    #[test]
    fn who_has_diverged_is_told_only_what_is_not_done_yet_and_may_be_changed() {
        let advised_in = |update, change: fn(&mut Config)| {
            let mut config = Config::for_environment("CartPole-v1");
            change(&mut config);
            config.validate().unwrap();
            RoleError::diverged(&config, update, "loss inf".into()).to_string().split_once("training has diverged; ").unwrap().1.to_owned()
        };
        let advised = |change: fn(&mut Config)| advised_in(700, change);
        let normalised = "begin a new run with algorithm.normalise_observations=true, or algorithm.normalise_rewards=true";
        assert_eq!(advised(|_| {}), format!("lower learner.learning_rate, or {normalised}"));
        let both = |config: &mut Config| (config.algorithm.normalise_observations, config.algorithm.normalise_rewards) = (true, true);
        assert_eq!(advised(both), "lower learner.learning_rate");
        let [first, later] = [1, 11].map(|update| advised_in(update, |_| {}));
        assert_eq!(first, format!("observations or rewards may be too large: {normalised}, or lower learner.learning_rate"));
        assert_eq!((later, advised_in(1, both)), (advised(|_| {}), advised(both)));
        let unlimited = advised(|config| config.learner.max_gradient_norm = None);
        assert_eq!(unlimited, format!("lower learner.learning_rate, or set learner.max_gradient_norm, or {normalised}"));
        let by_error = advised(|config| config.replay.initial_priority = InitialPriority::TdError);
        assert_eq!(by_error, format!("lower learner.learning_rate, or {normalised} and replay.initial_priority=max"));
    }
}
