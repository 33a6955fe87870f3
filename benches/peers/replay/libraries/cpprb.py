"""cpprb: prioritized replay in C++ and Cython, alone and for several processes."""

import multiprocessing

import cpprb
import numpy

from . import ALPHA, BETA, Buffer, Tree


def environment(schema):
    return {name: {"shape": shape, "dtype": dtype} if shape else {"dtype": dtype} for name, (shape, dtype) in schema.items()}


class OneFloat(Tree):
    """A replay whose rows are one float, for want of a public tree. An update also raises to alpha and keeps a tree of minima."""

    label = "cpprb (a replay of one float)"

    def __init__(self, capacity):
        self.buffer = cpprb.PrioritizedReplayBuffer(capacity, {"value": {}}, alpha=1.0)
        for start in range(0, capacity, 1 << 18):
            count = min(capacity - start, 1 << 18)
            self.buffer.add(value=numpy.zeros(count, numpy.float32), priorities=numpy.full(count, 0.5, numpy.float32))

    def native(self, indices, priorities):
        return indices.astype(numpy.uint64), priorities

    def native_targets(self, fractions):
        return len(fractions)

    def update(self, indices_and_priorities):
        self.buffer.update_priorities(*indices_and_priorities)

    def find(self, targets):
        self.buffer.sample(targets, beta=BETA)


class Cpprb(Buffer):
    label = "cpprb"

    def __init__(self, schema, capacity, batch_size):
        self.schema, self.capacity, self.batch_size = schema, capacity, batch_size
        self.buffer = self.make()

    def make(self):
        return cpprb.PrioritizedReplayBuffer(self.capacity, environment(self.schema), alpha=ALPHA)

    def add(self, rows):
        self.buffer.add(**rows)

    def sample(self):
        batch = self.buffer.sample(self.batch_size, beta=BETA)
        return batch, batch["indexes"], batch["weights"]

    def update(self, drawn, priorities):
        self.buffer.update_priorities(drawn, priorities)

    def array(self, fields, name):
        # Scalars of cpprb have the shape (batch, 1).
        shape, _ = self.schema[name]
        return numpy.asarray(fields[name]).reshape(-1, *shape)

    def save(self, path):
        self.buffer.save_transitions(path)

    def load(self, path):
        loaded = type(self)(self.schema, self.capacity, self.batch_size)
        loaded.buffer.load_transitions(path)
        return loaded


class CpprbShared(Cpprb):
    """Any number of writers and one learner, which is what the documentation allows."""

    label = "cpprb, `MPPrioritizedReplayBuffer`"
    most_samplers = 1

    def make(self):
        return cpprb.MPPrioritizedReplayBuffer(
            self.capacity, environment(self.schema), alpha=ALPHA, ctx=multiprocessing.get_context("fork"), backend="sharedctypes",
        )


def constructor(name, **always):
    return lambda **options: getattr(cpprb, name)(8, {"observation": {}, "reward": {}, "done": {}}, **always, **options)


def ignores_n_step(*, no_such_option):
    """Returns if the class takes `Nstep` and ignores it. Raises if it heeds it: then rewards of three steps are added."""
    n_step = {"size": 3, "gamma": 0.9, "rew": "reward", "next": "observation"}
    buffer = constructor("MPPrioritizedReplayBuffer", ctx=multiprocessing.get_context("fork"))(Nstep=n_step)
    for step in range(8):
        buffer.add(observation=step, reward=1.0, done=0.0)
    rewards = buffer.sample(8)["reward"]
    if rewards.max() > 1.0:
        raise TypeError("heeded")


CONSTRUCTORS = {
    "PrioritizedReplayBuffer": constructor("PrioritizedReplayBuffer"),
    "MPPrioritizedReplayBuffer": constructor("MPPrioritizedReplayBuffer", ctx=multiprocessing.get_context("fork")),
    "MPPrioritizedReplayBuffer(Nstep=...), and forgets it:": ignores_n_step,
}
TREES = {"cpprb": OneFloat}
BUFFERS = {"cpprb": Cpprb}
SHARED = {"cpprb_mp": CpprbShared}
