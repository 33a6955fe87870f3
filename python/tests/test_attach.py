"""Guests of a run: programs that the supervisor did not start and that use the replay of the run."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
from command_line import PROGRAMS, wait_for
from pages.blocks import ROOT

SUPERVISOR = PROGRAMS / "supervisor"

pytestmark = pytest.mark.skipif(
    not SUPERVISOR.exists(), reason=f"no supervisor in {SUPERVISOR}; `cargo build` makes it"
)

# In a process of its own, whose registry of runs is that of the test.
GUEST = """
import sys
import numpy as np
import shoal

replay = shoal.Replay.attach(int(sys.argv[1]))
batch = replay.sample(32, timeout=60)
assert batch["observation"].shape == (32, 4), batch
assert np.isfinite(batch.weights).all() and batch.weights.max() == 1.0
replay.update_priorities(batch, np.ones(32), stale="ignore")
inserted = replay.inserted
assert len(replay.add({name: values[:4] for name, values in batch.items()}, timeout=60)) == 4
assert replay.inserted >= inserted + 4
rows = {name: np.array(values[:4]) for name, values in batch.items()}
for number in (np.nan, np.inf):
    rows["reward"][1] = number
    try:
        replay.add(rows, timeout=60)
    except ValueError as error:
        assert "`reward`" in str(error) and "row 1" in str(error), error
    else:
        raise AssertionError("a run has accepted NaN or an infinity")
for refused in (replay.clear, replay.stop, lambda: replay.save("replay")):
    try:
        refused()
    except shoal.ReplayError as error:
        assert "supervisor" in str(error), error
    else:
        raise AssertionError("a guest has changed the replay of a run")
"""

DRAWING = """
import sys
import shoal

shoal.Replay.attach(int(sys.argv[1])).sample(1, timeout=60)
"""


class Run:
    """A supervisor under way."""

    def __init__(self, process, folder):
        self.process, self.folder, self.has_ended = process, folder, False

    def guest(self, script, *arguments, prefix=()):
        """A Python process that runs `script`, with the supervisor's process id as its first argument."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-c", script, str(self.process.pid), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end_of(self, guest):
        """What a guest that ends by itself has printed."""
        output, errors = guest.communicate(timeout=100)
        assert guest.returncode == 0, f"{guest.returncode}: {errors}{self.output()}"
        return output

    def output(self):
        return (self.folder / "output").read_text()

    def end(self):
        """End the run, and wait until its supervisor has ended by itself."""
        self.has_ended = True
        self.process.terminate()
        # 128 and the number of the signal: it ended early, and in good order.
        assert self.process.wait(timeout=100) == 128 + signal.SIGTERM, self.output()


@contextlib.contextmanager
def running(folder, *changes, preset="cartpole_dqn", first_script=DRAWING):
    """A run that has had a guest, which executed `first_script`."""
    settings = [
        f'run.folder="{folder}/runs"',
        "run.stop_env_steps=1_000_000_000",
        # Twice as long as a test may hang: nobody else would end the run if pytest had to give up, or was killed.
        "run.stop_wall_s=600",
        'run.stop_eval_return="none"',
        "machine.affinity=false",
        *changes,
    ]
    command = [
        SUPERVISOR,
        ROOT / f"configs/{preset}.toml",
        *(word for value in settings for word in ("--set", value)),
    ]
    with (
        open(folder / "output", "w") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        run = Run(process, folder)
        try:
            # Again until the run can be joined.
            for _ in range(300):
                first = run.guest(first_script)
                _, errors = first.communicate(timeout=100)
                if not re.search(r"no run|not found|no supervisor", errors) or process.poll() is not None:
                    break
            assert first.returncode == 0, errors + run.output()
            yield run
            assert run.has_ended or process.poll() is None, "the run has ended: " + run.output()
        finally:
            process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"shoal-{os.getuid()}-{process.pid}-")]


def test_a_python_process_reads_from_a_run_and_adds_to_it(tmp_path):
    with running(tmp_path) as run:
        run.end_of(run.guest(GUEST))


def test_a_run_that_learns_from_fragments_refuses_guests_and_says_why(tmp_path):
    script = """
import sys
import shoal

try:
    shoal.Replay.attach(int(sys.argv[1]))
except shoal.ReplayError as error:
    if type(error) is not shoal.ReplayError or not str(error).startswith("the run learns from fragments"):
        raise
else:
    raise AssertionError("a guest has joined it")
"""
    with running(tmp_path, preset="cartpole_ppo", first_script=script):
        pass


def test_a_guest_of_a_run_without_priorities_is_told_how_a_run_gets_them(tmp_path):
    script = """
import sys
import numpy as np
import shoal

replay = shoal.Replay.attach(int(sys.argv[1]))
batch = replay.sample(4, timeout=60)
rows = dict(batch.items())
for refused in (
    lambda: replay.update_priorities(batch, np.ones(4)),
    lambda: replay.priorities([0]),
    lambda: replay.add(rows, np.ones(4)),
):
    try:
        refused()
    except ValueError as error:
        assert str(error).endswith("start the run with replay.prioritized = true"), error
    else:
        raise AssertionError("a run without priorities has taken some")
"""
    with running(tmp_path, preset="pendulum_sac", first_script=script):
        pass


def test_a_guest_that_closes_gives_its_place_back_while_it_lives(tmp_path):
    script = """
import sys
import time
import shoal

# Often, to join at every moment of the supervisor's loop; on a busy machine as often as 20 seconds allow.
end = time.monotonic() + 20
for _ in range(1000):
    with shoal.Replay.attach(int(sys.argv[1])) as replay:
        replay.sample(4, timeout=60)
    if time.monotonic() > end:
        break
"""
    with running(tmp_path, "actor.attach_slots=1") as run:
        run.end_of(run.guest(script))
        run.end_of(run.guest(GUEST))


@pytest.mark.parametrize("use", ["closed", "idle", "sampling", "adding"])
def test_the_end_of_a_run_leaves_its_guests_alive(tmp_path, use):
    script = """
import sys
import shoal

replay = shoal.Replay.attach(int(sys.argv[1]))
batch = replay.sample(4, timeout=60)
rows = dict(batch.items())
use = {
    "closed": replay.close,
    "idle": sys.stdin.readline,
    "sampling": lambda: replay.sample(4),
    "adding": lambda: replay.add(rows),
}[sys.argv[2]]
print("ready", flush=True)
try:
    while sys.argv[2] in ("sampling", "adding"):
        use()
    use()
    sys.stdin.readline()
except shoal.StoppedError as error:
    print(error)
"""
    with running(tmp_path) as run:
        guest = run.guest(script, use)
        assert guest.stdout.readline() == "ready\n", guest.communicate()
        run.end()
        assert guest.poll() in (None, 0), "the guest was killed"
        output = run.end_of(guest)
    assert ("the run has ended" in output) == (use in ("sampling", "adding"))


def test_a_fork_of_a_guest_is_a_guest_of_its_own(tmp_path):
    script = """
import os
import sys
import shoal

replay = shoal.Replay.attach(int(sys.argv[1]))
rows = dict(replay.sample(4, timeout=60).items())
for _ in range(4):
    child = os.fork()
    if child == 0:
        try:
            replay.add(rows, timeout=60)
            replay.sample(4, timeout=60)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    replay.add(rows, timeout=60)
    print(child)
"""
    # One place for the guest, and one for its child. Each child gives the place back when it ends.
    with running(tmp_path, "actor.attach_slots=2") as run:
        children = run.end_of(run.guest(script)).split()
        assert len(children) == 4

        def has_logged(event):
            return re.search(event, run.output() + (tmp_path / "runs/latest/run.log").read_text())

        for child in children:
            # The supervisor logs this after it has answered a guest, and after the guest has ended.
            for what in ("joins", "left"):
                event = rf"guest \d+ \(pid {child}\) {what}"
                wait_for(event, lambda event=event: has_logged(event))


def test_a_run_of_another_pid_namespace_is_refused(tmp_path, other_pid_namespace):
    with running(tmp_path) as run:
        guest = run.guest("import shoal, sys; shoal.Replay.attach(int(sys.argv[1]))", prefix=other_pid_namespace)
        _, errors = guest.communicate(timeout=100)
        assert guest.returncode != 0 and re.search("another PID namespace", errors), errors
        run.end_of(run.guest(GUEST))
