//! The reading side: drawing transitions, reading them, and changing their priorities.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SysRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::participant::Participant;
use super::patience::Patience;
use super::{ReplayError, ReplayHandle, check_errors};
use crate::replay::{Priority, Replay, Rows, SampleError, Unreadable, power};
use crate::segment::processes::ProcessSlot;

/// Looks at a transition that is being written before [`ReplayError::Stuck`], and the pause before each but the first
/// few: its writer may be waiting for a processor.
const LOOKS: u32 = 10_000;
const EAGER_LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);
/// Looks from one repair to the next. The first repair comes after some pauses, in which a living writer mostly
/// finishes.
const LOOKS_PER_REPAIR: u32 = 1_000;

/// What a process needs to read.
pub(super) struct Reading {
    pub(super) participant: Participant,
    random: Xoshiro256PlusPlus,
    priorities: Vec<f32>,
    generations: Vec<u64>,
}

impl Reading {
    /// A reading side that draws as `seed` decides, or by chance.
    pub(super) fn new(seed: Option<u64>) -> Self {
        // From the system: generators of this process are copied by a fork, and children would draw the same.
        let by_chance = || Xoshiro256PlusPlus::try_from_rng(&mut SysRng).unwrap_or_else(|_| rand::make_rng());
        let random = seed.map_or_else(by_chance, Xoshiro256PlusPlus::seed_from_u64);
        Self { participant: Participant::reader(), random, priorities: Vec::new(), generations: Vec::new() }
    }
}

/// What to do about transitions that were overwritten since they were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// Change nothing and return an error.
    Refuse,
    /// Leave those transitions out.
    Ignore,
}

impl ReplayHandle {
    /// Fill `rows` with transitions that are drawn. Returns the largest importance weight, by which the weights are
    /// not yet divided.
    ///
    /// What a guest draws does not count, or it would take updates from the learners of the run: the ratio of the rate
    /// limiter is theirs, and holds back no guest.
    ///
    /// # Errors
    /// [`ReplayError::Sample`] for an empty replay, unless there is a rate limiter to wait for, and if rows that were
    /// drawn kept changing; [`ReplayError::FramesGone`] if most had lost a frame; [`ReplayError::RateLimited`] if the
    /// rate limiter allows nothing within `patience`; [`ReplayError::Full`] if all places are taken; and whatever else
    /// keeps the process from taking part.
    pub fn sample<C: AsMut<[u8]>>(
        &self,
        rows: &mut Rows<'_, C>,
        beta: Option<f32>,
        mut patience: Patience<'_>,
    ) -> Result<f32, ReplayError> {
        let count = rows.slots.len() as u64;
        let waits_for_rows = self.options.samples_per_insert.is_some() || self.options.min_size > 1;
        loop {
            if self.is_empty() && !waits_for_rows {
                return Err(SampleError::Empty.into());
            }
            self.memory.check()?;
            self.wait_to_sample(count, &mut patience)?;
            let beta = beta.unwrap_or_else(|| self.beta() as f32);
            let drawn = {
                let mut reading = patience.lock(&self.sides().reading)?;
                let Reading { participant, random, .. } = &mut *reading;
                self.with_reader(participant, &mut patience, |replay, place| {
                    self.memory.sharing.tell_of_drawing(place);
                    let drawn = if self.is_guest() { replay.look(rows, beta, random) } else { replay.sample_rows(rows, beta, random) };
                    Ok(drawn?)
                })
            };
            match drawn {
                // Another process has emptied the replay meanwhile, or is still doing so, behind the closed gate.
                Err(ReplayError::Sample(SampleError::Empty)) if waits_for_rows => self.wait_at_gate(&mut patience)?,
                Err(ReplayError::Sample(gone @ SampleError::FramesGone { .. })) => {
                    return Err(ReplayError::FramesGone { gone, remedy: self.remedy_for_frames() });
                }
                drawn => return drawn,
            }
        }
    }

    /// Set the priorities of the transitions in `slots` with these `generations`, or, without generations, of
    /// whatever is there now. Returns how many were stale and left out. Everything is checked before anything is
    /// changed; a transition that another process overwrites in between is left out.
    ///
    /// # Errors
    /// [`ReplayError::NotPrioritized`] if the replay draws uniformly; [`ReplayError::Priority`] for an error that is
    /// no finite number of at least 0; [`ReplayError::Index`] for a slot that does not exist;
    /// [`ReplayError::EmptySlot`], without `generations`, for a slot with nothing in it; [`ReplayError::Stale`] for
    /// overwritten transitions, with [`Stale::Refuse`]; and whatever keeps the process from taking part.
    pub fn update(
        &self,
        slots: &[i64],
        generations: Option<&[i64]>,
        errors: &[f32],
        stale: Stale,
        mut patience: Patience<'_>,
    ) -> Result<u64, ReplayError> {
        if !self.options.prioritized {
            return Err(self.not_prioritized());
        }
        check_errors(errors)?;
        self.wait_at_gate(&mut patience)?;
        let mut reading = patience.lock(&self.sides().reading)?;
        let Reading { participant, priorities, generations: now, .. } = &mut *reading;
        let view = self.view();
        now.clear();
        let mut changed = None;
        let mut count = 0;
        for (position, &index) in slots.iter().enumerate() {
            let slot = self.slot(index)?;
            let generation = match (generations, view.leaf_tag(slot)) {
                // A name is stale if its slot was emptied since, as if it was overwritten.
                (Some(generations), _) => u64::try_from(generations[position]).unwrap_or(0),
                (None, Some(current)) => current,
                (None, None) => return Err(ReplayError::EmptySlot { index: slot, inserted: self.inserted() }),
            };
            if !view.is_current(slot, generation) {
                changed.get_or_insert(slot);
                count += 1;
            }
            now.push(generation);
        }
        if let (Some(slot), Stale::Refuse) = (changed, stale) {
            return Err(ReplayError::Stale { stale: count, all: slots.len(), slot });
        }
        self.priorities_of(errors, priorities);
        self.with_reader(participant, &mut patience, |replay, _| {
            let slots: &[usize] = bytemuck::cast_slice(slots);
            Ok(replay.update_named(slots, now, priorities.iter().map(|&priority| Priority::from_f32(priority))))
        })
    }

    /// Fill `rows` with the transitions in `slots`, as they are now. Repairs after a process that died while it was
    /// writing one of them.
    ///
    /// # Errors
    /// [`ReplayError::Index`] for a slot that does not exist; [`ReplayError::EmptySlot`] for a slot with nothing in
    /// it; [`ReplayError::FrameGone`] for a transition that has lost a frame; [`ReplayError::Stuck`] for a slot whose
    /// writer does not finish.
    pub fn get<C: AsMut<[u8]>>(&self, slots: &[i64], rows: &mut Rows<'_, C>) -> Result<(), ReplayError> {
        let replay = self.view();
        let mut names = Vec::new();
        for (row, &index) in slots.iter().enumerate() {
            let slot = self.slot(index)?;
            let empty = || ReplayError::EmptySlot { index: slot, inserted: self.inserted() };
            let generation = (0..LOOKS).find_map(|look| {
                if look > EAGER_LOOKS {
                    std::thread::sleep(PAUSE);
                }
                if look % LOOKS_PER_REPAIR == 2 * EAGER_LOOKS {
                    self.repair();
                }
                match replay.reader().read(slot, rows, row, &mut names) {
                    Ok(generation) => Some(Ok(generation)),
                    Err(Unreadable::FrameGone(_)) => Some(Err(ReplayError::FrameGone { index: slot, remedy: self.remedy_for_frames() })),
                    Err(Unreadable::Changing) => replay.store().word(slot).is_empty().then(|| Err(empty())),
                }
            });
            rows.generations[row] = generation.unwrap_or(Err(ReplayError::Stuck))?;
            rows.slots[row] = slot;
            rows.weights[row] = 1.0;
        }
        Ok(())
    }

    /// Priorities in the tree for `slots`, or for all slots that were ever claimed. Repairs first, as
    /// [`Self::total_priority`] does.
    ///
    /// # Errors
    /// [`ReplayError::NotPrioritized`] if the replay draws uniformly; [`ReplayError::Index`] for a slot that does not
    /// exist.
    pub fn priorities(&self, slots: Option<&[i64]>) -> Result<Vec<f64>, ReplayError> {
        self.repair();
        let view = self.view();
        let tree = view.tree().ok_or_else(|| self.not_prioritized())?;
        match slots {
            None => {
                // Not for as many slots as there are transitions: a process that died after a claim, or a thread of
                // the parent that was at work when this copy was forked, has left slots unfilled before filled ones.
                Ok((0..view.claimed_slots()).map(|slot| tree.raw_priority(slot).to_f64()).collect())
            }
            Some(slots) => slots.iter().map(|&index| Ok(tree.raw_priority(self.slot(index)?).to_f64())).collect(),
        }
    }

    /// What helps against frames that are gone before the transitions that show them.
    fn remedy_for_frames(&self) -> &'static str {
        if self.is_guest() { "try again once the run has added others" } else { "raise frame_capacity, or lower capacity" }
    }

    pub(super) fn with_reader<T>(
        &self,
        participant: &mut Participant,
        patience: &mut Patience<'_>,
        work: impl FnOnce(&mut Replay<'_>, ProcessSlot<'_>) -> Result<T, ReplayError>,
    ) -> Result<T, ReplayError> {
        // One place serves both sides of a guest, so only one side may be inside an operation.
        let mut writing = if self.is_guest() { Some(patience.lock(&self.sides().writing)?) } else { None };
        let participant = writing.as_mut().map_or(participant, |writing| &mut writing.participant);
        let place = self.place(participant, patience)?;
        let mut replay = self.hold(place, std::mem::take(&mut participant.scratch));
        let result = work(&mut replay, place);
        participant.scratch = replay.into_scratch();
        result
    }

    /// The priorities of transitions with these errors.
    pub(super) fn priorities_of(&self, errors: &[f32], priorities: &mut Vec<f32>) {
        priorities.clear();
        let epsilon = self.options.epsilon as f32;
        priorities.extend(errors.iter().map(|error| error + epsilon));
        power::raise(priorities, self.options.alpha as f32);
    }
}
