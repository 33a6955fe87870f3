"""One replay in many processes, some of which are killed."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from command_line import wait_for
from transitions import FIELDS, assert_whole, numbered

import shoal


def objects():
    return {name for name in os.listdir("/dev/shm") if name.startswith(f"shoal-replay-{os.getuid()}-{os.getpid()}-")}


def add_many(replay, first, count):
    for start in range(first, first + count, 10):
        replay.add(numbered(start, 10))


def add_until_killed(replay, ready):
    # Numbers that a float32 holds exactly.
    first = os.getpid() % 100 * 10_000
    ready.set()
    while True:
        for number in range(first, first + 10_000, 64):
            replay.add(numbered(number, 64))


def add_until_stopped(replay, learner_has_left):
    with replay:
        with contextlib.suppress(shoal.StoppedError):
            while True:
                replay.add(numbered(0, 64))
        assert learner_has_left.wait(60)


def learn_until_killed(replay, ready):
    ready.set()
    while True:
        batch = replay.sample(64)
        assert_whole(batch)
        replay.update_priorities(batch, np.random.rand(64), stale="ignore")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_add_to_a_shared_replay(method):
    context = multiprocessing.get_context(method)
    with shoal.Replay(1000, FIELDS, shared=True) as replay:
        children = [
            context.Process(daemon=True, target=add_many, args=(replay, 1000 * number, 100)) for number in range(3)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join()
            assert child.exitcode == 0
        assert len(replay) == 300
        numbers = replay.get(np.arange(300))
        assert_whole(numbers)
        assert sorted(numbers["action"]) == [1000 * child + number for child in range(3) for number in range(100)]
    assert not objects()


def test_a_replay_opened_by_name_is_the_same_one():
    with shoal.Replay(100, FIELDS, shared=True, alpha=0.3) as replay, shoal.Replay.open(replay.name) as other:
        other.add(numbered(0, 10))
        assert (len(replay), other.alpha, other.fields) == (10, pytest.approx(0.3), replay.fields)
        replay.update_priorities([3], [7.0])
        np.testing.assert_array_equal(other.priorities(), replay.priorities())
        assert pickle.loads(pickle.dumps(replay)).inserted == 10
    assert not objects()


def test_a_replay_opened_as_its_file_is_called_is_the_same_one():
    with shoal.Replay(100, FIELDS, shared=True) as replay, shoal.Replay.open(replay.name.lstrip("/")) as other:
        assert other.name == replay.name
        other.add(numbered(0, 10))
        assert pickle.loads(pickle.dumps(other)).inserted == 10
    assert not objects()


def test_the_last_process_to_leave_removes_the_replay():
    replay = shoal.Replay(100, FIELDS, shared=True)
    name = replay.name
    other = shoal.Replay.open(name)
    replay.close()
    other.add(numbered(0, 5))
    assert len(shoal.Replay.open(name)) == 5
    other.close()
    import gc

    gc.collect()
    with pytest.raises(FileNotFoundError):
        shoal.Replay.open(name)


def test_feeders_end_when_the_learner_stops_the_replay_and_leave_nothing_if_they_close_it():
    context = multiprocessing.get_context("fork")
    replay, has_left = shoal.Replay(4096, FIELDS, shared=True), context.Event()
    feeders = [context.Process(daemon=True, target=add_until_stopped, args=(replay, has_left)) for _ in range(2)]
    for feeder in feeders:
        feeder.start()
    # No rate limiter makes them wait.
    wait_for("rows of theirs", lambda: replay.inserted > 4096)
    replay.stop()
    replay.close()
    has_left.set()
    for feeder in feeders:
        feeder.join(120)
        assert feeder.exitcode == 0
    assert not objects()


def test_transitions_of_killed_processes_stay_and_the_others_go_on():
    context = multiprocessing.get_context("fork")
    with shoal.Replay(4096, FIELDS, shared=True, participants=8) as replay:
        replay.add(numbered(0, 64))
        for round_ in range(12):
            children = []
            for target in (add_until_killed, add_until_killed, learn_until_killed):
                ready = context.Event()
                children.append(context.Process(daemon=True, target=target, args=(replay, ready)))
                children[-1].start()
                assert ready.wait(60)
            time.sleep(0.01 + 0.01 * (round_ % 5))
            for child in children:
                os.kill(child.pid, signal.SIGKILL)
            for child in children:
                child.join()
                assert child.exitcode == -signal.SIGKILL, "it failed before it was killed"
            # Nothing hangs, no sum shows half an operation, no row is torn, and the places of killed processes can be
            # used.
            assert replay.total_priority == replay.priorities().sum()
            replay.add(numbered(round_, 64))
            assert_whole(replay.sample(256))
        for _ in range(10):
            replay.add(numbered(0, 64))
            batch = replay.sample(64)
            replay.update_priorities(batch, np.ones(64))
        assert replay.total_priority == replay.priorities().sum()
    assert not objects()


def test_a_process_that_only_reads_repairs_after_a_killed_one():
    context = multiprocessing.get_context("fork")
    # So large that a process that adds them spends much of its time writing them.
    rows = {"value": np.ones((64, 4096), np.float32)}

    def add_for_ever(ready):
        ready.set()
        while True:
            replay.add(rows)

    with shoal.Replay(256, {"value": ((4096,), "float32")}, shared=True, participants=2) as replay:
        for _ in range(4):
            replay.add(rows)
        for round_ in range(10):
            ready = context.Event()
            child = context.Process(daemon=True, target=add_for_ever, args=(ready,))
            child.start()
            assert ready.wait(60)
            time.sleep(0.01 + 0.003 * round_)
            child.kill()
            child.join()
            assert child.exitcode == -signal.SIGKILL, "it failed before it was killed"
            np.testing.assert_array_equal(replay.get(np.arange(256))["value"], 1)


def test_a_stopped_process_does_not_stop_the_others():
    context = multiprocessing.get_context("fork")
    with shoal.Replay(4096, FIELDS, shared=True) as replay:
        replay.add(numbered(0, 64))
        ready = context.Event()
        child = context.Process(daemon=True, target=add_until_killed, args=(replay, ready))
        child.start()
        assert ready.wait(60)
        for _ in range(20):
            os.kill(child.pid, signal.SIGSTOP)
            for _ in range(50):
                replay.add(numbered(0, 64))
                batch = replay.sample(64)
                assert_whole(batch)
                replay.update_priorities(batch, np.ones(64), stale="ignore")
            os.kill(child.pid, signal.SIGCONT)
            time.sleep(0.003)
        child.kill()
        child.join()


def test_rows_are_never_torn_whatever_two_writers_do():
    context = multiprocessing.get_context("fork")
    with shoal.Replay(130, FIELDS, shared=True, participants=4) as replay:
        replay.add(numbered(0, 64))
        ready = [context.Event() for _ in range(2)]
        children = [context.Process(daemon=True, target=add_until_killed, args=(replay, event)) for event in ready]
        for child in children:
            child.start()
        assert all(event.wait(60) for event in ready)
        for _ in range(400):
            assert_whole(replay.sample(64))
        for child in children:
            assert child.exitcode is None
            child.kill()
            child.join()


def test_more_participants_than_places_are_refused():
    with shoal.Replay(100, FIELDS, shared=True, participants=2) as replay:
        replay.add(numbered(0, 1))
        others = [shoal.Replay.open(replay.name) for _ in range(2)]
        others[0].add(numbered(0, 1))
        with pytest.raises(shoal.ReplayError, match="all 2 participants"):
            others[1].add(numbered(0, 1))
        others[0].close()
        others[1].add(numbered(0, 1))
        others[1].close()
        assert len(replay) == 3


def test_the_replay_of_killed_processes_is_removed_by_the_next_process_that_makes_one():
    context = multiprocessing.get_context("fork")

    def leave(sender):
        sender.send(shoal.Replay(100, FIELDS, shared=True).__reduce__()[1][0])
        replay = shoal.Replay(100, FIELDS, shared=True)
        sender.send(replay.name)
        time.sleep(60)

    receiver, sender = context.Pipe()
    child = context.Process(daemon=True, target=leave, args=(sender,))
    child.start()
    receiver.recv()
    name = receiver.recv()
    child.kill()
    child.join()
    assert os.path.exists("/dev/shm" + name)
    shoal.Replay(100, FIELDS, shared=True).close()
    assert not os.path.exists("/dev/shm" + name)


def test_threads_write_and_read_at_once():
    replay = shoal.Replay(4096, FIELDS)
    replay.add(numbered(0, 64))
    stop, failures = threading.Event(), []

    def read():
        try:
            while not stop.is_set():
                batch = replay.sample(64)
                assert_whole(batch)
                replay.update_priorities(batch, np.ones(64), stale="ignore")
        except Exception as error:  # noqa: BLE001 (told to the main thread)
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for first in range(0, 64_000, 64):
        replay.add(numbered(first, 64))
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert replay.total_priority == replay.priorities().sum()


def test_a_child_gets_a_private_replay_of_its_own():
    replay = shoal.Replay(100, FIELDS)
    replay.add(numbered(0, 10))
    child = os.fork()
    if child == 0:
        replay.add(numbered(10, 10))
        os._exit(len(replay))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 20
    assert len(replay) == 10


def test_ctrl_c_ends_a_wait():
    # A shell without job control starts its background processes with Ctrl+C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    replay = shoal.Replay(100, FIELDS, rate_limiter=shoal.RateLimiter(min_size=10))
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            replay.sample(1)
    finally:
        signal.signal(signal.SIGINT, before)
