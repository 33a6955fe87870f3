"""What tests share: small replays. The watchdog against hanging is pytest's own (pyproject.toml)."""

import subprocess

import pytest
from transitions import FIELDS

import shoal


@pytest.fixture
def replay():
    return shoal.Replay(64, FIELDS, seed=1)


@pytest.fixture(scope="session")
def other_pid_namespace():
    """The beginning of a command that runs the rest of it in a PID namespace of its own."""
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
