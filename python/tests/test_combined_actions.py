"""Saved policies of environments whose action is an array of choices."""

import shutil

import gymnasium
import numpy as np
import pytest

import shoal
import shoal.policies


class Combined(gymnasium.Env):
    """Takes arrays, with a reward for one combination, and nothing else."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, kind):
        self.action_space, self.best = {
            "two": (gymnasium.spaces.MultiDiscrete([[2], [3]], np.int16, start=[[-1], [0]]), (-1, 2)),
            "without a dimension": (gymnasium.spaces.MultiDiscrete(3), (2,)),
            "binary": (gymnasium.spaces.MultiBinary(2), (0, 1)),
        }[kind]

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action) and action.dtype == self.action_space.dtype, repr(action)
        return np.zeros(2, np.float32), float(tuple(action.ravel()) == self.best), True, False, {}


@pytest.mark.parametrize("kind", ["two", "without a dimension", "binary"])
def test_actions_are_the_arrays_that_the_environment_takes_and_a_module_returns_their_indices(folder, kind):
    run = shoal.train(
        Combined,
        algorithm="dqn",
        environment={"keyword_arguments": {"kind": kind}},
        run={"stop_env_steps": 3000},
        quiet=True,
    )
    policy = run.load("last")
    environment = Combined(kind)
    space = environment.action_space
    counts = (2, 2) if kind == "binary" else space.nvec.ravel()
    action = policy(np.zeros(2))
    assert action.dtype == space.dtype and tuple(action.ravel()) == environment.best and action in space
    rows = policy(np.zeros((300, 2)), explore=True)
    assert rows.shape == (300, *space.shape) and rows.dtype == space.dtype
    assert all(rows[index, ...] in space for index in range(300))
    assert policy.actions == np.prod(counts)
    assert policy(np.zeros((0, 2))).shape == (0, *space.shape)
    assert shoal.evaluate(policy, environment, episodes=2).returns == [1.0, 1.0]
    assert shoal.evaluate(policy, episodes=2).returns == [1.0, 1.0]
    # No environment is made: the file says it.
    moved = shutil.copy(policy.path, folder / "moved.safetensors")
    np.testing.assert_array_equal(shoal.load(moved)(np.zeros(2)), action)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    index = policy.to_torch()(torch.zeros(1, 2)).numpy()
    start = 0 if kind == "binary" else space.start.ravel()
    np.testing.assert_array_equal(np.stack(np.unravel_index(index, counts), -1) + start, [environment.best])


@pytest.mark.parametrize("counts", [[2, 3], [4], [1, 5, 2]])
def test_indices_become_arrays_in_numpy_s_order(counts):
    indices = np.arange(np.prod(counts))
    arrays = shoal.policies._as_arrays(indices, counts, [7] * len(counts), [len(counts)], "int8")
    np.testing.assert_array_equal(arrays, np.stack(np.unravel_index(indices, counts), -1) + 7)
    assert arrays.dtype == np.int8
