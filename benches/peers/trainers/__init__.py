"""SAC and TD3 of other libraries behind one small face, so that one loop drives and measures them all.

A module has `trainer(algorithm, environment, setting, seed)`, which returns an object with

- `advance(env_steps)`: collect and learn for about so many steps of the environment more,
- `env_steps`, `updates`, `batch_size`: what it has done so far, and transitions per update,
- `predict(observations, ...)`: greedy actions, as Stable-Baselines3's models have it, so that the same code evaluates all,
- `close()`, and `VERSION` beside it.

A `setting` of `None` is the library as it comes: its defaults, or where a default cannot run, those of its own example.
Otherwise `setting` is (environment processes, batch size), and everything else stays. Each makes one update per environment
step, whatever the number of environment processes. A module raises `NotImplementedError` for an algorithm that it lacks.
"""

import importlib

LIBRARIES = {"sb3": "stable_baselines3_and_sbx", "sbx": "stable_baselines3_and_sbx", "tianshou": "tianshou_procedural", "rllib": "rllib"}


def make(library, algorithm, environment, setting, seed):
    """The trainer of a library."""
    module = importlib.import_module(f"trainers.{LIBRARIES[library]}")
    trainer = module.sbx_trainer if library == "sbx" else module.trainer
    return trainer(algorithm, environment, setting, seed)
