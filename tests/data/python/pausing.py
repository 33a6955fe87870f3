"""An environment that pauses after every `steps` steps, as for a slow reset or for saving a recording, and when it is closed."""

import time

import gymnasium
import numpy


class Pausing(gymnasium.Env):
    def __init__(self, pause_s, steps, close_s=0):
        self.pause_s = pause_s
        self.close_s = close_s
        self.steps = steps
        self.taken = 0
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        self.taken += 1
        if self.taken % self.steps == 0:
            time.sleep(self.pause_s)
        return self.observation_space.sample(), 0.0, False, self.taken % self.steps == 0, {}

    def close(self):
        time.sleep(self.close_s)
