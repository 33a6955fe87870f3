//! Table `[run]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, at_least, finite, positive, positive_up_to};

/// Most characters of a run's name. The name of the run's folder keeps more, which leaves room there for the seed
/// that follows.
pub const MOST_NAME_CHARACTERS: usize = 64;

table! {
    /// What to run, until when, and where results go.
    [run] RunConfig {
        /// Seed of everything random in the run.
        seed: u64 = 1, at_least(0), "";
        /// Name of the run, which becomes a part of the name of its folder. Empty: the name of the configuration
        /// file.
        name: String = String::new(),
            Limits::Text {
                form: "a name of at most 64 characters, or \"\"",
                accepts: |name| name.chars().count() <= MOST_NAME_CHARACTERS
            }, "";
        /// Folder under which each run gets a folder of its own.
        folder: String = "runs".into(), Limits::Text { form: "the path of a folder", accepts: |path| !path.is_empty() }, "";
        /// Stop after this many environment steps, summed over all actors. Steps under way are finished: at most
        /// one in each environment.
        stop_env_steps: u64 = 1_000_000, at_least(1), "environment steps";
        /// Stop as soon as an evaluation's mean return reaches this and `evaluator.confirm_episodes` fresh episodes
        /// with the same weights confirm it. They do if the lower end of the confidence interval of their mean
        /// reaches it; each attempt has to prove more than the one before (docs/evaluation.md).
        stop_eval_return: Option<f64> = None, finite(), "return";
        /// Stop this long after the start, without a last evaluation. If `run.stop_env_steps` comes first, the last
        /// evaluation may take up to a minute beyond this limit.
        stop_wall_s: Option<f64> = None, positive(), "seconds";
        /// Whether a run that was killed, was terminated (SIGTERM, SIGHUP, SIGUSR1, SIGUSR2) or gave up is resumed when the same
        /// command is given again.
        resume: Resume = Resume::Never, Limits::Any, "";
        /// What a new run begins with: the folder of another run, whose newest checkpoint is taken, or of one of its checkpoints.
        /// Algorithm, layers and shapes must be the same (docs/resume.md).
        start_from: Option<String> = None,
            Limits::Text { form: "the folder of a run or of a checkpoint", accepts: |path| !path.is_empty() }, "";
        /// Time between two lines of `metrics.jsonl`, of which there are five a second at most.
        metrics_interval_s: f64 = 1.0, positive_up_to(3_600.0), "seconds";
    }
}

choice! {
    /// What becomes of a run that was killed, was terminated or gave up.
    Resume {
        /// A new run starts. `shoal resume FOLDER` resumes the old one.
        Never = "never",
        /// The newest run of this name and seed is resumed from its newest checkpoint, if it was killed, was terminated
        /// or gave up, and has one (docs/resume.md).
        Auto = "auto",
    }
}
