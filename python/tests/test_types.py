"""The stubs agree with the code."""

import ast
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


def test_what_cannot_be_set_is_a_property_in_the_stubs():
    # The native classes are frozen. mypy.stubtest does not tell their attributes from ones that can be set.
    stubs = ast.parse((PACKAGE / "shoal/_native.pyi").read_text())
    classes = [statement for statement in stubs.body if isinstance(statement, ast.ClassDef)]
    variables = [ast.unparse(line) for kind in classes for line in kind.body if isinstance(line, ast.AnnAssign)]
    assert len(classes) == 4 and variables == []
