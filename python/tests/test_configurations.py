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
