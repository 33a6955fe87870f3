//! What stands in for the MuJoCo environments in a build without the feature `mujoco`: none, and their prefix, by which the
//! registry recognises that such an environment was meant.

use crate::environments::origin::Entry;

/// Begins the name of every environment of the feature.
pub(super) const PREFIX: &str = "mujoco:";

/// Nothing was built.
pub(super) static ENTRIES: [Entry; 0] = [];
