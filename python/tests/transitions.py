"""Transitions that carry their number in every field, so that a torn one is recognised."""

import time

import numpy as np
from command_line import wait_for

FIELDS = {
    "observation": ((3,), "float32"),
    "action": "int64",
    "reward": "float32",
    "terminated": "bool",
    "next_observation": ((3,), "float32"),
}


def numbered(first, count):
    """Transitions that carry their number in every field."""
    number = np.arange(first, first + count)
    return {
        "observation": np.repeat(number[:, None], 3, axis=1).astype(np.float32),
        "action": number,
        "reward": number.astype(np.float32),
        "terminated": number % 2 == 1,
        "next_observation": np.repeat(number[:, None] + 0.5, 3, axis=1).astype(np.float32),
    }


def assert_whole(batch):
    """Assert that every row carries one number in all its fields."""
    number = batch["action"]
    np.testing.assert_array_equal(batch["observation"], np.repeat(number[:, None], 3, axis=1))
    np.testing.assert_array_equal(batch["reward"], number)
    np.testing.assert_array_equal(batch["terminated"], number % 2 == 1)
    np.testing.assert_array_equal(batch["next_observation"], np.repeat(number[:, None] + 0.5, 3, axis=1))


def wait_until_held_back(replay, inserted=1):
    """Wait until `inserted` rows were added, and then no more: whoever adds them is held back."""
    wait_for("the first rows", lambda: replay.inserted >= inserted)
    before = None
    while replay.inserted != before:
        before = replay.inserted
        # Long enough for another row to be added on a busy machine.
        time.sleep(0.5)
