//! Wrappers: environments around another one, of which they change one thing
//! ([`Environment::wrapped`](super::Environment::wrapped)).

mod delayed; // each step takes longer
mod floats; // bytes are seen as floats
mod limited; // episodes are cut off
mod observed; // what an agent observes, put together of `floats` and `stacked`
mod stacked; // the last few observations are one

pub use delayed::delayed;
pub use floats::behind_floats;
pub use limited::limited;
pub use observed::ObservationOptions;
