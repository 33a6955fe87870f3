"""Processes of another PID namespace, such as another container's, share /dev/shm but cannot tell who is alive here.
Where nobody can tell, nothing is shared."""

import subprocess
import sys
from pathlib import Path

import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal

WITHOUT_PIDFD = Path(__file__).parents[2] / "tests/data/without_pidfd.py"


def run(prefix, script, *arguments):
    return subprocess.run(
        [*prefix, sys.executable, "-c", script, *arguments], check=False, capture_output=True, text=True, timeout=100
    )


def test_a_replay_of_another_pid_namespace_is_refused_and_its_participants_keep_their_places(other_pid_namespace):
    with shoal.Replay(1000, FIELDS, shared=True, participants=2) as replay:
        replay.add(numbered(0, 10))
        ended = run(
            other_pid_namespace,
            "import shoal, sys\nreplay = shoal.Replay.open(sys.argv[1])\nreplay.add(dict(replay.sample(4).items()))",
            replay.name,
        )
        assert ended.returncode != 0 and "shoal.errors.ReplayError" in ended.stderr, ended.stderr
        for words in ("another PID namespace", "pid:[", "--pid=container:"):
            assert words in ended.stderr, ended.stderr
        replay.add(numbered(10, 10))
        assert (len(replay), replay.total_priority) == (20, replay.priorities().sum())
        assert_whole(replay.sample(32))


def test_a_replay_made_in_another_pid_namespace_removes_no_replay_in_use(other_pid_namespace):
    with shoal.Replay(1000, FIELDS, shared=True) as replay:
        ended = run(other_pid_namespace, "import shoal\nshoal.Replay(100, {'value': 'float32'}, shared=True).close()")
        assert ended.returncode == 0, ended.stderr
        with shoal.Replay.open(replay.name) as other:
            other.add(numbered(0, 10))
        assert len(replay) == 10


def test_a_shared_replay_is_refused_without_a_proc_of_the_own_pid_namespace(other_pid_namespace):
    prefix = [word for word in other_pid_namespace if word != "--mount-proc"]
    ended = run(prefix, "import shoal\nshoal.Replay(100, {'value': 'float32'}, shared=True)")
    assert ended.returncode != 0 and "mount -t proc" in ended.stderr, ended.stderr
    # A private replay does not need to know which processes are alive.
    ended = run(prefix, "import shoal\nprint(shoal.Replay(100, {'value': 'float32'}).add({'value': 1.0}))")
    assert ended.returncode == 0, ended.stderr


def test_a_shared_replay_is_refused_where_the_kernel_does_not_tell_of_the_end_of_processes():
    prefix = [sys.executable, str(WITHOUT_PIDFD)]
    if run(prefix, "pass").returncode != 0:
        pytest.skip("this machine refuses no call to a program (seccomp)")
    private = "import shoal\nshoal.Replay(100, {'value': 'float32'})"
    assert run(prefix, private).returncode == 0
    ended = run(prefix, private.replace("})", "}, shared=True)"))
    assert "shoal.errors.ReplayError" in ended.stderr and "allows pidfd_open" in ended.stderr, ended.stderr
