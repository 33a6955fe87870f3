"""The baseline: a ring buffer of NumPy arrays, uniform, with and without a lock around it."""

import multiprocessing

import numpy

from . import Buffer


class NumpyLoop(Buffer):
    label = "NumPy (uniform)"
    prioritized = False

    def __init__(self, schema, capacity, batch_size):
        self.schema, self.capacity, self.batch_size = schema, capacity, batch_size
        self.columns = {name: self.array_of(capacity, *field) for name, field in schema.items()}
        self.inserted, self.random = self.counter(), numpy.random.default_rng()

    def array_of(self, capacity, shape, dtype):
        return numpy.zeros((capacity, *shape), dtype)

    def counter(self):
        return numpy.zeros(1, numpy.int64)

    def add(self, rows):
        count, at = len(rows["reward"]), int(self.inserted[0])
        start = at % self.capacity
        where = slice(start, start + count) if start + count <= self.capacity else numpy.arange(at, at + count) % self.capacity
        for name, column in self.columns.items():
            column[where] = rows[name]
        self.inserted[0] = at + count

    def sample(self):
        if not self.inserted[0]:
            raise ValueError("empty")
        indices = self.random.integers(0, min(self.capacity, self.inserted[0]), self.batch_size)
        return {name: column[indices] for name, column in self.columns.items()}, indices, None

    def update(self, drawn, priorities):
        pass


class NumpyLock(NumpyLoop):
    """Shared memory and one lock around every operation: what people write themselves."""

    label = "NumPy, one lock (uniform)"

    def __init__(self, *arguments):
        self.context = multiprocessing.get_context("fork")
        self.lock = self.context.Lock()
        super().__init__(*arguments)

    def array_of(self, capacity, shape, dtype):
        size = capacity * int(numpy.prod(shape)) * dtype.itemsize
        return numpy.frombuffer(self.context.RawArray("b", size), dtype).reshape(capacity, *shape)

    def counter(self):
        return numpy.frombuffer(self.context.RawArray("q", 1), numpy.int64)

    def add(self, rows):
        with self.lock:
            super().add(rows)

    def sample(self):
        with self.lock:
            return super().sample()


BUFFERS = {"numpy_uniform": NumpyLoop}
SHARED = {"numpy_lock": NumpyLock}
