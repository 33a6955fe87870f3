//! Where a learner's batches come from: the rate limiter, the replay, and, if wanted, a thread that draws the next batch while
//! the current one trains.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rand::SeedableRng;

use crate::algorithms::Random;
use crate::replay::{Batch, Priority, RateLimiter, Replay};
use crate::roles::run::{RoleError, Run};
use crate::segment::Segment;
use crate::sync::Ordering;

/// A learner's share of batch after batch.
pub(super) struct Batches<'a> {
    run: &'a Run<'a>,
    replay: Replay<'a>,
    limiter: RateLimiter,
    batch: Batch,
    ahead: Option<Ahead>,
}

impl<'a> Batches<'a> {
    /// With a thread that draws ahead if the configuration says so; the synchronous trainer never has one.
    pub(super) fn new(run: &'a Run<'a>) -> Result<Self, RoleError> {
        let batch = Batch::new(&run.algorithm.schema(), run.config.learner.batch_size / run.config.learner.count);
        let draws_ahead = run.config.learner.prefetch && run.config.actor.count > 0;
        let ahead = if draws_ahead { Some(Ahead::start(run, batch.clone())?) } else { None };
        Ok(Self { replay: run.replay(), limiter: run.limiter(), batch, ahead, run })
    }

    /// Transitions in each.
    pub(super) fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Whether the rate limiter lets this learner draw a batch now.
    pub(super) fn may_draw(&self) -> bool {
        let control = self.run.control();
        let [inserted, sampled] = [control.inserted(), control.sampled()].map(|word| word.load(Ordering::Relaxed));
        self.limiter.may_sample(inserted, sampled, self.rows() as u64)
    }

    /// Wait until the rate limiter lets this learner have a batch, or one was drawn ahead. `idle` is called before every
    /// sleep and may end the waiting by returning `false`, which is then the answer.
    pub(super) fn wait(&self, idle: impl FnMut() -> bool) -> bool {
        let is_ready = self.ahead.as_ref().is_some_and(|ahead| ahead.is_drawing);
        is_ready || self.limiter.wait_to_sample(self.run.control(), self.rows() as u64, idle)
    }

    /// The next batch, after [`Batches::wait`]. `beta` is the importance exponent.
    pub(super) fn draw(&mut self, beta: f32, random: &mut Random) -> Result<&mut Batch, RoleError> {
        let Some(ahead) = &mut self.ahead else {
            self.replay.sample(&mut self.batch, beta, random)?;
            return Ok(&mut self.batch);
        };
        if !ahead.is_drawing {
            ahead.request(beta);
        }
        ahead.take(&mut self.batch)?;
        // Not beyond what the limiter allows: the batch that waits here counts as sampled.
        if self.may_draw()
            && let Some(ahead) = &mut self.ahead
        {
            ahead.request(beta);
        }
        Ok(&mut self.batch)
    }

    /// Write the priorities of the last batch back, in its order.
    pub(super) fn update_priorities(&mut self, priorities: impl Iterator<Item = Option<Priority>>) {
        self.replay.update_priorities(&self.batch, priorities);
    }
}

/// A thread that draws one batch ahead, with a view of the segment of its own.
struct Ahead {
    requests: SyncSender<(Batch, f32)>,
    drawn: Receiver<Result<Batch, RoleError>>,
    /// A batch that is not lent out.
    spare: Option<Batch>,
    is_drawing: bool,
}

impl Ahead {
    fn start(run: &Run<'_>, spare: Batch) -> Result<Self, RoleError> {
        let name = run.segment.name().to_owned();
        let (schema, mut random) = (run.algorithm.schema(), Random::seed_from_u64(!run.seed()));
        let (requests, incoming) = sync_channel::<(Batch, f32)>(1);
        let (outgoing, drawn) = sync_channel(1);
        thread::Builder::new()
            .name("batches".into())
            .spawn(move || {
                // A mapping belongs to one thread.
                let segment = match Segment::attach(&name) {
                    Ok(segment) => segment,
                    Err(error) => return drop(outgoing.send(Err(error.into()))),
                };
                // The process is a member of the run already; this mapping must not count as another.
                segment.retire();
                // Drawing changes nothing in the replay, so it needs no slot of the process table.
                let mut replay = Replay::new(&segment, schema, None);
                for (mut batch, beta) in incoming {
                    let result = replay.sample(&mut batch, beta, &mut random).map(|()| batch).map_err(RoleError::from);
                    if outgoing.send(result).is_err() {
                        break;
                    }
                }
            })
            .map_err(|source| RoleError::Thread { source })?;
        Ok(Self { requests, drawn, spare: Some(spare), is_drawing: false })
    }

    fn request(&mut self, beta: f32) {
        if let Some(batch) = self.spare.take() {
            self.is_drawing = self.requests.send((batch, beta)).is_ok();
        }
    }

    /// Swap `batch` for the one that was drawn.
    fn take(&mut self, batch: &mut Batch) -> Result<(), RoleError> {
        self.is_drawing = false;
        let drawn = self.drawn.recv().map_err(|_| RoleError::ThreadEnded)??;
        self.spare = Some(std::mem::replace(batch, drawn));
        Ok(())
    }
}
