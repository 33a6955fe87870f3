"""The examples learn, and leave no shared memory behind."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("gymnasium", reason="gymnasium is not installed")


@pytest.fixture
def example(monkeypatch):
    """Imports an example by its name, in such a way that the processes it starts can import it as well."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    return importlib.import_module


def test_dqn_in_one_file_learns_cartpole(example):
    module = example("cleanrl_dqn")
    returns = module.train(module.Arguments(total_steps=10_000))
    # A random policy returns about 22.
    assert np.mean(returns[-20:]) > 80


def test_a_learner_learns_from_two_actors_of_which_one_is_killed(example, capfd):
    module = example("shared_actors")
    names = []
    make_replay = module.make_replay

    def remember(args):
        replay = make_replay(args)
        names.append(replay.name)
        assert shared_memory(replay.name)
        return replay

    module.make_replay = remember
    # A random policy returns about 22, an untrained network about 10.
    assert module.learn(module.Arguments(updates=3_000)) > 60
    assert "killed actor" in capfd.readouterr().out
    assert not shared_memory(names[0])


def shared_memory(name):
    return [path for path in Path("/dev/shm").iterdir() if name.strip("/") in path.name]
