"""Stable-Baselines3: a uniform ring in NumPy. It has no priorities and no weights."""

import pickle

import gymnasium
import numpy
import torch
from stable_baselines3.common.buffers import ReplayBuffer

from . import Buffer

torch.set_num_threads(1)
ENVIRONMENTS = 64


class StableBaselines3(Buffer):
    """One library buffer for each number of rows per `add`, because a buffer's number of environments is fixed.

    Batches come from the buffer that was filled.
    """

    label = "Stable-Baselines3 (uniform)"
    prioritized = False
    fill_rows = ENVIRONMENTS

    def __init__(self, schema, capacity, batch_size):
        self.schema, self.capacity, self.batch_size = schema, capacity, batch_size
        self.by_rows, self.fill_rows = {}, min(ENVIRONMENTS, capacity)
        self.buffer = self.of(self.fill_rows)

    def of(self, rows):
        if rows not in self.by_rows:
            shape, dtype = self.schema["observation"]
            are_images = dtype.kind == "u"
            low, high = (0, 255) if are_images else (-10, 10)
            observations = gymnasium.spaces.Box(low, high, shape, dtype.type)
            shape, _ = self.schema["action"]
            actions = gymnasium.spaces.Box(-1, 1, shape, numpy.float32) if shape else gymnasium.spaces.Discrete(6)
            # Buffers that are only written to need not be as large as the one that batches come from.
            capacity = self.capacity if not self.by_rows else min(self.capacity, 1 << 10 if are_images else 1 << 16)
            buffer = ReplayBuffer(capacity, observations, actions, device="cpu", n_envs=rows, handle_timeout_termination=True)
            self.by_rows[rows] = buffer, [{}] * rows
        return self.by_rows[rows][0]

    def add(self, rows):
        count = len(rows["reward"])
        buffer, infos = self.of(count), self.by_rows[count][1]
        buffer.add(rows["observation"], rows["next_observation"], rows["action"], rows["reward"], rows["terminated"], infos)

    def sample(self):
        return self.buffer.sample(self.batch_size), None, None

    def update(self, drawn, priorities):
        pass

    def array(self, fields, name):
        names = {
            "observation": "observations", "action": "actions", "reward": "rewards", "terminated": "dones",
            "next_observation": "next_observations",
        }
        return getattr(fields, names[name]).numpy()

    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(self.buffer, file)


BUFFERS = {"sb3_uniform": StableBaselines3}
