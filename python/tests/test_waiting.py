"""Calls that can never go on are refused, and calls that wait can be released."""

import math
import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest
from command_line import wait_for
from transitions import FIELDS, assert_whole, numbered, wait_until_held_back

import shoal

# One insert and one sample in turns.
IN_TURNS = shoal.RateLimiter(min_size=1, samples_per_insert=1.0, error_band=1.0)


class Call:
    """A call in a thread of its own, and what became of it."""

    def __init__(self, call):
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(call,), daemon=True)
        self.thread.start()

    def run(self, call):
        try:
            call()
        except BaseException as error:  # noqa: BLE001 (looked at by the test)
            self.error = error

    def ended_with(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), "it still waits"
        return self.error


def add_for_ever(replay):
    while True:
        replay.add(numbered(0, 1))


def test_an_add_of_any_size_goes_in_once_the_sides_are_within_their_band():
    for error_band in (None, 8.0):
        limiter = shoal.RateLimiter(min_size=1, samples_per_insert=8.0, error_band=error_band)
        replay = shoal.Replay(4096, FIELDS, rate_limiter=limiter)
        # Into an empty replay, from which nobody can have drawn.
        assert Call(lambda replay=replay: replay.add(numbered(0, 2000))).ended_with() is None
        assert len(replay) == 2000
        with pytest.raises(shoal.RateLimitError):
            replay.add(numbered(0, 1), timeout=0.01)
        # A batch larger than the band, and larger than what was ever added.
        assert Call(lambda replay=replay: replay.sample(16_384)).ended_with() is None
        assert Call(lambda replay=replay: replay.add(numbered(0, 2000))).ended_with() is None


@pytest.mark.parametrize("timeout", [1e20, math.inf])
def test_an_infinite_or_very_long_timeout_is_taken(timeout):
    replay = shoal.Replay(100, FIELDS, rate_limiter=IN_TURNS)
    replay.add(numbered(0, 1), timeout=timeout)
    assert_whole(replay.sample(1, timeout=timeout))


@pytest.mark.parametrize("timeout", [math.nan, -1.0, -math.inf])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    replay = shoal.Replay(100, FIELDS)
    for call in (lambda: replay.add(numbered(0, 1), timeout=timeout), lambda: replay.sample(1, timeout=timeout)):
        with pytest.raises(ValueError, match="timeout is .*; it must be a number of seconds of at least 0, or None"):
            call()
    assert len(replay) == 0


def exit_status_of_feeder(replay):
    try:
        add_for_ever(replay)
    except shoal.StoppedError:
        os._exit(7)


@pytest.fixture
def feeder():
    """A process that adds to a shared replay until it is told to stop, and the replay."""
    with shoal.Replay(100, FIELDS, shared=True, rate_limiter=IN_TURNS) as replay:
        process = multiprocessing.get_context("fork").Process(target=exit_status_of_feeder, args=(replay,), daemon=True)
        process.start()
        yield process, replay
        process.kill()
        process.join()


def test_stop_releases_waiting_calls_in_any_process(feeder):
    process, replay = feeder
    replay.sample(1, timeout=60)
    wait_until_held_back(replay)
    replay.stop()
    process.join(120)
    assert process.exitcode == 7
    with pytest.raises(shoal.StoppedError, match="stop"):
        replay.add(numbered(0, 1))
    # Transitions in the replay can still be drawn, more of them than the error band allows, and read.
    for _ in range(10):
        assert_whole(replay.sample(4, timeout=60))
    assert_whole(replay.get([0]))


def test_a_sample_that_waits_for_the_ratio_goes_on_after_stop():
    replay = shoal.Replay(100, FIELDS, rate_limiter=IN_TURNS)
    replay.add(numbered(0, 1))
    waiting = Call(lambda: [replay.sample(1) for _ in range(20)])
    wait_for("the first batch", lambda: replay.sampled > 0)
    assert waiting.thread.is_alive()
    replay.stop()
    assert waiting.ended_with() is None
    assert replay.sampled == 20


@pytest.mark.parametrize(("wait", "inserted"), [(add_for_ever, 5), (lambda replay: replay.sample(1), 4)])
def test_stop_works_in_a_private_replay_too(wait, inserted):
    replay = shoal.Replay(
        100, FIELDS, rate_limiter=shoal.RateLimiter(min_size=5, samples_per_insert=1.0, error_band=1.0)
    )
    replay.add(numbered(0, 4))
    waiting = Call(lambda: wait(replay))
    wait_until_held_back(replay, inserted)
    replay.stop()
    assert isinstance(waiting.ended_with(), shoal.StoppedError)


@pytest.mark.parametrize("shared", [False, True])
def test_closing_releases_the_threads_of_this_process(shared):
    replay = shoal.Replay(100, FIELDS, shared=shared, rate_limiter=IN_TURNS)
    waiting = Call(lambda: add_for_ever(replay))
    wait_until_held_back(replay)
    replay.close()
    assert isinstance(waiting.ended_with(), shoal.StoppedError)


def test_closing_also_ends_a_thread_that_does_not_wait():
    replay = shoal.Replay(100, FIELDS)
    feeding = Call(lambda: add_for_ever(replay))
    wait_for("the first rows", lambda: replay.inserted > 0)
    replay.close()
    assert isinstance(feeding.ended_with(), shoal.StoppedError)


def is_gone_once_closed():
    replay = shoal.Replay(100, FIELDS, shared=True, rate_limiter=IN_TURNS)
    name = replay.name
    waiting = Call(lambda: add_for_ever(replay))
    wait_until_held_back(replay)
    replay.close()
    try:
        shoal.Replay.open(name).close()
        is_gone = False
    except FileNotFoundError:
        is_gone = True
    assert isinstance(waiting.ended_with(), shoal.StoppedError)
    return is_gone


def test_a_shared_replay_is_gone_once_close_returns_even_if_a_thread_waited_in_it():
    # On a busy machine the thread may need longer than `close` waits for it, so not all attempts succeed. By luck it may
    # also be out before `close` waits, so one success is not enough.
    assert sum(is_gone_once_closed() for _ in range(5)) >= 3


def test_a_signal_handler_closes_the_replay_in_which_its_own_thread_waits():
    replay = shoal.Replay(100, FIELDS, rate_limiter=IN_TURNS)
    before = signal.signal(signal.SIGUSR1, lambda *_: replay.close())
    closing = Call(lambda: (wait_until_held_back(replay), os.kill(os.getpid(), signal.SIGUSR1)))
    try:
        with pytest.raises(shoal.StoppedError):
            add_for_ever(replay)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closing.ended_with() is None


@pytest.mark.parametrize("killed", [False, True])
def test_feeders_are_released_when_the_process_that_drew_has_gone(feeder, killed):
    process, replay = feeder

    def learn():
        own = shoal.Replay.open(replay.name)
        own.sample(1, timeout=60)
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
        own.close()

    learner = multiprocessing.get_context("fork").Process(target=learn, daemon=True)
    learner.start()
    learner.join(120)
    assert learner.exitcode == (-signal.SIGKILL if killed else 0)
    process.join(120)
    assert process.exitcode == 7


def test_feeders_wait_for_a_learner_that_has_not_come_yet(feeder):
    process, replay = feeder
    wait_until_held_back(replay)
    process.join(3)
    assert process.exitcode is None, "it was released although nobody had drawn yet"


def test_ctrl_c_ends_a_clear_beside_an_add_that_waits():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    replay = shoal.Replay(100, FIELDS, rate_limiter=IN_TURNS)
    waiting = Call(lambda: add_for_ever(replay))
    wait_until_held_back(replay)
    try:
        # `clear` ends, either because it is done or because it is interrupted.
        timer = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            replay.clear()
            timer.cancel()
        except KeyboardInterrupt:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    replay.stop()
    assert isinstance(waiting.ended_with(), shoal.StoppedError)


def test_clear_is_done_beside_an_add_that_waits():
    replay = shoal.Replay(100, FIELDS, rate_limiter=IN_TURNS)
    # As long as nothing is drawn, three are added and the fourth waits.
    waiting = Call(lambda: [replay.add(numbered(number, 1)) for number in range(4)])
    wait_until_held_back(replay, 3)
    assert waiting.thread.is_alive() and replay.inserted == 3
    clearing = Call(replay.clear)
    assert clearing.ended_with() is None
    # The call that waited goes on in the empty replay.
    assert waiting.ended_with() is None
    left = replay.get(np.arange(len(replay)))
    assert left["action"].tolist() == [3]
    assert_whole(left)
