//! A replay that belongs to no run: private to a process, or shared by any that know its name. What the Python package
//! is made of.
//!
//! It is the same segment, tree, store and staging as a run's, without a supervisor: its participants repair after
//! each other (`replay::leaderless`), and the last to leave removes it. A process may write and read at once, in two
//! threads: each side has a place of its own in the process table. The replay of a running supervisor can be joined too.

mod error;
mod file;
mod frames;
mod options;
mod participant;
mod steps;
mod tree;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub use error::StandaloneError;
pub use options::{FieldOptions, MAX_PARTICIPANTS, Options, Schedule, StepOptions};
pub use tree::StandaloneTree;

use crate::config::Config;
use crate::rendezvous::handshake::Attachment;
use crate::rendezvous::{Registry, attach};
use crate::replay::{self, Batch, Priority, RateLimiter, Replay, Rows, Schema, Scratch, StagingArea, leaderless, power};
use crate::segment::control::{Control, RunState};
use crate::segment::processes::{ProcessSlot, start_time};
use crate::segment::system::{count_forks, remove_if_dead};
use crate::segment::{Description, Region, Segment, replay_name_prefix};
use crate::sync::Ordering;
use frames::RecentFrames;
use participant::Participant;
use steps::Steps;

/// Looks at a transition that is being written before it counts as torn.
const LOOKS: u32 = 10_000;

/// A hold on a replay. Its methods may be called from several threads.
pub struct Standalone {
    segment: Segment,
    options: Options,
    schema: Schema,
    limiter: RateLimiter,
    writing: Mutex<Writing>,
    reading: Mutex<Reading>,
    /// In a run, both sides use the one place that its supervisor gave us.
    attachment: Option<Attachment>,
}

struct Writing {
    participant: Participant,
    frames: RecentFrames,
    steps: Option<Steps>,
    priorities: Vec<f32>,
}

struct Reading {
    participant: Participant,
    random: Xoshiro256PlusPlus,
    priorities: Vec<f32>,
    generations: Vec<u64>,
}

/// What to do about transitions that were overwritten since they were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// Change nothing and say so.
    Refuse,
    /// Leave them out.
    Ignore,
}

/// How long a caller lets itself be held back, and how it says that it no longer wants to.
pub struct Patience<'p> {
    /// Longest wait; `None` for ever.
    pub timeout: Option<Duration>,
    /// Asked every few milliseconds; `false` gives up.
    pub go_on: &'p mut dyn FnMut() -> bool,
}

impl Standalone {
    /// A new replay, private to this process or `shared` under a name of its own. `seed` decides what is drawn.
    pub fn create(options: Options, shared: bool, seed: Option<u64>) -> Result<Self, StandaloneError> {
        let (schema, layout) = options.plan()?;
        let config_toml = toml::to_string(&options).map_err(|error| StandaloneError::Options { reason: error.to_string() })?;
        let description = Description {
            program_version: env!("CARGO_PKG_VERSION").into(),
            config_toml,
            run_folder: String::new(),
            environment: String::new(),
            algorithm: String::new(),
            fields: schema.describe(),
        };
        let segment = if shared {
            remove_leftovers();
            Segment::create_replay(layout, &description)?
        } else {
            Segment::create_private(layout, &description)?
        };
        segment.control().set_run_state(RunState::Running);
        Ok(Self::of(segment, options, schema, seed))
    }

    /// The shared replay called `name`.
    pub fn open(name: &str, seed: Option<u64>) -> Result<Self, StandaloneError> {
        let segment = Segment::attach(name)?;
        let unreadable = |reason: String| StandaloneError::Options { reason };
        let options: Options = toml::from_str(&segment.description()?.config_toml)
            .map_err(|error| unreadable(format!("`{name}` is no replay of its own ({})", error.message())))?;
        let (schema, layout) = options.plan()?;
        if layout != *segment.layout() {
            return Err(unreadable("they contradict the segment's header".into()));
        }
        leaderless::sweep(&segment, &schema);
        Ok(Self::of(segment, options, schema, seed))
    }

    /// The replay of the run whose supervisor has process id `pid`: this process takes one of its places for attached actors.
    pub fn attach(pid: u32, seed: Option<u64>) -> Result<Self, StandaloneError> {
        let attachment = attach(&Registry::open()?, pid)?;
        let segment = attachment.open_segment()?;
        let description = segment.description()?;
        let config = Config::parse(&description.config_toml, "the run's configuration", &[])?.config;
        let unknown = || StandaloneError::Options { reason: "the run's fields have unknown types".into() };
        let schema = Schema::from_description(&description.fields).ok_or_else(unknown)?;
        let replay = &config.replay;
        let band = config.effective_error_band();
        let options = Options {
            capacity: replay.capacity,
            prioritized: replay.prioritized,
            alpha: replay.alpha,
            beta: Schedule {
                start: replay.beta_start,
                end: replay.beta_end,
                samples: (replay.beta_anneal_steps as f64 * replay.samples_per_insert.unwrap_or(1.0)) as u64,
            },
            epsilon: replay.priority_epsilon,
            min_size: replay.min_size as u64,
            samples_per_insert: replay.samples_per_insert,
            error_band: band.unwrap_or(f64::INFINITY),
            participants: 1,
            frames: 0,
            fields: description
                .fields
                .iter()
                .map(|field| FieldOptions {
                    name: field.name.clone(),
                    element: field.element.clone(),
                    shape: if field.length == 1 { Vec::new() } else { vec![field.length] },
                    stack: 0,
                })
                .collect(),
            steps: None,
        };
        let slot = attachment.slot;
        if !segment.processes().slot(slot).occupy(std::process::id(), attachment.generation) {
            return Err(StandaloneError::RunEnded);
        }
        let mut held = Self::of(segment, options, schema, seed);
        held.writing = Mutex::new(Writing { participant: Participant::in_place(slot), ..Writing::new(&held.options) });
        held.attachment = Some(attachment);
        Ok(held)
    }

    fn of(segment: Segment, options: Options, schema: Schema, seed: Option<u64>) -> Self {
        count_forks();
        let random = seed.map_or_else(rand::make_rng, Xoshiro256PlusPlus::seed_from_u64);
        Self {
            limiter: options.limiter(),
            writing: Mutex::new(Writing::new(&options)),
            reading: Mutex::new(Reading { participant: Participant::new(), random, priorities: Vec::new(), generations: Vec::new() }),
            attachment: None,
            segment,
            options,
            schema,
        }
    }

    /// What it was made from.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Fields of a transition.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Name under which other processes open it; nothing for a private one.
    pub fn name(&self) -> Option<&str> {
        Some(self.segment.name()).filter(|name| !name.is_empty())
    }

    /// Transitions in it.
    pub fn len(&self) -> usize {
        let inserted = self.inserted();
        usize::try_from(inserted).unwrap_or(usize::MAX).min(self.slots())
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.inserted() == 0
    }

    /// Transitions ever added, by all processes.
    pub fn inserted(&self) -> u64 {
        self.control().inserted().load(Ordering::Relaxed)
    }

    /// Transitions ever drawn, by all processes.
    pub fn sampled(&self) -> u64 {
        self.control().sampled().load(Ordering::Relaxed)
    }

    /// Memory of the segment, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.segment.layout().total_bytes()
    }

    /// The exponent of the importance weights now.
    pub fn beta(&self) -> f64 {
        self.options.beta.at(self.sampled())
    }

    /// Sum of all priorities. Repairs first after processes that have died, whose unfinished operations it would show.
    pub fn total_priority(&self) -> f64 {
        self.repair_after_the_dead();
        self.view(None, Scratch::default()).tree().map_or(0.0, |tree| Priority::sum_to_f64(tree.total()))
    }

    /// The largest error given so far, one at least: what transitions get that are added without one.
    pub fn largest_error(&self) -> f64 {
        let largest = Priority::from_word(self.control().largest_priority().load(Ordering::Relaxed)).max(Priority::ONE);
        if self.options.alpha == 0.0 {
            return 1.0;
        }
        // One is the priority of what came before any error, without the epsilon.
        (largest.to_f64().powf(1.0 / self.options.alpha) - self.options.epsilon).max(1.0)
    }

    /// Add `rows` transitions, or steps of the environments `streams` where the replay makes n-step transitions of them.
    /// `columns` has the bytes of each field's values, row after row. `errors` are turned into priorities; without them
    /// transitions get the largest so far. `slots` is told where they went, in order.
    pub fn add(
        &self,
        columns: &[&[u8]],
        rows: usize,
        errors: Option<&[f32]>,
        streams: &[i64],
        mut patience: Patience<'_>,
        slots: &mut Vec<i64>,
    ) -> Result<(), StandaloneError> {
        check_errors(errors.unwrap_or_default())?;
        let mut writing = locked(&self.writing);
        let Writing { participant, frames, steps, priorities } = &mut *writing;
        let place = participant.place(&self.segment, &self.schema, true)?;
        // Held until everything is counted.
        let mut turn = self.limiter.turn(&self.segment, place);
        self.wait(&mut patience, participant, |idle| turn.wait(idle))?;
        self.wait_at_gate(&mut patience)?;
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
        // An n-step transition has no error yet that was worked out for it.
        let priorities = (errors.is_some() && complete.is_none()).then_some(&*priorities);
        let area = StagingArea::new(self.segment.words(Region::Staging), self.segment.layout().parameters(), place.index());
        let mut replay = self.view(Some(place), std::mem::take(&mut participant.scratch));
        let mut moved = |claimed: &[(usize, u64)]| slots.extend(claimed.iter().map(|&(slot, _)| slot as i64));
        for row in 0..rows {
            if area.is_full() {
                replay.flush_with(area, &mut moved);
            }
            let mut transition = area.write(&self.schema);
            for (position, (field, column)) in self.schema.fields().iter().zip(columns).enumerate() {
                let values = &column[row * field.size_bytes()..][..field.size_bytes()];
                if field.stack == 0 {
                    transition.bytes(position, values);
                } else {
                    let store = replay.frames().expect("a schema with frames has a frame store");
                    let names: Vec<_> = values.chunks_exact(field.frame_bytes()).map(|frame| frames.name(&replay, store, frame)).collect();
                    transition.frames(position, &names);
                }
            }
            transition.commit(priorities.and_then(|priorities| Priority::from_f32(priorities[row])));
        }
        replay.flush_with(area, &mut moved);
        participant.scratch = replay.into_scratch();
        let largest = priorities.map_or(0.0, |priorities| priorities.iter().copied().fold(0.0, f32::max));
        if let Some(largest) = Priority::from_f32(largest).filter(|_| priorities.is_some()) {
            replay::raise_largest_priority(self.control(), largest);
        }
        Ok(())
    }

    /// Fill `rows`. Returns the largest importance weight, by which they are not yet divided.
    pub fn sample<C: AsMut<[u8]>>(
        &self,
        rows: &mut Rows<'_, C>,
        beta: Option<f32>,
        mut patience: Patience<'_>,
    ) -> Result<f32, StandaloneError> {
        let mut reading = locked(&self.reading);
        let count = rows.slots.len() as u64;
        if self.is_empty() && self.options.samples_per_insert.is_none() && self.options.min_size <= 1 {
            return Err(crate::replay::SampleError::Empty.into());
        }
        let Reading { participant, random, .. } = &mut *reading;
        self.wait(&mut patience, participant, |idle| self.limiter.wait_to_sample(self.control(), count, idle))?;
        let beta = beta.unwrap_or_else(|| self.beta() as f32);
        self.with_reader(participant, |replay| Ok(replay.sample_rows(rows, beta, random)?))
    }

    /// Set the priorities of the transitions in `slots`, of these generations, or whatever is there now. Returns how many
    /// were stale and left out. Everything is checked before anything is changed; what another process overwrites
    /// in between is left out.
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
        let mut reading = locked(&self.reading);
        self.wait_at_gate(&mut patience)?;
        let Reading { participant, priorities, generations: now, .. } = &mut *reading;
        let view = self.view(None, Scratch::default());
        now.clear();
        let mut changed = None;
        let mut count = 0;
        for (position, &index) in slots.iter().enumerate() {
            let slot = self.slot(index)?;
            let Some(current) = view.leaf_tag(slot) else {
                return Err(StandaloneError::EmptySlot { index: slot, inserted: self.inserted() });
            };
            let generation = generations.map_or(current, |generations| u64::try_from(generations[position]).unwrap_or(0));
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
        self.with_reader(participant, |replay| {
            let slots: &[usize] = bytemuck::cast_slice(slots);
            Ok(replay.update_named(slots, now, priorities.iter().map(|&priority| Priority::from_f32(priority))))
        })
    }

    /// The transitions in `slots`, as they are now.
    pub fn get<C: AsMut<[u8]>>(&self, slots: &[i64], rows: &mut Rows<'_, C>) -> Result<(), StandaloneError> {
        let replay = self.view(None, Scratch::default());
        let mut names = Vec::new();
        for (row, &index) in slots.iter().enumerate() {
            let slot = self.slot(index)?;
            let empty = StandaloneError::EmptySlot { index: slot, inserted: self.inserted() };
            if replay.store().word(slot).is_empty() {
                return Err(empty);
            }
            let read = (0..LOOKS).find_map(|_| replay.reader().read(slot, rows, row, &mut names).ok());
            (rows.slots[row], rows.generations[row], rows.weights[row]) = (slot, read.ok_or(empty)?, 1.0);
        }
        Ok(())
    }

    /// What the tree holds for `slots`, or for all that were ever written; repairs first, as [`Self::total_priority`] does.
    pub fn priorities(&self, slots: Option<&[i64]>) -> Result<Vec<f64>, StandaloneError> {
        self.repair_after_the_dead();
        let view = self.view(None, Scratch::default());
        let tree = view.tree().ok_or(StandaloneError::NotPrioritized)?;
        match slots {
            None => Ok((0..self.len()).map(|slot| tree.raw_priority(slot).to_f64()).collect()),
            Some(slots) => slots.iter().map(|&index| Ok(tree.raw_priority(self.slot(index)?).to_f64())).collect(),
        }
    }

    /// Remove all transitions and forget all counts. Names of transitions drawn before are stale afterwards.
    pub fn clear(&self) -> Result<(), StandaloneError> {
        self.not_of_a_run("clearing it")?;
        let (mut writing, _reading) = (locked(&self.writing), locked(&self.reading));
        if !leaderless::clear(&self.segment, &self.schema) {
            return Err(StandaloneError::Stuck);
        }
        writing.frames.clear();
        writing.steps.iter_mut().for_each(Steps::clear);
        Ok(())
    }

    /// A batch of this replay's transitions in memory of its own.
    pub fn batch(&self, rows: usize) -> Batch {
        Batch::new(&self.schema, rows)
    }

    /// In a run the supervisor does it, and in a private replay nobody else can die.
    fn repair_after_the_dead(&self) {
        if self.attachment.is_none() && self.name().is_some() {
            leaderless::sweep(&self.segment, &self.schema);
        }
    }

    fn control(&self) -> Control<'_> {
        self.segment.control()
    }

    fn slots(&self) -> usize {
        self.segment.layout().parameters().capacity
    }

    fn slot(&self, index: i64) -> Result<usize, StandaloneError> {
        let capacity = self.slots();
        usize::try_from(index).ok().filter(|&slot| slot < capacity).ok_or(StandaloneError::Index { index, capacity })
    }

    fn view<'s>(&'s self, place: Option<ProcessSlot<'s>>, scratch: Scratch) -> Replay<'s> {
        Replay::with_scratch(&self.segment, self.schema.clone(), place, scratch)
    }

    fn with_reader<T>(
        &self,
        participant: &mut Participant,
        work: impl FnOnce(&mut Replay<'_>) -> Result<T, StandaloneError>,
    ) -> Result<T, StandaloneError> {
        // One place serves both sides of an attached process, so only one may be inside an operation.
        let mut shared = self.attachment.is_some().then(|| locked(&self.writing));
        let participant = shared.as_mut().map_or(participant, |writing| &mut writing.participant);
        let place = participant.place(&self.segment, &self.schema, false)?;
        let mut replay = self.view(Some(place), std::mem::take(&mut participant.scratch));
        let result = work(&mut replay);
        participant.scratch = replay.into_scratch();
        result
    }

    fn priorities_of(&self, errors: &[f32], priorities: &mut Vec<f32>) {
        priorities.clear();
        let epsilon = self.options.epsilon as f32;
        priorities.extend(errors.iter().map(|error| error + epsilon));
        power::raise(priorities, self.options.alpha as f32);
    }

    fn not_of_a_run(&self, action: &'static str) -> Result<(), StandaloneError> {
        self.attachment.is_none().then_some(()).ok_or(StandaloneError::OfARun { action })
    }

    /// Wait for the rate limiter, and look after the others meanwhile: a dead one may stand first in line.
    fn wait(
        &self,
        patience: &mut Patience<'_>,
        participant: &mut Participant,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
    ) -> Result<(), StandaloneError> {
        let late = || StandaloneError::RateLimited { inserted: self.inserted(), sampled: self.sampled(), min_size: self.limiter.min_size };
        let wait_and_look = |idle: &mut dyn FnMut() -> bool| {
            wait(&mut || {
                if self.attachment.is_none() {
                    participant.look_after_the_others(&self.segment, &self.schema);
                }
                idle()
            })
        };
        self.wait_patiently(patience, wait_and_look, late)
    }

    /// Wait while somebody repairs. Before an operation, since nobody can be interrupted in it.
    fn wait_at_gate(&self, patience: &mut Patience<'_>) -> Result<(), StandaloneError> {
        let late = || leaderless::repairer(&self.segment).map_or(StandaloneError::Stuck, |pid| StandaloneError::Repairing { pid });
        self.wait_patiently(patience, |idle| leaderless::wait_until_open(&self.segment, &self.schema, idle), late)
    }

    fn wait_patiently(
        &self,
        patience: &mut Patience<'_>,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        too_late: impl FnOnce() -> StandaloneError,
    ) -> Result<(), StandaloneError> {
        let started = Instant::now();
        let (mut late, mut interrupted) = (false, false);
        let went_on = wait(&mut || {
            interrupted = !(patience.go_on)();
            late = patience.timeout.is_some_and(|timeout| started.elapsed() >= timeout);
            !interrupted && !late && self.attachment.as_ref().is_none_or(Attachment::supervisor_alive)
        });
        // A call may wait twice, and its timeout is for both.
        patience.timeout = patience.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        match (went_on, interrupted, late) {
            (true, ..) => Ok(()),
            (_, true, _) => Err(StandaloneError::Interrupted),
            (_, _, true) => Err(too_late()),
            _ => Err(StandaloneError::RunEnded),
        }
    }
}

impl Writing {
    fn new(options: &Options) -> Self {
        Self {
            participant: Participant::new(),
            frames: RecentFrames::default(),
            steps: options.steps.clone().filter(|steps| steps.n > 1 || steps.discount.is_some()).map(Steps::new),
            priorities: Vec::new(),
        }
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        // A supervisor looks itself after who has left.
        if self.attachment.is_some() {
            return;
        }
        locked(&self.writing).participant.leave(&self.segment);
        locked(&self.reading).participant.leave(&self.segment);
        if let Some(name) = self.name().map(String::from) {
            self.segment.retire();
            remove_if_dead(&name);
        }
    }
}

fn check_errors(errors: &[f32]) -> Result<(), StandaloneError> {
    // One comparison per value that the compiler vectorizes; NaN fails it too.
    if errors.iter().all(|&error| (0.0..=f32::MAX).contains(&error)) {
        return Ok(());
    }
    let position = errors.iter().position(|error| !(0.0..=f32::MAX).contains(error)).unwrap_or(0);
    Err(StandaloneError::Priority { value: errors[position], position })
}

/// Remove what this user's processes left that were all killed.
fn remove_leftovers() {
    let prefix = replay_name_prefix();
    let objects = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    for name in objects.filter_map(|object| object.file_name().into_string().ok()) {
        let name = format!("/{name}");
        // Its creator may be about to lock it, so it counts as left only once that process is gone.
        let creator = name.strip_prefix(&prefix).and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse().ok());
        if creator.is_some_and(|pid| start_time(pid).is_none()) {
            remove_if_dead(&name);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic left a staged row or a scratch buffer unfinished at most: the next call starts both anew.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
