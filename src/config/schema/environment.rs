//! Table `[environment]`.

use crate::config::define::table;
use crate::config::limits::{Limits, whole};

table! {
    /// The environment to train in.
    [environment] EnvironmentConfig {
        /// The environment. A native one by its name: `CartPole-v1`, or `mujoco:HalfCheetah-v5` (on libmujoco). A
        /// game of the Atari 2600: `atari:Pong`. One of Gymnasium's: `gymnasium:HalfCheetah-v5`, or
        /// `gymnasium:my_tasks:MyTask-v0` if a module `my_tasks` registers it. One of your own:
        /// `python:my_task:MyTask` (module and class) or `python:tasks/my_task.py:MyTask` (file and class).
        id: String = String::new(),
            Limits::Text { form: "the name of an environment, such as \"CartPole-v1\"", accepts: |id| !id.is_empty() }, "";
        /// Arguments of the environment's constructor, as a JSON object: `'{"gravity": 9.8}'`. Native environments
        /// take none; `docs/atari.md` lists those of games of the Atari 2600.
        keyword_arguments: String = "{}".to_owned(),
            Limits::Text { form: "a JSON object in quotes, such as '{\"gravity\": 9.8}'", accepts: |_| true }, "";
        /// Arguments that replace those of `keyword_arguments`, or join them, where the agent is evaluated or shown
        /// instead of trained: `'{"shaped": false}'` leaves out of scores what makes rewards easier to learn from.
        /// Observations and actions are the same with them.
        evaluation_arguments: String = "{}".to_owned(),
            Limits::Text { form: "a JSON object in quotes, such as '{\"shaped\": false}'", accepts: |_| true }, "";
        /// The Python whose packages `atari:`, `gymnasium:` and `python:` environments use, as the path of its
        /// program. Empty: the Python of `VIRTUAL_ENV`, else of `.venv` in the checkout, else `python3` on `PATH`.
        python: String = String::new(), Limits::Text { form: "the path of a Python interpreter, or \"\"", accepts: |_| true }, "";
        /// Folders, separated by colons, in which the modules and files of `python:` environments are searched, and
        /// modules that register Gymnasium environments. A relative path begins at the configuration file, or at
        /// the current folder if it is typed on the command line. Empty: the folder of that file, then the current
        /// one.
        python_path: String = String::new(), Limits::Text { form: "folders separated by colons, or \"\"", accepts: |_| true }, "";
        /// How many of its last observations the agent sees at once. The replay stores each of them once. Two kinds are
        /// stored as often as they are seen: floats with PPO and APPO, and bytes that become floats, because they are
        /// normalised or the algorithm is DDPG, TD3 or SAC. `"none"` takes what the environment's authors advise: 4
        /// for Atari, 1 if a single observation tells everything.
        frame_stack: Option<usize> = None, whole(1, 64), "frames";
        /// Frames that the environment itself stacks in one observation, along the first dimension. The replay then
        /// stores each frame once, and has room for one new frame per transition: with k new frames per
        /// observation, k times fewer transitions fit. Fragments of PPO and APPO hold whole observations.
        frames_per_observation: usize = 1, whole(1, 64), "frames";
        /// Extra time that every environment step takes, to simulate a slow environment.
        step_delay_us: u64 = 0, whole(0, 10_000_000), "microseconds";
    }
}
