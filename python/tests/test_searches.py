"""The searches in `examples/` find something and their pruned trials leave nothing behind; its sweep ends in a table."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# Low learning rates learn nothing in so few steps, and a short search of the whole range may try no others.
ALL_RATES, GOOD_RATES = "1e-5, 1e-2", "1e-3, 4e-3"


@pytest.mark.parametrize("library", ["optuna", "ray"])
def test_an_example_searches_to_its_end(folder, library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    module = {"optuna": "optuna_search", "ray": "ray_tune_search"}[library]
    program = re.sub(r"(?m)^TRIALS = \d+$", "TRIALS = 4", (EXAMPLES / f"{module}.py").read_text())
    assert program.count(ALL_RATES) == 1
    Path("search.py").write_text(program.replace(ALL_RATES, GOOD_RATES))
    result = subprocess.run([sys.executable, "search.py"], capture_output=True, text=True, timeout=250, check=False)
    assert result.returncode == 0, result.stderr
    assert "already reported" not in result.stderr
    best = float(result.stdout.strip().splitlines()[-1].split()[0])
    # A random policy comes to about 22.
    assert best > 40, result.stdout


def test_an_example_compares_settings_in_one_table(folder):
    program = (EXAMPLES / "sweep.py").read_text()
    for long, short in (("STEPS = 20_000", "STEPS = 1_500"), ("range(1, 4)", "range(1, 3)")):
        assert program.count(long) == 1
        program = program.replace(long, short)
    Path("sweep.py").write_text(program)
    result = subprocess.run([sys.executable, "sweep.py"], capture_output=True, text=True, timeout=250, check=False)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [name for name, *_ in rows] == ["rate-0.001", "rate-0.0001"]
    for _, *figures in rows:
        mean, lowest, highest, *of_seeds = map(float, figures)
        assert len(of_seeds) == 2 and (lowest, highest) == (min(of_seeds), max(of_seeds)), result.stdout
        assert abs(mean - sum(of_seeds) / 2) < 0.11, result.stdout
