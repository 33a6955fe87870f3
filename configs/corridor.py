"""A custom environment: find the way in a corridor. `configs/corridor_dqn.toml` trains in it; docs/environments.md explains both."""

import gymnasium
import numpy


class Corridor(gymnasium.Env):
    """Start in the middle and walk to the end with the door: action 1 goes right, action 0 left. Each step costs a little."""

    def __init__(self, length=10, longest_episode_steps=100):
        # The agent's position, from -1 at the left end to 1 at the right end, and the position of the door (-1 or 1).
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.end, self.longest_episode_steps = length // 2, longest_episode_steps

    def reset(self, *, seed=None, options=None):
        # Seeds self.np_random.
        super().reset(seed=seed)
        self.door = self.end if self.np_random.random() < 0.5 else -self.end
        self.position = 0
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        step = 1 if action == 1 else -1
        self.position = min(max(self.position + step, -self.end), self.end)
        self.steps += 1
        terminated = self.position == self.door
        # Truncated, not terminated: the learner still values what would follow the last state.
        truncated = self.steps >= self.longest_episode_steps
        return self.observe(), 1.0 if terminated else -0.01, terminated, truncated, {}

    def observe(self):
        return numpy.array([self.position / self.end, self.door / self.end], numpy.float32)
