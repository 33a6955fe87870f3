"""Tianshou: a binary tree compiled by numba, over buffers in NumPy."""

import pickle

import numpy
from tianshou.data import Batch, PrioritizedVectorReplayBuffer, SegmentTree

from . import ALPHA, BETA, Buffer, Tree

ENVIRONMENTS = 64


class NumbaTree(Tree):
    """float64. `get_prefix_sum_idx` overwrites its argument, so copying the argument is timed as well."""

    label = "Tianshou"

    def __init__(self, capacity):
        self.tree = SegmentTree(capacity)
        self.tree[numpy.arange(capacity)] = numpy.full(capacity, 0.5)

    def native(self, indices, priorities):
        return indices, priorities.astype(numpy.float64)

    def native_targets(self, fractions):
        return fractions * self.tree.reduce() * 0.999999

    def update(self, indices_and_priorities):
        indices, priorities = indices_and_priorities
        self.tree[indices] = priorities

    def find(self, targets):
        self.tree.get_prefix_sum_idx(targets.copy())

    def total(self):
        return self.tree.reduce()

    def leaves(self):
        return self.tree[numpy.arange(len(self.tree))]


class Tianshou(Buffer):
    """`PrioritizedVectorReplayBuffer`: one sub-buffer per environment, because a buffer takes one transition per call."""

    label = "Tianshou"
    takes_numpy = False

    def __init__(self, schema, capacity, batch_size):
        # At least 64 rows per environment: the small replays of faults.py have a single environment.
        self.environments = min(ENVIRONMENTS, max(1, capacity // 64))
        self.fill_rows, self.schema, self.batch_size = self.environments, schema, batch_size
        self.buffer = PrioritizedVectorReplayBuffer(capacity, self.environments, alpha=ALPHA, beta=BETA)

    def native(self, rows):
        count = len(rows["reward"])
        return Batch(
            obs=rows["observation"], act=rows["action"], rew=rows["reward"].astype(numpy.float64), terminated=rows["terminated"],
            truncated=numpy.zeros(count, bool), obs_next=rows["next_observation"], info=Batch(),
        )

    def add(self, rows):
        if isinstance(rows, dict):
            rows = self.native(rows)
        count, environments = len(rows), self.environments
        if count <= environments:
            self.buffer.add(rows, buffer_ids=numpy.arange(count))
        else:
            for start in range(0, count, environments):
                part = rows[start : start + environments]
                self.buffer.add(part, buffer_ids=numpy.arange(len(part)))

    def sample(self):
        batch, indices = self.buffer.sample(self.batch_size)
        return batch, indices, batch.weight

    def update(self, drawn, priorities):
        self.buffer.update_weight(drawn, priorities)

    def priorities(self):
        return self.buffer.weight[numpy.arange(self.buffer.maxsize)]

    def total(self):
        return self.buffer.weight.reduce()

    def array(self, fields, name):
        names = {"observation": "obs", "action": "act", "reward": "rew", "terminated": "terminated", "next_observation": "obs_next"}
        return numpy.asarray(getattr(fields, names[name]))

    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(self.buffer, file)

    def load(self, path):
        loaded = object.__new__(type(self))
        loaded.__dict__.update(self.__dict__)
        with open(path, "rb") as file:
            loaded.buffer = pickle.load(file)
        return loaded


def construct(**options):
    return PrioritizedVectorReplayBuffer(64, 8, alpha=ALPHA, beta=BETA, **options)


CONSTRUCTORS = {"PrioritizedVectorReplayBuffer": construct}
TREES = {"tianshou": NumbaTree}
BUFFERS = {"tianshou": Tianshou}
