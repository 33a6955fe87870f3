//! Experience as n-step transitions in a prioritized table: what off-policy algorithms learn from.

use super::prioritized::Prioritized;
use super::transition::{self, ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, OBSERVATIONS, REWARD, REWARDS, flags};
use super::uncounted::Uncounted;
use super::{Experience, Recorder, Seat, Source, SourceError, Steps, Storage};
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::replay::{Field, NStep, Priority, RateLimiter, RecentFrames, Replay, Return, Schema, StagingArea};
use crate::values::Values;

/// Transitions of one environment, as a configuration describes them.
pub struct Transitions {
    config: Config,
    schema: Schema,
}

impl Transitions {
    /// Transitions of `environment`, with its kind of action.
    pub fn new(config: &Config, environment: &EnvironmentSpec) -> Self {
        Self { config: config.clone(), schema: transition::schema(environment) }
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

    fn storage(&self) -> Storage {
        let replay = &self.config.replay;
        Storage {
            capacity: replay.capacity,
            fanout: if replay.prioritized { replay.fanout } else { 0 },
            flush_rows: self.config.actor.flush_transitions,
            largest_flush_rows: self.config.largest_flush_transitions(),
        }
    }

    fn limiter(&self) -> RateLimiter {
        RateLimiter {
            min_size: self.config.replay.min_size as u64,
            samples_per_insert: self.config.replay.samples_per_insert,
            takes_once: false,
            error_band: self.config.effective_error_band().unwrap_or(f64::INFINITY),
        }
    }

    fn recorder(&self, environments: usize) -> Box<dyn Recorder> {
        Box::new(TransitionRecorder::new(&self.config, self.schema.clone(), environments))
    }

    fn source<'a>(&self, seat: Seat<'a, '_>) -> Result<Box<dyn Source + 'a>, SourceError> {
        if !seat.is_counted {
            return Ok(Box::new(Uncounted::new(&self.config, &self.schema, self.limiter(), &seat)));
        }
        Ok(Box::new(Prioritized::new(&self.config, &self.schema, self.limiter(), seat)?))
    }
}

/// Forms n-step transitions and stages them, each with its first priority.
struct TransitionRecorder {
    schema: Schema,
    memories: Vec<NStep<Start>>,
    /// The frames written last, if observations are made of frames.
    frames: Option<RecentFrames>,
    /// Buffers for the names of an observation's frames: where a step starts, and where it leads.
    names: [Vec<u64>; 2],
    /// Epsilon and alpha of priorities by temporal-difference errors; without them new transitions
    /// count as the most urgent.
    by_error: Option<(f32, f32)>,
}

/// The step in which a transition starts.
#[derive(Clone, Default)]
struct Start {
    /// Bytes as they will lie in a row: of the observation's values, or of the names of its frames.
    observation: Vec<u8>,
    /// In 32-bit lanes.
    action: Vec<u32>,
    /// Value that the actor gave to the action.
    value: f32,
}

/// The step in which a transition ends.
struct End<'a> {
    observation: &'a [u8],
    terminated: bool,
    truncated: bool,
}

impl TransitionRecorder {
    fn new(config: &Config, schema: Schema, environments: usize) -> Self {
        let replay = &config.replay;
        let by_error = config.estimates_priorities().then_some((replay.priority_epsilon as f32, replay.alpha as f32));
        let memory = NStep::new(config.algorithm.n_step, config.algorithm.gamma as f32);
        let stack = schema.fields()[OBSERVATION].stack;
        Self {
            schema,
            memories: vec![memory; environments],
            frames: (stack > 0).then(|| RecentFrames::of(environments, stack)),
            names: Default::default(),
            by_error,
        }
    }
}

impl Recorder for TransitionRecorder {
    fn record(&mut self, steps: &Steps<'_>, area: StagingArea<'_>, replay: &Replay<'_>, chosen_by: &mut Vec<u64>) {
        let count = self.memories.len();
        let Self { schema, memories, frames, names: [names, next_names], by_error } = self;
        let length = steps.observations.len() / count;
        let lanes = steps.actions.len() / count;
        for (index, memory) in memories.iter_mut().enumerate() {
            let fields = schema.fields();
            let observation = part(steps.observations.row(index, length), &fields[OBSERVATION], replay, frames, names);
            let end = End {
                observation: part(steps.next_observations.row(index, length), &fields[NEXT_OBSERVATION], replay, frames, next_names),
                terminated: steps.terminated[index],
                truncated: steps.truncated[index],
            };
            let remember = |start: &mut Start| {
                start.observation.clear();
                start.observation.extend_from_slice(observation);
                start.action.clear();
                start.action.extend_from_slice(&steps.actions[index * lanes..][..lanes]);
                start.value = steps.choices[index].value;
            };
            memory.push(steps.rewards[index].into(), end.terminated || end.truncated, remember, |start, rewards| {
                // The priority is the error under the actor's own parameters (Ape-X). Nothing
                // follows a terminated step.
                let bootstrap_value = if end.terminated { 0.0 } else { steps.next_values[index] };
                let priority = by_error.and_then(|(epsilon, alpha)| {
                    Priority::from_error(rewards.reward as f32 + rewards.discount * bootstrap_value - start.value, epsilon, alpha)
                });
                write(area, schema, start, rewards, &end, priority);
                chosen_by.push(steps.parameter_updates);
            });
        }
    }
}

/// The bytes of an observation as they lie in a row: its values, or the names of its frames, each
/// of which is stored once.
fn part<'a>(
    observation: Values<'a>,
    field: &Field,
    replay: &Replay<'_>,
    frames: &mut Option<RecentFrames>,
    names: &'a mut Vec<u64>,
) -> &'a [u8] {
    let bytes = observation.bytes();
    let Some(frames) = frames else { return bytes };
    names.clear();
    names.extend(bytes.chunks_exact(field.frame_bytes()).map(|frame| frames.name(replay, frame).to_bits()));
    bytemuck::cast_slice(names)
}

fn write(area: StagingArea<'_>, schema: &Schema, start: &Start, rewards: Return, end: &End<'_>, priority: Option<Priority>) {
    let mut writer = area.write(schema);
    writer
        .part(OBSERVATION, &start.observation)
        .lanes(ACTION, &start.action)
        .f32(REWARD, &[rewards.reward as f32])
        .f32(DISCOUNT, &[rewards.discount])
        .i32(FLAGS, &[flags(end.terminated, end.truncated)])
        .part(NEXT_OBSERVATION, end.observation);
    writer.commit(priority);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ActionSpace, ObservationSpace, registry};
    use crate::experience::Choice;
    use crate::segment::processes::Role;
    use crate::segment::{Segment, SegmentSizes};

    #[test]
    fn how_much_is_stored_and_who_waits_for_whom_is_as_configured() {
        let mut config = Config::for_environment("CartPole-v1");
        (config.replay.capacity, config.replay.fanout, config.replay.min_size) = (5_000, 8, 300);
        (config.replay.samples_per_insert, config.replay.error_band) = (Some(4.0), Some(9_000.0));
        (config.actor.flush_transitions, config.actor.environments, config.algorithm.n_step) = (20, 3, 2);
        let of = |config: &Config| {
            let transitions = Transitions::new(config, &registry::spec("CartPole-v1").unwrap());
            (transitions.storage(), transitions.limiter())
        };
        let storage = Storage { capacity: 5_000, fanout: 8, flush_rows: 20, largest_flush_rows: 19 + 3 * 2 };
        let limiter = RateLimiter { min_size: 300, samples_per_insert: Some(4.0), takes_once: false, error_band: 9_000.0 };
        assert_eq!(of(&config), (storage, limiter));
        config.replay.error_band = None;
        let chosen = RateLimiter { error_band: 120.0, ..limiter };
        assert_eq!(of(&config), (storage, chosen), "a tenth of the samples that the first 300 transitions stand for");
        (config.replay.samples_per_insert, config.replay.prioritized) = (None, false);
        let free = RateLimiter { samples_per_insert: None, error_band: f64::INFINITY, ..limiter };
        assert_eq!(of(&config), (Storage { fanout: 0, ..storage }, free));
    }

    #[test]
    fn each_transition_of_several_steps_is_told_the_parameters_of_its_last() {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.n_step = 3;
        let transitions = Transitions::new(&config, &registry::spec("CartPole-v1").unwrap());
        let sizes = SegmentSizes { staged_rows: 8, ..SegmentSizes::of_rows(transitions.schema().words(), 64) };
        let segment = Segment::of_sizes(sizes);
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let replay = Replay::new(&segment, transitions.schema(), process);
        let area = StagingArea::of(&segment, 0);
        let (mut recorder, mut chosen_by) = (transitions.recorder(1), Vec::new());
        let mut step = |parameter_updates, terminated| {
            let steps = Steps {
                observations: Values::F32(&[0.0; 4]),
                actions: &[0],
                choices: &[Choice::default()],
                rewards: &[1.0],
                next_observations: Values::F32(&[0.0; 4]),
                next_values: &[0.0],
                terminated: &[terminated],
                truncated: &[false],
                parameter_updates,
            };
            recorder.record(&steps, area, &replay, &mut chosen_by);
            assert_eq!(area.pending(), chosen_by.len(), "a number for each row");
            chosen_by.clone()
        };
        assert_eq!((step(5, false), step(6, false)), (vec![], vec![]), "nothing is complete");
        assert_eq!(step(7, false), [7]);
        assert_eq!(step(8, true), [7, 8, 8, 8], "an episode that ends completes all that it began");
    }

    #[test]
    fn each_frame_is_stored_once_however_many_environments_show_however_many_at_once() {
        const ENVIRONMENTS: usize = 160;
        const STACK: usize = 64;
        let observation = ObservationSpace { stack: STACK, ..ObservationSpace::bytes(&[STACK, 8]) };
        let stacks = EnvironmentSpec::new("stacks", observation, ActionSpace::Discrete { n: 2 });
        let transitions = Transitions::new(&Config::for_environment("CartPole-v1"), &stacks);
        let segment = Segment::of_sizes(SegmentSizes {
            staged_rows: 3 * ENVIRONMENTS,
            // More than are written, so that all of them stay young.
            frames: 32 * ENVIRONMENTS * STACK,
            frame_bytes: 8,
            ..SegmentSizes::of_rows(transitions.schema().words(), 64)
        });
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let replay = Replay::new(&segment, transitions.schema(), process);
        let mut recorder = transitions.recorder(ENVIRONMENTS);
        let shown = |step: usize| -> Vec<u8> {
            let of_one = |environment: usize| (step..step + STACK).flat_map(move |frame| (environment * 1_000 + frame).to_ne_bytes());
            (0..ENVIRONMENTS).flat_map(of_one).collect()
        };
        for step in 0..3 {
            let (observations, next_observations) = (shown(step), shown(step + 1));
            let steps = Steps {
                observations: Values::U8(&observations),
                actions: &[0; ENVIRONMENTS],
                choices: &[Choice::default(); ENVIRONMENTS],
                rewards: &[1.0; ENVIRONMENTS],
                next_observations: Values::U8(&next_observations),
                next_values: &[0.0; ENVIRONMENTS],
                terminated: &[false; ENVIRONMENTS],
                truncated: &[false; ENVIRONMENTS],
                parameter_updates: 0,
            };
            recorder.record(&steps, StagingArea::of(&segment, 0), &replay, &mut Vec::new());
        }
        assert_eq!(replay.frames().unwrap().written(), (ENVIRONMENTS * (STACK + 3)) as u64);
    }
}
