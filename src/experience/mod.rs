//! Experience: what an actor makes of its steps, and where a learner's batches come from. An algorithm chooses it.
//!
//! A *recorder* turns steps of environments into rows and stages them; a *source* hands rows to a learner, batch after
//! batch, and takes back what the learner found in them. Rows, staging, generations and repair are those of `replay`,
//! whatever a row holds: the loops of actors and learners, and whoever repairs after them, need not know.

mod assembly;
pub mod fragment;
mod fragment_batch;
mod fragments;
mod in_order;
mod prefetch;
pub mod prioritized;
pub mod transition;
mod transitions;
mod uncounted;

pub use fragment_batch::FragmentBatch;
pub use fragments::{Fragments, Reuse};
pub use prioritized::Prioritized;
pub use transitions::Transitions;

use std::thread::Scope;

use rand_xoshiro::Xoshiro256PlusPlus;
use thiserror::Error;

use crate::replay::{Batch, RateLimiter, Replay, SampleError, Schema, StagingArea};
use crate::segment::Segment;
use crate::segment::processes::ProcessSlot;
use crate::values::Values;

/// Random numbers of a process.
pub type Random = Xoshiro256PlusPlus;

/// What rows are, who makes them, and who hands them out.
pub trait Experience {
    /// Fields of a row.
    fn schema(&self) -> Schema;

    /// Fields that hold observations: they are scaled if observations are normalised.
    fn observation_fields(&self) -> &'static [usize];

    /// Fields that hold rewards: they are scaled if rewards are normalised.
    fn reward_fields(&self) -> &'static [usize];

    /// How many rows are kept where.
    fn storage(&self) -> Storage;

    /// When rows may be inserted and sampled.
    fn limiter(&self) -> RateLimiter;

    /// Whether learning depends on which policy chose the actions. If so, actors wait for the first parameters and take
    /// no step at random.
    fn is_on_policy(&self) -> bool {
        false
    }

    /// What an actor with so many environments records its steps with.
    fn recorder(&self, environments: usize) -> Box<dyn Recorder>;

    /// Where a learner gets its batches from.
    ///
    /// # Errors
    /// There is to be a thread that gets batches ready ahead, and it does not start.
    fn source<'a>(&self, seat: Seat<'a, '_>) -> Result<Box<dyn Source + 'a>, SourceError>;
}

/// How many rows are kept where, in a run with one experience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Rows in the store.
    pub capacity: usize,
    /// Children per node of the sum tree; 0 for no tree.
    pub fanout: usize,
    /// Rows that an actor stages before it flushes them.
    pub flush_rows: usize,
    /// The most rows that one flush can insert.
    pub largest_flush_rows: usize,
}

/// What an actor makes of its steps.
pub trait Recorder {
    /// Take in one step of every environment, and stage the rows that it completes. The area has room for as many as
    /// one step can complete. Frames that the rows name are written into `replay` first. For each staged row, the
    /// number of updates in the parameters that made it is added to `chosen_by`: in those that chose the first action
    /// of a fragment, or the last action of a transition of several steps.
    fn record(&mut self, steps: &Steps<'_>, area: StagingArea<'_>, replay: &Replay<'_>, chosen_by: &mut Vec<u64>);
}

/// One step of all environments of an actor. Each field has the values of all environments, one after another.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    /// Where the steps started.
    pub observations: Values<'a>,
    /// What was done, in 32-bit lanes.
    pub actions: &'a [u32],
    /// What the policy says of the actions that it chose.
    pub choices: &'a [Choice],
    /// Rewards.
    pub rewards: &'a [f32],
    /// Where the steps led, before any reset.
    pub next_observations: Values<'a>,
    /// Values of the states where the steps led; 0 if the policy does not tell them.
    pub next_values: &'a [f32],
    /// Whether the problem ended: nothing follows.
    pub terminated: &'a [bool],
    /// Whether the episode was cut off: something would follow.
    pub truncated: &'a [bool],
    /// Number of updates in the parameters that chose the actions.
    pub parameter_updates: u64,
}

/// What a policy says of an action that it has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Choice {
    /// Value of the action, or of the state; 0 if the policy tells neither.
    pub value: f32,
    /// Logarithm of the probability, or density, with which the action was drawn; 0 if the algorithm needs none.
    pub log_probability: f32,
}

impl Choice {
    /// A choice of a policy that tells a value and no probability.
    pub fn of_value(value: f32) -> Self {
        Self { value, log_probability: 0.0 }
    }
}

/// Where a learner's batches come from.
pub trait Source {
    /// Whether this learner may have a batch now.
    fn is_ready(&self) -> bool;

    /// Wait until this learner may have a batch. `idle` is called now and then and may end the waiting by returning
    /// `false`, which is then the answer.
    fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool;

    /// The next batch, after [`Self::wait`], in a run that has taken `env_steps`.
    ///
    /// # Errors
    /// Nothing was inserted yet, the rows that were drawn kept changing, or the thread that gets batches ready ahead
    /// has ended.
    fn next(&mut self, env_steps: u64, random: &mut Random) -> Result<Drawn<'_>, SourceError>;

    /// The absolute errors that the learner found in the batch handed out last, in its order.
    fn report_errors(&mut self, errors: &[f32]);

    /// Start over, since this learner takes part from now on, or the others have changed: hand out a new batch next, if
    /// all learners are to go through their batches in step.
    fn restart(&mut self) {}

    /// From now on hand out batches of so many rows, each batch counted as so many by the rate limiter. Nothing changes
    /// if the configured batch size does not count rows. Called between two batches.
    fn resize(&mut self, _rows: usize, _counted: usize) {}
}

/// A batch, lent out by a [`Source`].
#[derive(Debug)]
pub struct Drawn<'s> {
    /// The batch; `None` if there is none after all, and the learner has to wait again. A learner may change a batch in
    /// place if it [`is_new`](Self::is_new); what it has changed stays changed.
    pub batch: Option<&'s mut Batch>,
    /// Whether the batch is handed out for the first time. A source may hand the same batch out again.
    pub is_new: bool,
}

/// A learner's place in a run: what a [`Source`] works with.
pub struct Seat<'a, 'env> {
    /// The shared memory.
    pub segment: &'a Segment,
    /// The learner's slot of the process table.
    pub process: ProcessSlot<'a>,
    /// Seed for random numbers of the source's own.
    pub seed: u64,
    /// Where a thread may be started that gets the next batch ready; `None` in a process that must
    /// not depend on the clock.
    pub threads: Option<&'a Scope<'a, 'env>>,
    /// Whether rows drawn here count as sampled, and errors found here are written back. Otherwise drawing changes
    /// nothing that others see.
    pub is_counted: bool,
}

/// Why there is no batch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The replay could not be sampled.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The thread that gets batches ready ahead did not start.
    #[error("the thread that gets batches ready ahead did not start: {source}; set learner.prefetch to false")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
    /// The thread that gets batches ready ahead ended by itself.
    #[error("the thread that gets batches ready ahead ended by itself: this is a bug in Shoal; set learner.prefetch to false")]
    ThreadEnded,
}
