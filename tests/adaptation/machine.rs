//! A machine on paper: how fast a run would be on it with any setting, without noise.
//!
//! An actor's step costs the environment, a row of inference, and its part of what a batched inference costs whatever its size. Actors
//! write to one replay, so each slows the others a little. A learner's row costs its computation and its part of what an update costs
//! whatever its size. Beyond a knee, a row costs more: the batch no longer fits the caches. Processes share the cores evenly; one that
//! waits leaves its share to the others. The rate limiter makes the faster side wait.

use shoal::adaptation::{Hold, Setting, Window};

const INFERENCE_S: f64 = 60e-6;
const INFERENCE_ROW_S: f64 = 3e-6;
const INFERENCE_KNEE_ROWS: f64 = 64.0;
const UPDATE_S: f64 = 400e-6;
const UPDATE_ROW_S: f64 = 4e-6;
const UPDATE_KNEE_ROWS: f64 = 1_024.0;
/// The batch that a run is configured with.
pub(crate) const CONFIGURED_BATCH: usize = 64;
/// What a row beyond the knee costs, compared with one before it.
const BEYOND_KNEE: f64 = 2.0;
/// By how much each further actor slows every one of them, at the replay.
const CONTENTION: f64 = 0.004;
/// What it costs to let twice as many processes run as there are cores.
const SWITCHING: f64 = 0.05;

/// What a setting meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Machine {
    /// Cores for actors and one learner.
    pub(crate) cores: usize,
    /// What a step of an environment computes, in seconds.
    pub(crate) environment_s: f64,
    /// What it sleeps beyond that, in seconds.
    pub(crate) environment_sleep_s: f64,
    /// What the rate limiter holds; `None` where both sides run free.
    pub(crate) samples_per_insert: Option<f64>,
    /// What stays when the batch changes; the ratio above is that of [`CONFIGURED_BATCH`].
    pub(crate) hold: Hold,
}

impl Machine {
    /// What a run does on it with `setting`.
    pub(crate) fn window(&self, setting: Setting) -> Window {
        let (actors, cores) = (setting.actors as f64, self.cores as f64);
        // Seconds of a core, and of an actor's life, for one environment step; seconds of a core for one row of a batch.
        let step_s = self.step_s(setting);
        let step_and_sleep_s = step_s + self.environment_sleep_s;
        let row_s = amortized(UPDATE_S, UPDATE_ROW_S, UPDATE_KNEE_ROWS, setting.batch_size as f64);

        let wanted_cores = actors * step_s / step_and_sleep_s + 1.0;
        let share = (cores / wanted_cores).min(1.0);
        let efficiency = 1.0 / (1.0 + SWITCHING * (wanted_cores / cores - 1.0).max(0.0));
        let acting = share * actors / step_and_sleep_s;
        let training = share / row_s;
        let ratio = self.samples_per_insert.map(|ratio| self.hold.samples_per_insert(ratio, CONFIGURED_BATCH, setting.batch_size));
        let Some(ratio) = ratio else {
            let (env_steps_per_s, learned_per_s) = (acting * efficiency, training * efficiency);
            let cores_used = (wanted_cores / cores).min(1.0);
            return Window { env_steps_per_s, learned_per_s, cores_used, learners_wait: 0.0, actors_wait: 0.0 };
        };
        // Whoever waits leaves its share, so that only the cores together are a limit beside each side's own.
        let steps_per_s = (actors / step_and_sleep_s).min(1.0 / (ratio * row_s)).min(cores / (step_s + ratio * row_s));
        Window {
            env_steps_per_s: steps_per_s * efficiency,
            learned_per_s: steps_per_s * efficiency * ratio,
            cores_used: (steps_per_s * (step_s + ratio * row_s) / cores).min(1.0),
            learners_wait: (1.0 - steps_per_s * ratio / training).max(0.0),
            actors_wait: (1.0 - steps_per_s / acting).max(0.0),
        }
    }

    fn step_s(&self, setting: Setting) -> f64 {
        let inference_s = amortized(INFERENCE_S, INFERENCE_ROW_S, INFERENCE_KNEE_ROWS, setting.environments as f64);
        (self.environment_s + inference_s) * (1.0 + CONTENTION * (setting.actors as f64 - 1.0))
    }
}

/// Seconds for each of `rows` that are computed at once.
fn amortized(fixed_s: f64, row_s: f64, knee_rows: f64, rows: f64) -> f64 {
    let beyond = (rows - knee_rows).max(0.0) * (BEYOND_KNEE - 1.0);
    (fixed_s + row_s * (rows + beyond)) / rows
}
