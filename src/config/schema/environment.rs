//! Table `[environment]`.

use crate::config::define::table;
use crate::config::limits::{Limits, whole};

table! {
    /// The environment to train in.
    [environment] EnvironmentConfig {
        /// The environment: a native one by its name (`CartPole-v1`, or `mujoco:HalfCheetah-v5` on libmujoco), a game of the Atari 2600 as
        /// `atari:Pong`, any of Gymnasium's as `gymnasium:HalfCheetah-v5`, or `gymnasium:my_tasks:MyTask-v0` where a module registers it, one of
        /// your own as `python:my_task:MyTask` (module and class) or `python:tasks/my_task.py:MyTask` (file and class).
        id: String = String::new(), Limits::Text { form: "the name of an environment, such as \"CartPole-v1\"", accepts: |id| !id.is_empty() }, "";
        /// What the environment's constructor is given, as a JSON object: `'{"gravity": 9.8}'`. Native environments take nothing; `docs/atari.md`
        /// says what games of the Atari 2600 take.
        keyword_arguments: String = "{}".to_owned(), Limits::Text { form: "a JSON object in quotes, such as '{\"gravity\": 9.8}'", accepts: |_| true }, "";
        /// The Python whose packages `atari:`, `gymnasium:` and `python:` environments use, as the path of its program. Empty: that of
        /// `VIRTUAL_ENV`, else `.venv` of the checkout, else `python3` on `PATH`.
        python: String = String::new(), Limits::Text { form: "the path of a Python interpreter, or \"\"", accepts: |_| true }, "";
        /// Folders in which the modules and files of `python:` environments are searched, and those that register some of Gymnasium's,
        /// separated by colons; relative to the configuration file, or, where they are typed, to the current folder. Empty: the folder of
        /// that file, then the current one.
        python_path: String = String::new(), Limits::Text { form: "folders separated by colons, or \"\"", accepts: |_| true }, "";
        /// How many of its last observations the agent sees at once, each stored once in the replay; `"none"` takes what the environment's
        /// authors advise: 4 for Atari, 1 where a single observation tells everything.
        frame_stack: Option<usize> = None, whole(1, 64), "frames";
        /// Frames that one observation of the environment consists of already, along its first dimension, because it stacks them itself.
        /// The replay then stores each once, in room for one new frame per transition: with k new frames per observation, k times fewer
        /// transitions fit. Fragments of PPO and APPO hold whole observations.
        frames_per_observation: usize = 1, whole(1, 64), "frames";
        /// Extra time that every step of an environment takes: simulates a slow environment.
        step_delay_us: u64 = 0, whole(0, 10_000_000), "microseconds";
    }
}
