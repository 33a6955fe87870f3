//! The replay for programs that are no process of a run; the Python package is made of it. A [`ReplayHandle`] holds a
//! replay that is private to a process, one that is shared by all processes that know its name, or that of a run, as
//! a guest.
//!
//! A replay without a run has the same segment, tree, store and staging as a run's, but no supervisor: its
//! participants repair after each other (`replay::leaderless`), and the last to leave removes it. A process may write
//! and read at once, in two threads: each side has a place of its own in the process table.

mod error;
mod file;
mod options;
mod participant;
mod patience;
mod per_process;
mod reading;
mod sharing;
mod steps;
#[cfg(test)]
mod tests;
mod tree;
mod waiting;
mod writing;

use std::sync::Mutex;

pub use error::ReplayError;
pub use options::{DEFAULT_PARTICIPANTS, FieldOptions, MAX_PARTICIPANTS, MOST_N_STEPS, Options, Schedule, StepOptions};
pub use patience::Patience;
pub use reading::Stale;
pub use tree::OwnedSumTree;

use crate::rendezvous::handshake::Visitor;
use crate::rendezvous::{Registry, attach, remove_dead_replays};
use crate::replay::{Batch, Priority, RateLimiter, Replay, ReplayView, Schema, Scratch, leaderless};
use crate::segment::control::{Control, RunState};
use crate::segment::counters::Counter;
use crate::segment::object::remove_if_dead;
use crate::segment::processes::ProcessSlot;
use crate::segment::system::count_forks;
use crate::segment::{Description, Segment, SegmentError};
use crate::sync::{AtomicBool, Ordering};
use participant::Participant;
use patience::try_lock;
use per_process::PerProcess;
use reading::Reading;
use sharing::{Memory, Sharing};
use writing::Writing;

/// A handle to a replay: a private or shared one that belongs to no run, or that of a run, as its guest. Its methods
/// may be called from several threads, and from the children of a fork.
pub struct ReplayHandle {
    memory: Memory,
    options: Options,
    limiter: RateLimiter,
    sides: PerProcess<Sides>,
    /// Set once this process wants to leave: its threads that wait here wait no longer.
    is_closing: AtomicBool,
}

/// What the threads of one process share. No thread holds a lock while it waits for others, with two exceptions:
/// `waiting`, and, for a second or so, while a thread takes a place and dead processes have all of them. A signal
/// handler that uses the same side just then waits for itself, unless it has a time limit.
struct Sides {
    /// Held by the thread that waits to add because of the rate limiter: a place has one turn.
    waiting: Mutex<()>,
    writing: Mutex<Writing>,
    /// In a run, both sides use the place of the writing side.
    reading: Mutex<Reading>,
}

impl Sides {
    fn new(writing: Writing, reading: Reading) -> Self {
        Self { waiting: Mutex::default(), writing: Mutex::new(writing), reading: Mutex::new(reading) }
    }
}

impl ReplayHandle {
    /// A new replay, private to this process, or `shared` under a name of its own. `seed` decides what is drawn.
    ///
    /// # Errors
    /// An option is out of its range, a field is not possible, or the segment cannot be made.
    pub fn create(options: Options, shared: bool, seed: Option<u64>) -> Result<Self, ReplayError> {
        let (schema, layout) = options.plan()?;
        let config_toml = toml::to_string(&options).map_err(|error| ReplayError::Options { reason: error.to_string() })?;
        let description = Description {
            program_version: env!("CARGO_PKG_VERSION").into(),
            config_toml,
            fields: schema.describe(),
            ..Description::default()
        };
        let segment = if shared {
            remove_dead_replays();
            Segment::create_replay(layout, &description)?
        } else {
            Segment::create_private(layout, &description)?
        };
        segment.control().set_run_state(RunState::Running);
        let sharing = if shared { Sharing::Participants } else { Sharing::Private };
        let writing = Writing::new(&options);
        Ok(Self::of(Memory { segment, schema, sharing }, options, seed, writing))
    }

    /// The shared replay called `name`.
    ///
    /// # Errors
    /// [`ReplayError::Gone`] if there is none; the errors of [`Segment::attach`]; [`ReplayError::Options`] if the
    /// segment is a run's, or its options cannot be used.
    pub fn open(name: &str, seed: Option<u64>) -> Result<Self, ReplayError> {
        let segment = Segment::attach(name).map_err(|error| match error {
            SegmentError::Open { name, reason } => ReplayError::Gone { name, reason },
            error => error.into(),
        })?;
        let unreadable = |reason: String| ReplayError::Options { reason };
        let options: Options = toml::from_str(&segment.description()?.config_toml)
            .map_err(|error| unreadable(format!("`{name}` is no replay of its own ({})", error.message())))?;
        let (schema, layout) = options.plan()?;
        if layout != *segment.layout() {
            return Err(unreadable("they contradict the segment's header".into()));
        }
        leaderless::sweep(&segment, &schema);
        let writing = Writing::new(&options);
        Ok(Self::of(Memory { segment, schema, sharing: Sharing::Participants }, options, seed, writing))
    }

    /// The replay of the run whose supervisor has process id `pid`: this process becomes its guest, in one of its
    /// places for attached actors.
    ///
    /// # Errors
    /// The run cannot be joined, has no place, or learns from fragments of trajectories, which guests cannot use.
    pub fn attach(pid: u32, seed: Option<u64>) -> Result<Self, ReplayError> {
        let attachment = attach(&Registry::open()?, pid, Visitor::Guest)?;
        let segment = attachment.open_segment()?;
        // A guest that cannot stay gives back the place that was promised to it.
        let described = Self::described(&segment).inspect_err(|_| segment.processes().slot(attachment.slot).announce_leaving());
        let (options, schema) = described?;
        let mut writing = Writing::new(&options);
        writing.participant = Participant::guest(&segment, &attachment)?;
        let sharing = Sharing::Run { supervisor: pid, attachment };
        Ok(Self::of(Memory { segment, schema, sharing }, options, seed, writing))
    }

    /// The options and fields of the run in `segment`.
    fn described(segment: &Segment) -> Result<(Options, Schema), ReplayError> {
        let description = segment.description()?;
        let options = Options::of_run(&description.config_toml, &description.fields, segment.layout().sizes().frames)?;
        let unknown = || ReplayError::Options { reason: "the run's fields have unknown types".into() };
        let schema = Schema::from_description(&description.fields).ok_or_else(unknown)?;
        Ok((options, schema))
    }

    fn of(memory: Memory, options: Options, seed: Option<u64>, writing: Writing) -> Self {
        count_forks();
        Self {
            limiter: options.limiter(),
            sides: PerProcess::new(Sides::new(writing, Reading::new(seed))),
            is_closing: AtomicBool::new(false),
            memory,
            options,
        }
    }

    /// What the threads of this process share.
    fn sides(&self) -> &Sides {
        self.sides.get(|inherited| self.sides_of_a_child(inherited))
    }

    /// The sides of a child of a fork, which takes part anew and draws by a generator of its own. Of a private replay
    /// the child has a copy: it is repaired if a thread of the parent was at work in it, and otherwise as it was, but
    /// for the generator.
    fn sides_of_a_child(&self, inherited: &Sides) -> Sides {
        if matches!(self.memory.sharing, Sharing::Private) {
            if let (Ok(_), Ok(mut writing), Ok(mut reading)) =
                (inherited.waiting.try_lock(), inherited.writing.try_lock(), inherited.reading.try_lock())
            {
                let writing = std::mem::replace(&mut *writing, Writing::new(&self.options));
                // All but the generator: the parent draws on with it, and so would every other child.
                let mut own = Reading::new(None);
                std::mem::swap(&mut own.participant, &mut reading.participant);
                return Sides::new(writing, own);
            }
            leaderless::repair_forked_copy(&self.memory.segment, self.schema());
        }
        Sides::new(Writing::new(&self.options), Reading::new(None))
    }

    /// The options that the replay was made from.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether steps are added, of which the replay makes n-step transitions.
    fn makes_n_step_transitions(&self) -> bool {
        self.options.steps_to_put_together().is_some()
    }

    /// Fields of a transition.
    pub fn schema(&self) -> &Schema {
        &self.memory.schema
    }

    /// Name under which other processes open the replay; `None` for a private one.
    pub fn name(&self) -> Option<&str> {
        Some(self.memory.segment.name()).filter(|name| !name.is_empty())
    }

    /// Transitions in the replay.
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

    /// Transitions ever drawn, by all processes but guests of a run.
    pub fn sampled(&self) -> u64 {
        self.control().sampled().load(Ordering::Relaxed)
    }

    /// Priorities ever given, by all processes, that were above the largest that the tree can hold, and became that.
    pub fn saturated_priorities(&self) -> u64 {
        self.memory.segment.processes().iter().map(|slot| slot.counters().get(Counter::SaturatedPriorities)).sum()
    }

    /// Memory of the segment, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.memory.segment.layout().total_bytes()
    }

    /// The exponent of the importance weights now; in a run it is the learners' exponent, which follows the
    /// environment steps.
    pub fn beta(&self) -> f64 {
        let control = self.control();
        let so_far = match self.memory.sharing {
            Sharing::Run { .. } => control.env_steps().load(Ordering::Relaxed),
            Sharing::Private | Sharing::Participants => control.counted_samples(),
        };
        self.options.beta.at(so_far)
    }

    /// Sum of all priorities. First repairs after processes that have died, whose unfinished operations the sum would
    /// show.
    pub fn total_priority(&self) -> f64 {
        self.repair();
        self.view().tree().map_or(0.0, |tree| Priority::sum_to_f64(tree.total()))
    }

    /// The largest error so far, at least one: transitions that are added without an error get it.
    pub fn largest_error(&self) -> f64 {
        let largest = Priority::from_word(self.control().largest_priority().load(Ordering::Relaxed)).max(Priority::ONE);
        if self.options.alpha == 0.0 {
            return 1.0;
        }
        // Transitions that were added before any error have priority one, without the epsilon.
        (largest.to_f64().powf(1.0 / self.options.alpha) - self.options.epsilon).max(1.0)
    }

    /// The error for a call that needs priorities, which a replay that draws uniformly lacks.
    pub fn not_prioritized(&self) -> ReplayError {
        let remedy = if self.is_guest() { "start the run with replay.prioritized = true" } else { "make it with prioritized=True" };
        ReplayError::NotPrioritized { remedy }
    }

    /// Let nobody add any more: callers that wait to add, in whatever process, get [`ReplayError::Stopped`], and so do
    /// later calls that add, and calls that draw before the rate limiter's minimum is there. What is there can still
    /// be drawn, whatever the ratio, read and saved.
    ///
    /// # Errors
    /// [`ReplayError::OfARun`] for a guest; [`ReplayError::Inexact`] if the tree is known to be wrong.
    pub fn stop(&self) -> Result<(), ReplayError> {
        self.not_of_a_run("stopping it")?;
        if self.control().stop_running() { Ok(()) } else { self.memory.check() }
    }

    /// Let other threads of this process that wait here wait no longer, since the process is about to leave.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.control().signal_progress();
    }

    /// A batch of this replay's transitions in memory of its own.
    pub fn batch(&self, rows: usize) -> Batch {
        Batch::new(self.schema(), rows)
    }

    /// Repair after operations that ended half-way: by the death of other processes, or by a panic of this one.
    fn repair(&self) {
        self.memory.repair_after_the_dead();
        let sides = self.sides();
        // A thread that is at work repairs its side itself.
        if let Some(mut writing) = try_lock(&sides.writing) {
            let _ = writing.participant.repair(&self.memory);
        }
        if let Some(mut reading) = try_lock(&sides.reading) {
            let _ = reading.participant.repair(&self.memory);
        }
    }

    /// Whether the replay is a run's.
    fn is_guest(&self) -> bool {
        matches!(self.memory.sharing, Sharing::Run { .. })
    }

    fn control(&self) -> Control<'_> {
        self.memory.segment.control()
    }

    fn slots(&self) -> usize {
        self.memory.segment.layout().sizes().capacity
    }

    fn slot(&self, index: i64) -> Result<usize, ReplayError> {
        let capacity = self.slots();
        usize::try_from(index).ok().filter(|&slot| slot < capacity).ok_or(ReplayError::Index { index, capacity })
    }

    fn view(&self) -> ReplayView<'_> {
        // A copy of a replay is repaired before anybody looks at it.
        self.sides();
        ReplayView::new(&self.memory.segment, self.schema().clone())
    }

    /// The place of `participant`, as [`Participant::place`] gives it.
    fn place(&self, participant: &mut Participant, patience: &mut Patience<'_>) -> Result<ProcessSlot<'_>, ReplayError> {
        participant.place(&self.memory, &mut || self.wait_for_repairer(patience))
    }

    fn hold<'s>(&'s self, place: ProcessSlot<'s>, scratch: Scratch) -> Replay<'s> {
        self.sides();
        Replay::with_scratch(&self.memory.segment, self.schema().clone(), place, scratch)
    }

    fn not_of_a_run(&self, action: &'static str) -> Result<(), ReplayError> {
        if self.is_guest() { Err(ReplayError::OfARun { action }) } else { Ok(()) }
    }
}

impl Drop for ReplayHandle {
    fn drop(&mut self) {
        // A child of a fork that did not use the handle has nothing to leave: the places are its parent's.
        if let Some(sides) = self.sides.existing() {
            // No other thread has this handle any more, so none holds the locks.
            if let (Some(mut writing), Some(mut reading)) = (try_lock(&sides.writing), try_lock(&sides.reading)) {
                writing.participant.leave(&self.memory);
                reading.participant.leave(&self.memory);
            }
        }
        if let Sharing::Participants = self.memory.sharing {
            self.memory.segment.retire();
            remove_if_dead(self.memory.segment.name());
        }
    }
}

fn check_errors(errors: &[f32]) -> Result<(), ReplayError> {
    // One comparison per value, which the compiler vectorizes; NaN fails it too.
    if errors.iter().all(|&error| (0.0..=f32::MAX).contains(&error)) {
        return Ok(());
    }
    let position = errors.iter().position(|error| !(0.0..=f32::MAX).contains(error)).unwrap_or(0);
    Err(ReplayError::Priority { value: errors[position], position })
}
