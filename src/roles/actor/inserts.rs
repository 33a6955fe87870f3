//! What an actor inserts into the replay: the rows that its recorder stages, and its turn to flush them.

use super::super::run::{Laps, Run};
use super::statistics::OwnStatistics;
use crate::experience::{Recorder, Steps};
use crate::replay::{Replay, StagingArea, Turn};
use crate::segment::counters::Counter;
use crate::segment::processes::Phase;
use crate::sync::Ordering;

/// What an actor has staged, and when it may insert that.
pub(super) struct Inserts<'a> {
    run: &'a Run<'a>,
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
}

/// The moment at which the actor began to step for its next flush.
#[derive(Default)]
struct Began {
    /// In nanoseconds of the monotonic clock.
    at_ns: u64,
    /// Samples that learners had drawn.
    sampled: u64,
}

impl<'a> Inserts<'a> {
    /// Nothing staged yet, of so many environments.
    pub(super) fn new(run: &'a Run<'a>, environments: usize) -> Self {
        Self {
            replay: run.replay(),
            recorder: run.algorithm.experience().recorder(environments),
            flush_rows: run.algorithm.experience().storage().flush_rows,
            area: run.staging_area(),
            chosen_by: Vec::new(),
            turn: None,
            began: Began::default(),
            samples_meanwhile: 0,
            run,
        }
    }

    /// Wait before the first step of a flush until the flush will not have to wait, so that its actions are chosen by
    /// parameters as new as can be. Learners are expected to draw as many samples meanwhile as while the last flush was staged.
    /// `false` if the run ended first.
    pub(super) fn wait_for_turn(&mut self, laps: &mut Laps) -> bool {
        if self.turn.is_some() {
            return true;
        }
        let run = self.run;
        // The synchronous trainer waits for nobody. Since its last step it may have learned: that time is not the actor's.
        if run.config.is_synchronous() {
            laps.lap();
            return true;
        }
        let rows = self.flush_rows as u64;
        let turn = self.turn.insert(run.algorithm.experience().limiter().turn(run.segment, run.process));
        let is_near = turn.wait_until_near(self.samples_meanwhile, rows, || run.waits_on(laps));
        run.count_lap(Counter::LimiterWaitNs, laps);
        self.began = Began { at_ns: laps.last_lap_at_ns(), sampled: run.control().counted_samples() };
        is_near
    }

    /// Stage the rows that these steps complete.
    pub(super) fn record(&mut self, steps: &Steps<'_>) {
        self.recorder.record(steps, self.area, &self.replay, &mut self.chosen_by);
    }

    /// Whether enough is staged for a flush, or something for long enough.
    pub(super) fn is_flush_due(&self, laps: &Laps) -> bool {
        let pending = self.area.pending();
        let is_old = || laps.last_lap_at_ns().saturating_sub(self.began.at_ns) >= self.run.config.actor.flush_interval_ms * 1_000_000;
        pending >= self.flush_rows || pending > 0 && !self.run.config.is_synchronous() && is_old()
    }

    /// Insert what is staged, once the rate limiter agrees. `false` if the run ended first.
    pub(super) fn flush(&mut self, statistics: Option<&mut OwnStatistics<'_>>, laps: &mut Laps) -> bool {
        let run = self.run;
        run.count_lap(Counter::InsertNs, laps);
        if let Some(turn) = &mut self.turn {
            self.samples_meanwhile = run.control().counted_samples().saturating_sub(self.began.sampled);
            let has_come = turn.wait(|| run.waits_on(laps));
            run.count_lap(Counter::LimiterWaitNs, laps);
            if !has_come {
                return false;
            }
        }
        run.process.enter(Phase::Insert);
        self.count_policy_lags();
        self.insert(statistics);
        run.count_products();
        // Only now, when everything is counted, is it another process's turn.
        self.turn = None;
        true
    }

    /// Move everything staged into the replay at once, and publish the actor's `statistics`.
    pub(super) fn insert(&mut self, statistics: Option<&mut OwnStatistics<'_>>) {
        // Before the rows: whoever draws them should scale them with statistics that include them.
        if let Some(statistics) = statistics {
            statistics.publish();
        }
        self.replay.flush(self.area);
    }

    /// Count how many updates have been made since the parameters that chose the staged rows.
    fn count_policy_lags(&mut self) {
        let counters = self.run.process.counters();
        let updates = self.run.control().updates().load(Ordering::Relaxed);
        let rows = self.chosen_by.len() as u64;
        let lags = self.chosen_by.drain(..).map(|chosen_by| updates.saturating_sub(chosen_by));
        let (sum, largest) = lags.fold((0, 0), |(sum, largest), lag| (sum + lag, lag.max(largest)));
        counters.add(Counter::PolicyLagSum, sum);
        counters.add(Counter::LaggedRows, rows);
        counters.raise(Counter::PolicyLagMax, largest);
    }
}
