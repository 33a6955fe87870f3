"""SAC and TD3 of other libraries behind one small interface, so that one loop drives and measures them all.

A module has `trainer(algorithm, environment, setting, seed)`, which returns an object with

- `advance(env_steps)`: collect and learn for about this many more environment steps,
- `env_steps`, `updates`, `batch_size`: steps and updates so far, and transitions per update,
- `predict(observations, ...)`: greedy actions, as Stable-Baselines3's models have it, so that the same code evaluates all,
- `close()`,
- `VERSION`: the library's version.

With a `setting` of `None` the library has its defaults or, if a default cannot run, the values of its own example. Otherwise
`setting` is (environment processes, batch size), and everything else stays. Each trainer makes one update per environment
step, whatever the number of environment processes. A module raises `NotImplementedError` for an algorithm that it lacks.
"""

import importlib

LIBRARIES = {"sb3": "stable_baselines3_and_sbx", "sbx": "stable_baselines3_and_sbx", "tianshou": "tianshou_procedural", "rllib": "rllib"}


def make(library, algorithm, environment, setting, seed):
    """The trainer of a library."""
    module = importlib.import_module(f"trainers.{LIBRARIES[library]}")
    trainer = module.sbx_trainer if library == "sbx" else module.trainer
    return trainer(algorithm, environment, setting, seed)
