//! The actor: steps E environments with one batched inference per step, has the algorithm's recorder make rows of the
//! steps, and flushes them.
//!
//! The loop here steps the environments. `decisions` chooses their actions, `inserts` has the rows made and flushes them in
//! turn, and `statistics` publishes what learners need in order to normalise.

mod decisions;
mod inserts;
mod statistics;

use std::time::Duration;

use self::decisions::Decisions;
use self::inserts::Inserts;
use self::statistics::OwnStatistics;
use super::run::{Laps, RoleError, Run};
use super::signs_of_life::SignsOfLife;
use crate::environments::{Purpose, VectorEnvironment};
use crate::segment::counters::Counter;
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
    /// Where the step under way starts.
    observations: ValueBuffer,
    decisions: Decisions<'a>,
    inserts: Inserts<'a>,
    /// `None` if nothing is normalised.
    statistics: Option<OwnStatistics<'a>>,
    ring: MetricRing<'a>,
    laps: Laps,
    signs_of_life: SignsOfLife,
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
        let policy = run.algorithm.policy()?;
        let laps = Laps::start();
        Ok(Self {
            observations: ValueBuffer::zeros(environments.spec().observation.element, environments.observations().len()),
            environments,
            decisions: Decisions::new(run, policy, count),
            inserts: Inserts::new(run, count),
            statistics: OwnStatistics::new(run, count),
            ring: run.segment.metric_ring(run.process.index()),
            laps,
            signs_of_life: SignsOfLife::new(),
            run,
        })
    }

    /// Publish the statistics and insert what was staged, whatever the rate limiter says: both are worth keeping.
    pub fn leave(&mut self) {
        self.inserts.insert(self.statistics.as_mut());
    }

    /// Take one step in every environment and stage the rows that it completes. Flushes when the area is full enough or its
    /// content old enough; `false` when the run ended while it waited.
    ///
    /// # Errors
    /// An environment fails, or gives a number that is not finite.
    pub fn step(&mut self) -> Result<bool, RoleError> {
        let run = self.run;
        if self.decisions.need_parameters() && !self.wait_for_parameters() {
            return Ok(false);
        }
        if !self.inserts.wait_for_turn(&mut self.laps) {
            return Ok(false);
        }
        run.process.enter(Phase::Inference);
        self.decisions.choose_actions(&self.environments);
        run.count_lap(Counter::InferenceNs, &mut self.laps);

        self.observations.values_mut().copy_from(self.environments.observations());
        run.process.enter(Phase::Environment);
        self.signs_of_life.step(&mut self.environments, self.decisions.actions(), || run.process.enter(Phase::Environment))?;
        self.report_episodes();
        if let Some(statistics) = &mut self.statistics {
            statistics.observe(self.observations.values(), &self.environments);
        }
        let took_ns = self.laps.lap();
        run.process.counters().add(Counter::EnvironmentNs, took_ns);
        self.signs_of_life.took(Duration::from_nanos(took_ns));

        self.decisions.evaluate_successors(&self.environments);
        run.count_lap(Counter::InferenceNs, &mut self.laps);

        self.inserts.record(&self.decisions.last_step(self.observations.values(), &self.environments));
        let alive = !self.inserts.is_flush_due(&self.laps) || self.inserts.flush(self.statistics.as_mut(), &mut self.laps);
        run.count_lap(Counter::InsertNs, &mut self.laps);
        Ok(alive)
    }

    /// Wait for the first parameters. `false` if the run ended first.
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
    use std::time::Instant;

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
            staged_rows: algorithm.experience().storage().largest_flush_rows,
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
        let began = Instant::now();
        let mut actor = Actor::new(&run).unwrap();
        assert!(actor.step().unwrap());
        assert_eq!(*phases.borrow(), [Some(Phase::ParameterWait); 2]);
        let waited = Duration::from_nanos(process.counters().get(Counter::LimiterWaitNs));
        let elapsed = began.elapsed();
        assert!(waited + WAIT <= elapsed, "{waited:?} of {elapsed:?} at the limiter");
    }
}
