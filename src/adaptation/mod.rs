//! Adaptation: fits the number of actors, the environments of each and the batch to the machine while a run is under
//! way.
//!
//! A [`Tuner`] is a pure state machine: statuses in, at most one change out. It knows no clock, no process and no
//! file. Its driver tells it after each window, of a second or more, what the run did ([`Status`]), puts in force
//! what it asks for ([`Change`]), and writes down what it has tried ([`Probe`]).
//!
//! ```
//! use shoal::adaptation::{Hold, Objective, Range, Ranges, Rules, Setting, Status, Tuner, Window};
//!
//! let ranges = Ranges { actors: Range { low: 1, high: 16 }, environments: Range { low: 1, high: 64 }, batch_size: Range::fixed(64) };
//! let rules = Rules::new(ranges, Objective::of_run(Some(16.0), Hold::SamplesPerInsert));
//! let mut in_force = Setting { actors: 3, environments: 8, batch_size: 64 };
//! let mut tuner = Tuner::new(rules, in_force);
//! for second in 1..10 {
//!     // What a run whose actors are too slow would say.
//!     let window = Window { env_steps_per_s: 1e3, learned_per_s: 16e3, cores_used: 0.6, learners_wait: 0.5, actors_wait: 0.0 };
//!     let (wall_s, progress) = (f64::from(second), 0.0);
//!     let step = tuner.step(&Status { wall_s, progress, window, in_force, usable_cores: 8, memory_used: 0.3, incident: None });
//!     if let Some(change) = step.change {
//!         assert_eq!(change.setting.flags(), "--set actor.count=4 --set actor.environments=8 --set learner.batch_size=64");
//!         in_force = change.setting;
//!     }
//! }
//! assert_eq!(in_force.actors, 4);
//! ```
//!
//! # How it searches
//!
//! - *What is better*: [`Objective`]. In a rate-limited run, more transitions trained per second. Otherwise a larger
//!   geometric mean of both rates, neither of which may lose more than 5 %.
//! - *What is tried*: knobs of the side that is waited for, or the others if those are fixed (`waiting`); far strides
//!   before near ones, and two knobs at once if each alone is useless (`stage`, `search`).
//! - *When it is better*: A-B-A with five windows each, in as many rounds as it takes to tell, of at most eight
//!   (`evidence`).
//! - *When it is over*: when nothing is left to try. The search begins anew when the objective drifts by a fifth for
//!   thirty windows (`drift`), or when the run may use other cores.
//! - *What it costs*: after the first search a tenth of the time at most (`budget`), and nothing late in the run
//!   ([`Rules::freeze_after`]).
//! - *What may go wrong*: a setting that cannot be started, does not fit into memory, crashes again and again or
//!   never comes into force is barred, taken back and reported (`tuner`).
//!
//! # Why not simpler
//!
//! The simple rule is one round, neighbours only, one knob at a time. It fails twice.
//!
//! If windows scatter by 10 %, three median absolute deviations are more than most steps gain, and one round does not
//! see the gain. Several rounds together are certain enough, and a far stride gains enough to be seen.
//!
//! And the simple rule stops where no step of one knob helps, even without any noise. Under a rate limiter that is so
//! wherever actors and learners are as fast as each other, and a search that turns up the slower side comes to such
//! settings all the time. Two knobs at once lead on.
//!
//! `cargo test --no-default-features --test adaptation -- --ignored --nocapture table` shows the results on simulated
//! machines (`tests/adaptation/machine.rs`: 2, 4, 8 and 32 cores; environments that are cheap, compute for 1 ms or
//! sleep for 1 ms; rate-limited and free): 100 searches for each of these 24 shapes, for shapes whose sides may be
//! ahead of each other (`tests/adaptation/flow.rs`), and for machines that change once a search is over
//! (`tests/adaptation/quiet.rs`).

mod batch_change;
mod budget;
mod change;
mod drift;
mod evidence;
mod median;
mod objective;
mod open_probe;
mod ranges;
mod rules;
mod search;
mod setting;
mod stage;
mod status;
mod steady;
mod tuner;
mod waiting;
mod window;

pub use batch_change::Hold;
pub use change::{Change, Probe, Reason, Verdict};
pub use median::Summary;
pub use objective::Objective;
pub use ranges::{Direction, Range, Ranges, Stride, Turn};
pub use rules::Rules;
pub use setting::{Knob, Setting};
pub use status::{Incident, Status};
pub use tuner::{Step, Tuner};
pub use window::{AllowedSamples, LeastWindow, NarrowBand, Window};
