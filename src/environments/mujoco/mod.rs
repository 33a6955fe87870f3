//! MuJoCo's continuous-control tasks, stepped by libmujoco in this process: `mujoco:HalfCheetah-v5` and its siblings.
//!
//! Each equals `gymnasium.make` of its name without the prefix, with default arguments, bit for bit: Gymnasium 1.4.0, MuJoCo
//! 3.17.0. `Reacher-v5` and `Pusher-v5` are missing because theirs cannot be equalled on every machine: their reward contains a
//! norm whose last bit depends on the kernel that NumPy's BLAS picks for the processor.
//!
//! What all have in common is in [`task`]; a task's file holds its numbers and the equations of its reward.

mod ant;
mod drawing;
mod half_cheetah;
mod hopper;
mod humanoid;
mod humanoid_standup;
mod inverted_double_pendulum;
mod inverted_pendulum;
mod model;
mod simulation;
mod swimmer;
mod task;
mod total_mass;
mod walker2d;

use super::native::Native;
use super::origin::Entry;
use task::{Simulated, Task};

/// Begins the name of every environment in this folder.
pub(super) const PREFIX: &str = "mujoco:";

const fn entry<T: Task<ACTIONS> + 'static, const ACTIONS: usize>() -> Entry {
    Entry {
        id: T::ID,
        software: &[("mujoco", model::VERSION)],
        spec: || model::check(T::ID, T::MODEL).map(|()| task::spec::<T, ACTIONS>()),
        make: || Ok(Box::new(Native::new(Simulated::<T, ACTIONS>::load()?))),
    }
}

/// All of them, in alphabetical order.
pub(super) static ENTRIES: [Entry; 9] = [
    entry::<ant::Ant, _>(),
    entry::<half_cheetah::HalfCheetah, _>(),
    entry::<hopper::Hopper, _>(),
    entry::<humanoid::Humanoid, _>(),
    entry::<humanoid_standup::HumanoidStandup, _>(),
    entry::<inverted_double_pendulum::InvertedDoublePendulum, _>(),
    entry::<inverted_pendulum::InvertedPendulum, _>(),
    entry::<swimmer::Swimmer, _>(),
    entry::<walker2d::Walker2d, _>(),
];
