"""What snippets in Python find and leave to their reader."""

#: In every page: short runs in place of long ones.
SHORT_RUNS = """
import functools

import shoal

short = {"quiet": True, "run": {"stop_env_steps": 1_500}}
shoal.train, shoal.start = functools.partial(shoal.train, **short), functools.partial(shoal.start, **short)
del functools, shoal, short
"""
#: Other long things, and short ones in their place.
SHORTER = {"model.learn(50_000)": "model.learn(500)"}
#: Before the first snippet of a page: what its reader has.
BEFORE = {
    # It would ask for an account.
    "docs/metrics.md": """
import sys
import unittest.mock

sys.modules["wandb"] = unittest.mock.MagicMock()
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
#: After each snippet of a page: the use of what it defines.
AFTER = {"docs/weights.md": 'assert act("runs/latest/weights/last.safetensors", [[0.0] * 4] * 2) in ([0, 0], [1, 1])\n'}
