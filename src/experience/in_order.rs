//! Batches of fragments that are used several times: the circular buffer of IMPACT (Luo et al. 2020).

use rand::{RngExt, SeedableRng};

use super::assembly::Assembly;
use super::fragments::Reuse;
use super::prefetch::Prefetch;
use super::{Drawn, Random, Seat, Source, SourceError};
use crate::replay::{Batch, Schema};

/// Hands out a learner's part of each batch, several times.
pub(super) struct InOrder<'a> {
    reuse: Reuse,
    new: New<'a>,
    kept: Vec<Kept>,
    /// Buffers of batches that were used up.
    spare: Vec<Batch>,
    /// Index in `kept` of the batch that was handed out last.
    last: usize,
}

/// Who puts new batches together.
enum New<'a> {
    /// The learner, between two updates.
    Learner(Box<Assembly<'a>>),
    /// A thread, while the learner trains with the batches that it keeps. It is asked with the buffer of a used batch,
    /// if there is one, and answers `None` when the run ends.
    Thread(Box<Prefetch<'a, Option<Batch>, Option<Batch>>>),
}

struct Kept {
    batch: Batch,
    /// Updates that may still begin with this batch. One that a change of the learners' view cuts short counts too.
    uses_left: usize,
}

impl<'a> InOrder<'a> {
    /// Batches of `fragments` each; put together by a thread if `prefetches`, and one may be started.
    pub(super) fn new(reuse: Reuse, fragments: usize, prefetches: bool, schema: &Schema, seat: &Seat<'a, '_>) -> Result<Self, SourceError> {
        let mut assembly = Assembly::new(reuse, fragments, schema, seat);
        let new = match seat.threads.filter(|_| prefetches) {
            None => New::Learner(Box::new(assembly)),
            Some(threads) => {
                let mut random = Random::seed_from_u64(!seat.seed);
                let make = move |room: Option<Batch>, is_wanted: &dyn Fn() -> bool| {
                    assembly.complete(&mut random, is_wanted).then(|| assembly.finish(room))
                };
                New::Thread(Box::new(Prefetch::start(threads, make)?))
            }
        };
        Ok(Self { reuse, new, kept: Vec::new(), spare: Vec::new(), last: 0 })
    }

    /// A new batch, if one can be had without waiting.
    fn take_new(&mut self, random: &mut Random) -> Result<Option<Batch>, SourceError> {
        match &mut self.new {
            New::Learner(assembly) => Ok(assembly.fill(random).then(|| assembly.finish(self.spare.pop()))),
            New::Thread(prefetch) if prefetch.has_arrived() => {
                let batch = prefetch.take()?;
                prefetch.request(self.spare.pop());
                Ok(batch)
            }
            New::Thread(_) => Ok(None),
        }
    }
}

impl Source for InOrder<'_> {
    fn is_ready(&self) -> bool {
        self.kept.iter().any(|kept| kept.uses_left > 0)
            || match &self.new {
                New::Learner(assembly) => assembly.is_ready(),
                New::Thread(prefetch) => prefetch.has_arrived(),
            }
    }

    fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        self.is_ready()
            || match &self.new {
                New::Learner(assembly) => assembly.wait(idle),
                New::Thread(prefetch) => prefetch.wait(idle),
            }
    }

    fn next(&mut self, _env_steps: u64, random: &mut Random) -> Result<Drawn<'_>, SourceError> {
        // The batch that was handed out last can be given up only now: it was lent out.
        if self.kept.get(self.last).is_some_and(|kept| kept.uses_left == 0) {
            self.spare.push(self.kept.swap_remove(self.last).batch);
        }
        while self.kept.len() < self.reuse.kept_batches
            && let Some(batch) = self.take_new(random)?
        {
            self.kept.push(Kept { batch, uses_left: self.reuse.uses });
        }
        if self.kept.is_empty() {
            // Other learners took the fragments that were there, or these were too old.
            return Ok(Drawn { batch: None, is_new: false });
        }
        self.last = random.random_range(0..self.kept.len());
        let kept = &mut self.kept[self.last];
        let is_new = kept.uses_left == self.reuse.uses;
        kept.uses_left -= 1;
        Ok(Drawn { batch: Some(&mut kept.batch), is_new })
    }

    fn report_errors(&mut self, _errors: &[f32]) {}

    fn restart(&mut self) {
        // The thread begins only when this learner takes part: until then the count of updates, by which a fragment is
        // too old, may come from learners that died.
        if let New::Thread(prefetch) = &mut self.new
            && !prefetch.is_working()
        {
            prefetch.request(self.spare.pop());
        }
        // With several kept batches, each learner takes any of its own: learners are not in step.
        if self.reuse.kept_batches == 1 {
            self.spare.extend(self.kept.drain(..).map(|kept| kept.batch));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;
    use crate::environments::registry;
    use crate::experience::fragment::{FragmentShape, PARAMETER_UPDATES, REWARDS};
    use crate::replay::{FRESH, Replay, StagingArea};
    use crate::segment::counters::Counter;
    use crate::segment::processes::Role;
    use crate::segment::{Segment, SegmentSizes};
    use crate::sync::Ordering;

    const ONCE: Reuse = Reuse { kept_batches: 1, uses: 1, max_policy_lag_updates: None, most_waiting: None, replayed: 0, retained: 0 };

    /// A segment with eight fragments. The first reward of each is its number, and so are the updates in the parameters that made it.
    fn eight_fragments() -> Segment {
        let schema = schema();
        let segment = Segment::of_sizes(SegmentSizes { processes: 2, ..SegmentSizes::of_rows(schema.words(), 64) });
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Learner, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let mut replay = Replay::new(&segment, schema.clone(), process);
        for number in 0..8u8 {
            let area = StagingArea::of(&segment, 0);
            let mut writer = area.write(&schema);
            writer.f32(REWARDS, &[f32::from(number); 4]).part(PARAMETER_UPDATES, &u64::from(number).to_le_bytes());
            writer.commit(Some(FRESH));
            replay.flush(area);
        }
        drop(replay);
        segment
    }

    fn schema() -> Schema {
        FragmentShape::new(4, &registry::spec("CartPole-v1").unwrap()).schema()
    }

    fn numbers(drawn: Drawn<'_>) -> Option<Vec<usize>> {
        drawn.batch.map(|batch| batch.column(REWARDS).as_f32().chunks(4).map(|rewards| rewards[0] as usize).collect())
    }

    fn source(segment: &Segment, fragments: usize, reuse: Reuse) -> InOrder<'_> {
        let seat = Seat { segment, process: segment.processes().slot(0), seed: 1, threads: None, is_counted: true };
        InOrder::new(reuse, fragments, false, &schema(), &seat).unwrap()
    }

    #[test]
    fn a_part_of_a_batch_is_replayed_from_what_was_taken_and_the_rest_is_new_and_in_order() {
        let segment = eight_fragments();
        let mut source = source(&segment, 4, Reuse { replayed: 2, retained: 8, ..ONCE });
        let mut random = Random::seed_from_u64(1);
        let mut next = |source: &mut InOrder<'_>| numbers(source.next(0, &mut random).unwrap());
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
    fn fragments_made_by_parameters_too_many_updates_old_are_dropped_and_counted_and_are_not_replayed() {
        let limited = Reuse { max_policy_lag_updates: Some(3), ..ONCE };
        let mut random = Random::seed_from_u64(1);
        let segment = eight_fragments();
        segment.control().updates().store(8, Ordering::Relaxed);
        let mut without_replay = source(&segment, 3, limited);
        assert_eq!(numbers(without_replay.next(0, &mut random).unwrap()), Some(vec![5, 6, 7]));
        assert_eq!(segment.processes().slot(0).counters().get(Counter::DroppedRows), 5);

        let segment = eight_fragments();
        let mut source = source(&segment, 4, Reuse { replayed: 2, retained: 8, ..limited });
        for (updates, oldest, new) in [(0, 0, [0, 1, 2, 3].as_slice()), (5, 2, &[4, 5]), (7, 4, &[6, 7])] {
            segment.control().updates().store(updates, Ordering::Relaxed);
            let batch = numbers(source.next(0, &mut random).unwrap()).unwrap();
            assert!(batch.ends_with(new) && batch.iter().all(|&number| number >= oldest), "{batch:?} after {updates} updates");
        }
        assert_eq!(segment.processes().slot(0).counters().get(Counter::DroppedRows), 0, "what was taken once is not dropped again");
    }

    #[test]
    fn a_batch_is_handed_out_so_often_and_no_more_once_learners_start_over() {
        let segment = eight_fragments();
        let mut source = source(&segment, 2, Reuse { uses: 3, ..ONCE });
        let mut random = Random::seed_from_u64(1);
        let mut is_new = |source: &mut InOrder<'_>| {
            let drawn = source.next(0, &mut random).unwrap();
            drawn.batch.is_some().then_some(drawn.is_new)
        };
        assert_eq!([(); 4].map(|()| is_new(&mut source)), [Some(true), Some(false), Some(false), Some(true)]);
        source.restart();
        assert_eq!([(); 2].map(|()| is_new(&mut source)), [Some(true), Some(false)]);
        source.restart();
        assert_eq!([(); 4].map(|()| is_new(&mut source)), [Some(true), Some(false), Some(false), None], "all eight were handed out");
    }

    #[test]
    fn each_kept_batch_is_handed_out_so_often_in_any_order_and_kept_when_learners_start_over() {
        let mut beginnings = BTreeSet::new();
        for seed in 0..64 {
            let segment = eight_fragments();
            let mut source = source(&segment, 2, Reuse { kept_batches: 3, uses: 2, ..ONCE });
            let mut random = Random::seed_from_u64(seed);
            let mut order: Vec<Vec<usize>> = Vec::new();
            loop {
                let drawn = source.next(0, &mut random).unwrap();
                let is_new = drawn.is_new;
                let Some(batch) = numbers(drawn) else { break };
                assert_eq!(is_new, !order.contains(&batch), "{batch:?} after {order:?}");
                // The fourth batch takes the place of the first one that is used up.
                let is_used_up = (1..order.len()).any(|index| order[..index].contains(&order[index]));
                assert_eq!(segment.control().sampled().load(Ordering::Relaxed), if is_used_up { 8 } else { 6 }, "after {order:?}");
                order.push(batch);
                source.restart();
            }
            beginnings.insert(order[..2].to_vec());
            order.sort_unstable();
            assert_eq!(order, [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5], [6, 7], [6, 7]]);
        }
        assert_eq!(beginnings.len(), 9, "an update takes any of the three that are kept: {beginnings:?}");
    }

    #[test]
    fn a_thread_puts_the_same_batches_together_and_ends_with_the_learner() {
        let segment = eight_fragments();
        let mut random = Random::seed_from_u64(1);
        thread::scope(|threads| {
            let seat = Seat { segment: &segment, process: segment.processes().slot(0), seed: 1, threads: Some(threads), is_counted: true };
            let mut source = InOrder::new(Reuse { uses: 2, ..ONCE }, 3, true, &schema(), &seat).unwrap();
            source.restart();
            for (expected, is_new) in [([0, 1, 2], true), ([0, 1, 2], false), ([3, 4, 5], true), ([3, 4, 5], false)] {
                assert!(source.wait(&mut || true) && source.is_ready());
                let drawn = source.next(0, &mut random).unwrap();
                assert_eq!(drawn.is_new, is_new);
                assert_eq!(numbers(drawn), Some(expected.to_vec()));
            }
            // Two are left, and the thread waits for a third.
            assert!(!source.wait(&mut || false));
            assert_eq!(numbers(source.next(0, &mut random).unwrap()), None);
        });
        assert_eq!(segment.control().sampled().load(Ordering::Relaxed), 8, "whatever was there was taken");
    }
}
