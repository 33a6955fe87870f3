//! The reading side: drawing transitions, reading them, and changing their priorities.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SysRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::company::Company;
use super::participant::Participant;
use super::patience::Patience;
use super::{Standalone, StandaloneError, check_errors};
use crate::replay::{Priority, Replay, Rows, SampleError, Unreadable, power};
use crate::segment::processes::ProcessSlot;

/// Looks at a transition that is being written before it counts as torn, and the pause before each but the first few: its
/// writer may be waiting for a processor.
const LOOKS: u32 = 10_000;
const EAGER_LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);
/// Looks from one repair to the next, the first after some pauses, in which a writer that lives has come to its end.
const LOOKS_PER_REPAIR: u32 = 1_000;

/// What a process needs to read.
pub(super) struct Reading {
    pub(super) participant: Participant,
    random: Xoshiro256PlusPlus,
    priorities: Vec<f32>,
    generations: Vec<u64>,
}

impl Reading {
    /// What is drawn is decided by `seed`, or by chance.
    pub(super) fn new(seed: Option<u64>) -> Self {
        // By the system: generators of this process are copied by a fork, and children would draw the same.
        let by_chance = || Xoshiro256PlusPlus::try_from_rng(&mut SysRng).unwrap_or_else(|_| rand::make_rng());
        let random = seed.map_or_else(by_chance, Xoshiro256PlusPlus::seed_from_u64);
        Self { participant: Participant::default(), random, priorities: Vec::new(), generations: Vec::new() }
    }
}

/// What to do about transitions that were overwritten since they were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// Change nothing and say so.
    Refuse,
    /// Leave them out.
    Ignore,
}

impl Standalone {
    /// Fill `rows`. Returns the largest importance weight, by which they are not yet divided.
    ///
    /// # Errors
    /// [`StandaloneError::Sample`] for an empty replay, unless there is a rate limiter to wait for, and where rows that were drawn kept
    /// changing or had lost a frame; [`StandaloneError::RateLimited`] where the rate limiter allows nothing within `patience`;
    /// [`StandaloneError::Full`] where all places are taken; and what else keeps the process from taking part.
    pub fn sample<C: AsMut<[u8]>>(
        &self,
        rows: &mut Rows<'_, C>,
        beta: Option<f32>,
        mut patience: Patience<'_>,
    ) -> Result<f32, StandaloneError> {
        let count = rows.slots.len() as u64;
        if self.is_empty() && self.options.samples_per_insert.is_none() && self.options.min_size <= 1 {
            return Err(SampleError::Empty.into());
        }
        self.company.check(&self.segment)?;
        self.wait(&mut patience, |idle| self.limiter.wait_to_sample(self.control(), count, idle), |_| None)?;
        let beta = beta.unwrap_or_else(|| self.beta() as f32);
        let mut reading = patience.lock(&self.sides().reading)?;
        let Reading { participant, random, .. } = &mut *reading;
        self.with_reader(participant, &mut patience, |replay, place| {
            self.company.tell_of_drawing(place);
            Ok(replay.sample_rows(rows, beta, random)?)
        })
    }

    /// Set the priorities of the transitions in `slots`, of these generations, or whatever is there now. Returns how many
    /// were stale and left out. Everything is checked before anything is changed; what another process overwrites
    /// in between is left out.
    ///
    /// # Errors
    /// [`StandaloneError::NotPrioritized`] where it draws uniformly; [`StandaloneError::Priority`] for an error that is no finite number of
    /// at least 0; [`StandaloneError::Index`] and, without `generations`, [`StandaloneError::EmptySlot`] for a slot that is none or has
    /// nothing in it; [`StandaloneError::Stale`] for what was overwritten, where `stale` says so; and what keeps the process from taking
    /// part.
    pub fn update(
        &self,
        slots: &[i64],
        generations: Option<&[i64]>,
        errors: &[f32],
        stale: Stale,
        mut patience: Patience<'_>,
    ) -> Result<u64, StandaloneError> {
        if !self.options.prioritized {
            return Err(StandaloneError::NotPrioritized);
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
                // Of a slot that was emptied since, the name is stale as that of one that was overwritten.
                (Some(generations), _) => u64::try_from(generations[position]).unwrap_or(0),
                (None, Some(current)) => current,
                (None, None) => return Err(StandaloneError::EmptySlot { index: slot, inserted: self.inserted() }),
            };
            if !view.is_current(slot, generation) {
                changed.get_or_insert(slot);
                count += 1;
            }
            now.push(generation);
        }
        if let (Some(slot), Stale::Refuse) = (changed, stale) {
            return Err(StandaloneError::Stale { stale: count, all: slots.len(), slot });
        }
        self.priorities_of(errors, priorities);
        self.with_reader(participant, &mut patience, |replay, _| {
            let slots: &[usize] = bytemuck::cast_slice(slots);
            Ok(replay.update_named(slots, now, priorities.iter().map(|&priority| Priority::from_f32(priority))))
        })
    }

    /// The transitions in `slots`, as they are now; repairs after a process that died while it was writing one.
    ///
    /// # Errors
    /// [`StandaloneError::Index`] for a slot that is none; [`StandaloneError::EmptySlot`] for one with nothing in it;
    /// [`StandaloneError::FrameGone`] for one with a transition that has lost a frame; [`StandaloneError::Stuck`] for one whose writer does
    /// not come to an end.
    pub fn get<C: AsMut<[u8]>>(&self, slots: &[i64], rows: &mut Rows<'_, C>) -> Result<(), StandaloneError> {
        let replay = self.view();
        let mut names = Vec::new();
        for (row, &index) in slots.iter().enumerate() {
            let slot = self.slot(index)?;
            let empty = || StandaloneError::EmptySlot { index: slot, inserted: self.inserted() };
            let generation = (0..LOOKS).find_map(|look| {
                if look > EAGER_LOOKS {
                    std::thread::sleep(PAUSE);
                }
                if look % LOOKS_PER_REPAIR == 2 * EAGER_LOOKS {
                    self.repair();
                }
                match replay.reader().read(slot, rows, row, &mut names) {
                    Ok(generation) => Some(Ok(generation)),
                    Err(Unreadable::FrameGone(_)) => Some(Err(StandaloneError::FrameGone { index: slot })),
                    Err(Unreadable::Changing) => replay.store().word(slot).is_empty().then(|| Err(empty())),
                }
            });
            (rows.slots[row], rows.generations[row], rows.weights[row]) = (slot, generation.unwrap_or(Err(StandaloneError::Stuck))?, 1.0);
        }
        Ok(())
    }

    /// What the tree holds for `slots`, or for all that were ever written; repairs first, as [`Self::total_priority`] does.
    ///
    /// # Errors
    /// [`StandaloneError::NotPrioritized`] where it draws uniformly; [`StandaloneError::Index`] for a slot that is none.
    pub fn priorities(&self, slots: Option<&[i64]>) -> Result<Vec<f64>, StandaloneError> {
        self.repair();
        let view = self.view();
        let tree = view.tree().ok_or(StandaloneError::NotPrioritized)?;
        match slots {
            None => {
                // Not of as many slots as there are transitions: who died or was forked after a claim has left slots unfilled before
                // others.
                Ok((0..view.claimed_slots()).map(|slot| tree.raw_priority(slot).to_f64()).collect())
            }
            Some(slots) => slots.iter().map(|&index| Ok(tree.raw_priority(self.slot(index)?).to_f64())).collect(),
        }
    }

    pub(super) fn with_reader<T>(
        &self,
        participant: &mut Participant,
        patience: &mut Patience<'_>,
        work: impl FnOnce(&mut Replay<'_>, ProcessSlot<'_>) -> Result<T, StandaloneError>,
    ) -> Result<T, StandaloneError> {
        // One place serves both sides of a guest, so only one may be inside an operation.
        let is_guest = matches!(self.company, Company::Run { .. });
        let mut writing = if is_guest { Some(patience.lock(&self.sides().writing)?) } else { None };
        let participant = writing.as_mut().map_or(participant, |writing| &mut writing.participant);
        let place = self.place(participant, is_guest, patience)?;
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
