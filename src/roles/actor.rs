//! The actor: steps E environments with one batched inference per step, has the algorithm's recorder make rows of the
//! steps, and flushes them.
//!
//! The loop keeps the network's outputs for the observations it acts on next. One inference per step, on the successors
//! of the step, serves three purposes: the next choice of actions, the values behind the steps that the recorder may need
//! (behind truncated ones too), and nothing is computed twice. Only environments that were reset need a second, small one.

use std::time::Duration;

use super::newest_parameters::NewestParameters;
use super::run::{LONG_FOR_ALL, Laps, RoleError, Run};
use crate::algorithms::{ActionBatch, Policy, Random, RunningStatistics};
use crate::environments::{Purpose, VectorEnvironment};
use crate::experience::{Choice, Recorder, Steps};
use crate::replay::{Replay, StagingArea, Turn};
use crate::segment::counters::Counter;
use crate::segment::float_board::FloatBoard;
use crate::segment::metrics::{MetricRing, Report};
use crate::segment::processes::Phase;
use crate::sync::Ordering;
use crate::values::ValueBuffer;

/// Time between two looks for the first parameters, or for the end of the run.
const PAUSE: Duration = Duration::from_millis(1);

/// An actor between two steps.
pub struct Actor<'a> {
    run: &'a Run<'a>,
    environments: VectorEnvironment,
    policy: Box<dyn Policy>,
    parameters: NewestParameters<'a>,
    replay: Replay<'a>,
    recorder: Box<dyn Recorder>,
    /// Staged rows that are worth a flush.
    flush_rows: usize,
    area: StagingArea<'a>,
    /// What [`Recorder::record`] says of each staged row.
    chosen_by: Vec<u64>,
    /// The turn to insert what is being staged; `None` between a flush and the next step.
    turn: Option<Turn<'a>>,
    began: Began,
    /// Samples that learners drew from the beginning of the last turn until what it inserts was staged.
    samples_meanwhile: u64,
    random: Random,
    ring: MetricRing<'a>,
    /// Network outputs for the observations to act on next, environment after environment.
    outputs: Vec<f32>,
    /// Network outputs for the successors of the last step.
    next_outputs: Vec<f32>,
    actions: ActionBatch,
    choices: Vec<Choice>,
    /// Values of the successors of the last step.
    next_values: Vec<f32>,
    /// Where the step under way starts.
    observations: ValueBuffer,
    statistics: Option<OwnStatistics<'a>>,
    laps: Laps,
    /// Whether the environments took long in their last step, or have had none yet.
    are_slow: bool,
}

/// When the actor began to step for its next flush.
#[derive(Default)]
struct Began {
    at_ns: u64,
    sampled: u64,
}

/// What this actor has seen, and where it says so.
struct OwnStatistics<'a> {
    running: RunningStatistics,
    board: FloatBoard<'a>,
    values: Vec<f32>,
}

impl<'a> Actor<'a> {
    /// Set up, with the environments reset. The parameters are read at the first step.
    pub fn new(run: &'a Run<'a>) -> Result<Self, RoleError> {
        let count = run.config.actor.environments;
        let mut environments = run.environments(count, Purpose::Training)?;
        environments.reset_each(run.seed(), || run.process.enter(Phase::Starting))?;
        let policy = run.algorithm.policy()?;
        let laps = Laps::start();
        let actions = ActionBatch::new(&run.environment.action, count);
        Ok(Self {
            statistics: OwnStatistics::new(run, count),
            observations: ValueBuffer::zeros(environments.spec().observation.element, environments.observations().len()),
            outputs: vec![0.0; count * policy.outputs()],
            next_outputs: vec![0.0; count * policy.outputs()],
            environments,
            policy,
            parameters: NewestParameters::of(run),
            replay: run.replay(),
            recorder: run.algorithm.experience().recorder(count),
            flush_rows: run.algorithm.experience().storage().flush_rows,
            area: run.staging_area(),
            chosen_by: Vec::new(),
            turn: None,
            began: Began::default(),
            samples_meanwhile: 0,
            random: run.random(),
            ring: run.segment.metric_ring(run.process.index()),
            actions,
            choices: vec![Choice::default(); count],
            next_values: vec![0.0; count],
            laps,
            are_slow: true,
            run,
        })
    }

    /// Insert what was staged, ratio or not, and say what was seen: it is worth keeping.
    pub fn leave(&mut self) {
        if let Some(statistics) = &mut self.statistics {
            statistics.publish();
        }
        self.replay.flush(self.area);
    }

    /// Take one step in every environment and stage the rows that it completes. Flushes when the area is full enough or its
    /// content old enough; `false` when the run ended while it waited.
    pub fn step(&mut self) -> Result<bool, RoleError> {
        if self.parameters.version == 0 && self.run.algorithm.experience().is_on_policy() && !self.wait_for_parameters() {
            return Ok(false);
        }
        if self.turn.is_none() && !self.begin() {
            return Ok(false);
        }
        self.run.process.enter(Phase::Inference);
        if self.parameters.refresh(&mut *self.policy) {
            self.policy.infer(self.environments.observations(), self.environments.len(), &mut self.outputs);
        }
        self.choose_actions();
        self.count(Counter::InferenceNs);

        self.observations.values_mut().copy_from(self.environments.observations());
        self.run.process.enter(Phase::Environment);
        let (run, are_slow) = (self.run, self.are_slow);
        let sign_of_life = || run.process.enter(Phase::Environment);
        let of_slow_ones = || {
            if are_slow {
                sign_of_life()
            }
        };
        self.environments.step_each(self.actions.for_environments(), of_slow_ones, sign_of_life)?;
        self.report_episodes();
        self.observe();
        let took_ns = self.laps.lap();
        self.run.process.counters().add(Counter::EnvironmentNs, took_ns);
        self.are_slow = Duration::from_nanos(took_ns) > LONG_FOR_ALL;

        self.evaluate_successors();
        self.count(Counter::InferenceNs);

        self.record();
        let alive = !self.wants_flush() || self.flush();
        self.count(Counter::InsertNs);
        Ok(alive)
    }

    /// Wait until there are any: where the probabilities of actions are learned from, no others than the policy's are taken. `false` when
    /// the run ended first.
    fn wait_for_parameters(&mut self) -> bool {
        while self.run.segment.parameter_board().version() == 0 {
            if !idle(self.run) {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    fn count(&mut self, counter: Counter) {
        self.run.process.counters().add(counter, self.laps.lap());
    }

    fn choose_actions(&mut self) {
        let env_steps = self.run.env_steps();
        let (own, actors) = (self.choices.len(), self.run.config.actor.count.max(1));
        let first = self.run.number * own;
        let of = (actors * own).max(first + own);
        let width = self.policy.outputs();
        let may_be_random = !self.run.algorithm.experience().is_on_policy();
        let uninformed = may_be_random && (env_steps < self.run.config.actor.random_steps || self.parameters.version == 0);
        for (index, outputs) in self.outputs.chunks_exact(width).enumerate() {
            let action = self.actions.row_mut(index);
            self.choices[index] = if uninformed {
                self.policy.choose_randomly(outputs, &mut self.random, action)
            } else {
                let exploration = self.run.algorithm.exploration(first + index, of, env_steps);
                self.policy.choose(outputs, exploration, &mut self.random, action)
            };
        }
    }

    /// Count what was seen into the statistics, where something is normalised.
    fn observe(&mut self) {
        let Some(OwnStatistics { running, .. }) = &mut self.statistics else { return };
        // Bytes are only counted where they are shown as floats.
        if let Some(observations) = self.observations.values().as_f32() {
            running.observe(observations);
        }
        for (index, &reward) in self.environments.rewards().iter().enumerate() {
            running.reward(index, reward, self.environments.terminated()[index] || self.environments.truncated()[index]);
        }
    }

    fn report_episodes(&self) {
        let counters = self.run.process.counters();
        for episode in self.environments.finished_episodes() {
            counters.add(Counter::Episodes, 1);
            self.ring.push(Report::Episode { episode_return: episode.episode_return, length: u64::from(episode.length_steps) });
        }
        let steps = self.environments.len() as u64;
        counters.add(Counter::EnvSteps, steps);
        self.run.control().env_steps().fetch_add(steps, Ordering::Relaxed);
    }

    /// Outputs for the successors, and from them for the observations to act on next.
    fn evaluate_successors(&mut self) {
        let width = self.policy.outputs();
        let length = self.environments.spec().observation.len();
        self.policy.infer(self.environments.next_observations(), self.environments.len(), &mut self.next_outputs);
        self.outputs.copy_from_slice(&self.next_outputs);
        for index in 0..self.environments.len() {
            if self.environments.terminated()[index] || self.environments.truncated()[index] {
                let observation = self.environments.observations().row(index, length);
                self.policy.infer(observation, 1, &mut self.outputs[index * width..][..width]);
            }
        }
    }

    fn record(&mut self) {
        let width = self.policy.outputs();
        for (value, outputs) in self.next_values.iter_mut().zip(self.next_outputs.chunks_exact(width)) {
            *value = self.policy.state_value(outputs);
        }
        let steps = Steps {
            observations: self.observations.values(),
            actions: self.actions.all_lanes(),
            choices: &self.choices,
            rewards: self.environments.rewards(),
            next_observations: self.environments.next_observations(),
            next_values: &self.next_values,
            terminated: self.environments.terminated(),
            truncated: self.environments.truncated(),
            parameter_updates: self.parameters.updates,
        };
        self.recorder.record(&steps, self.area, &self.replay, &mut self.chosen_by);
    }

    /// Wait with the first step of a flush until the flush will not have to wait, so that its actions are chosen by parameters
    /// as new as can be. It takes about as long as the last one, in samples drawn meanwhile. `false` when the run ended first.
    fn begin(&mut self) -> bool {
        let run = self.run;
        // The synchronous trainer has nobody to wait for.
        if run.config.actor.count == 0 {
            return true;
        }
        let rows = self.flush_rows as u64;
        let turn = self.turn.insert(run.algorithm.experience().limiter().turn(run.segment, run.process));
        let near = turn.wait_until_near(self.samples_meanwhile, rows, || idle(run));
        self.count(Counter::LimiterWaitNs);
        self.began = Began { at_ns: self.laps.now_ns(), sampled: run.control().counted_samples() };
        near
    }

    fn wants_flush(&self) -> bool {
        let pending = self.area.pending();
        let old = || self.laps.now_ns().saturating_sub(self.began.at_ns) >= self.run.config.actor.flush_interval_ms * 1_000_000;
        // The synchronous trainer must not depend on the clock.
        let timed = self.run.config.actor.count > 0;
        pending >= self.flush_rows || pending > 0 && timed && old()
    }

    /// Move everything staged into the replay, once the rate limiter agrees. `false` when the run ended first.
    fn flush(&mut self) -> bool {
        let run = self.run;
        self.count(Counter::InsertNs);
        if let Some(turn) = &mut self.turn {
            self.samples_meanwhile = run.control().counted_samples().saturating_sub(self.began.sampled);
            let may = turn.wait(|| idle(run));
            self.count(Counter::LimiterWaitNs);
            if !may {
                return false;
            }
        }
        run.process.enter(Phase::Insert);
        let updates = run.control().updates().load(Ordering::Relaxed);
        let rows = self.chosen_by.len() as u64;
        let lags = self.chosen_by.drain(..).map(|chosen_by| updates.saturating_sub(chosen_by));
        let (sum, largest) = lags.fold((0, 0), |(sum, largest), lag| (sum + lag, lag.max(largest)));
        run.process.counters().add(Counter::PolicyLagSum, sum);
        run.process.counters().add(Counter::LaggedRows, rows);
        run.process.counters().raise(Counter::PolicyLagMax, largest);
        // First: whoever takes these rows should scale them with what was seen in them.
        if let Some(statistics) = &mut self.statistics {
            statistics.publish();
        }
        self.replay.flush(self.area);
        run.count_products();
        // Everything is counted: the next one's turn.
        self.turn = None;
        true
    }
}

/// Before every sleep in line: whether to wait on.
fn idle(run: &Run<'_>) -> bool {
    run.process.enter(Phase::LimiterWait);
    !run.is_over()
}

impl<'a> OwnStatistics<'a> {
    /// `None` when nothing is normalised. A replacement goes on from what its predecessor published.
    fn new(run: &Run<'a>, environments: usize) -> Option<Self> {
        let board = run.segment.statistics_board(run.process.index())?;
        let mut running = RunningStatistics::new(run.environment.observation.len(), environments, run.config.algorithm.gamma);
        let mut values = vec![0.0; board.len()];
        if let Some((_, [observations, returns, ..])) = board.read(&mut values) {
            running.resume(&values, [observations, returns]);
        }
        Some(Self { running, board, values })
    }

    fn publish(&mut self) {
        let [observations, returns] = self.running.publish(&mut self.values);
        self.board.publish(&[&self.values], [observations, returns, 0, 0]);
    }
}

/// Act until the run ends.
pub fn run(run: &Run<'_>) -> Result<(), RoleError> {
    let mut actor = Actor::new(run)?;
    while !run.is_over() {
        if run.env_steps() >= run.config.run.stop_env_steps {
            // The supervisor looks some times a second, in which a fast environment takes many thousand steps.
            run.process.enter(Phase::LimiterWait);
            std::thread::sleep(PAUSE);
        } else if !actor.step()? {
            break;
        }
    }
    run.process.enter(Phase::Leaving);
    actor.leave();
    Ok(())
}
