//! Experience as fragments of trajectories, each taken once and in order, as in IMPALA (Espeholt et al. 2018): what
//! on-policy algorithms learn from. Some fragments may be replayed later.

use super::fragment::{ACTIONS, AGES, FLAGS, FRAMES, FragmentShape, LENGTH, LOG_PROBABILITIES, PARAMETER_UPDATES, REWARDS};
use super::in_order::InOrder;
use super::transition::flags;
use super::{Experience, Recorder, Seat, Source, SourceError, Steps, Storage};
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::replay::{FRESH, RateLimiter, Replay, Schema, StagingArea};

/// Fragments of one environment, as a configuration describes them.
pub struct Fragments {
    config: Config,
    shape: FragmentShape,
    reuse: Reuse,
}

/// How often an algorithm uses batches and fragments, and when actors wait for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reuse {
    /// Batches that a learner keeps; an update takes any of them.
    pub kept_batches: usize,
    /// Updates from each batch.
    pub uses: usize,
    /// Updates between the parameters that made a fragment and the newest ones, beyond which the fragment is dropped;
    /// `None` keeps all.
    pub max_policy_lag_updates: Option<u64>,
    /// Fragments that nobody has taken, beyond which actors wait. With `None` actors never wait, and
    /// overwrite such fragments.
    pub most_waiting: Option<usize>,
    /// Fragments of a learner's part of a batch that are replayed: drawn from those that were taken before.
    pub replayed: usize,
    /// Fragments that are kept for replaying after they were taken.
    pub retained: usize,
}

impl Fragments {
    /// Fragments of `environment`.
    pub fn new(config: &Config, environment: &EnvironmentSpec, reuse: Reuse) -> Self {
        Self { config: config.clone(), shape: FragmentShape::new(config.fragments.length_steps, environment), reuse }
    }

    /// Sizes of the fragments.
    pub fn shape(&self) -> &FragmentShape {
        &self.shape
    }
}

impl Experience for Fragments {
    fn schema(&self) -> Schema {
        self.shape.schema()
    }

    fn is_on_policy(&self) -> bool {
        true
    }

    fn observation_fields(&self) -> &'static [usize] {
        &[FRAMES]
    }

    fn reward_fields(&self) -> &'static [usize] {
        &[REWARDS]
    }

    fn storage(&self) -> Storage {
        Storage {
            capacity: self.config.fragment_capacity() + self.reuse.retained,
            fanout: self.config.replay.fanout,
            flush_rows: 1,
            largest_flush_rows: self.config.actor.environments,
        }
    }

    fn limiter(&self) -> RateLimiter {
        let waits = self.reuse.most_waiting.is_some();
        RateLimiter {
            min_size: 0,
            samples_per_insert: waits.then_some(1.0),
            // If actors run free, fragments that nobody learns from are not a surplus that anybody waits for.
            takes_once: waits,
            error_band: self.reuse.most_waiting.unwrap_or(0) as f64,
        }
    }

    fn recorder(&self, environments: usize) -> Box<dyn Recorder> {
        let schema = self.schema();
        Box::new(FragmentRecorder { pending: vec![Pending::new(&self.shape); environments], shape: self.shape.clone(), schema })
    }

    fn source<'a>(&self, seat: Seat<'a, '_>) -> Result<Box<dyn Source + 'a>, SourceError> {
        let fragments = self.config.fragments_per_batch() / self.config.learner.count;
        Ok(Box::new(InOrder::new(self.reuse, fragments, self.config.learner.prefetch, &self.schema(), &seat)?))
    }
}

/// Puts fragments together, and stages each once it is complete. A killed actor loses those that it had begun: at most
/// one of each of its environments.
struct FragmentRecorder {
    shape: FragmentShape,
    schema: Schema,
    pending: Vec<Pending>,
}

/// A fragment that is not complete.
#[derive(Clone)]
struct Pending {
    frames: Vec<u8>,
    actions: Vec<u32>,
    rewards: Vec<f32>,
    flags: Vec<i32>,
    log_probabilities: Vec<f32>,
    ages: Vec<i32>,
    /// Steps in the fragment so far.
    length: usize,
    /// Steps of the episode before the next step.
    age: i32,
    parameter_updates: u64,
}

impl Pending {
    fn new(shape: &FragmentShape) -> Self {
        Self {
            frames: vec![0; shape.frames() * shape.frame_bytes()],
            actions: vec![0; shape.steps * shape.action_lanes],
            rewards: vec![0.0; shape.steps],
            flags: vec![0; shape.steps],
            log_probabilities: vec![0.0; shape.steps],
            ages: vec![0; shape.steps],
            length: 0,
            age: 0,
            parameter_updates: 0,
        }
    }

    /// Write the newest frame of `observation` behind those that are there.
    fn show(&mut self, shape: &FragmentShape, observation: &[u8]) {
        let bytes = shape.frame_bytes();
        let place = (shape.stack - 1 + self.length) * bytes;
        self.frames[place..place + bytes].copy_from_slice(&observation[(shape.stack - 1) * bytes..]);
    }

    fn write(&self, area: StagingArea<'_>, schema: &Schema) {
        let mut writer = area.write(schema);
        writer
            .part(FRAMES, &self.frames)
            .lanes(ACTIONS, &self.actions)
            .f32(REWARDS, &self.rewards)
            .i32(FLAGS, &self.flags)
            .f32(LOG_PROBABILITIES, &self.log_probabilities)
            .i32(AGES, &self.ages)
            .i32(LENGTH, &[i32::try_from(self.length).unwrap_or(i32::MAX)])
            .part(PARAMETER_UPDATES, &self.parameter_updates.to_le_bytes());
        writer.commit(Some(FRESH));
    }
}

impl Recorder for FragmentRecorder {
    fn record(&mut self, steps: &Steps<'_>, area: StagingArea<'_>, _replay: &Replay<'_>, chosen_by: &mut Vec<u64>) {
        let Self { shape, schema, pending } = self;
        let length = shape.observation_length();
        let lanes = shape.action_lanes;
        for (index, pending) in pending.iter_mut().enumerate() {
            let before = steps.observations.row(index, length).bytes();
            let at = pending.length;
            if at == 0 {
                pending.parameter_updates = steps.parameter_updates;
                pending.frames[..before.len()].copy_from_slice(before);
            } else {
                pending.show(shape, before);
            }
            pending.actions[at * lanes..][..lanes].copy_from_slice(&steps.actions[index * lanes..][..lanes]);
            pending.rewards[at] = steps.rewards[index];
            pending.flags[at] = flags(steps.terminated[index], steps.truncated[index]);
            pending.log_probabilities[at] = steps.choices[index].log_probability;
            pending.ages[at] = pending.age;
            pending.length += 1;
            let ended = steps.terminated[index] || steps.truncated[index];
            pending.age = if ended { 0 } else { pending.age.saturating_add(1) };
            // A truncation ends the fragment: the value of what would follow is that of the last observation.
            if pending.length == shape.steps || steps.truncated[index] {
                pending.show(shape, steps.next_observations.row(index, length).bytes());
                pending.write(area, schema);
                chosen_by.push(pending.parameter_updates);
                pending.length = 0;
            }
        }
    }
}
