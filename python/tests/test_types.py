"""The stubs agree with the code."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]


def test_the_stubs_agree_with_the_code():
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "shoal",
        "--concise",
        "--ignore-disjoint-bases",
        "--ignore-unused-allowlist",
    ]
    command += ["--mypy-config-file", "pyproject.toml", "--allowlist", "tests/types_allowed.txt"]
    result = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
