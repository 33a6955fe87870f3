"""Plays one of Gymnasium's MuJoCo tasks and writes what it does to the standard output, for tests/mujoco_parity.rs.

    .venv/bin/python tests/play_mujoco.py HalfCheetah-v5 6000 > played

The last bits of a simulation depend on the processor. So there are no recordings; the test calls this on its own machine.

The output is a line of JSON with the spaces, limits and versions, then rows, little-endian and packed:
    flags        u8             1 terminated, 2 truncated, 4 the row is a reset, 8 the reset has a seed
    seed         u64            0 without one
    action       f32 x A        0 in the row of a reset
    reward       f64            0 in the row of a reset
    observation  f32 x N        what the call returned
"""

import json
import os
import sys
import tempfile
import warnings

import gymnasium
import mujoco
import numpy

TERMINATED, TRUNCATED, RESET, SEEDED = 1, 2, 4, 8
LARGE_SEEDS = [0, 2**32, 2**63, 2**64 - 1]
LONGEST_HOLD_STEPS = 16


class Player:
    """Calls an environment and writes what it answers."""

    def __init__(self, name, output):
        self.environment = gymnasium.make(name)
        self.actions = self.environment.action_space
        self.output = output
        self.row = numpy.zeros((), [
            ("flags", "u1"), ("seed", "<u8"), ("action", "<f4", self.actions.shape), ("reward", "<f8"),
            ("observation", "<f4", self.environment.observation_space.shape),
        ])  # fmt: skip
        self.steps = 0

    def describe(self):
        space, spec = self.environment.observation_space, self.environment.spec
        assert numpy.isneginf(space.low).all() and numpy.isposinf(space.high).all()
        facts = {
            "versions": f"gymnasium {gymnasium.__version__}, mujoco {mujoco.__version__}",
            "observation_len": space.shape[0],
            # Written in double precision, from which Rust reads the same single-precision numbers.
            "action_low": self.actions.low.astype(float).tolist(),
            "action_high": self.actions.high.astype(float).tolist(),
            "time_limit_steps": spec.max_episode_steps,
            "reward_threshold": spec.reward_threshold,
        }
        self.output.write(json.dumps(facts).encode() + b"\n")

    def reset(self, seed=None):
        observation, _ = self.environment.reset(seed=seed)
        self._write(RESET | (SEEDED if seed is not None else 0), seed or 0, 0, 0, observation)
        return observation

    def step(self, action):
        action = numpy.broadcast_to(numpy.asarray(action, dtype=numpy.float32), self.actions.shape)
        observation, reward, terminated, truncated, _ = self.environment.step(action)
        self._write(TERMINATED * terminated | TRUNCATED * truncated, 0, action, reward, observation)
        self.steps += 1
        return observation, terminated or truncated

    def episode(self, policy, seed=None, max_steps=1000):
        observation = self.reset(seed)
        for step in range(max_steps):
            observation, ended = self.step(policy(observation, step))
            if ended:
                return

    def _write(self, *values):
        self.row[()] = values
        self.output.write(self.row.tobytes())


def play(player, steps):
    random = numpy.random.default_rng(1)
    space = player.actions

    def held(scale):
        """Random actions up to `scale` times the bounds. Each is held for some steps, which reaches more states than new ones do."""
        action, left = None, 0

        def policy(*_):
            nonlocal action, left
            if left == 0:
                action = (scale * random.uniform(space.low, space.high)).astype(numpy.float32)
                left = random.integers(1, LONGEST_HOLD_STEPS + 1)
            left -= 1
            return action

        return policy

    def balance(observation, _):
        """Keeps the pole of InvertedPendulum-v5 up until the time limit."""
        return 10.0 * observation[1] + observation[3] + 0.3 * observation[0] + 0.5 * observation[2]

    for seed in LARGE_SEEDS:
        player.reset(seed)
    # Resets before the end of an episode, with and without a seed.
    for seed in (1, None, 2, None, None):
        player.episode(held(1.0), seed, max_steps=10)
    player.episode(lambda *_: 0.0, seed=3)
    if player.environment.spec.id == "InvertedPendulum-v5":
        player.episode(balance, seed=4)
    player.episode(lambda _, step: [-1e30, 1e30, 1e-30, -0.0][step % 4], seed=5, max_steps=200)
    seed = 12
    while player.steps < steps:
        player.episode(held([3.0, 1.0, 0.3][seed % 3]), seed if seed % 2 == 0 else None)
        seed += 1


def main():
    name, steps = sys.argv[1], int(sys.argv[2])
    warnings.simplefilter("ignore")  # Actions outside the space are intended.
    # MuJoCo warns about one of the models in a file that it writes to the current folder.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as output:
            player = Player(name, output)
            player.describe()
            play(player, steps)
        os.chdir("/")


if __name__ == "__main__":
    main()
