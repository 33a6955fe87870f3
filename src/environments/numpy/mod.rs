//! NumPy's arithmetic to the last bit. Gymnasium computes with NumPy, so whoever is to equal it needs the same random numbers, squares
//! and sums.

mod generator; // random numbers
mod normal; // those that are normally distributed
mod power; // squares
mod seed_sequence; // what random numbers begin with
#[cfg(feature = "mujoco")]
mod sums; // only rewards of MuJoCo's tasks have any

pub use generator::Generator;
pub(super) use power::{square, square_f32};
pub use seed_sequence::{SeedSequence, derive_seed};
#[cfg(feature = "mujoco")]
pub(super) use sums::{sum, sum_of_squares};
