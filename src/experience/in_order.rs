//! Fragments in the order in which they were inserted, each taken by one learner, as batches that are used several times: the circular buffer
//! of IMPACT (Luo et al. 2020). A part of each batch may be replayed: drawn at random from fragments that were taken before.

use rand::RngExt;

use super::fragment::PARAMETER_UPDATES;
use super::fragments::Reuse;
use super::{Drawn, Random, Seat, Source, SourceError};
use crate::replay::{Batch, Replay, Schema};
use crate::segment::control::Control;
use crate::segment::counters::Counter;
use crate::segment::processes::ProcessSlot;
use crate::sync::Ordering;

/// Draws for each fragment to be replayed: some find one that is too old, or that nobody has taken yet.
const REPLAY_ATTEMPTS: usize = 16;

/// A learner's part of batch after batch.
pub(super) struct InOrder<'a> {
    reuse: Reuse,
    control: Control<'a>,
    process: ProcessSlot<'a>,
    replay: Replay<'a>,
    /// What is being put together, and how many of its rows are there: other learners take fragments too.
    next: Batch,
    filled: usize,
    kept: Vec<Kept>,
    /// Room of batches that were used up.
    spare: Vec<Batch>,
    /// Which of those kept was handed out last.
    last: usize,
}

struct Kept {
    batch: Batch,
    /// One is gone with each update that begins, one that a change of the learners' view cuts short included.
    uses_left: usize,
}

impl<'a> InOrder<'a> {
    /// Batches of `fragments` each.
    pub(super) fn new(reuse: Reuse, fragments: usize, schema: &Schema, seat: &Seat<'a, '_>) -> Self {
        Self {
            reuse,
            control: seat.segment.control(),
            process: seat.process,
            replay: Replay::new(seat.segment, schema.clone(), seat.process),
            next: Batch::new(schema, fragments),
            filled: 0,
            kept: Vec::new(),
            spare: Vec::new(),
            last: 0,
        }
    }

    /// New fragments missing in the batch that is being put together, which begins with those that are replayed.
    fn missing(&self) -> u64 {
        let replayed = if self.filled == 0 { self.reuse.replayed } else { 0 };
        (self.next.rows() - self.filled - replayed) as u64
    }

    /// Take what there is for the next batch; whether it is complete.
    fn fill(&mut self, random: &mut Random) -> bool {
        if self.filled == 0 {
            self.replay_some(random);
        }
        while self.filled < self.next.rows() && self.replay.take(&mut self.next, self.filled) {
            if self.is_too_old(self.filled) {
                self.process.counters().add(Counter::DroppedRows, 1);
            } else {
                self.filled += 1;
            }
        }
        self.filled == self.next.rows()
    }

    /// Begin the next batch with fragments that were taken before. What is not found, as at the beginning of a run, new ones make up for.
    fn replay_some(&mut self, random: &mut Random) {
        for _ in 0..self.reuse.replayed * REPLAY_ATTEMPTS {
            if self.filled == self.reuse.replayed {
                break;
            }
            if self.replay.draw_taken(&mut self.next, self.filled, random) && !self.is_too_old(self.filled) {
                self.filled += 1;
            }
        }
        self.process.counters().add(Counter::ReplayedRows, self.filled as u64);
    }

    /// Whether fragment number `row` of the next batch was made by parameters of too long ago.
    fn is_too_old(&self, row: usize) -> bool {
        let updates = self.control.updates().load(Ordering::Relaxed);
        let lag_updates = updates.saturating_sub(self.updates_of(row));
        self.reuse.max_policy_lag_updates.is_some_and(|most| lag_updates > most)
    }

    /// Updates in the parameters that made fragment number `row` of the next batch.
    fn updates_of(&self, row: usize) -> u64 {
        let bytes = &self.next.column(PARAMETER_UPDATES).bytes()[8 * row..][..8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }

    /// Keep the batch that was put together, and begin another.
    fn keep(&mut self) {
        let room = self.spare.pop().unwrap_or_else(|| self.next.clone());
        let batch = std::mem::replace(&mut self.next, room);
        self.kept.push(Kept { batch, uses_left: self.reuse.uses });
        self.filled = 0;
    }
}

impl Source for InOrder<'_> {
    fn is_ready(&self) -> bool {
        self.kept.iter().any(|kept| kept.uses_left > 0) || self.replay.fresh() >= self.missing()
    }

    fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        self.is_ready() || self.replay.wait_for_fresh(self.missing(), idle)
    }

    fn next(&mut self, _env_steps: u64, random: &mut Random) -> Result<Drawn<'_>, SourceError> {
        // What was handed out last is given up only now: it was lent out.
        if self.kept.get(self.last).is_some_and(|kept| kept.uses_left == 0) {
            self.spare.push(self.kept.swap_remove(self.last).batch);
        }
        while self.kept.len() < self.reuse.kept_batches && self.fill(random) {
            self.keep();
        }
        if self.kept.is_empty() {
            // Others took what was there, or it was too old.
            return Ok(Drawn { batch: None, is_new: false });
        }
        self.last = random.random_range(0..self.kept.len());
        let kept = &mut self.kept[self.last];
        let is_new = kept.uses_left == self.reuse.uses;
        kept.uses_left -= 1;
        Ok(Drawn { batch: Some(&mut kept.batch), is_new })
    }

    fn report_errors(&mut self, _errors: &[f32]) {}

    fn begin_anew(&mut self) {
        // Of several batches each learner takes any: there is no step to keep.
        if self.reuse.kept_batches == 1 {
            self.spare.extend(self.kept.drain(..).map(|kept| kept.batch));
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::environments::registry;
    use crate::experience::fragment::{FragmentShape, REWARDS};
    use crate::replay::{FRESH, StagingArea};
    use crate::segment::processes::Role;
    use crate::segment::{Description, Layout, Region, Segment, SegmentSizes};

    const ONCE: Reuse = Reuse { kept_batches: 1, uses: 1, max_policy_lag_updates: None, most_waiting: None, replayed: 0, retained: 0 };

    /// A segment with eight fragments, whose first reward is their number.
    fn eight_fragments() -> Segment {
        let schema = schema();
        let layout = Layout::new(SegmentSizes { processes: 2, ..SegmentSizes::of_rows(schema.words(), 64) }).unwrap();
        let segment = Segment::create_private(layout, &Description::default()).unwrap();
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Learner, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let mut replay = Replay::new(&segment, schema.clone(), process);
        for number in 0..8 {
            let area = StagingArea::new(segment.words(Region::Staging), segment.layout().sizes(), 0);
            let mut writer = area.write(&schema);
            writer.f32(REWARDS, &[number as f32; 4]);
            writer.commit(Some(FRESH));
            replay.flush(area);
        }
        drop(replay);
        segment
    }

    fn schema() -> Schema {
        FragmentShape::new(4, &registry::spec("CartPole-v1").unwrap()).schema()
    }

    fn source(segment: &Segment, fragments: usize, reuse: Reuse) -> InOrder<'_> {
        let seat = Seat { segment, process: segment.processes().slot(0), seed: 1, threads: None, is_counted: true };
        InOrder::new(reuse, fragments, &schema(), &seat)
    }

    #[test]
    fn a_part_of_a_batch_is_replayed_from_what_was_taken_and_the_rest_is_new_and_in_order() {
        let segment = eight_fragments();
        let mut source = source(&segment, 4, Reuse { replayed: 2, retained: 8, ..ONCE });
        let mut random = Random::seed_from_u64(1);
        let mut next = |source: &mut InOrder<'_>| {
            let drawn = source.next(0, &mut random).unwrap();
            drawn.batch.map(|batch| batch.column(REWARDS).as_f32().chunks(4).map(|rewards| rewards[0] as usize).collect::<Vec<_>>())
        };
        assert_eq!(next(&mut source), Some(vec![0, 1, 2, 3]), "nothing was taken before");
        for taken in [4, 6] {
            let batch = next(&mut source).unwrap();
            assert!(batch[..2].iter().all(|&replayed| replayed < taken), "{batch:?}");
            assert_eq!(batch[2..], [taken, taken + 1]);
        }
        assert_eq!(next(&mut source), None, "all eight were taken, and a batch is not of old ones alone");
        assert_eq!(segment.processes().slot(0).counters().get(Counter::ReplayedRows), 6);
    }

    #[test]
    fn a_batch_is_handed_out_so_often_and_no_more_once_learners_begin_anew() {
        let segment = eight_fragments();
        let mut source = source(&segment, 2, Reuse { uses: 3, ..ONCE });
        let mut random = Random::seed_from_u64(1);
        let mut is_new = |source: &mut InOrder<'_>| {
            let drawn = source.next(0, &mut random).unwrap();
            drawn.batch.is_some().then_some(drawn.is_new)
        };
        assert_eq!([(); 4].map(|()| is_new(&mut source)), [Some(true), Some(false), Some(false), Some(true)]);
        source.begin_anew();
        assert_eq!([(); 2].map(|()| is_new(&mut source)), [Some(true), Some(false)]);
        source.begin_anew();
        assert_eq!([(); 4].map(|()| is_new(&mut source)), [Some(true), Some(false), Some(false), None], "all eight were handed out");
    }
}
