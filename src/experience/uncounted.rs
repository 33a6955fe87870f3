//! The prioritized table for a learner that does not count: it draws batches like any other, but they are not counted
//! as sampled, and no priorities are written back. The half of an algorithm that learns the policy draws in this way.

use super::prioritized::beta;
use super::{Drawn, Random, Seat, Source, SourceError};
use crate::config::Config;
use crate::config::schema::ReplayConfig;
use crate::replay::{Batch, RateLimiter, Sampler, Schema};
use crate::segment::control::Control;
use crate::sync::Ordering;

/// Hands out batches that are drawn anew each time, and counts none.
pub(super) struct Uncounted<'a> {
    config: ReplayConfig,
    schema: Schema,
    control: Control<'a>,
    sampler: Sampler<'a>,
    /// The run's limiter without its ratio: it says only with how many rows sampling begins.
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::environments::registry;
    use crate::experience::prioritized::tests::{ROWS, eight_rows};
    use crate::experience::{Experience, Transitions};
    use crate::replay::{Priority, ReplayView};
    use crate::segment::Segment;

    /// Transitions whose batches have half as many rows as there are.
    fn transitions(min_size: usize) -> Transitions {
        let mut config = Config::for_environment("CartPole-v1");
        config.learner.batch_size = ROWS / 2;
        config.replay.min_size = min_size;
        Transitions::new(&config, &registry::spec("CartPole-v1").unwrap())
    }

    fn seat(segment: &Segment, is_counted: bool) -> Seat<'_, '_> {
        Seat { segment, process: segment.processes().slot(0), seed: 1, threads: None, is_counted }
    }

    #[test]
    fn who_learns_beside_those_that_count_changes_neither_counts_nor_priorities() {
        let transitions = transitions(ROWS);
        let segment = eight_rows(&transitions.schema());
        let (view, control, mut random) = (ReplayView::new(&segment, transitions.schema()), segment.control(), Random::seed_from_u64(1));
        let state = || {
            let words = [control.sampled(), control.samples_beyond(), control.largest_priority()];
            let priorities: Vec<Priority> = (0..ROWS).map(|slot| view.tree().unwrap().raw_priority(slot)).collect();
            (words.map(|word| word.load(Ordering::Relaxed)), segment.processes().slot(0).counters().all(), priorities)
        };
        let mut after_update = |is_counted| {
            let mut source = transitions.source(seat(&segment, is_counted)).unwrap();
            assert_eq!(source.next(0, &mut random).unwrap().batch.map(|batch| batch.rows()), Some(ROWS / 2));
            source.report_errors(&[100.0; ROWS / 2]);
            state()
        };
        let before = state();
        assert_eq!(after_update(false), before);
        let (words, counters, priorities) = after_update(true);
        assert!(words != before.0 && counters != before.1 && priorities != before.2, "who counts changes all of them");
    }

    #[test]
    fn who_learns_beside_those_that_count_waits_for_the_first_rows_and_not_for_a_ratio() {
        for (min_size, sampled, expected) in [(ROWS, 0, [true, true]), (ROWS, 1_000_000, [true, false]), (ROWS + 1, 0, [false, false])] {
            let transitions = transitions(min_size);
            let segment = eight_rows(&transitions.schema());
            segment.control().sampled().store(sampled, Ordering::Relaxed);
            let ready = [false, true].map(|is_counted| {
                let source = transitions.source(seat(&segment, is_counted)).unwrap();
                let is_ready = source.is_ready();
                assert_eq!(source.wait(&mut || false), is_ready);
                is_ready
            });
            assert_eq!(ready, expected, "{ROWS} rows of at least {min_size}, {sampled} sampled: a look, and who counts");
        }
    }
}
