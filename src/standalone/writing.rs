//! The writing side: adding transitions, and removing all of them.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::participant::Participant;
use super::patience::Patience;
use super::steps::Steps;
use super::{Options, ReplayError, ReplayHandle, Sides, check_errors};
use crate::replay::leaderless::InTheWay;
use crate::replay::staging::RowWriter;
use crate::replay::{Element, Priority, RecentFrames, Replay, Schema, StagingArea, Turn, leaderless};

/// How long a process that adds waits for one that draws: for one that was killed to be started again, or for one
/// that has only written priorities back to draw.
const ABSENCE: Duration = Duration::from_secs(10);

/// What a process needs to write.
pub(super) struct Writing {
    pub(super) participant: Participant,
    /// `None` if no field is made of frames.
    frames: Option<RecentFrames>,
    steps: Option<Steps>,
    priorities: Vec<f32>,
}

impl Writing {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            participant: Participant::writer(),
            frames: (options.frames > 0).then(RecentFrames::default),
            steps: options.steps_to_put_together().cloned().map(Steps::new),
            priorities: Vec::new(),
        }
    }
}

impl ReplayHandle {
    /// Add `rows` transitions, or, if the replay makes n-step transitions, `rows` steps of the environments
    /// `streams`. `columns` has the bytes of each field's values, row after row. `errors` are turned into priorities;
    /// without them transitions get the largest so far. The slots that the transitions went to are appended to
    /// `slots`, in order.
    ///
    /// The bytes of `columns` may change during the call. A transition then has some of the old bytes and some of the
    /// new.
    ///
    /// # Errors
    /// [`ReplayError::PrioritiesOfSteps`] for `errors` if the replay makes n-step transitions;
    /// [`ReplayError::Priority`] for an error that makes no priority; [`ReplayError::NotFinite`] for a number that a
    /// run does not take; and whatever keeps the replay from taking anything.
    pub fn add(
        &self,
        columns: &[&[u8]],
        rows: usize,
        errors: Option<&[f32]>,
        streams: &[i64],
        mut patience: Patience<'_>,
        slots: &mut Vec<i64>,
    ) -> Result<(), ReplayError> {
        if errors.is_some() && self.makes_n_step_transitions() {
            return Err(ReplayError::PrioritiesOfSteps);
        }
        check_errors(errors.unwrap_or_default())?;
        self.memory.check_open()?;
        if self.is_guest() {
            self.check_numbers(columns)?;
        }
        let sides = self.sides();
        // Both are held until what is added is counted.
        let _turn_and_line = match self.limiter.samples_per_insert {
            Some(_) => Some(self.wait_for_turn(sides, &mut patience)?),
            None => None,
        };
        self.wait_at_gate(&mut patience)?;
        let mut writing = patience.lock(&sides.writing)?;
        let Writing { participant, frames, steps, priorities } = &mut *writing;
        let place = self.place(participant, &mut patience)?;
        if let Some(errors) = errors {
            self.priorities_of(errors, priorities);
        }
        let complete = steps.as_mut().map(|steps| steps.take(self.schema(), columns, streams));
        let owned: Vec<&[u8]>;
        let (columns, rows) = match &complete {
            None => (columns, rows),
            Some(complete) => {
                owned = complete.columns.iter().map(Vec::as_slice).collect();
                (&*owned, complete.rows)
            }
        };
        let priorities = errors.is_some().then_some(&*priorities);
        let area = StagingArea::of(&self.memory.segment, place.index());
        let mut replay = self.hold(place, std::mem::take(&mut participant.scratch));
        let mut moved = |claimed: &[(usize, u64)]| slots.extend(claimed.iter().map(|&(slot, _)| slot as i64));
        for row in 0..rows {
            if area.is_full() {
                replay.flush_with(area, &mut moved);
            }
            let mut transition = area.write(self.schema());
            write_row(&mut transition, self.schema(), columns, row, &replay, frames);
            transition.commit(priorities.and_then(|priorities| Priority::from_f32(priorities[row])));
        }
        replay.flush_with(area, &mut moved);
        participant.scratch = replay.into_scratch();
        Ok(())
    }

    /// An error for a float that is not finite. A learner that draws one diverges, and so does its replacement: a run
    /// takes none from a guest, as it takes none from an environment.
    fn check_numbers(&self, columns: &[&[u8]]) -> Result<(), ReplayError> {
        // The fields of a run have no other floats.
        for (field, column) in self.schema().fields().iter().zip(columns).filter(|(field, _)| field.element == Element::F32) {
            let numbers = || column.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
            if !numbers().all(f32::is_finite) {
                let position = numbers().position(|number| !number.is_finite()).unwrap_or(0);
                let value = numbers().nth(position).unwrap_or(f32::NAN);
                return Err(ReplayError::NotFinite { field: field.name.clone(), value, row: position / field.length.max(1) });
            }
        }
        Ok(())
    }

    /// Remove all transitions and reset all counts. Names of transitions that were drawn before are stale afterwards.
    /// Waits for another process that repairs or clears the replay.
    ///
    /// # Errors
    /// [`ReplayError::OfARun`] for a guest; [`ReplayError::Segment`] if this process cannot tell who is dead;
    /// [`ReplayError::Stuck`] while a process stays inside an operation; and what ends the wait for others:
    /// [`ReplayError::Repairing`], [`ReplayError::Busy`], [`ReplayError::Interrupted`], [`ReplayError::Closed`].
    pub fn clear(&self, mut patience: Patience<'_>) -> Result<(), ReplayError> {
        self.not_of_a_run("clearing it")?;
        // A process that cannot tell who is dead never becomes the repairer, so it would wait for ever.
        self.memory.segment.check_namespaces()?;
        while !self.clear_unless_repaired(&mut patience)? {
            self.wait_for_repairer(&mut patience)?;
        }
        Ok(())
    }

    /// As [`Self::clear`], but `false` if another process repairs: no thread waits for that under the locks.
    fn clear_unless_repaired(&self, patience: &mut Patience<'_>) -> Result<bool, ReplayError> {
        let sides = self.sides();
        let mut writing = patience.lock(&sides.writing)?;
        let _reading = patience.lock(&sides.reading)?;
        match leaderless::clear(&self.memory.segment, self.schema()) {
            Ok(()) => {}
            Err(InTheWay::Repairer) => return Ok(false),
            Err(InTheWay::Participant) => return Err(ReplayError::Stuck),
        }
        writing.frames.iter_mut().for_each(RecentFrames::clear);
        writing.steps.iter_mut().for_each(|steps| steps.forget(None));
        Ok(true)
    }

    /// Note that the environments `streams`, or all, were reset before their episodes had ended. Steps of theirs that
    /// were waiting for more are dropped, so that no transition goes on beyond the reset.
    ///
    /// # Errors
    /// What ends the wait for another thread of this process: [`ReplayError::Busy`], [`ReplayError::Interrupted`].
    pub fn end_streams(&self, streams: Option<&[i64]>, mut patience: Patience<'_>) -> Result<(), ReplayError> {
        let mut writing = patience.lock(&self.sides().writing)?;
        writing.steps.iter_mut().for_each(|steps| steps.forget(streams));
        Ok(())
    }

    /// Wait until the rate limiter lets more transitions in. Returns the turn, and the guard that keeps other threads
    /// of this process from waiting for one: a place has one turn.
    fn wait_for_turn<'s>(&'s self, sides: &'s Sides, patience: &mut Patience<'_>) -> Result<(Turn<'s>, MutexGuard<'s, ()>), ReplayError> {
        // Another thread of this process waits for the limiter there.
        let line = patience.lock(&sides.waiting).map_err(|error| match error {
            ReplayError::Busy => self.rate_limited(),
            error => error,
        })?;
        let place = self.place(&mut patience.lock(&sides.writing)?.participant, patience)?;
        let mut turn = self.limiter.turn(&self.memory.segment, place);
        self.wait_to_add(patience, &mut turn)?;
        Ok((turn, line))
    }

    /// Wait for `turn`, unless no process draws that could bring it.
    fn wait_to_add(&self, patience: &mut Patience<'_>, turn: &mut Turn<'_>) -> Result<(), ReplayError> {
        let mut alone_since = None;
        self.wait(
            patience,
            |idle| turn.wait(idle),
            |patience| {
                // With a time limit, the call waits until then for a process that draws.
                let all_left = self.memory.nobody_draws().filter(|_| patience.is_endless());
                let Some(all_left) = all_left else {
                    alone_since = None;
                    return None;
                };
                let since = *alone_since.get_or_insert_with(Instant::now);
                (all_left || since.elapsed() >= ABSENCE).then(|| ReplayError::NobodyDraws { sampled: self.sampled() })
            },
        )
    }
}

/// Write row `row` of `columns` as `transition`, with the names of the frames for fields that are made of frames.
fn write_row(
    transition: &mut RowWriter<'_, '_>,
    schema: &Schema,
    columns: &[&[u8]],
    row: usize,
    replay: &Replay<'_>,
    frames: &mut Option<RecentFrames>,
) {
    for (position, (field, column)) in schema.fields().iter().zip(columns).enumerate() {
        let values = &column[row * field.size_bytes()..][..field.size_bytes()];
        if field.stack == 0 {
            transition.bytes(position, values);
        } else {
            let frames = frames.as_mut().expect("a schema with frames has a frame store");
            let names: Vec<_> = values.chunks_exact(field.frame_bytes()).map(|frame| frames.name(replay, frame)).collect();
            transition.frames(position, &names);
        }
    }
}
