//! Table `[environment]`.

use crate::config::define::table;
use crate::config::limits::{Limits, whole};

table! {
    /// The environment to train in.
    [environment] EnvironmentConfig {
        /// Name in the registry of environments.
        id: String = String::new(), Limits::Text { form: "the name of an environment, such as \"CartPole-v1\"", accepts: |id| !id.is_empty() }, "";
        /// Extra time that every step of an environment takes: simulates a slow environment.
        step_delay_us: u64 = 0, whole(0, 10_000_000), "microseconds";
    }
}
