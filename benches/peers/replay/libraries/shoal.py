"""Shoal's own replay, through the same calls as any user's."""

import numpy
import shoal

from . import ALPHA, BETA, Buffer, Tree


class SumTree(Tree):
    label = "Shoal"

    def __init__(self, capacity):
        self.tree = shoal.SumTree(capacity)
        self.tree.update(numpy.arange(capacity), numpy.full(capacity, 0.5, numpy.float32))

    def native_targets(self, fractions):
        return fractions * self.tree.total

    def update(self, indices_and_priorities):
        self.tree.update(*indices_and_priorities)

    def find(self, targets):
        self.tree.find(targets)

    def total(self):
        return self.tree.total

    def leaves(self):
        return self.tree.priorities()


class Shoal(Buffer):
    label = "Shoal"
    prioritized = True
    shared = False

    def __init__(self, schema, capacity, batch_size):
        self.batch_size = batch_size
        self.replay = shoal.Replay(
            capacity, schema, prioritized=self.prioritized, alpha=ALPHA, beta=BETA, shared=self.shared, seed=None if self.shared else 1,
        )

    def add(self, rows):
        self.replay.add(rows)

    def sample(self):
        batch = self.replay.sample(self.batch_size)
        return batch, batch, batch.weights

    def update(self, drawn, priorities):
        # A batch names its rows exactly, so rows overwritten since are noticed and counted. An array of slots is taken as it is.
        if isinstance(drawn, shoal.Batch):
            self.replay.update_priorities(drawn, priorities, stale="ignore")
        else:
            self.replay.update_priorities(drawn, priorities)

    def drawn_row(self, row):
        return self.replay.sample(self.batch_size)

    def size_of(self, drawn):
        return len(drawn.indices)

    def priorities(self):
        return self.replay.priorities()

    def total(self):
        return self.replay.total_priority

    def save(self, path):
        self.replay.save(path)

    def load(self, path):
        loaded = object.__new__(type(self))
        loaded.batch_size, loaded.replay = self.batch_size, shoal.Replay.load(path)
        return loaded

    def close(self):
        self.replay.close()


class ShoalReused(Shoal):
    """Each batch fills the arrays of the batch before."""

    label = "Shoal, `out=`"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.batch = None

    def sample(self):
        self.batch = self.replay.sample(self.batch_size, out=self.batch)
        return self.batch, self.batch, self.batch.weights


class ShoalFrames(Shoal):
    """Each image is stored once."""

    label = "Shoal, `Frames`"

    def __init__(self, schema, capacity, batch_size):
        stacks = {name: shoal.Frames(shape[1:], dtype, shape[0]) for name, (shape, dtype) in schema.items() if len(shape) == 3}
        if not stacks:
            raise TypeError("no images among the fields")
        super().__init__({**schema, **stacks}, capacity, batch_size)


class ShoalUniform(Shoal):
    label = "Shoal, uniform"
    prioritized = False

    def update(self, drawn, priorities):
        pass


class ShoalShared(Shoal):
    label = "Shoal, `shared=True`"
    shared = True


def constructor(**always):
    return lambda **options: shoal.Replay(8, {"value": "float32"}, **always, **options)


CONSTRUCTORS = {"Replay": constructor(), "Replay(shared=True)": constructor(shared=True)}
TREES = {"shoal": SumTree}
BUFFERS = {"shoal": Shoal, "shoal_out": ShoalReused, "shoal_frames": ShoalFrames, "shoal_uniform": ShoalUniform}
SHARED = {"shoal_shared": ShoalShared}
