"""What a configuration in Python can hold, and what is refused before a run starts."""

import numpy as np
import pytest
from command_line import ENVIRONMENT

import shoal

ALGORITHM = {"name": "dqn"}
SHORT = {"stop_env_steps": 100}


def test_an_array_too_long_for_a_command_line_is_refused_by_its_name_and_taken_in_a_dictionary(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT + "\n    def __init__(self, costs):\n        assert len(costs) == 50_000\n"
    )
    environment = {"id": "python:task:Corridor", "keyword_arguments": {"costs": np.zeros(50_000)}}
    words = r'^environment=\{"keyword_arguments": \.\.\.\} is 250,\d+ bytes .*: give .* as a dictionary'
    with pytest.raises(TypeError, match=words):
        shoal.train("cartpole_dqn", environment=environment, quiet=True)
    tables = {"environment": environment, "algorithm": ALGORITHM, "run": SHORT}
    assert shoal.train(tables, quiet=True).reason == "step limit"


@pytest.mark.parametrize(("key", "values"), [("seed", (1, 3)), ("name", ("one", "three"))])
def test_a_key_of_a_run_that_is_given_twice_is_refused_in_words_of_python(folder, key, values):
    given, in_table = values
    words = f"^{key}={given!r} and run={{{key!r}: {in_table!r}}} both set run.{key}: give one$"
    with pytest.raises(TypeError, match=words):
        shoal.train("cartpole_dqn", run={key: in_table}, quiet=True, **{key: given})
    assert not list(folder.glob("runs"))
