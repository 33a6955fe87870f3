"""Fixtures: replays and folders. pytest itself ends a test that hangs (pyproject.toml)."""

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from command_line import processes_in, wait_for
from transitions import FIELDS

import shoal


@pytest.fixture
def replay():
    return shoal.Replay(64, FIELDS, seed=1)


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """A registry of runs of each test's own: whoever runs the tests may train meanwhile. The paths of sockets must be
    short: the name of the test is not in them."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder) / "shoal"


@pytest.fixture
def folder(tmp_path, registry, monkeypatch):
    """An empty folder to work in, with a registry of runs of its own."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    try:
        wait_for("everything to be gone", lambda: not processes_in(tmp_path))
    finally:
        # A process that is left would otherwise stay forever.
        for pid in processes_in(tmp_path):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert not list(registry.glob("*"))


@pytest.fixture(scope="session")
def other_pid_namespace():
    """The words to put before a command to run it in a PID namespace of its own."""
    for prefix in (["unshare"], ["unshare", "--user", "--map-root-user"]):
        command = [*prefix, "--pid", "--fork", "--kill-child", "--mount-proc"]
        try:
            if subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
                return command
        except FileNotFoundError:
            break
    pytest.skip(
        "this machine allows no PID namespaces (unshare --pid --mount-proc), so there is no other one to test from"
    )
