"""A fork while other threads use a replay or a policy: the child has those threads' locks, but not the threads."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered, wait_until_held_back

import shoal

CHILDREN = 40
# A child that hangs is killed by the kernel, and its exit status says so.
WATCHDOG_S = 60


def children_of(work):
    """Fork children that do `work`, one after the other; returns how each of them ended."""
    endings = []
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            signal.alarm(WATCHDOG_S)
            try:
                work()
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 (told to the parent by the exit status)
                os.write(2, f"in a child: {error!r}\n".encode())
                os._exit(1)
        endings.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return endings


class Busy:
    """Threads that do `works` again and again."""

    def __init__(self, *works):
        self.stop = threading.Event()
        self.failures = []
        self.threads = [threading.Thread(target=self.repeat, args=(work,), daemon=True) for work in works]

    def repeat(self, work):
        try:
            while not self.stop.is_set():
                work()
        except Exception as error:  # noqa: BLE001 (told to the main thread)
            self.failures.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures


@pytest.mark.parametrize("shared", [False, True])
def test_children_use_a_replay_that_other_threads_of_the_parent_are_using(shared):
    with shoal.Replay(4096, FIELDS, shared=shared) as replay:
        replay.add(numbered(0, 64))

        def learn():
            batch = replay.sample(64)
            replay.update_priorities(batch, np.random.rand(64), stale="ignore")

        def use():
            assert len(replay.add(numbered(0, 64), timeout=60)) == 64
            batch = replay.sample(64, timeout=60)
            assert_whole(batch)
            replay.update_priorities(batch, np.ones(64), stale="ignore")
            assert_whole(replay.get(batch.indices))
            if not shared:
                # The copy is the child's alone, whatever the parent's threads were doing.
                assert replay.total_priority == replay.priorities().sum()
                replay.clear()
                assert len(replay.add(numbered(0, 64))) == 64
            replay.close()

        with Busy(lambda: replay.add(numbered(0, 256)), learn):
            endings = children_of(use)
        assert endings == [0] * CHILDREN
        assert replay.total_priority == replay.priorities().sum()


def test_children_use_a_replay_in_which_a_thread_of_the_parent_waits_for_the_rate_limiter():
    limiter = shoal.RateLimiter(min_size=1, samples_per_insert=1.0, error_band=1.0)
    with shoal.Replay(100, FIELDS, shared=True, rate_limiter=limiter) as replay:
        replay.add(numbered(0, 1))
        replay.sample(1)

        def add_four():
            for number in range(1, 5):
                replay.add(numbered(number, 1))

        waiting = threading.Thread(target=add_four, daemon=True)
        waiting.start()
        # Three of the four are added and the fourth waits, so there is no room for one of a child.
        wait_until_held_back(replay, 4)

        def add_beside_it():
            with pytest.raises(shoal.RateLimitError):
                replay.add(numbered(9, 1), timeout=0.01)

        assert children_of(add_beside_it) == [0] * CHILDREN
        while waiting.is_alive():
            with contextlib.suppress(shoal.RateLimitError):
                replay.sample(1, timeout=0.1)
        assert_whole(replay.get(np.arange(5)))


def test_children_have_a_whole_copy_of_a_tree_that_a_thread_of_the_parent_is_changing():
    tree = shoal.SumTree(1 << 14)
    leaves = np.arange(1 << 14)

    def use():
        tree.update(leaves[:100], np.full(100, 2.0))
        assert tree.total == tree.priorities().sum()
        assert tree.find([0.0]) == [0]

    with Busy(lambda: tree.update(leaves, np.random.rand(1 << 14))):
        endings = children_of(use)
    assert endings == [0] * CHILDREN


def test_children_act_with_a_policy_with_which_threads_of_the_parent_are_acting(folder):
    limits = {"run": {"stop_env_steps": 2000}, "evaluator": {"enabled": False}}
    policy = shoal.train("pendulum_sac", quiet=True, **limits).load("last")
    rows = np.random.default_rng(1).standard_normal((2000, *policy.observation_shape)).astype(np.float32)
    expected = policy(rows)

    def act():
        np.testing.assert_array_equal(policy(rows), expected)
        assert (policy(rows, explore=True) != expected).any()

    with Busy(act, act):
        endings = children_of(act)
    assert endings == [0] * CHILDREN


@pytest.mark.parametrize("shared", [False, True])
def test_children_draw_differently_from_each_other(shared):
    with shoal.Replay(4096, FIELDS, shared=shared, seed=1) as replay:
        replay.add(numbered(0, 4096))
        receiver, sender = os.pipe()
        assert children_of(lambda: os.write(sender, replay.sample(64).indices.tobytes())) == [0] * CHILDREN
        drawn = {os.read(receiver, 64 * 8) for _ in range(CHILDREN)}
        assert len(drawn) == CHILDREN


def test_pending_steps_stay_with_the_parent_of_a_shared_replay_and_are_copied_with_a_private_one():
    fields = {"observation": "float32", "reward": "float32", "terminated": "bool", "next_observation": "float32"}
    n_step = shoal.NStep(2, 1.0, truncated=None)

    def step(number):
        return {"observation": number, "reward": 1.0, "terminated": False, "next_observation": number + 1}

    for shared, completed in [(False, 1), (True, 0)]:
        with shoal.Replay(100, fields, shared=shared, n_step=n_step) as replay:
            assert len(replay.add(step(0.0))) == 0
            child = os.fork()
            if child == 0:
                os._exit(len(replay.add(step(1.0))))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == completed
            assert len(replay.add(step(1.0))) == 1
