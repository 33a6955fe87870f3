"""The memory of batches is used again once nothing refers to it, and never before."""

import gc
import warnings

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal

HOLDERS = {
    "the batch": lambda batch: batch,
    "an array": lambda batch: batch["observation"],
    "truth values": lambda batch: batch["terminated"],
    "the indices": lambda batch: batch.indices,
    "the generations": lambda batch: batch.generations,
    "the weights": lambda batch: batch.weights,
    "a part of an array": lambda batch: batch["reward"][3:],
    "a part of the truth values": lambda batch: batch["terminated"][3:],
    "an array in another shape": lambda batch: batch["observation"].reshape(-1),
    "a buffer": lambda batch: memoryview(batch["action"]),
    "the list of arrays": lambda batch: batch.values(),
    "the list of names and arrays": lambda batch: batch.items(),
    "another library's array": lambda batch: np.from_dlpack(batch["reward"]),
}


def contents(held):
    if isinstance(held, shoal.Batch):
        return [array.copy() for array in held.values()] + [held.indices.copy(), held.weights.copy()]
    if isinstance(held, list):
        return [np.array(one[-1] if isinstance(one, tuple) else one) for one in held]
    return [np.array(held)]


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_part_of_a_batch_that_is_held_does_not_change(holder):
    replay = shoal.Replay(1024, FIELDS, seed=2)
    slots = replay.add(numbered(0, 1024))
    replay.update_priorities(slots, np.linspace(0.1, 2, 1024, dtype=np.float32))
    held = HOLDERS[holder](replay.sample(64))
    before = contents(held)
    for _ in range(10):
        replay.update_priorities(replay.sample(64), np.linspace(0.1, 9, 64, dtype=np.float32))
    for old, new in zip(before, contents(held), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_batch_that_nobody_holds_is_filled_again(replay):
    replay.add(numbered(0, 64))
    places = set()
    for _ in range(20):
        batch = replay.sample(16)
        places.add(batch["observation"].ctypes.data)
    assert len(places) == 2


def test_batches_of_changing_sizes_are_whole(replay):
    replay.add(numbered(0, 64))
    for size in [1, 16, 7, 64, 16, 16, 1]:
        batch = replay.sample(size)
        assert len(batch["reward"]) == len(batch.indices) == size
        assert_whole(batch)


def spoil(array, what):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if what == "shape":
            array.shape = (array.size, 1)
        elif what == "type":
            array.dtype = f"V{array.itemsize}"
        elif what == "size of values":
            array.dtype = "int8"
        elif what == "strides":
            array.strides = (0,) * array.ndim
        else:
            array.flags.writeable = False


SPOILT = pytest.mark.parametrize("what", ["shape", "type", "size of values", "strides", "leave to write"])
ARRAYS = pytest.mark.parametrize("name", ["an array", "truth values", "the indices", "the generations", "the weights"])


@SPOILT
@ARRAYS
def test_an_array_that_was_spoilt_is_not_filled_again(replay, name, what):
    replay.add(numbered(0, 64))
    expected = HOLDERS[name](replay.sample(16))
    for _ in range(4):
        spoil(HOLDERS[name](replay.sample(16)), what)
        batch = replay.sample(16)
        again = HOLDERS[name](batch)
        assert (again.shape, again.dtype, again.strides) == (expected.shape, expected.dtype, expected.strides)
        assert again.flags.writeable
        assert_whole(batch)


@SPOILT
@ARRAYS
def test_a_batch_with_an_array_that_was_spoilt_is_refused_as_out(replay, name, what):
    replay.add(numbered(0, 64))
    batch = replay.sample(16)
    spoil(HOLDERS[name](batch), what)
    with pytest.raises((ValueError, TypeError)):
        replay.sample(16, out=batch)


def test_priorities_are_refused_if_the_indices_of_the_batch_have_another_dtype(replay):
    replay.add(numbered(0, 64))
    batch = replay.sample(16)
    spoil(batch.indices, "size of values")
    with pytest.raises(ValueError, match="128 indices and 16 priorities"):
        replay.update_priorities(batch, np.ones(16))


def test_a_batch_that_is_drawn_while_another_is_made_has_its_own_memory():
    """Making a batch may run the garbage collector, and with it Python code that draws a batch."""
    replay = shoal.Replay(64, FIELDS, seed=3)
    replay.add(numbered(0, 64))
    drawn = []

    class Draws:
        def __init__(self):
            self.itself = self

        def __del__(self):
            drawn.append(replay.sample(8))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        kept = []
        for _ in range(50):
            Draws()
            kept.append(replay.sample(8))
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert drawn
    places = {batch["observation"].ctypes.data for batch in kept + drawn}
    assert len(places) == len(kept) + len(drawn)
