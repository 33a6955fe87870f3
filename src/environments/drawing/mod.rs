//! Pictures of environments, for people to look at: what an agent does is told faster by a video than by a return.
//!
//! Each native environment, and each game of the Atari 2600, draws its state when asked
//! ([`Environment::picture`](super::Environment::picture)), and stepping costs nothing for it. A file here draws one kind of task from the
//! part of its state that can be seen; [`canvas`] knows the library that turns shapes into pixels.

mod acrobot;
mod bars;
pub(super) mod canvas;
mod cart_pole;
mod catch;
mod mountain_car;
mod pendulum;
mod picture;
mod rally;
mod screen;

pub(super) use acrobot::acrobot;
pub use bars::bars;
pub(super) use cart_pole::cart_pole;
pub(super) use catch::catch;
pub(super) use mountain_car::mountain_car;
pub(super) use pendulum::pendulum;
pub use picture::Picture;
pub(super) use rally::{Block, Scene as RallyScene};
pub(super) use screen::screen;
