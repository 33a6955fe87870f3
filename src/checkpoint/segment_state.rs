//! What a segment holds beside the rows of its replay: counts, parameters, the learners' state, what was seen.
//!
//! Read while the run goes on, after the rows: each part is whole, and together they are no more out of step than what a kill leaves.
//! A process that starts on them is a replacement like any other, so nothing of a role's own has to be kept.

use std::marker::PhantomData;
use std::{fmt, io};

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::CheckpointError;
use crate::replay::{Counts, ReplayView, Restoring, Schema};
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::float_board::{FloatBoard, NOTES};
use crate::segment::layout::MAX_PROCESSES;
use crate::segment::processes::{ProcessSlot, Role};
use crate::sync::Ordering;

/// What a segment holds beside rows and frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SegmentState {
    /// Of the replay.
    pub counts: Counts,
    /// Environment steps of all actors.
    pub env_steps: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Of what was sampled, what the rate limiter does not count.
    samples_beyond: u64,
    #[serde(deserialize_with = "at_most_processes")]
    processes: Vec<SavedProcess>,
    parameters: Option<SavedBoard>,
    /// Of all learners, or of each half.
    #[serde(deserialize_with = "at_most_processes")]
    learners: Vec<Option<SavedBoard>>,
    /// Of each staging process.
    #[serde(deserialize_with = "at_most_processes")]
    statistics: Vec<Option<SavedBoard>>,
    settled_statistics: Option<SavedBoard>,
}

/// What was published last on a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedBoard {
    version: u64,
    notes: [u64; NOTES],
    values: Vec<f32>,
}

/// Statistics of what a process has seen: their values, and how many observations and returns they are of.
pub type SavedStatistics = (Vec<f32>, [u64; 2]);

/// What a slot of the process table says of those who had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedProcess {
    slot: usize,
    role: Role,
    number: usize,
    generation: u64,
    restarts: u64,
    counters: Vec<u64>,
}

impl SegmentState {
    /// What `segment` holds now. `incarnation` is that of the synchronous trainer, where it is one that trains: its process does not
    /// change.
    ///
    /// # Errors
    /// [`CheckpointError::Unreadable`]: something was published, and nothing whole is there.
    pub(super) fn of(segment: &Segment, schema: Schema, incarnation: Option<u64>) -> io::Result<Self> {
        let control = segment.control();
        let stagers = segment.layout().sizes().stagers;
        let processes = segment.processes().iter().filter_map(|slot| SavedProcess::of(slot, incarnation)).collect();
        let statistics = |board: Option<_>| board.map_or(Ok(None), |board| SavedBoard::of(board, "statistics"));
        // The learners first: what they have drawn is then counted, or whoever goes on would draw it once more.
        let learners = segment.learner_boards().map(|board| SavedBoard::of(board, "state of the learners")).collect::<io::Result<_>>()?;
        let replay = ReplayView::new(segment, schema);
        Ok(Self {
            learners,
            parameters: SavedBoard::of(segment.parameter_board(), "parameters")?,
            statistics: (0..stagers).map(|slot| statistics(segment.statistics_board(slot))).collect::<io::Result<_>>()?,
            settled_statistics: statistics(segment.settled_statistics())?,
            processes,
            // One after the other: off by what is drawn between the two looks.
            samples_beyond: control.samples_beyond().load(Ordering::Relaxed),
            counts: replay.counts(),
            env_steps: control.env_steps().load(Ordering::Relaxed),
            updates: control.updates().load(Ordering::Relaxed),
        })
    }

    /// What learners had published last: its version, its notes and the values. `None` before the first publication.
    pub(super) fn published(self) -> Option<(u64, [u64; NOTES], Vec<f32>)> {
        self.parameters.map(|SavedBoard { version, notes, values }| (version, notes, values))
    }

    /// Whether its boards have the lengths of those of `segment`.
    pub(super) fn fits(&self, segment: &Segment) -> bool {
        let fits = |saved: &Option<SavedBoard>, board: Option<FloatBoard<'_>>| {
            saved.as_ref().is_none_or(|saved| board.is_some_and(|board| board.len() == saved.values.len()))
        };
        fits(&self.parameters, Some(segment.parameter_board()))
            && self.learners.len() == segment.learner_boards().count()
            && self.learners.iter().zip(segment.learner_boards()).all(|(saved, board)| fits(saved, Some(board)))
            && fits(&self.settled_statistics, segment.settled_statistics())
            && self.statistics.iter().all(|saved| fits(saved, segment.settled_statistics()))
    }

    /// Count no row as inserted, because none was kept. Those that nobody had taken count as dropped: nobody will learn from them. That
    /// says something of fragments alone, each of which is taken once.
    pub(super) fn forget_rows(&mut self) {
        let untaken = self.counts.inserted.saturating_sub(self.counts.sampled);
        if let Some(dropped) = self.processes.first_mut().and_then(|process| process.counters.get_mut(Counter::DroppedRows as usize)) {
            *dropped += untaken;
        }
        self.counts = Counts { largest_priority: self.counts.largest_priority, claimed: 0, inserted: 0, sampled: 0, frames: 0 };
        self.samples_beyond = 0;
    }

    /// Put it into `segment`, which nobody uses yet, which it fits, and whose replay has its rows. `planned` maps a role, its number and
    /// the slot it had last to its slot now.
    ///
    /// What a process that has no slot now has counted, and how often it was replaced, goes to the first of its role, or else to the first
    /// that stages. Returns the statistics that have no board now.
    pub(super) fn restore(
        &self,
        segment: &Segment,
        schema: Schema,
        planned: impl Fn(Role, usize, usize) -> Option<usize>,
    ) -> Vec<SavedStatistics> {
        let control = segment.control();
        Restoring::new(segment, schema).put_counts(&self.counts);
        control.env_steps().store(self.env_steps, Ordering::Relaxed);
        control.updates().store(self.updates, Ordering::Relaxed);
        control.samples_beyond().store(self.samples_beyond, Ordering::Relaxed);
        // Generations seed random numbers, so every slot goes on from the highest one of all: no stream is used twice, not even in a slot
        // that is new.
        let latest = self.processes.iter().map(|process| process.generation).max().unwrap_or(0);
        segment.processes().iter().for_each(|slot| slot.restore_generation(latest));
        for process in &self.processes {
            let slot = planned(process.role, process.number, process.slot);
            if let Some(slot) = slot {
                // The trainer goes on as if it had not stopped.
                let generation = if process.role == Role::Synchronous { process.generation } else { latest };
                segment.processes().slot(slot).restore(process.role, process.number, generation);
            }
            let heir = segment.processes().slot(slot.or_else(|| planned(process.role, 0, process.slot)).unwrap_or(0));
            heir.counters().add_all(&process.counters);
            // The restarts of a process that has no place now are added to its heir's, unless training lost nothing by them (a
            // visualizer's).
            if slot.is_some() || process.role.serves_training() {
                heir.count_restarts(process.restarts);
            }
        }
        let put = |saved: &Option<SavedBoard>, board: Option<FloatBoard<'_>>| {
            if let (Some(SavedBoard { version, notes, values }), Some(board)) = (saved, board) {
                board.restore(*version, values, *notes);
            }
        };
        // What was published under a view of an earlier life is of no view of this one, or a learner could follow a leader that has not
        // published yet.
        for (saved, board) in self.learners.iter().zip(segment.learner_boards()) {
            put(&saved.as_ref().map(|saved| saved.without_note(0)), Some(board));
        }
        put(&self.parameters, Some(segment.parameter_board()));
        put(&self.settled_statistics.as_ref().map(|saved| saved.without_note(3)), segment.settled_statistics());
        for (slot, saved) in self.statistics.iter().enumerate() {
            put(saved, segment.statistics_board(slot));
        }
        let without_board = self.statistics.iter().skip(segment.layout().sizes().stagers).flatten();
        without_board
            .map(|SavedBoard { values, notes: [observations, returns, ..], .. }| (values.clone(), [*observations, *returns]))
            .collect()
    }

    /// Put what was learned into `segment`, of a run that begins: nobody uses it yet, and this fits it. There have
    /// been no steps and no updates.
    ///
    /// Inputs are scaled as they were last. What was seen for that counts as seen by the first process that stages, which adds to it as a
    /// replacement does to what was seen by the one before.
    pub(super) fn begin(&self, segment: &Segment) {
        let put = |saved: &Option<SavedBoard>, board: Option<FloatBoard<'_>>, notes: [u64; NOTES]| {
            if let (Some(SavedBoard { values, .. }), Some(board)) = (saved, board) {
                board.publish(&[values], notes);
            }
        };
        // With notes of 0: no view has that for its epoch, so whoever leads first takes it, and whoever follows waits for the leader.
        for (saved, board) in self.learners.iter().zip(segment.learner_boards()) {
            put(saved, Some(board), [0; NOTES]);
        }
        put(&self.parameters, Some(segment.parameter_board()), [0; NOTES]);
        let [observations, returns, ..] = self.settled_statistics.as_ref().map_or([0; NOTES], |saved| saved.notes);
        put(&self.settled_statistics, segment.statistics_board(0), [observations, returns, 0, 0]);
    }
}

impl SavedBoard {
    /// The same with a note of 0, which no view has for its epoch.
    fn without_note(&self, note: usize) -> Self {
        let mut saved = self.clone();
        saved.notes[note] = 0;
        saved
    }

    /// What is on `board`, which holds the `content` of a run; `None` before the first publication.
    fn of(board: FloatBoard<'_>, content: &'static str) -> io::Result<Option<Self>> {
        // In this order: what is published meanwhile is no damage.
        if board.version() == 0 {
            return Ok(None);
        }
        let mut values = vec![0.0; board.len()];
        match board.read(&mut values) {
            Some((version, notes)) => Ok(Some(Self { version, notes, values })),
            // A checkpoint without it would begin anew there, and take the place of one that is whole.
            None => Err(io::Error::other(CheckpointError::Unreadable { content })),
        }
    }
}

impl SavedProcess {
    /// Nothing of a slot that nobody has had.
    fn of(slot: ProcessSlot<'_>, incarnation: Option<u64>) -> Option<Self> {
        let (role, number) = slot.role()?;
        let generation = incarnation.filter(|_| role == Role::Synchronous).unwrap_or(slot.generation());
        let (restarts, counters) = (slot.restarts(), slot.counters().all());
        (generation > 0).then(|| Self { slot: slot.index(), role, number, generation, restarts, counters })
    }
}

/// A list of no more entries than a run has processes: an absent board is one byte in the file, and many in memory.
fn at_most_processes<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Entries<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "at most {MAX_PROCESSES} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = sequence.next_element()? {
                if entries.len() == MAX_PROCESSES {
                    return Err(A::Error::invalid_length(entries.len() + 1, &self));
                }
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_seq(Entries(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_entries_are_read_than_a_run_has_processes() {
        let reads = |entries: usize| {
            let state = SegmentState {
                counts: Counts { largest_priority: 1, claimed: 0, inserted: 0, sampled: 0, frames: 0 },
                env_steps: 0,
                updates: 0,
                samples_beyond: 0,
                processes: Vec::new(),
                parameters: None,
                learners: Vec::new(),
                statistics: vec![None; entries],
                settled_statistics: None,
            };
            let bytes = bincode::serde::encode_to_vec(&state, bincode::config::legacy()).unwrap();
            bincode::serde::decode_from_slice::<SegmentState, _>(&bytes, bincode::config::legacy()).is_ok_and(|(read, _)| read == state)
        };
        assert!(reads(MAX_PROCESSES) && !reads(MAX_PROCESSES + 1));
    }
}
