"""A program that is told to end while it waits for its runs, and a container, which ends with its first process."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from command_line import WATCHDOG_S, wait_for

import shoal

ENDLESS = {"stop_eval_return": "none", "stop_env_steps": 10**12}
# A program that has started two runs, and gets SIGTERM once it handles that.
BEGINNING = f"""
import os, signal, threading, time, shoal


def terminate():
    while signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)


runs = [shoal.start("cartpole_dqn", run={ENDLESS!r}, quiet=True) for _ in range(2)]
threading.Thread(target=terminate, daemon=True).start()
"""
WAIT = "runs[0].wait()"
BEGIN_ANOTHER = f"""
def begin_another():
    while not shoal.runs._passed_on:
        time.sleep(0.01)
    shoal.start("cartpole_dqn", run={ENDLESS!r}, quiet=True)


threading.Thread(target=begin_another).start()
"""
FOLLOW = "for _ in runs[0].metrics(follow=True): pass"


def end_of(program, folder, prefix=()):
    """The exit code of a program, and how the runs had ended by then that it started in `folder`."""
    ended = subprocess.run([*prefix, sys.executable, "-c", program], timeout=WATCHDOG_S, check=False)
    found = [record.parent for record in folder.glob("runs/*/run.json")]
    return ended.returncode, [shoal.Run(path).reason for path in found if not path.is_symlink()]


@pytest.mark.parametrize("wait", [WAIT, FOLLOW])
def test_a_program_that_is_terminated_while_it_waits_ends_after_its_runs(folder, wait):
    assert end_of(BEGINNING + wait, folder) == (-signal.SIGTERM, ["terminated"] * 2)


@pytest.mark.parametrize(("wait", "code"), [(WAIT, 128 + signal.SIGTERM), (FOLLOW, 128 + signal.SIGTERM), ("", 0)])
def test_the_first_process_of_a_container_ends_after_its_runs(folder, other_pid_namespace, wait, code):
    assert end_of(BEGINNING + wait, folder, other_pid_namespace) == (code, ["terminated"] * 2)


def test_a_terminated_program_begins_no_other_run_in_another_thread(folder):
    assert end_of(BEGINNING + BEGIN_ANOTHER + WAIT, folder) == (-signal.SIGTERM, ["terminated"] * 2)


def test_a_terminated_program_that_is_killed_before_its_run_has_ended_costs_no_last_checkpoint(folder):
    code = f"""
import shoal
shoal.train("cartpole_dqn", run={ENDLESS!r}, checkpoint={{"interval_s": 0.1}}, quiet=True)
"""
    program = subprocess.Popen([sys.executable, "-c", code])
    latest = folder / "runs/latest"
    wait_for("a checkpoint", lambda: list(latest.glob("checkpoints/0*")))
    # As long as somebody else has this lock, no checkpoint is written.
    with open(latest / "checkpoints/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program.terminate()
        # Until the run waits for its last checkpoint, and a signal would no longer repeat the first one.
        time.sleep(3)
        program.kill()
        program.wait(WATCHDOG_S)
        # Until the run has seen it.
        time.sleep(1)
    run = shoal.Run(latest)
    wait_for("the end of the run", lambda: run.reason)
    assert run.reason == "terminated" and "given up" not in str(run.record)


def test_a_program_that_handles_sigterm_itself_goes_on_and_keeps_its_handler(folder):
    heard = []

    def hear(number, _):
        heard.append(number)

    before = signal.signal(signal.SIGTERM, hear)
    try:
        run = shoal.start("cartpole_dqn", run=ENDLESS, quiet=True)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        while not heard:
            with contextlib.suppress(TimeoutError):
                run.wait(timeout=0.1)
        assert run.is_running and signal.getsignal(signal.SIGTERM) == hear
    finally:
        signal.signal(signal.SIGTERM, before)
    # As the page says, so that `run.resume=auto` continues it.
    os.kill(run.pid, signal.SIGTERM)
    assert run.wait().reason == "terminated"


def test_a_handler_of_sigterm_that_python_does_not_know_of_stays(folder):
    code = """
import faulthandler, os, signal, shoal
faulthandler.register(signal.SIGTERM)
shoal.train("cartpole_dqn", run={"stop_env_steps": 2_000}, quiet=True)
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert end_of(code, folder) == (0, ["step limit"])


def test_what_another_thread_forks_meanwhile_ends_by_sigterm_and_afterwards_nothing_is_handled(folder):
    run = shoal.start("cartpole_dqn", run=ENDLESS, quiet=True)
    endings = []

    def fork_and_end():
        try:
            wait_for("the wait", lambda: signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)
            receiver, sender = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(sender, b"forked")
                time.sleep(WATCHDOG_S)
                os._exit(0)
            os.read(receiver, 6)
            os.kill(child, signal.SIGTERM)
            endings.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        finally:
            run.stop()

    thread = threading.Thread(target=fork_and_end)
    thread.start()
    run.wait()
    thread.join()
    assert endings == [-signal.SIGTERM] and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
