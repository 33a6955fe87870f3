//! A machine on paper: how fast a run would be on it with any setting, without noise.
//!
//! An actor's step costs the environment, a row of inference, and its part of what a batched inference costs whatever its size. Actors
//! write to one replay, so each slows the others a little. A learner's row costs its computation and its part of what an update costs
//! whatever its size. Beyond a knee, a row costs more: the batch no longer fits the caches. Processes share the cores evenly; one that
//! waits leaves its share to the others. The rate limiter makes the faster side wait; where batches are learned from in several updates,
//! actors wait once another batch is complete, and the learner until one is.

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
    /// What a step of an environment sleeps in addition, in seconds.
    pub(crate) environment_sleep_s: f64,
    /// What the rate limiter holds; `None` where both sides run free.
    pub(crate) samples_per_insert: Option<f64>,
    /// What stays when the batch changes; the ratio above is that of [`CONFIGURED_BATCH`].
    pub(crate) hold: Hold,
    pub(crate) between: Between,
}

/// What lies between actors and learners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Between {
    /// Nothing that shows in windows: each shows the rates that last.
    Nothing,
    /// An error band: the transitions that one side may be ahead of the other before it waits.
    Band(f64),
    /// Batches: the learner goes over each `epochs` times, in `minibatches` updates each time, while the actors make the next.
    Batches { epochs: usize, minibatches: usize },
}

impl Machine {
    /// The rates that last of a run with `setting` on this machine.
    pub(crate) fn window(&self, setting: Setting) -> Window {
        match (self.between, self.ratio(setting)) {
            (Between::Batches { epochs, .. }, _) => self.in_bursts(setting, epochs),
            (_, Some(ratio)) => self.limited(setting, ratio, [1.0; 2]),
            (_, None) => self.at_work(setting, true, true),
        }
    }

    /// Samples per insert with `setting`.
    pub(crate) fn ratio(&self, setting: Setting) -> Option<f64> {
        self.samples_per_insert.map(|ratio| self.hold.samples_per_insert(ratio, CONFIGURED_BATCH, setting.batch_size))
    }

    /// Transitions of an update.
    pub(crate) fn update_rows(&self, setting: Setting) -> f64 {
        let parts = if let Between::Batches { minibatches, .. } = self.between { minibatches } else { 1 };
        (setting.batch_size / parts) as f64
    }

    /// Updates from each batch.
    pub(crate) fn updates_of_batch(&self) -> usize {
        if let Between::Batches { epochs, minibatches } = self.between { epochs * minibatches } else { 1 }
    }

    /// The rates while actors act or learners learn, as said, and nothing holds them up.
    pub(crate) fn at_work(&self, setting: Setting, is_acting: bool, is_learning: bool) -> Window {
        let (acting, learning) = (f64::from(u8::from(is_acting)), f64::from(u8::from(is_learning)));
        let actors = acting * setting.actors as f64;
        let step_s = self.step_s(setting);
        let row_s = self.row_s(setting);
        let step_and_sleep_s = step_s + self.environment_sleep_s;
        let wanted_cores = actors * step_s / step_and_sleep_s + learning;
        let (share, efficiency) = self.scheduling(wanted_cores);
        Window {
            env_steps_per_s: share * actors / step_and_sleep_s * efficiency,
            learned_per_s: share * learning / row_s * efficiency,
            cores_used: (wanted_cores / self.cores as f64).min(1.0),
            learners_wait: 1.0 - learning,
            actors_wait: 1.0 - acting,
        }
    }

    /// The rates while the faster side waits for the other, if actors and learner are as many times as fast as usual.
    pub(crate) fn limited(&self, setting: Setting, ratio: f64, [actors_speed, learner_speed]: [f64; 2]) -> Window {
        let (actors, cores) = (setting.actors as f64, self.cores as f64);
        let (step_s, row_s) = (self.step_s(setting) / actors_speed, self.row_s(setting) / learner_speed);
        let step_and_sleep_s = step_s + self.environment_sleep_s / actors_speed;
        let (share, efficiency) = self.scheduling(actors * step_s / step_and_sleep_s + 1.0);
        let acting = share * actors / step_and_sleep_s;
        let training = share / row_s;
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

    /// What is done from batch to batch.
    fn in_bursts(&self, setting: Setting, epochs: usize) -> Window {
        let both = self.at_work(setting, true, true);
        let (to_make, to_learn) = (setting.batch_size as f64, (epochs * setting.batch_size) as f64);
        let (made_s, learned_s) = (to_make / both.env_steps_per_s, to_learn / both.learned_per_s);
        let mut batch = Done::default();
        batch.add(&both, made_s.min(learned_s));
        if made_s < learned_s {
            let learner = self.at_work(setting, false, true);
            batch.add(&learner, (to_learn - batch.learned) / learner.learned_per_s);
        } else {
            let actors = self.at_work(setting, true, false);
            batch.add(&actors, (to_make - batch.env_steps) / actors.env_steps_per_s);
        }
        batch.per_second()
    }

    /// The share of a core that each process gets if together they want `wanted_cores`, and the part of it that switching between processes
    /// leaves.
    fn scheduling(&self, wanted_cores: f64) -> (f64, f64) {
        let cores = self.cores as f64;
        ((cores / wanted_cores).min(1.0), 1.0 / (1.0 + SWITCHING * (wanted_cores / cores - 1.0).max(0.0)))
    }

    /// Seconds of a core for one environment step.
    fn step_s(&self, setting: Setting) -> f64 {
        let inference_s = amortized(INFERENCE_S, INFERENCE_ROW_S, INFERENCE_KNEE_ROWS, setting.environments as f64);
        (self.environment_s + inference_s) * (1.0 + CONTENTION * (setting.actors as f64 - 1.0))
    }

    /// Seconds of a core for one row of a batch.
    fn row_s(&self, setting: Setting) -> f64 {
        amortized(UPDATE_S, UPDATE_ROW_S, UPDATE_KNEE_ROWS, self.update_rows(setting))
    }
}

/// What was done in some time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    seconds: f64,
    pub(crate) env_steps: f64,
    pub(crate) learned: f64,
    cores_used: f64,
    learners_waited: f64,
    actors_waited: f64,
}

impl Done {
    pub(crate) fn add(&mut self, rates: &Window, seconds: f64) {
        self.seconds += seconds;
        self.env_steps += rates.env_steps_per_s * seconds;
        self.learned += rates.learned_per_s * seconds;
        self.cores_used += rates.cores_used * seconds;
        self.learners_waited += rates.learners_wait * seconds;
        self.actors_waited += rates.actors_wait * seconds;
    }

    pub(crate) fn per_second(&self) -> Window {
        Window {
            env_steps_per_s: self.env_steps / self.seconds,
            learned_per_s: self.learned / self.seconds,
            cores_used: self.cores_used / self.seconds,
            learners_wait: self.learners_waited / self.seconds,
            actors_wait: self.actors_waited / self.seconds,
        }
    }
}

/// Seconds for each of `rows` that are computed at once.
fn amortized(fixed_s: f64, row_s: f64, knee_rows: f64, rows: f64) -> f64 {
    let beyond = (rows - knee_rows).max(0.0) * (BEYOND_KNEE - 1.0);
    (fixed_s + row_s * (rows + beyond)) / rows
}
