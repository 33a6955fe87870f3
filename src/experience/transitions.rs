//! Experience as n-step transitions in a prioritized table: what off-policy algorithms learn from.

use super::n_step::{NStep, Ready, Taken};
use super::prioritized::Prioritized;
use super::transition::{
    ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, OBSERVATIONS, REWARD, REWARDS, continuous, discrete, flags,
};
use super::{Experience, Recorder, Seat, Source, SourceError, Steps};
use crate::config::Config;
use crate::config::schema::InitialPriority;
use crate::environments::{ActionSpace, EnvironmentSpec};
use crate::replay::{Priority, RateLimiter, Schema, StagingArea};

/// Transitions of one environment, as a configuration describes them.
pub struct Transitions {
    config: Config,
    schema: Schema,
}

impl Transitions {
    /// Transitions of `environment`, with its kind of action.
    pub fn new(config: &Config, environment: &EnvironmentSpec) -> Self {
        let schema = match &environment.action {
            ActionSpace::Discrete { .. } => discrete(environment.observation.len()),
            ActionSpace::Box { low, .. } => continuous(environment.observation.len(), low.len()),
        };
        Self { config: config.clone(), schema }
    }
}

impl Experience for Transitions {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn observation_fields(&self) -> &'static [usize] {
        OBSERVATIONS
    }

    fn reward_fields(&self) -> &'static [usize] {
        REWARDS
    }

    fn limiter(&self) -> RateLimiter {
        RateLimiter {
            min_size: self.config.replay.min_size as u64,
            samples_per_insert: self.config.replay.samples_per_insert,
            error_band: self.config.effective_error_band().unwrap_or(f64::INFINITY),
        }
    }

    fn recorder(&self, environments: usize) -> Box<dyn Recorder> {
        Box::new(TransitionRecorder::new(&self.config, self.schema.clone(), environments))
    }

    fn source<'a>(&self, seat: Seat<'a, '_>) -> Result<Box<dyn Source + 'a>, SourceError> {
        Ok(Box::new(Prioritized::new(&self.config, &self.schema, self.limiter(), seat)?))
    }
}

/// Forms n-step transitions and stages them, each with its first priority.
struct TransitionRecorder {
    schema: Schema,
    memories: Vec<NStep>,
    /// Epsilon and alpha of priorities by temporal-difference errors; without them new transitions count as the most urgent.
    by_error: Option<(f32, f32)>,
}

impl TransitionRecorder {
    #[expect(clippy::cast_possible_truncation, reason = "discounts and priorities need no more than an f32")]
    fn new(config: &Config, schema: Schema, environments: usize) -> Self {
        let replay = &config.replay;
        let by_error = match replay.initial_priority {
            InitialPriority::Max => None,
            InitialPriority::TdError => Some((replay.priority_epsilon as f32, replay.alpha as f32)),
        };
        let memory = NStep::new(config.algorithm.n_step, config.algorithm.gamma as f32);
        Self { schema, memories: vec![memory; environments], by_error }
    }
}

impl Recorder for TransitionRecorder {
    fn record(&mut self, steps: &Steps<'_>, area: StagingArea<'_>) {
        let count = self.memories.len();
        let (length, lanes) = (steps.observations.len() / count, steps.actions.len() / count);
        for (index, memory) in self.memories.iter_mut().enumerate() {
            let step = Taken {
                observation: &steps.observations[index * length..][..length],
                action: &steps.actions[index * lanes..][..lanes],
                value: steps.choices[index].value,
                reward: steps.rewards[index],
                next_observation: &steps.next_observations[index * length..][..length],
                terminated: steps.terminated[index],
                truncated: steps.truncated[index],
            };
            memory.push(step, |ready| {
                let priority = self.by_error.and_then(|(epsilon, alpha)| priority(&ready, steps.next_values[index], epsilon, alpha));
                write(area, &self.schema, &ready, priority);
            });
        }
    }
}

/// Priority of a new transition under the actor's own parameters (Ape-X); `bootstrap_value` is the value of where it ends.
fn priority(ready: &Ready<'_>, bootstrap_value: f32, epsilon: f32, alpha: f32) -> Option<Priority> {
    let following = if ready.terminated { 0.0 } else { ready.discount * bootstrap_value };
    Priority::from_error(ready.reward + following - ready.value, epsilon, alpha)
}

fn write(area: StagingArea<'_>, schema: &Schema, ready: &Ready<'_>, priority: Option<Priority>) {
    let mut writer = area.write(schema);
    writer
        .f32(OBSERVATION, ready.observation)
        .lanes(ACTION, ready.action)
        .f32(REWARD, &[ready.reward])
        .f32(DISCOUNT, &[ready.discount])
        .i32(FLAGS, &[flags(ready.terminated, ready.truncated)])
        .f32(NEXT_OBSERVATION, ready.next_observation);
    writer.commit(priority);
}
