//! The learner: takes its share of the batch from the algorithm's source, adds its gradient to the other learners', updates,
//! publishes.
//!
//! Every learner holds the same parameters and the same optimizer state, bit for bit, because all of them apply the
//! same sum. The leader of the view (see `segment::membership`) publishes; when the view changes, it hands its state to
//! the others.
//!
//! Where two learners share the algorithm by halves (`other_half`), each leads a view of itself alone.

mod other_half;

use std::thread::{self, Scope};
use std::time::Duration;

use rand::SeedableRng;

use self::other_half::OtherHalf;
use super::run::{Laps, RoleError, Run};
use crate::algorithms::{Half, Learning, Random, Statistics};
use crate::config::Config;
use crate::config::schedule::linear;
use crate::environments::derive_seed;
use crate::experience::{Seat, Source};
use crate::machine::gpu::GpuUse;
use crate::machine::gpu_meter::GpuMeter;
use crate::metrics::{Share, Tally};
use crate::networks::Device;
use crate::segment::counters::Counter;
use crate::segment::float_board::{FloatBoard, NOTES};
use crate::segment::gradients::GradientExchange;
use crate::segment::membership::View;
use crate::segment::metrics::{MetricRing, Report};
use crate::segment::processes::Phase;
use crate::sync::{Ordering, monotonic_ns};

/// Updates between two snapshots of the learner's state: what a killed learner can lose at most.
const SNAPSHOT_INTERVAL_UPDATES: u64 = 100;
/// Updates between two reports to the metric ring.
const REPORT_INTERVAL_UPDATES: u64 = 16;
/// Updates between two looks at the actors' statistics, where something is normalised.
const OBSERVE_INTERVAL_UPDATES: u64 = 16;
/// Time between two looks at what a learner waits for: others of its view, its other half, a batch that was promised and not there.
const PAUSE: Duration = Duration::from_micros(200);
/// Looks at the other learners between two looks at the run.
const SPINS: u32 = 64;
/// Which of the streams of random numbers of a process is the learner's.
const OWN_STREAM: u32 = 1;

/// What became of an attempt to update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
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
    /// What the next batch is normalised with, where that has changed.
    statistics: Option<Statistics>,
    /// Epoch of the view in which statistics were settled on last.
    settled_in: Option<u32>,
    gradient: Vec<f32>,
    state: Vec<f32>,
    random: Random,
    ring: MetricRing<'a>,
    /// The metrics of the updates since the last report.
    unreported: Tally,
    /// Where this learner computes on a GPU whose driver tells what it does.
    gpu: Option<GpuMeter>,
    laps: Laps,
}

impl<'a> Learner<'a> {
    /// Set up; with `threads`, batches may be got ready ahead. The view is joined at the first update.
    pub fn new(run: &'a Run<'a>, threads: Option<&'a Scope<'a, '_>>) -> Result<Self, RoleError> {
        let mut learning = run.algorithm.learning(run.config.run.seed)?;
        let sizes = run.algorithm.sizes();
        let other_half = OtherHalf::new(run, &mut *learning);
        // Of two halves that of the critics says what is drawn, and how urgent it is.
        let is_counted = other_half.as_ref().is_none_or(|other| other.learns(Half::Critics));
        let seat = Seat { segment: run.segment, process: run.process, seed: run.seed(), threads, is_counted };
        let states = run.segment.learner_boards().nth(if other_half.is_some() { run.number } else { 0 });
        Ok(Self {
            other_half,
            source: run.algorithm.experience().source(seat)?,
            board: run.segment.parameter_board(),
            states: states.expect("a segment has a board for each state of learners"),
            exchange: run.segment.gradient_exchange(),
            view: View::default(),
            updates: 0,
            statistics: None,
            settled_in: None,
            gradient: vec![0.0; sizes.learned],
            state: vec![0.0; sizes.state],
            // In a synchronous run the actor is the same process, and draws from a stream of its own.
            random: Random::seed_from_u64(derive_seed(run.seed(), OWN_STREAM)),
            ring: run.segment.metric_ring(run.process.index()),
            unreported: Tally::new(run.algorithm.metrics()),
            gpu: match run.config.learner.device_of(run.number).parse() {
                Ok(Device::Cuda(index)) => GpuMeter::of_this_process(index),
                Ok(Device::Cpu) | Err(_) => None,
            },
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

    /// The newest view that concerns this learner.
    fn newest_view(&self) -> View {
        let view = View::load(self.run.control().membership());
        if self.other_half.is_some() { view.alone(self.run.number) } else { view }
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
    pub fn update(&mut self) -> Result<Attempt, RoleError> {
        if !self.join()? {
            return Ok(Attempt::RunEnded);
        }
        if !self.hear_of_other_half() || !self.wait_for_batch() || !self.settle_statistics() {
            return Ok(self.interrupted());
        }
        self.run.process.enter(Phase::Sample);
        let env_steps = self.run.env_steps();
        let drawn = self.source.next(env_steps, &mut self.random)?;
        self.run.process.counters().add(Counter::ReplayNs, self.laps.lap());
        let Some(batch) = drawn.batch else { return Ok(Attempt::NoBatch) };

        self.run.process.enter(Phase::Compute);
        if drawn.is_new {
            // Never while a batch is in use: it was scaled once.
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
        let norm = self.learning.apply(&mut self.gradient, &mut share, learning_rate);
        if !norm.is_finite() {
            return Err(RoleError::Diverged { update: self.updates + 1, metrics: share.tally.to_string() });
        }
        self.updates += 1;
        self.run.process.counters().add(Counter::Updates, 1);
        // Both halves learn from as much: it counts once.
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
        if self.updates.is_multiple_of(REPORT_INTERVAL_UPDATES)
            && let Some(GpuUse { index, busy_share, memory_bytes }) = self.gpu.as_mut().and_then(GpuMeter::look)
        {
            self.ring.push(Report::Gpu { index, busy_share, memory_bytes });
        }
        Ok(Attempt::Updated)
    }

    /// Why there was no update, where what was waited for did not come.
    fn interrupted(&self) -> Attempt {
        if self.run.is_over() { Attempt::RunEnded } else { Attempt::ViewChanged }
    }

    fn count(&mut self, counter: Counter) {
        self.run.process.counters().add(counter, self.laps.lap());
    }

    /// Be in the newest view, with the state that its leader has; who leads publishes its parameters first. `false` when the run ended
    /// before that.
    ///
    /// # Errors
    /// [`RoleError::StateLost`].
    pub fn join(&mut self) -> Result<bool, RoleError> {
        loop {
            let view = self.newest_view();
            if view == self.view {
                return Ok(true);
            }
            // A run that is over before anything was published has weights all the same.
            let begins = view.leader == Some(self.run.number) && self.states.version() == 0;
            // In this order: at the end of a run a view changes because the leader has left, which published last.
            if !begins && self.run.is_over() {
                return Ok(false);
            }
            if view.contains(self.run.number) && (self.lead_on(view)? || self.follow(view)) {
                self.view = view;
                // Members begin together, with batches too: what is scaled, and when, is the same for all.
                self.source.begin_anew();
                let learner = &self.run.config.learner;
                let batch_size = view.batch_size(learner.batch_size);
                let counted = if self.run.config.holds_updates() { learner.batch_size } else { batch_size };
                self.source.resize(batch_size / learner.count, counted / learner.count);
                return Ok(true);
            }
            self.run.process.enter(Phase::Exchange);
            std::thread::sleep(PAUSE);
        }
    }

    /// As the leader of a new view: publish the state for the others, its own or, in a process that has not taken part
    /// in any view yet, the newest that there is.
    fn lead_on(&mut self, view: View) -> Result<bool, RoleError> {
        if view.leader != Some(self.run.number) {
            return Ok(false);
        }
        // Whoever published it is dead, or it would lead: nobody publishes another meanwhile.
        if self.view == View::default() && !self.load_state(None) && self.states.version() != 0 {
            return Err(RoleError::StateLost { version: self.states.version() });
        }
        // What was counted after that state is gone with those who knew it. A count ahead of all parameters would make experience look
        // older than it is, for as long as nothing but older experience comes.
        self.count_updates();
        self.publish_state(view);
        self.publish_parameters();
        if let Some(other) = &mut self.other_half {
            other.hand_over(&mut *self.learning, self.updates);
        }
        Ok(true)
    }

    /// As another member: load the leader's state once it has been published under this view. It cannot be missed:
    /// until this learner arrives in a round of the view nobody completes one, so what the leader publishes next it
    /// publishes under a later view, which this learner then finds.
    fn follow(&mut self, view: View) -> bool {
        self.load_state(Some(u64::from(view.epoch)))
    }

    fn load_state(&mut self, epoch: Option<u64>) -> bool {
        let Some((_, [written_in, updates, ..])) = self.states.read(&mut self.state) else { return false };
        if epoch.is_some_and(|epoch| epoch != written_in) {
            return false;
        }
        self.learning.restore(&self.state);
        self.updates = updates;
        self.statistics = None;
        // A state is without the statistics: without a look at them, a leader would publish unscaled until it has settled on some.
        if epoch.is_none() && self.run.algorithm.normalisation().is_needed() {
            self.learning.normalise_with(&seen_by_actors(self.run));
        }
        true
    }

    fn publish_state(&mut self, view: View) {
        self.learning.save(&mut self.state);
        self.states.publish(&[&self.state], [u64::from(view.epoch), self.updates, 0, 0]);
    }

    fn count_updates(&self) {
        if self.learns(Half::Critics) {
            self.run.control().updates().store(self.updates, Ordering::Relaxed);
        }
    }

    fn publish_parameters(&mut self) {
        if !self.learns(Half::Policy) {
            return;
        }
        let notes: [u64; NOTES] = [self.updates, self.run.env_steps(), monotonic_ns(), 0];
        self.board.publish(&[self.learning.published()], notes);
    }

    /// Now and then, and first of all under each view, settle with the other learners what the next batches are normalised with. The leader
    /// says it: parts of an update that were scaled differently would contradict each other. `false` when the view changed or the run ended meanwhile.
    ///
    /// Nobody misses what the leader says. It says the next only updates later, and no update is complete before all members have gone on
    /// from here. Of two halves that of the critics says it, and the other one takes what was said last: their updates are not the same.
    fn settle_statistics(&mut self) -> bool {
        let (run, view) = (self.run, self.view);
        let is_time = self.settled_in != Some(view.epoch) || self.updates.is_multiple_of(OBSERVE_INTERVAL_UPDATES);
        let Some(board) = run.segment.settled_statistics().filter(|_| is_time) else { return true };
        let (mut values, settled) = (vec![0.0; board.len()], [self.updates, u64::from(view.epoch)]);
        // Once for an update, however often it is attempted: others may have heard it. Who begins alone has told nobody.
        let begins_alone = self.settled_in.is_none() && view.members.count_ones() == 1;
        let is_news = |found: Option<(u64, [u64; NOTES])>| found.is_none_or(|(_, [.., updates, epoch])| [updates, epoch] != settled);
        if self.leads() && self.learns(Half::Critics) && (begins_alone || is_news(board.read(&mut values))) {
            let [observations, returns] = seen_by_actors(run).publish(&mut values);
            board.publish(&[&values], [observations, returns, settled[0], settled[1]]);
        }
        for looks in 1.. {
            if let Some((_, [observations, returns, updates, epoch])) = board.read(&mut values)
                && ([updates, epoch] == settled || !self.learns(Half::Critics))
            {
                let mut statistics = Statistics::new(run.environment.observation.len());
                statistics.merge(&values, [observations, returns]);
                (self.statistics, self.settled_in) = (Some(statistics), Some(view.epoch));
                break;
            }
            run.process.enter(Phase::Exchange);
            if self.newest_view() != view || run.is_over() {
                return false;
            }
            // The leader is seldom far behind.
            if looks < SPINS { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
        self.count(Counter::ExchangeNs);
        true
    }

    /// Where two learners share the algorithm by halves: take over what the other half has learned, once this one is not too far ahead of
    /// it. What the other waits for this one waits for, too. `false` when the view changed or the run ended meanwhile.
    fn hear_of_other_half(&mut self) -> bool {
        for looks in 1.. {
            let Some(other) = &mut self.other_half else { return true };
            if other.take_over(&mut *self.learning, self.updates) {
                break;
            }
            let (phase, counter) = match other.waits_for_rows() {
                true => (Phase::LimiterWait, Counter::LimiterWaitNs),
                false => (Phase::Exchange, Counter::ExchangeNs),
            };
            self.run.process.enter(phase);
            self.count(counter);
            if self.newest_view() != self.view || self.run.is_over() {
                return false;
            }
            if looks < SPINS { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
        self.count(Counter::ExchangeNs);
        true
    }

    fn wait_for_batch(&mut self) -> bool {
        let run = self.run;
        let mut idle = || {
            run.process.enter(Phase::LimiterWait);
            !run.is_over() && self.newest_view() == self.view
        };
        let may = self.source.wait(&mut idle);
        self.count(Counter::LimiterWaitNs);
        may
    }

    /// Make this learner's share and gradient the sum of all learners'. `false` when the view changed or the run ended.
    fn add_up(&mut self, share: &mut Share) -> bool {
        if self.view.members.count_ones() == 1 {
            return true;
        }
        self.run.process.enter(Phase::Exchange);
        let round = self.updates + 1;
        self.exchange.arrive(self.run.number, self.view, round, share, &self.gradient);
        let mut spins = 0;
        while !self.exchange.all_arrived(self.view, round) {
            spins += 1;
            if spins % SPINS == 0 {
                // Processes may outnumber cores, and then the one waited for needs this one's.
                std::thread::yield_now();
                self.run.process.enter(Phase::Exchange);
                if self.newest_view() != self.view || self.run.is_over() {
                    return false;
                }
            }
            std::hint::spin_loop();
        }
        self.exchange.add_up(self.view, round, share, &mut self.gradient);
        // A view that changed meanwhile may have changed the shares too.
        let same_view = self.newest_view() == self.view;
        self.count(Counter::ExchangeNs);
        same_view
    }

    /// What only the leader does after an update: count it, and publish when it is time.
    fn lead(&mut self, metrics: &Tally) {
        self.unreported.merge(metrics);
        self.count_updates();
        if self.updates.is_multiple_of(self.run.config.learner.publish_interval_updates) {
            self.publish_parameters();
        }
        if self.updates.is_multiple_of(SNAPSHOT_INTERVAL_UPDATES) {
            self.publish_state(self.view);
        }
        if self.updates.is_multiple_of(REPORT_INTERVAL_UPDATES) {
            self.report();
        }
    }

    fn report(&mut self) {
        self.ring.push_all(&self.unreported);
        self.unreported.clear();
    }

    /// Publish the newest parameters and state, and report the last updates, so that nothing of an orderly end is lost.
    pub fn leave(&mut self) {
        if self.leads() {
            self.report();
            self.publish_parameters();
            self.publish_state(self.view);
        }
    }
}

/// What all actors together have seen up to now.
fn seen_by_actors(run: &Run<'_>) -> Statistics {
    let mut statistics = Statistics::new(run.environment.observation.len());
    for slot in 0..run.segment.layout().sizes().stagers {
        let Some(board) = run.segment.statistics_board(slot) else { continue };
        let mut values = vec![0.0; board.len()];
        if let Some((_, [observations, returns, ..])) = board.read(&mut values) {
            statistics.merge(&values, [observations, returns]);
        }
    }
    statistics
}

fn learning_rate(config: &Config, env_steps: u64, doublings: i8) -> f32 {
    let learner = &config.learner;
    let end = learner.learning_rate_end.unwrap_or(learner.learning_rate);
    let configured = linear(learner.learning_rate, end, env_steps, config.run.stop_env_steps);
    (configured * config.adaptation.step_size.factor(doublings)) as f32
}

/// Learn until the run ends.
pub fn run(run: &Run<'_>) -> Result<(), RoleError> {
    thread::scope(|threads| {
        let mut learner = Learner::new(run, Some(threads))?;
        learner.join()?;
        while !run.is_over() {
            match learner.update()? {
                Attempt::RunEnded => break,
                // What was to be had, others took: they need the core more.
                Attempt::NoBatch => thread::sleep(PAUSE),
                Attempt::Updated | Attempt::ViewChanged => {}
            }
        }
        run.process.enter(Phase::Leaving);
        learner.leave();
        Ok(())
    })
}
