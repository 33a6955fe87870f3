"""A custom environment: walk to the end of a corridor. `configs/corridor_dqn.toml` trains in it; docs/environments.md explains both."""

import gymnasium
import numpy


class Corridor(gymnasium.Env):
    """Action 1 goes right, action 0 left; each step costs a little and the end is worth one."""

    def __init__(self, length=10, longest_episode_steps=100):
        # Where on the way: 0 is the start, 1 the end.
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.longest_episode_steps = length, longest_episode_steps

    def reset(self, *, seed=None, options=None):
        # Gives self.np_random, which the seed decides.
        super().reset(seed=seed)
        self.position = int(self.np_random.integers(0, self.length // 2))
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.position = max(self.position + (1 if action == 1 else -1), 0)
        self.steps += 1
        terminated = self.position >= self.length
        # Cut off from outside, so that the learner still gives the last state a value.
        truncated = self.steps >= self.longest_episode_steps
        return self.observe(), 1.0 if terminated else -0.01, terminated, truncated, {}

    def observe(self):
        return numpy.array([self.position / self.length], numpy.float32)
