"""The searches and the sweep in `examples/` come to their end, whatever fails on the way, and leave nothing behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ENVIRONMENT

EXAMPLES = Path(__file__).parents[1] / "examples"
# Low learning rates learn nothing in so few steps, and a short search of the whole range may try no others.
ALL_RATES, GOOD_RATES = "1e-5, 1e-2", "1e-3, 4e-3"


@pytest.mark.parametrize("library", ["optuna", "ray"])
def test_an_example_searches_to_its_end(folder, library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    module = {"optuna": "optuna_search", "ray": "ray_tune_search"}[library]
    program = re.sub(r"(?m)^TRIALS = \d+$", "TRIALS = 4", (EXAMPLES / f"{module}.py").read_text())
    assert program.count(ALL_RATES) == 1
    if library == "optuna":
        # The first trial is refused.
        assert program.count('"cartpole_dqn",') == 1
        program = program.replace('"cartpole_dqn",', '"cartpole_dqn" if trial.number > 0 else "absent",')
    Path("search.py").write_text(program.replace(ALL_RATES, GOOD_RATES))
    result = subprocess.run([sys.executable, "search.py"], capture_output=True, text=True, timeout=250, check=False)
    assert result.returncode == 0, result.stderr
    assert "already reported" not in result.stderr
    best = float(result.stdout.strip().splitlines()[-1].split()[0])
    # A random policy comes to about 22.
    assert best > 40, result.stdout


def test_an_example_compares_settings_in_one_table_in_which_those_that_fail_are_named(folder):
    # It can be stepped once, as before a run starts, and ends each process that steps it further.
    (folder / "task.py").write_text(ENVIRONMENT.replace("self.at += 1", "self.at += 1; assert self.at < 3"))
    program = (EXAMPLES / "sweep.py").read_text()
    bad = {
        "refused": {"learner": {"batch_size": 0}},
        "failing": {"environment": {"id": f"python:{folder}/task.py:Corridor"}},
    }
    for long, short in (
        ("STEPS = 20_000", "STEPS = 1_500"),
        ("SEEDS = range(1, 4)", f"SEEDS = range(1, 3)\nSETTINGS = {{**{bad!r}, **SETTINGS}}"),
    ):
        assert program.count(long) == 1
        program = program.replace(long, short)
    Path("sweep.py").write_text(program)
    result = subprocess.run([sys.executable, "sweep.py"], capture_output=True, text=True, timeout=250, check=False)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [name for name, *_ in rows] == ["refused", "failing", "rate-0.001", "rate-0.0001"]
    for name, *figures in rows[:2]:
        assert figures == ["-", "-", "-", "failed", "failed"], result.stdout
        assert all(f"{name}, seed {seed}: " in result.stderr for seed in (1, 2)), result.stderr
    for _, *figures in rows[2:]:
        mean, lowest, highest, *of_seeds = map(float, figures)
        assert len(of_seeds) == 2 and (lowest, highest) == (min(of_seeds), max(of_seeds)), result.stdout
        assert abs(mean - sum(of_seeds) / 2) < 0.11, result.stdout
