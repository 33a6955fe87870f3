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
