//! The prioritized table as a source of batches: the rate limiter, the importance exponent, and
//! priorities written back.

use rand::SeedableRng;

use super::prefetch::Prefetch;
use super::{Drawn, Random, Seat, Source, SourceError};
use crate::config::Config;
use crate::config::schedule::linear;
use crate::config::schema::ReplayConfig;
use crate::replay::{Batch, Priority, RateLimiter, Replay, SampleError, Sampler, Schema};
use crate::segment::control::Control;
use crate::sync::Ordering;

/// Importance exponent after `env_steps` of the run.
pub fn beta(replay: &ReplayConfig, env_steps: u64) -> f32 {
    linear(replay.beta_start, replay.beta_end, env_steps, replay.beta_anneal_steps) as f32
}

/// Hands out a learner's share of each batch, which is drawn anew each time.
pub struct Prioritized<'a> {
    config: ReplayConfig,
    schema: Schema,
    control: Control<'a>,
    replay: Replay<'a>,
    limiter: RateLimiter,
    batch: Batch,
    thread: Option<DrawingThread<'a>>,
    /// The second batch, if there is a thread and it is not drawing into it.
    spare: Option<Batch>,
}

/// A thread that draws into a batch, with an importance exponent. It returns the batch and how
/// many rows were drawn again.
type DrawingThread<'a> = Prefetch<'a, (Batch, f32), Result<(Batch, u64), SampleError>>;

impl<'a> Prioritized<'a> {
    /// Batches of rows that follow `schema`, as `config` describes them. With `learner.prefetch`, and if a thread may
    /// be started, that thread draws the next batch while the current one trains.
    ///
    /// # Errors
    /// The thread does not start.
    pub fn new(config: &Config, schema: &Schema, limiter: RateLimiter, seat: Seat<'a, '_>) -> Result<Self, SourceError> {
        let batch = Batch::new(schema, config.learner.batch_size / config.learner.count);
        let threads = seat.threads.filter(|_| config.learner.prefetch);
        let mut sampler = Sampler::new(seat.segment, schema.clone());
        let mut random = Random::seed_from_u64(!seat.seed);
        let draw = move |(mut batch, beta): (Batch, f32), _: &dyn Fn() -> bool| {
            sampler.sample(&mut batch, beta, &mut random).map(|()| (batch, sampler.take_redrawn()))
        };
        let thread = threads.map(|threads| Prefetch::start(threads, draw)).transpose()?;
        Ok(Self {
            spare: thread.is_some().then(|| batch.clone()),
            config: config.replay.clone(),
            schema: schema.clone(),
            control: seat.segment.control(),
            replay: Replay::new(seat.segment, schema.clone(), seat.process),
            limiter,
            batch,
            thread,
        })
    }

    fn counted(&self) -> u64 {
        self.batch.counted() as u64
    }
}

impl Source for Prioritized<'_> {
    fn is_ready(&self) -> bool {
        self.limiter.may_sample(self.control.inserted().load(Ordering::Relaxed), self.control.counted_samples(), self.counted())
    }

    fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        let was_drawn = self.thread.as_ref().is_some_and(Prefetch::is_working);
        was_drawn || self.limiter.wait_to_sample(self.control, self.counted(), idle)
    }

    fn next(&mut self, env_steps: u64, random: &mut Random) -> Result<Drawn<'_>, SourceError> {
        let beta = beta(&self.config, env_steps);
        match &mut self.thread {
            None => self.replay.sample(&mut self.batch, beta, random)?,
            Some(thread) => {
                if let Some(spare) = self.spare.take() {
                    thread.request((spare, beta));
                }
                let (drawn, redrawn) = thread.take()??;
                self.spare = Some(std::mem::replace(&mut self.batch, drawn));
                self.replay.count_drawn_ahead(self.batch.rows() as u64, redrawn);
                // Only if the limiter allows it: the batch that waits here counts as sampled.
                if self.is_ready()
                    && let (Some(thread), Some(spare)) = (&mut self.thread, self.spare.take())
                {
                    thread.request((spare, beta));
                }
            }
        }
        Ok(Drawn { batch: Some(&mut self.batch), is_new: true })
    }

    fn report_errors(&mut self, errors: &[f32]) {
        let (epsilon, alpha) = (self.config.priority_epsilon as f32, self.config.alpha as f32);
        let priorities = errors.iter().map(|&error| Priority::from_error(error, epsilon, alpha));
        self.replay.update_priorities(&self.batch, priorities);
    }

    fn resize(&mut self, rows: usize, counted: usize) {
        if (rows, counted) == (self.batch.rows(), self.batch.counted()) {
            return;
        }
        self.batch = Batch::new(&self.schema, rows).counting_as(counted);
        if let Some(thread) = &mut self.thread {
            if thread.is_working() {
                // That batch has the old size. If there is an error instead, the next request meets it again.
                drop(thread.take());
            }
            self.spare = Some(self.batch.clone());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::thread;

    use super::*;
    use crate::environments::registry;
    use crate::experience::{Experience, Transitions};
    use crate::replay::{ReplayView, StagingArea};
    use crate::segment::processes::Role;
    use crate::segment::{Segment, SegmentSizes};

    pub(in crate::experience) const ROWS: usize = 8;

    /// A prioritized replay of eight rows; the priority of the row in slot 0 is one, and each further row has one more.
    pub(in crate::experience) fn eight_rows(schema: &Schema) -> Segment {
        let segment = Segment::of_sizes(SegmentSizes { staged_rows: ROWS, ..SegmentSizes::of_rows(schema.words(), 64) });
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Learner, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let area = StagingArea::of(&segment, 0);
        for row in 1..=ROWS {
            area.write(schema).commit(Priority::from_f32(row as f32));
        }
        assert_eq!(Replay::new(&segment, schema.clone(), process).flush(area), ROWS);
        segment
    }

    /// Batches of half the rows, and nobody waits.
    fn config() -> Config {
        let mut config = Config::for_environment("CartPole-v1");
        config.learner.batch_size = ROWS / 2;
        (config.replay.min_size, config.replay.samples_per_insert) = (ROWS, None);
        config
    }

    fn transitions(config: &Config) -> Transitions {
        Transitions::new(config, &registry::spec("CartPole-v1").unwrap())
    }

    /// The error that a learner finds in the row of `slot`: of both signs, and another one in each round.
    fn error(round: u16, slot: usize) -> f32 {
        let size = f32::from(round) + slot as f32 / ROWS as f32;
        if slot.is_multiple_of(2) { size } else { -size }
    }

    #[test]
    fn errors_become_the_priorities_of_the_rows_they_were_found_in_also_while_a_thread_draws_the_next_batch() {
        for prefetch in [false, true] {
            let mut config = config();
            config.learner.prefetch = prefetch;
            (config.replay.alpha, config.replay.priority_epsilon) = (0.5, 0.25);
            let transitions = transitions(&config);
            let segment = eight_rows(&transitions.schema());
            let view = ReplayView::new(&segment, transitions.schema());
            let priorities = || (0..ROWS).map(|slot| view.tree().unwrap().raw_priority(slot).to_f64()).collect::<Vec<f64>>();
            thread::scope(|threads| {
                let process = segment.processes().slot(0);
                let seat = Seat { segment: &segment, process, seed: 1, threads: Some(threads), is_counted: true };
                let mut source = Prioritized::new(&config, &transitions.schema(), transitions.limiter(), seat).unwrap();
                assert_eq!(source.thread.is_some(), prefetch);
                let mut random = Random::seed_from_u64(1);
                for round in 0..20 {
                    assert!(source.wait(&mut || true));
                    let slots = source.next(0, &mut random).unwrap().batch.unwrap().slots.clone();
                    let mut expected = priorities();
                    for &slot in &slots {
                        expected[slot] = (f64::from(error(round, slot).abs()) + 0.25).sqrt();
                    }
                    let errors: Vec<f32> = slots.iter().map(|&slot| error(round, slot)).collect();
                    source.report_errors(&errors);
                    for (slot, (found, expected)) in priorities().into_iter().zip(expected).enumerate() {
                        assert!((found - expected).abs() < 1e-5, "slot {slot} of {slots:?}, prefetch {prefetch}: {found}, not {expected}");
                    }
                }
            });
        }
    }

    #[test]
    fn the_importance_exponent_of_a_batch_goes_from_its_start_to_its_end_with_the_environment_steps() {
        let mut config = config();
        (config.replay.beta_start, config.replay.beta_end, config.replay.beta_anneal_steps) = (0.25, 1.0, 1_000);
        let transitions = transitions(&config);
        let segment = eight_rows(&transitions.schema());
        let process = segment.processes().slot(0);
        let mut source = transitions.source(Seat { segment: &segment, process, seed: 1, threads: None, is_counted: true }).unwrap();
        let mut random = Random::seed_from_u64(1);
        let sum: usize = (1..=ROWS).sum();
        for (env_steps, exponent) in [(0, 0.25), (500, 0.625), (1_000, 1.0), (5_000, 1.0)] {
            let batch = source.next(env_steps, &mut random).unwrap().batch.unwrap();
            for (&slot, &weight) in batch.slots.iter().zip(&batch.weights) {
                let expected = ((ROWS * (slot + 1)) as f32 / sum as f32).powf(-exponent);
                assert!((weight - expected).abs() < 1e-4, "{weight}, not {expected}, in slot {slot} after {env_steps} steps");
            }
        }
    }
}
