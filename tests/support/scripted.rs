//! A run in this process, whose environments play by a script and keep what happened in them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::sync::{Arc, Mutex};

use shoal::algorithms::{Algorithm, registry};
use shoal::catalogue::Catalogue;
use shoal::config::Config;
use shoal::environments::{Action, ActionSpace, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace, Step};
use shoal::roles::Run;
use shoal::roles::actor::Actor;
use shoal::segment::processes::Role;
use shoal::segment::{Description, Layout, Segment, SegmentSizes};
use shoal::values::{Value, ValuesMut};

/// Environments of an actor.
pub const ENVIRONMENTS: usize = 3;
const ID: &str = "Scripted-v0";
/// The episodes of an environment, in turn: how many steps, and whether the last one is terminated and whether it is truncated.
const EPISODES: [(u32, bool, bool); 3] = [(4, true, false), (5, false, true), (2, true, true)];

/// What an environment shows: its number, and a number that grows from observation to observation.
pub type Observation = [f32; 2];

/// A step of an environment.
#[derive(Debug, Clone, Copy)]
pub struct Happened {
    /// Where it started.
    pub observation: Observation,
    /// What the environment was told to do: the number of a discrete action, or the value of a continuous one.
    pub action: f32,
    /// What it earned.
    pub reward: f32,
    /// Where it led, before any reset.
    pub next_observation: Observation,
    /// Whether the problem ended.
    pub terminated: bool,
    /// Whether the episode was cut off.
    pub truncated: bool,
}

/// What happened in the environments.
#[derive(Default)]
struct Kept {
    /// All steps of each environment, in the order in which they were made.
    steps: Vec<Vec<Happened>>,
    /// The seeds that they were reset with.
    seeds: Vec<u64>,
}

type Log = Arc<Mutex<Kept>>;

/// An environment whose rewards and ends follow from how long it has been there, whatever is done in it.
struct Scripted {
    spec: EnvironmentSpec,
    log: Log,
    number: usize,
    /// Number of the episode in the script.
    episode: usize,
    /// Steps in the episode.
    steps: u32,
    /// Observations shown so far.
    shown: usize,
    observation: Observation,
}

impl Scripted {
    fn new(spec: &EnvironmentSpec, log: &Log) -> Self {
        let number = {
            let mut kept = log.lock().unwrap();
            kept.steps.push(Vec::new());
            kept.steps.len() - 1
        };
        // Each begins elsewhere in the script, so that episodes seldom end in the same step.
        Self { spec: spec.clone(), log: log.clone(), number, episode: number, steps: 0, shown: 0, observation: [0.0; 2] }
    }

    fn show(&mut self, observation: ValuesMut<'_>) {
        self.shown += 1;
        self.observation = [self.number as f32, self.shown as f32 / 16.0];
        f32::of(observation).copy_from_slice(&self.observation);
    }
}

impl Environment for Scripted {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.log.lock().unwrap().seeds.extend(seed);
        (self.episode, self.steps) = (self.episode + 1, 0);
        self.show(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let action = match action {
            Action::Discrete(index) => index as f32,
            Action::Continuous(values) => values[0],
        };
        let before = self.observation;
        self.show(observation);
        self.steps += 1;
        let (length, terminated, truncated) = EPISODES[self.episode % EPISODES.len()];
        let is_last = self.steps == length;
        let happened = Happened {
            observation: before,
            action,
            // Whole numbers of both signs, whose discounted sums are exact.
            reward: ((self.shown * 7 + self.number * 3) % 11) as f32 - 5.0,
            next_observation: self.observation,
            terminated: terminated && is_last,
            truncated: truncated && is_last,
        };
        self.log.lock().unwrap().steps[self.number].push(happened);
        Ok(Step { reward: happened.reward.into(), terminated: happened.terminated, truncated: happened.truncated })
    }
}

/// A small run of `algorithm` in these environments, in which nobody waits for anybody.
pub fn config(algorithm: &str) -> Config {
    let mut config = Config::for_environment(ID);
    config.algorithm.name = algorithm.into();
    config.network.hidden = vec![8];
    config.actor.environments = ENVIRONMENTS;
    config.actor.random_steps = 0;
    config.replay.min_size = 1;
    config.replay.samples_per_insert = None;
    config
}

/// A run with places for an actor and a learner.
pub struct World {
    /// Its configuration.
    pub config: Config,
    /// Its algorithm.
    pub algorithm: Box<dyn Algorithm>,
    /// Its memory.
    pub segment: Segment,
    environment: EnvironmentSpec,
    catalogue: Catalogue,
    log: Log,
}

impl World {
    /// The run that `config` describes, with its algorithm in a `wrapper`.
    pub fn new(config: Config, wrapper: impl FnOnce(Box<dyn Algorithm>) -> Box<dyn Algorithm>) -> Self {
        let action = match config.algorithm.name.as_str() {
            "dqn" => ActionSpace::Discrete { n: 2 },
            _ => ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
        };
        let environment = EnvironmentSpec::new(ID, ObservationSpace::unbounded(2), action);
        let (mut catalogue, log) = (Catalogue::default(), Log::default());
        let (spec, kept) = (environment.clone(), log.clone());
        catalogue.add_environment(ID, move || Ok(Scripted::new(&spec, &kept))).unwrap();
        let algorithm = wrapper(registry::build(&config, &environment).unwrap());
        let sizes = algorithm.sizes();
        let layout = Layout::new(SegmentSizes {
            processes: 2,
            staged_rows: algorithm.experience().storage().largest_flush_rows + 1,
            published_values: sizes.published,
            learned_parameters: sizes.learned,
            learner_state_values: sizes.state,
            statistics_values: algorithm.normalisation().statistics_values(),
            ..SegmentSizes::of_rows(algorithm.schema().words(), 1_024)
        });
        let segment = Segment::create_private(layout.unwrap(), &Description::default()).unwrap();
        Self { config, algorithm, segment, environment, catalogue, log }
    }

    /// The run as its actor or its learner sees it, whose number among its kind is `number`.
    pub fn process(&self, role: Role, number: usize) -> Run<'_> {
        let process = self.segment.processes().slot(usize::from(role == Role::Learner));
        assert!(process.reserve(role, number).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        Run {
            segment: &self.segment,
            config: &self.config,
            algorithm: &*self.algorithm,
            environment: &self.environment,
            catalogue: &self.catalogue,
            process,
            role,
            number,
            incarnation: process.generation(),
            supervisor_alive: &|| true,
        }
    }

    /// Publish parameters, all of them small and of both signs, as learners would.
    pub fn publish_parameters(&self) {
        let parameters: Vec<f32> = (0..self.algorithm.sizes().published).map(|index| (index * 7 % 11) as f32 / 8.0 - 0.625).collect();
        self.segment.parameter_board().publish(&[&parameters], [0; 4]);
    }

    /// The parameters that were published last.
    pub fn parameters(&self) -> Vec<f32> {
        let board = self.segment.parameter_board();
        let mut parameters = vec![0.0; board.len()];
        board.read(&mut parameters).expect("parameters were published");
        parameters
    }

    /// The updates that led to the parameters that were published last.
    pub fn published_updates(&self) -> u64 {
        let board = self.segment.parameter_board();
        let (_, [updates, ..]) = board.read(&mut vec![0.0; board.len()]).expect("parameters were published");
        updates
    }

    /// Take so many steps in all environments, as actor `number`.
    pub fn act(&self, number: usize, steps: usize) {
        let run = self.process(Role::Actor, number);
        let mut actor = Actor::new(&run).unwrap();
        (0..steps).for_each(|_| assert!(actor.step().unwrap()));
    }

    /// All steps of each environment.
    pub fn happened(&self) -> Vec<Vec<Happened>> {
        self.log.lock().unwrap().steps.clone()
    }

    /// All seeds that the environments were reset with.
    pub fn seeds(&self) -> Vec<u64> {
        self.log.lock().unwrap().seeds.clone()
    }
}
