//! The writing side: adding transitions, and removing all of them.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::company::Company;
use super::participant::Participant;
use super::patience::Patience;
use super::steps::Steps;
use super::{Options, Sides, Standalone, StandaloneError, check_errors};
use crate::replay::leaderless::InTheWay;
use crate::replay::staging::TransitionWriter;
use crate::replay::{Element, Priority, RecentFrames, Replay, Schema, StagingArea, Turn, leaderless};

/// How long whoever is to draw next may take: to be started anew, once it was killed, or to draw, where it has only written priorities
/// back.
const ABSENCE: Duration = Duration::from_secs(10);

/// What a process needs to write.
pub(super) struct Writing {
    pub(super) participant: Participant,
    /// Where a field is made of frames.
    frames: Option<RecentFrames>,
    steps: Option<Steps>,
    priorities: Vec<f32>,
}

impl Writing {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            participant: Participant::default(),
            frames: (options.frames > 0).then(RecentFrames::default),
            steps: options.steps_to_put_together().cloned().map(Steps::new),
            priorities: Vec::new(),
        }
    }
}

impl Standalone {
    /// Add `rows` transitions, or steps of the environments `streams` where the replay makes n-step transitions of them.
    /// `columns` has the bytes of each field's values, row after row. `errors` are turned into priorities; without them
    /// transitions get the largest so far. `slots` is told where they went, in order.
    ///
    /// The bytes of `columns` may change meanwhile, in which case the transition has some of each.
    ///
    /// # Errors
    /// [`StandaloneError::PrioritiesOfSteps`] for `errors` where the replay makes n-step transitions; [`StandaloneError::Priority`] for one
    /// that is no priority; [`StandaloneError::NotFinite`] for a number that a run does not take;
    /// and what keeps the replay from taking anything.
    pub fn add(
        &self,
        columns: &[&[u8]],
        rows: usize,
        errors: Option<&[f32]>,
        streams: &[i64],
        mut patience: Patience<'_>,
        slots: &mut Vec<i64>,
    ) -> Result<(), StandaloneError> {
        if errors.is_some() && self.makes_n_step_transitions() {
            return Err(StandaloneError::PrioritiesOfSteps);
        }
        check_errors(errors.unwrap_or_default())?;
        self.company.check_open(&self.segment)?;
        if matches!(self.company, Company::Run { .. }) {
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
        let place = self.place(participant, true, &mut patience)?;
        if let Some(errors) = errors {
            self.priorities_of(errors, priorities);
        }
        let complete = steps.as_mut().map(|steps| steps.take(&self.schema, columns, streams));
        let owned: Vec<&[u8]>;
        let (columns, rows) = match &complete {
            None => (columns, rows),
            Some(complete) => {
                owned = complete.columns.iter().map(Vec::as_slice).collect();
                (&*owned, complete.rows)
            }
        };
        let priorities = errors.is_some().then_some(&*priorities);
        let area = StagingArea::of(&self.segment, place.index());
        let mut replay = self.hold(place, std::mem::take(&mut participant.scratch));
        let mut moved = |claimed: &[(usize, u64)]| slots.extend(claimed.iter().map(|&(slot, _)| slot as i64));
        for row in 0..rows {
            if area.is_full() {
                replay.flush_with(area, &mut moved);
            }
            let mut transition = area.write(&self.schema);
            write_row(&mut transition, &self.schema, columns, row, &replay, frames);
            transition.commit(priorities.and_then(|priorities| Priority::from_f32(priorities[row])));
        }
        replay.flush_with(area, &mut moved);
        participant.scratch = replay.into_scratch();
        Ok(())
    }

    /// A learner that draws what is no number has diverged, and so has whoever replaces it: a run takes none from a guest, as it takes none
    /// from an environment.
    fn check_numbers(&self, columns: &[&[u8]]) -> Result<(), StandaloneError> {
        // Those of a run have no other floats.
        for (field, column) in self.schema.fields().iter().zip(columns).filter(|(field, _)| field.element == Element::F32) {
            let numbers = || column.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
            if !numbers().all(f32::is_finite) {
                let position = numbers().position(|number| !number.is_finite()).unwrap_or(0);
                let value = numbers().nth(position).unwrap_or(f32::NAN);
                return Err(StandaloneError::NotFinite { field: field.name.clone(), value, row: position / field.length.max(1) });
            }
        }
        Ok(())
    }

    /// Remove all transitions and forget all counts. Names of transitions drawn before are stale afterwards. Waits for somebody else who
    /// repairs, or removes them too.
    ///
    /// # Errors
    /// [`StandaloneError::OfARun`] for a guest; [`StandaloneError::Segment`] where nobody can tell who is dead; [`StandaloneError::Stuck`]
    /// while a process stays inside an operation; and what ends the wait for others: [`StandaloneError::Repairing`],
    /// [`StandaloneError::Busy`], [`StandaloneError::Interrupted`], [`StandaloneError::Closed`].
    pub fn clear(&self, mut patience: Patience<'_>) -> Result<(), StandaloneError> {
        self.not_of_a_run("clearing it")?;
        // A process that cannot tell who is dead never gets to repair.
        self.segment.check_namespaces()?;
        while !self.clear_unless_repaired(&mut patience)? {
            self.wait_for_repairer(&mut patience)?;
        }
        Ok(())
    }

    /// As [`Self::clear`]; `false` when somebody else repairs, whom nobody is to wait for under the locks.
    fn clear_unless_repaired(&self, patience: &mut Patience<'_>) -> Result<bool, StandaloneError> {
        let sides = self.sides();
        let mut writing = patience.lock(&sides.writing)?;
        let _reading = patience.lock(&sides.reading)?;
        match leaderless::clear(&self.segment, &self.schema) {
            Ok(()) => {}
            Err(InTheWay::Repairer) => return Ok(false),
            Err(InTheWay::Participant) => return Err(StandaloneError::Stuck),
        }
        writing.frames.iter_mut().for_each(RecentFrames::clear);
        writing.steps.iter_mut().for_each(|steps| steps.forget(None));
        Ok(true)
    }

    /// The environments `streams`, or all, are reset before their episodes have ended: what they do next begins no transition of before. Steps
    /// that were waiting for more are forgotten.
    ///
    /// # Errors
    /// What ends the wait for another thread of this process: [`StandaloneError::Busy`], [`StandaloneError::Interrupted`].
    pub fn end_streams(&self, streams: Option<&[i64]>, mut patience: Patience<'_>) -> Result<(), StandaloneError> {
        let mut writing = patience.lock(&self.sides().writing)?;
        writing.steps.iter_mut().for_each(|steps| steps.forget(streams));
        Ok(())
    }

    /// Wait until the rate limiter lets more transitions in. Returns the turn, and what keeps other threads of this process
    /// from waiting for one: a place has one turn.
    fn wait_for_turn<'s>(
        &'s self,
        sides: &'s Sides,
        patience: &mut Patience<'_>,
    ) -> Result<(Turn<'s>, MutexGuard<'s, ()>), StandaloneError> {
        // Another thread of this process waits for the limiter there.
        let line = patience.lock(&sides.waiting).map_err(|error| match error {
            StandaloneError::Busy => self.rate_limited(),
            error => error,
        })?;
        let place = self.place(&mut patience.lock(&sides.writing)?.participant, true, patience)?;
        let mut turn = self.limiter.turn(&self.segment, place);
        self.wait_to_add(patience, &mut turn)?;
        Ok((turn, line))
    }

    /// Wait for `turn`, unless nobody draws who could bring it.
    fn wait_to_add(&self, patience: &mut Patience<'_>, turn: &mut Turn<'_>) -> Result<(), StandaloneError> {
        let mut alone_since = None;
        self.wait(
            patience,
            |idle| turn.wait(idle),
            |patience| {
                // Who gives a time limit waits for somebody who draws until then.
                let all_left = self.company.nobody_draws(&self.segment).filter(|_| patience.is_endless());
                let Some(all_left) = all_left else {
                    alone_since = None;
                    return None;
                };
                let since = *alone_since.get_or_insert_with(Instant::now);
                (all_left || since.elapsed() >= ABSENCE).then(|| StandaloneError::NobodyDraws { sampled: self.sampled() })
            },
        )
    }
}

/// Write row `row` of `columns` as `transition`, of fields that are made of frames their names.
fn write_row(
    transition: &mut TransitionWriter<'_, '_>,
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
