//! The prioritized table, as somebody looks at it who learns beside those that count: drawn like any batch, but not counted as sampled, and
//! nothing is written back.

use super::prioritized::beta;
use super::{Drawn, Random, Seat, Source, SourceError};
use crate::config::Config;
use crate::config::schema::ReplayConfig;
use crate::replay::{Batch, RateLimiter, Sampler, Schema};
use crate::segment::control::Control;
use crate::sync::Ordering;

/// Batch after batch, each drawn anew.
pub(super) struct Uncounted<'a> {
    config: ReplayConfig,
    schema: Schema,
    control: Control<'a>,
    sampler: Sampler<'a>,
    /// Of the run's it keeps the number of rows with which sampling begins.
    limiter: RateLimiter,
    batch: Batch,
}

impl<'a> Uncounted<'a> {
    /// Batches of rows that follow `schema`, as `config` describes them, once there are as many as `limiter` asks for.
    pub(super) fn new(config: &Config, schema: &Schema, limiter: RateLimiter, seat: &Seat<'a, '_>) -> Self {
        Self {
            config: config.replay.clone(),
            schema: schema.clone(),
            control: seat.segment.control(),
            sampler: Sampler::new(seat.segment, schema.clone()),
            limiter: RateLimiter { samples_per_insert: None, ..limiter },
            batch: Batch::new(schema, config.learner.batch_size / config.learner.count),
        }
    }
}

impl Source for Uncounted<'_> {
    fn is_ready(&self) -> bool {
        self.limiter.may_sample(self.control.inserted().load(Ordering::Relaxed), 0, 0)
    }

    fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        self.limiter.wait_to_sample(self.control, 0, idle)
    }

    fn next(&mut self, env_steps: u64, random: &mut Random) -> Result<Drawn<'_>, SourceError> {
        self.sampler.look(&mut self.batch, beta(&self.config, env_steps), random)?;
        Ok(Drawn { batch: Some(&mut self.batch), is_new: true })
    }

    fn report_errors(&mut self, _errors: &[f32]) {}

    fn resize(&mut self, rows: usize, _counted: usize) {
        if rows != self.batch.rows() {
            self.batch = Batch::new(&self.schema, rows);
        }
    }
}
