"""The memory of batches: used again once nobody holds it, and never before."""

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
def test_what_somebody_holds_of_a_batch_stays_as_it_is(holder):
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


@pytest.mark.parametrize("spoil", ["shape", "readonly"])
def test_an_array_that_was_spoilt_is_not_filled_again(replay, spoil):
    replay.add(numbered(0, 64))
    for _ in range(4):
        array = replay.sample(16)["observation"]
        if spoil == "shape":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array.shape = (48,)
        else:
            array.flags.writeable = False
        del array
        batch = replay.sample(16)
        assert batch["observation"].shape == (16, 3)
        assert_whole(batch)


@pytest.mark.parametrize("spoil", [("terminated", "shape", (16, 1)), ("terminated", "dtype", "uint8"), ("reward", "dtype", "int32")])
def test_an_array_that_was_made_to_look_otherwise_is_not_filled_again(replay, spoil):
    name, attribute, value = spoil
    replay.add(numbered(0, 64))
    expected = replay.sample(16)[name]
    for _ in range(4):
        array = replay.sample(16)[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            setattr(array, attribute, value)
        del array
        again = replay.sample(16)[name]
        assert (again.shape, again.dtype) == (expected.shape, expected.dtype)


def test_a_batch_made_inside_another_is_its_own():
    """Making a batch may run the garbage collector, and with it Python that draws a batch itself."""
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
