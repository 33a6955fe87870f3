//! The actor: steps E environments with one batched inference per step, has the algorithm's recorder make rows of the
//! steps, and flushes them.
//!
//! The loop keeps the network's outputs for the observations it acts on next. One inference per step, on the successors
//! of the step, serves three purposes: the next choice of actions, the values behind the steps that the recorder may need
//! (behind truncated ones too), and nothing is computed twice. Only environments that were reset need a second, small one.

use std::time::Duration;

use super::newest_parameters::NewestParameters;
use super::run::{Laps, RoleError, Run};
use super::signs_of_life::SignsOfLife;
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
    /// For each staged row, the updates in the parameters that chose it, as [`Recorder::record`] counts them.
    chosen_by: Vec<u64>,
    /// The turn to insert what is being staged; `None` between a flush and the next step.
    turn: Option<Turn<'a>>,
    began: Began,
    /// Samples that learners drew while the rows of the last flush were staged.
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
    signs_of_life: SignsOfLife,
}

/// The moment at which the actor began to step for its next flush.
#[derive(Default)]
struct Began {
    /// In nanoseconds of the monotonic clock.
    at_ns: u64,
    /// Samples that learners had drawn.
    sampled: u64,
}

/// Statistics of what this actor has seen, and the board that it publishes them on.
struct OwnStatistics<'a> {
    running: RunningStatistics,
    board: FloatBoard<'a>,
    values: Vec<f32>,
}

impl<'a> Actor<'a> {
    /// Set up, with the environments reset. The parameters are read at the first step.
    ///
    /// # Errors
    /// The environments cannot be made or reset, or have changed since the run was planned; the network of the policy cannot be built.
    pub fn new(run: &'a Run<'a>) -> Result<Self, RoleError> {
        let count = run.config.actor.environments;
        let mut environments = run.environments(count, Purpose::Training)?;
        environments.reset_each(run.seed(), || run.process.enter(Phase::Starting))?;
        let mut policy = run.algorithm.policy()?;
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
            signs_of_life: SignsOfLife::new(),
            run,
        })
    }

    /// Publish the statistics and insert what was staged, whatever the rate limiter says: both are worth keeping.
    pub fn leave(&mut self) {
        if let Some(statistics) = &mut self.statistics {
            statistics.publish();
        }
        self.replay.flush(self.area);
    }

    /// Take one step in every environment and stage the rows that it completes. Flushes when the area is full enough or its
    /// content old enough; `false` when the run ended while it waited.
    ///
    /// # Errors
    /// An environment fails, or gives a number that is not finite.
    pub fn step(&mut self) -> Result<bool, RoleError> {
        if self.parameters.version == 0 && self.run.algorithm.experience().is_on_policy() && !self.wait_for_parameters() {
            return Ok(false);
        }
        if self.turn.is_none() && !self.wait_for_turn() {
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
        let run = self.run;
        self.signs_of_life.step(&mut self.environments, self.actions.for_environments(), || run.process.enter(Phase::Environment))?;
        self.report_episodes();
        self.observe();
        let took_ns = self.laps.lap();
        self.run.process.counters().add(Counter::EnvironmentNs, took_ns);
        self.signs_of_life.took(Duration::from_nanos(took_ns));

        self.evaluate_successors();
        self.count(Counter::InferenceNs);

        self.record();
        let alive = !self.wants_flush() || self.flush();
        self.count(Counter::InsertNs);
        Ok(alive)
    }

    /// Wait for the first parameters: an algorithm that learns from the probabilities of actions takes no actions but the
    /// policy's. `false` if the run ended first.
    fn wait_for_parameters(&mut self) -> bool {
        while self.run.segment.parameter_board().version() == 0 {
            self.run.process.enter(Phase::ParameterWait);
            if self.run.is_over() {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        // The time until then counts neither as an actor's work nor as a wait for the limiter.
        self.laps.lap();
        true
    }

    fn count(&mut self, counter: Counter) {
        self.run.process.counters().add(counter, self.laps.lap());
    }

    fn choose_actions(&mut self) {
        let env_steps = self.run.env_steps();
        let own = self.choices.len();
        let first = self.run.number * own;
        // Actors beyond the configured count, such as attached ones, have higher numbers.
        let total = (self.run.config.actor.count.max(1) * own).max(first + own);
        let width = self.policy.outputs();
        let may_be_random = !self.run.algorithm.experience().is_on_policy();
        let uninformed = may_be_random && (env_steps < self.run.config.actor.random_steps || self.parameters.version == 0);
        for (index, outputs) in self.outputs.chunks_exact(width).enumerate() {
            let action = self.actions.row_mut(index);
            self.choices[index] = if uninformed {
                self.policy.choose_randomly(outputs, &mut self.random, action)
            } else {
                let exploration = self.run.algorithm.exploration(first + index, total, env_steps);
                self.policy.choose(outputs, exploration, &mut self.random, action)
            };
        }
    }

    /// Add the last step to the statistics, if something is normalised.
    fn observe(&mut self) {
        let Some(OwnStatistics { running, .. }) = &mut self.statistics else { return };
        // Statistics are kept of floats: bytes that are normalised are seen as floats.
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

    /// Compute the outputs for the successors, and from these the outputs for the observations to act on next.
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

    /// Wait before the first step of a flush until the flush will not have to wait, so that its actions are chosen by
    /// parameters as new as can be. Learners are expected to draw as many samples meanwhile as while the last flush was staged.
    /// `false` if the run ended first.
    fn wait_for_turn(&mut self) -> bool {
        let run = self.run;
        // The synchronous trainer waits for nobody. Since its last step it may have learned: that time is not the actor's.
        if run.config.is_synchronous() {
            self.laps.lap();
            return true;
        }
        let rows = self.flush_rows as u64;
        let turn = self.turn.insert(run.algorithm.experience().limiter().turn(run.segment, run.process));
        let is_near = turn.wait_until_near(self.samples_meanwhile, rows, || run.waits_on(&mut self.laps));
        self.count(Counter::LimiterWaitNs);
        self.began = Began { at_ns: self.laps.last_lap_at_ns(), sampled: run.control().counted_samples() };
        is_near
    }

    fn wants_flush(&self) -> bool {
        let pending = self.area.pending();
        let is_old = || self.laps.last_lap_at_ns().saturating_sub(self.began.at_ns) >= self.run.config.actor.flush_interval_ms * 1_000_000;
        pending >= self.flush_rows || pending > 0 && !self.run.config.is_synchronous() && is_old()
    }

    /// Move everything staged into the replay, once the rate limiter agrees. `false` if the run ended first.
    fn flush(&mut self) -> bool {
        let run = self.run;
        self.count(Counter::InsertNs);
        if let Some(turn) = &mut self.turn {
            self.samples_meanwhile = run.control().counted_samples().saturating_sub(self.began.sampled);
            let has_come = turn.wait(|| run.waits_on(&mut self.laps));
            self.count(Counter::LimiterWaitNs);
            if !has_come {
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
        // Before the rows: whoever draws them should scale them with statistics that include them.
        if let Some(statistics) = &mut self.statistics {
            statistics.publish();
        }
        self.replay.flush(self.area);
        run.count_products();
        // Only now, when everything is counted, is it another process's turn.
        self.turn = None;
        true
    }
}

impl<'a> OwnStatistics<'a> {
    /// The statistics of a process that starts; `None` if nothing is normalised. A replacement goes on from what its
    /// predecessor published.
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
///
/// # Errors
/// As [`Actor::new`] and [`Actor::step`].
pub fn run(run: &Run<'_>) -> Result<(), RoleError> {
    let mut actor = Actor::new(run)?;
    while !run.is_over() {
        if run.env_steps() >= run.config.run.stop_env_steps {
            // The supervisor looks some times a second, in which a fast environment takes many thousand steps.
            run.process.enter(Phase::Idle);
            std::thread::sleep(PAUSE);
        } else if !actor.step()? {
            break;
        }
    }
    run.process.enter(Phase::Leaving);
    actor.leave();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::algorithms::registry as algorithms;
    use crate::catalogue::Catalogue;
    use crate::config::Config;
    use crate::environments::registry as environments;
    use crate::segment::processes::Role;
    use crate::segment::{Segment, SegmentSizes};

    #[test]
    fn an_actor_without_parameters_says_that_it_waits_for_them_and_that_is_no_wait_for_the_limiter() {
        const WAIT: Duration = Duration::from_millis(200);
        let mut config = Config::for_environment("CartPole-v1");
        (config.algorithm.name, config.network.hidden) = ("ppo".into(), vec![4]);
        let environment = environments::spec("CartPole-v1").unwrap();
        let algorithm = algorithms::build(&config, &environment).unwrap();
        let parameters = vec![0.0f32; algorithm.sizes().published];
        let segment = Segment::of_sizes(SegmentSizes {
            staged_transitions: algorithm.experience().storage().largest_flush_rows,
            published_values: parameters.len(),
            ..SegmentSizes::of_rows(algorithm.schema().words(), 64)
        });
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Actor, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let phases = RefCell::new(Vec::new());
        // Asked before every sleep.
        let supervisor_alive = || {
            phases.borrow_mut().push(process.phase());
            if phases.borrow().len() == 2 {
                std::thread::sleep(WAIT);
                segment.parameter_board().publish(&[&parameters], [0; 4]);
            }
            true
        };
        let run = Run {
            segment: &segment,
            config: &config,
            algorithm: &*algorithm,
            environment: &environment,
            catalogue: &Catalogue::default(),
            process,
            role: Role::Actor,
            number: 0,
            incarnation: process.generation(),
            supervisor_alive: &supervisor_alive,
        };
        let mut actor = Actor::new(&run).unwrap();
        assert!(actor.step().unwrap());
        assert_eq!(*phases.borrow(), [Some(Phase::ParameterWait); 2]);
        let waited = Duration::from_nanos(process.counters().get(Counter::LimiterWaitNs));
        assert!(waited < WAIT, "{waited:?} at the limiter");
    }
}
