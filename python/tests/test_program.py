"""What the package tells of a program that it has asked and that failed."""

import sys

import pytest

from shoal import RunError
from shoal._program import answer


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'a word of the environment' >&2; echo 'error: the run is gone' >&2; exit 1", "the run is gone"),
        ("exit 3", "shoal inspect ended with 3"),
        ("kill -9 $$", "shoal inspect was killed by SIGKILL"),
    ],
)
def test_a_program_that_fails_is_told_by_its_error_or_else_by_how_it_ended(tmp_path, monkeypatch, script, told):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(RunError) as error:
        answer(RunError, "inspect", "1")
    assert str(error.value) == told
