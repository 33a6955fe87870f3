"""Arrays that another thread changes while a call uses them: what is checked is what is used."""

import contextlib
import itertools
import sys
import threading
import time

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal

ROUNDS = 4_000
LONGEST_S = 20
CAPACITY = 4096


class Flipped:
    """A thread that sets an array to each of `values` in turn, again and again."""

    def __init__(self, array, *values):
        self.array, self.values = array, values
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.flip, daemon=True)

    def flip(self):
        while not self.stop.is_set():
            for value in self.values:
                self.array[:] = value

    def __enter__(self):
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        sys.setswitchinterval(self.interval)


def rounds(numbers=range(ROUNDS)):
    """As many of `numbers` as there is time for: on a busy machine each switch to the other thread waits for a core."""
    end = time.monotonic() + LONGEST_S
    return itertools.takewhile(lambda _: time.monotonic() < end, numbers)


@pytest.fixture
def filled():
    replay = shoal.Replay(CAPACITY, FIELDS, seed=1)
    for first in range(0, CAPACITY, 256):
        replay.add(numbered(first, 256))
    return replay


def attempt(call):
    """A call is refused or done; anything else, such as a panic, is a fault."""
    try:
        call()
    except (IndexError, ValueError):
        pass


def test_indices_that_change_between_check_and_use_reach_no_leaf_beyond_the_tree(filled):
    indices = np.arange(2048)
    errors = np.linspace(1, 9, 2048, dtype=np.float32)
    with Flipped(indices, np.arange(2048), 2**40):
        for _ in rounds():
            attempt(lambda: filled.update_priorities(indices, errors))
            attempt(lambda: filled.get(indices))
    assert filled.total_priority == filled.priorities().sum()


def test_priorities_that_change_meanwhile_are_all_set_or_all_refused(filled):
    indices = np.arange(CAPACITY)
    errors = np.full(CAPACITY, 5.0, dtype=np.float32)
    for _ in rounds():
        filled.update_priorities(indices, np.ones(CAPACITY))
        with contextlib.suppress(ValueError), Flipped(errors, 5.0, np.nan):
            filled.update_priorities(indices, errors)
            np.testing.assert_allclose(filled.priorities(), 5.0**0.6, rtol=1e-5)
            continue
        np.testing.assert_allclose(filled.priorities(), 1.0, rtol=1e-5)


def test_a_batch_whose_indices_change_meanwhile_keeps_the_tree_exact(filled):
    batch = filled.sample(2048)
    errors = np.linspace(1, 9, 2048, dtype=np.float32)
    indices = batch.indices.copy()
    with Flipped(batch.indices, indices, 2**40):
        for _ in rounds():
            attempt(lambda: filled.update_priorities(batch, errors, stale="ignore"))
    assert filled.total_priority == filled.priorities().sum()


def test_a_tree_whose_indices_change_meanwhile_stays_exact():
    tree = shoal.SumTree(CAPACITY)
    indices = np.arange(2048)
    priorities = np.linspace(1, 9, 2048, dtype=np.float32)
    with Flipped(indices, np.arange(2048), 2**40):
        for _ in rounds():
            attempt(lambda: tree.update(indices, priorities))
    assert tree.total == tree.priorities().sum()


def test_frames_that_change_while_they_are_added_do_not_change_equal_frames_that_are_added_later():
    side = 256
    replay = shoal.Replay(4096, {"image": shoal.Frames((side, side), stack=1)}, frame_capacity=4096)

    def frame(number):
        image = np.full((1, side, side), number % 251, np.uint8)
        image[0, 0, :8] = np.frombuffer(number.to_bytes(8, "little"), np.uint8)
        return image

    changing = frame(0)
    for number in rounds(range(1, ROUNDS, 2)):
        pair = (frame(number), frame(number + 1))
        changing[:] = pair[0]
        with Flipped(changing, *pair):
            replay.add({"image": changing})
        slots = np.concatenate([replay.add({"image": image}) for image in pair])
        np.testing.assert_array_equal(replay.get(slots)["image"], np.stack(pair))


@pytest.mark.parametrize(
    ("read", "refusal"),
    [
        (lambda replay, batch: replay.get(batch.indices), "cannot be read"),
        (lambda replay, batch: replay.update_priorities(batch, np.ones(4)), "already borrowed"),
    ],
)
def test_a_batch_that_is_being_filled_is_not_read(read, refusal):
    limiter = shoal.RateLimiter(min_size=10, samples_per_insert=1.0, error_band=10.0)
    replay = shoal.Replay(100, FIELDS, rate_limiter=limiter)
    replay.add(numbered(0, 10))
    batch = replay.sample(4)
    drawn = threading.Event()

    def draw():
        with contextlib.suppress(shoal.StoppedError):
            while not drawn.is_set():
                replay.sample(4, out=batch)

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    # Sooner or later the rate limiter holds `draw` back while it fills the batch.
    for _ in range(100_000):
        try:
            read(replay, batch)
        except TypeError as error:
            assert refusal in str(error)
            break
    else:
        pytest.fail("the batch was read all the time")
    drawn.set()
    replay.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert_whole(replay.get(batch.indices))
