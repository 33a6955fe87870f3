"""What snippets in Python expect of their reader, and what tests put in place of what takes long."""

#: Runs before the snippets of every page: makes runs short.
SHORT_RUNS = """
import functools

import shoal

short = {"quiet": True, "run": {"stop_env_steps": 1_500}}
shoal.train, shoal.start = functools.partial(shoal.train, **short), functools.partial(shoal.start, **short)
del functools, shoal, short
"""
#: Other code that takes long, and what is run in its place.
SHORTER = {"model.learn(50_000)": "model.learn(500)"}
#: Runs before the first snippet of a page: defines what its reader has.
BEFORE = {
    # wandb would ask for an account.
    "docs/metrics.md": """
import sys
import unittest.mock

sys.modules["wandb"] = unittest.mock.MagicMock()
""",
    "docs/run-folder.md": """
import subprocess
import sys

for setting in ("rate-2e-3", "rate-5e-4"):
    words = ["--name", setting, "--seeds", "1-3", "--set", "run.stop_env_steps=1500", "--set", "evaluator.episodes=2"]
    command = [sys.executable, "-P", "-m", "shoal", "train", "cartpole_dqn", *words]
    subprocess.run(command, check=True, capture_output=True)
""",
    "docs/python-adapters.md": """
import contextlib

with contextlib.suppress(ModuleNotFoundError):
    import gymnasium
    import torch
    from tensordict import TensorDict
    from tianshou.algorithm.algorithm_base import RandomActionPolicy
    from tianshou.env import DummyVectorEnv

    transitions = TensorDict({"observation": torch.zeros(3, 2), "next": {"reward": torch.zeros(3, 1)}}, batch_size=[3])
    environments = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(8)])
    algorithm = RandomActionPolicy(gymnasium.make("CartPole-v1").action_space)
""",
}
#: Runs after each snippet of a page: uses what the snippet defines.
AFTER = {"docs/weights.md": 'assert act("runs/latest/weights/last.safetensors", [[0.0] * 4] * 2) in ([0, 0], [1, 1])\n'}
