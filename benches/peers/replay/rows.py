"""The transitions that every replay gets: rows shaped as HalfCheetah's or Atari's, and stamped rows that show tearing."""

import numpy

HALF_CHEETAH = {
    "observation": ((17,), numpy.dtype("float32")),
    "action": ((6,), numpy.dtype("float32")),
    "reward": ((), numpy.dtype("float32")),
    "terminated": ((), numpy.dtype("bool")),
    "next_observation": ((17,), numpy.dtype("float32")),
}
ATARI = {
    "observation": ((4, 84, 84), numpy.dtype("uint8")),
    "action": ((), numpy.dtype("int64")),
    "reward": ((), numpy.dtype("float32")),
    "terminated": ((), numpy.dtype("bool")),
    "next_observation": ((4, 84, 84), numpy.dtype("uint8")),
}
SCHEMAS = {"half_cheetah": HALF_CHEETAH, "atari": ATARI}


def random_rows(schema, count, seed=0):
    """`count` rows with random contents: one array per field."""
    random = numpy.random.default_rng(seed)
    rows = {}
    if schema is ATARI:
        # One long episode: the next observation of a row is the observation of the row after it.
        frames = random.integers(0, 256, (count + 4, 84, 84), numpy.uint8)
        stacks = numpy.lib.stride_tricks.sliding_window_view(frames, 4, axis=0).transpose(0, 3, 1, 2)
        rows = {"observation": stacks[:count], "next_observation": stacks[1 : count + 1]}
    for name, (shape, dtype) in schema.items():
        if name in rows:
            continue
        if dtype.kind == "f":
            rows[name] = random.standard_normal((count, *shape)).astype(dtype)
        elif dtype.kind == "b":
            rows[name] = random.random((count, *shape)) < 0.002
        else:
            rows[name] = random.integers(0, 256 if dtype.itemsize == 1 else 6, (count, *shape)).astype(dtype)
    return rows


def batches(rows, size, count):
    """`count` batches of `size` consecutive rows, each in memory of its own, as an environment would hand them over."""
    available = len(rows["reward"])
    starts = [(batch * size) % max(1, available - size + 1) for batch in range(count)]
    return [{name: values[start : start + size].copy() for name, values in rows.items()} for start in starts]


def stamped_rows(schema, count, stamp):
    """Rows in which every number is `stamp`. A row with two different stamps was put together from two rows."""
    return {name: numpy.full((count, *shape), stamp).astype(dtype) for name, (shape, dtype) in schema.items()}


def random_priorities(count, size, seed=0):
    random = numpy.random.default_rng(seed)
    return [(0.01 + random.random(size)).astype(numpy.float32) for _ in range(count)]
