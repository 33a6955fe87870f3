//! A thread that draws the next batch while the current one trains.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use rand::SeedableRng;

use super::{Random, SourceError};
use crate::replay::{Batch, SampleError, Sampler, Schema};
use crate::segment::Segment;

/// Draws one batch ahead.
pub(super) struct Ahead<'a> {
    requests: SyncSender<(Batch, f32)>,
    drawn: Receiver<Result<(Batch, u64), SampleError>>,
    /// A batch that is not lent out.
    spare: Option<Batch>,
    is_drawing: bool,
    thread: Option<ScopedJoinHandle<'a, ()>>,
}

impl<'a> Ahead<'a> {
    /// The thread ends once this is dropped. `spare` is the second batch, beside the one that trains.
    pub(super) fn start(
        threads: &'a Scope<'a, '_>,
        segment: &'a Segment,
        schema: &Schema,
        seed: u64,
        spare: Batch,
    ) -> Result<Self, SourceError> {
        let (requests, incoming) = sync_channel::<(Batch, f32)>(1);
        let (outgoing, drawn) = sync_channel(1);
        let (mut sampler, mut random) = (Sampler::new(segment, schema.clone()), Random::seed_from_u64(!seed));
        let draw = move || {
            for (mut batch, beta) in incoming {
                let result = sampler.sample(&mut batch, beta, &mut random).map(|()| (batch, sampler.take_redrawn()));
                if outgoing.send(result).is_err() {
                    break;
                }
            }
        };
        let thread = Builder::new().name("batches".into()).spawn_scoped(threads, draw);
        let thread = Some(thread.map_err(|source| SourceError::Thread { source })?);
        Ok(Self { requests, drawn, spare: Some(spare), is_drawing: false, thread })
    }

    /// Whether a batch is being drawn, or waits to be taken.
    pub(super) fn is_drawing(&self) -> bool {
        self.is_drawing
    }

    /// Begin to draw a batch, if none is being drawn.
    pub(super) fn request(&mut self, beta: f32) {
        if let Some(batch) = self.spare.take() {
            self.is_drawing = self.requests.send((batch, beta)).is_ok();
        }
    }

    /// Throw away what was drawn, if anything was, and draw into `spare` from now on.
    pub(super) fn give_up(&mut self, spare: Batch) {
        if std::mem::take(&mut self.is_drawing) {
            // A thread that has ended is found, and says why, when the next batch is taken.
            drop(self.drawn.recv());
        }
        self.spare = Some(spare);
    }

    /// Swap `batch` for the one that was drawn. Returns how many of its rows were drawn again.
    pub(super) fn take(&mut self, batch: &mut Batch, beta: f32) -> Result<u64, SourceError> {
        if !self.is_drawing {
            self.request(beta);
        }
        self.is_drawing = false;
        let Ok(drawn) = self.drawn.recv() else {
            // A panic that nobody has asked for would end the scope with another, and hide what it said.
            if let Some(Err(panic)) = self.thread.take().map(ScopedJoinHandle::join) {
                resume_unwind(panic);
            }
            return Err(SourceError::ThreadEnded);
        };
        let (drawn, redrawn) = drawn?;
        self.spare = Some(std::mem::replace(batch, drawn));
        Ok(redrawn)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::replay::{Element, Field};
    use crate::segment::{Description, Layout, SegmentSizes};

    #[test]
    fn what_the_thread_said_when_it_panicked_is_what_the_learner_says() {
        let schema = Schema::new(vec![Field::new("number", Element::I32, 1)]);
        let layout = Layout::new(SegmentSizes::of_rows(schema.words(), 64));
        let segment = Segment::create_private(layout.unwrap(), &Description::default()).unwrap();
        // Rows of other fields than those of the replay: the thread refuses to write them.
        let other = Batch::new(&Schema::new(vec![Field::new("number", Element::F64, 1)]), 4);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|threads| {
                let mut ahead = Ahead::start(threads, &segment, &schema, 1, other.clone()).unwrap();
                ahead.take(&mut other.clone(), 1.0).map(drop)
            })
        }));
        let said = panic.expect_err("the thread panicked");
        assert!(said.downcast_ref::<String>().is_some_and(|said| said.contains("bytes of field `number`")), "another panic came through");
    }
}
