"""Fixtures: replays and folders. pytest itself ends a test that hangs (pyproject.toml)."""

import contextlib
import os
import signal
import subprocess

import pytest
from command_line import processes_in, wait_for
from transitions import FIELDS

import shoal


@pytest.fixture
def replay():
    return shoal.Replay(64, FIELDS, seed=1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a registry of runs of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry").mkdir(mode=0o700)
    (tmp_path / "registry/shoal").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "registry"))
    yield tmp_path
    try:
        wait_for("everything to be gone", lambda: not processes_in(tmp_path))
    finally:
        # A process that is left would otherwise stay forever.
        for pid in processes_in(tmp_path):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert not list((tmp_path / "registry/shoal").glob("*"))


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
