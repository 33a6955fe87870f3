//! The learner: takes its share of the batch from the algorithm's source, adds its gradient to the other learners', updates,
//! publishes.
//!
//! Every learner holds the same parameters and the same optimizer state, bit for bit, because all of them apply the
//! same sum. The leader of the view (see `segment::membership`) publishes; when the view changes, it hands its state to
//! the others.
//!
//! Where two learners share the algorithm by halves (`other_half`), each leads a view of itself alone.

mod other_half;
mod others;
mod reports;
mod statistics;
mod view;

use std::thread::{self, Scope};
use std::time::Duration;

use rand::SeedableRng;

use self::other_half::OtherHalf;
use self::reports::Reports;
use super::run::{Laps, RoleError, Run};
use crate::algorithms::{Half, Learning, Random, Statistics};
use crate::config::Config;
use crate::config::schedule::linear;
use crate::environments::derive_seed;
use crate::experience::{Seat, Source};
use crate::machine::gpu_meter::GpuMeter;
use crate::metrics::Tally;
use crate::networks::Device;
use crate::segment::counters::Counter;
use crate::segment::float_board::FloatBoard;
use crate::segment::gradients::GradientExchange;
use crate::segment::membership::View;
use crate::segment::processes::{Phase, Role};

/// Updates between two snapshots of the learner's state: what a killed learner can lose at most.
const SNAPSHOT_INTERVAL_UPDATES: u64 = 100;
/// Time between two looks at what a learner waits for: others of its view, its other half, a batch that was promised and not there.
const PAUSE: Duration = Duration::from_micros(200);
/// Looks at the other learners between two looks at the run.
const SPINS: u32 = 64;
/// Which of the streams of random numbers of a process is the learner's.
const OWN_STREAM: u32 = 1;

/// What became of an attempt to update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateResult {
    /// The parameters were updated.
    Updated,
    /// The view changed meanwhile: try again.
    ViewChanged,
    /// There was no batch after all: try again.
    NoBatch,
    /// The run ended while the learner waited.
    RunEnded,
}

/// A learner between two updates.
pub struct Learner<'a> {
    run: &'a Run<'a>,
    learning: Box<dyn Learning>,
    /// Who learns the rest of the algorithm, where this learner learns a half of it.
    other_half: Option<OtherHalf<'a>>,
    source: Box<dyn Source + 'a>,
    board: FloatBoard<'a>,
    states: FloatBoard<'a>,
    exchange: GradientExchange<'a>,
    view: View,
    updates: u64,
    /// The value of `updates` when this learner last joined a view, with which its source starts over with a new batch. The updates
    /// between two publications are counted from there.
    began_anew_at: u64,
    /// What the next batch is normalised with, where that has changed.
    statistics: Option<Statistics>,
    /// Epoch of the view in which statistics were settled on last.
    settled_in: Option<u32>,
    gradient: Vec<f32>,
    state: Vec<f32>,
    random: Random,
    reports: Reports<'a>,
    laps: Laps,
}

impl<'a> Learner<'a> {
    /// Set up; with `threads`, batches may be got ready ahead. The view is joined at the first update.
    ///
    /// # Errors
    /// The networks cannot be built, or the thread that gets batches ready ahead does not start.
    pub fn new(run: &'a Run<'a>, threads: Option<&'a Scope<'a, '_>>) -> Result<Self, RoleError> {
        let mut learning = run.algorithm.learning(run.config.run.seed)?;
        let sizes = run.algorithm.sizes();
        let other_half = OtherHalf::new(run, &mut *learning);
        // Of two learners that share an algorithm by halves, only the one with the critics counts what it draws and writes priorities back.
        let is_counted = other_half.as_ref().is_none_or(|other| other.learns(Half::Critics));
        let seat = Seat { segment: run.segment, process: run.process, seed: run.seed(), threads, is_counted };
        let states = run.segment.learner_boards().nth(if other_half.is_some() { run.number } else { 0 });
        let gpu = match run.config.learner.device_of(run.number).parse() {
            Ok(Device::Cuda(index)) => GpuMeter::of_this_process(index),
            Ok(Device::Cpu) | Err(_) => None,
        };
        Ok(Self {
            other_half,
            source: run.algorithm.experience().source(seat)?,
            board: run.segment.parameter_board(),
            states: states.expect("a segment has a board for each state of learners"),
            exchange: run.segment.gradient_exchange(),
            view: View::default(),
            updates: 0,
            began_anew_at: 0,
            statistics: None,
            settled_in: None,
            gradient: vec![0.0; sizes.learned],
            state: vec![0.0; sizes.state],
            // In a synchronous run the actor is the same process, and draws from a stream of its own.
            random: Random::seed_from_u64(derive_seed(run.seed(), OWN_STREAM)),
            reports: Reports::new(run.segment.metric_ring(run.process.index()), run.algorithm.metrics(), gpu),
            laps: Laps::start(),
            learning,
            run,
        })
    }

    /// Whether this learner publishes, alone of all living processes. A newer view that it has not seen yet takes
    /// nothing from it: who leads does so until its death.
    fn leads(&self) -> bool {
        self.view.leader == Some(self.run.number)
    }

    /// Whether this learner learns that half of the algorithm, or all of it.
    fn learns(&self, half: Half) -> bool {
        self.other_half.as_ref().is_none_or(|other| other.learns(half))
    }

    /// Updates done, by all learners together.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Whether this learner may have its batch now.
    pub fn may_update(&self) -> bool {
        self.source.is_ready()
    }

    /// One update, with the other learners of the view.
    ///
    /// # Errors
    /// No batch can be drawn; the gradient is not finite; and those of [`Self::join`].
    pub fn update(&mut self) -> Result<UpdateResult, RoleError> {
        // What the synchronous trainer did since its last update was no learning.
        if self.run.role == Role::Synchronous {
            self.laps.lap();
        }
        if !self.join()? {
            return Ok(UpdateResult::RunEnded);
        }
        if !self.hear_of_other_half() || !self.wait_for_batch() || !self.settle_statistics() {
            return Ok(self.interrupted());
        }
        self.run.process.enter(Phase::Sample);
        let env_steps = self.run.env_steps();
        let drawn = self.source.next(env_steps, &mut self.random)?;
        self.run.process.counters().add(Counter::ReplayNs, self.laps.lap());
        let Some(batch) = drawn.batch else { return Ok(UpdateResult::NoBatch) };

        self.run.process.enter(Phase::Compute);
        if drawn.is_new {
            // Only for a new batch: one that is used again was scaled in place, with the statistics of its first use.
            if let Some(statistics) = self.statistics.take() {
                self.learning.normalise_with(&statistics);
            }
            self.learning.prepare(batch);
        }
        self.learning.schedule(env_steps);
        let mut share = self.learning.gradient(batch, &mut self.random, &mut self.gradient);
        share.env_steps = env_steps;
        let learned = share.samples as u64;
        self.count(Counter::ComputeNs);
        if !self.add_up(&mut share) {
            return Ok(self.interrupted());
        }
        let learning_rate = learning_rate(self.run.config, share.env_steps, self.view.doublings);
        let norm = self.learning.apply(&mut self.gradient, &mut share, learning_rate as f32);
        if !norm.is_finite() {
            return Err(RoleError::diverged(self.run.config, self.updates + 1, share.tally.to_string()));
        }
        self.updates += 1;
        self.run.process.counters().add(Counter::Updates, 1);
        // Both halves learn from the same number of transitions: only the critics' learner counts them, or each would count twice.
        self.run.process.counters().add(Counter::Learned, if self.learns(Half::Critics) { learned } else { 0 });
        self.run.count_products();
        self.count(Counter::ComputeNs);

        self.source.report_errors(self.learning.errors());
        self.count(Counter::ReplayNs);
        if self.leads() {
            self.lead(&share.tally);
            if let Some(other) = &mut self.other_half {
                other.hand_over_at_swap(&mut *self.learning, self.updates);
            }
            self.count(Counter::PublishNs);
        }
        self.reports.push_gpu_use(self.updates);
        Ok(UpdateResult::Updated)
    }

    /// Why there was no update, where what was waited for did not come.
    fn interrupted(&mut self) -> UpdateResult {
        // The wait for a batch is counted by itself. In what is left others were waited for, in vain.
        self.count(Counter::ExchangeNs);
        if self.run.is_over() { UpdateResult::RunEnded } else { UpdateResult::ViewChanged }
    }

    fn count(&mut self, counter: Counter) {
        self.run.count_lap(counter, &mut self.laps);
    }

    fn wait_for_batch(&mut self) -> bool {
        let (run, view, is_half) = (self.run, self.view, self.other_half.is_some());
        let may = self.source.wait(&mut || run.waits_on(&mut self.laps) && view::newest(run, is_half) == view);
        self.count(Counter::LimiterWaitNs);
        may
    }

    /// What only the leader does after an update: count it, and publish when it is time.
    fn lead(&mut self, metrics: &Tally) {
        self.count_updates();
        // Counted from where the source began a new batch: an interval that divides the updates from a batch ends with the last of them.
        if (self.updates - self.began_anew_at).is_multiple_of(self.run.config.learner.publish_interval_updates) {
            self.publish_parameters();
        }
        if self.updates.is_multiple_of(SNAPSHOT_INTERVAL_UPDATES) {
            self.publish_state(self.view);
        }
        self.reports.add(metrics, self.updates, self.laps.last_lap_at_ns());
    }

    /// Publish the newest parameters and state, and report the last updates, so that nothing of an orderly end is lost.
    pub fn leave(&mut self) {
        if self.leads() || self.has_inherited() {
            self.count_updates();
            self.reports.push(self.laps.last_lap_at_ns());
            self.publish_parameters();
            self.publish_state(self.view);
        }
    }

    /// Whether this learner leads the next view, which it joins no more since the run is over, and knows at least as much as the killed
    /// leader had published.
    fn has_inherited(&mut self) -> bool {
        let leads_next = self.view.contains(self.run.number) && self.newest_view().leader == Some(self.run.number);
        leads_next && self.states.read(&mut self.state).is_none_or(|(_, [_, updates, ..])| self.updates >= updates)
    }
}

/// The learning rate of an update after `env_steps`, with the configured batch doubled `doublings` times.
pub(super) fn learning_rate(config: &Config, env_steps: u64, doublings: i8) -> f64 {
    let begin = config.learning_rate();
    let end = config.learner.learning_rate_end.unwrap_or(begin);
    let configured = linear(begin, end, env_steps, config.run.stop_env_steps);
    configured * config.adaptation.step_size.factor(doublings)
}

/// Learn until the run ends.
///
/// # Errors
/// As [`Learner::new`] and [`Learner::update`].
pub fn run(run: &Run<'_>) -> Result<(), RoleError> {
    thread::scope(|threads| {
        let mut learner = Learner::new(run, Some(threads))?;
        learner.join()?;
        while !run.is_over() {
            match learner.update()? {
                UpdateResult::RunEnded => break,
                // Other learners took the rows first. Sleep, so that they have the core.
                UpdateResult::NoBatch => thread::sleep(PAUSE),
                UpdateResult::Updated | UpdateResult::ViewChanged => {}
            }
        }
        run.process.enter(Phase::Leaving);
        learner.leave();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::StepSize;

    #[test]
    fn the_learning_rate_falls_along_the_run_and_follows_the_batch_by_its_rule() {
        let mut config = Config::for_environment("CartPole-v1");
        (config.learner.learning_rate, config.run.stop_env_steps) = (Some(0.5), 1_000);
        for (end, rule, doublings, expected) in [
            (None, StepSize::None, 0, [0.5, 0.5, 0.5]),
            (None, StepSize::Linear, -1, [0.25, 0.25, 0.25]),
            (Some(0.125), StepSize::None, 2, [0.5, 0.3125, 0.125]),
            (Some(0.125), StepSize::Sqrt, 2, [1.0, 0.625, 0.25]),
            (Some(0.125), StepSize::Linear, 2, [2.0, 1.25, 0.5]),
            (Some(0.125), StepSize::Sqrt, -2, [0.25, 0.15625, 0.0625]),
            (Some(0.125), StepSize::Linear, -2, [0.125, 0.078125, 0.03125]),
            (Some(0.0), StepSize::Sqrt, 2, [1.0, 0.5, 0.0]),
        ] {
            (config.learner.learning_rate_end, config.adaptation.step_size) = (end, rule);
            let found = [0, 500, 1_000].map(|env_steps| learning_rate(&config, env_steps, doublings));
            assert_eq!(found, expected, "to {end:?}, by {rule:?}, {doublings} doublings");
        }
    }
}
