"""The libtorch engine of an installed PyTorch: used if a run asks for it; if something is missing, one line says so."""

import subprocess
import sys

import pytest
from command_line import run

from shoal import _libtorch

WITH_LIBTORCH = ("--set", "network.engine=torch")


def install(place, version):
    """Create what `pip` would leave of a PyTorch whose libraries cannot be loaded."""
    (place / "torch/lib").mkdir(parents=True)
    (place / "torch/__init__.py").touch()
    (place / "torch/lib/libc10.so").write_text("no library")
    (place / f"torch-{version}.dist-info").mkdir()
    (place / f"torch-{version}.dist-info/METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    )


def refusal(place, expected="2.13"):
    """The error of an interpreter that finds `place` first and is to load the engine for PyTorch `expected`."""
    program = f"""
import sys
sys.path.insert(0, {str(place)!r})
from shoal import _libtorch
_libtorch._expected = lambda: {expected!r}
_libtorch.load()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_another_version_is_named_with_the_command_that_installs_the_right_one(tmp_path):
    install(tmp_path, "2.9.1+cpu")
    said = refusal(tmp_path)
    assert "needs PyTorch 2.13, and 2.9.1+cpu is installed: pip install 'torch==2.13.*'" in said
    assert "needs PyTorch 2.1, and" in refusal(tmp_path, "2.1"), "2.13 is no 2.1"


def test_libraries_that_cannot_be_loaded_are_named(tmp_path):
    install(tmp_path, "2.13.0")
    assert f"the libraries of PyTorch in {tmp_path}/torch/lib cannot be loaded" in refusal(tmp_path)


def engine_is_there():
    try:
        _libtorch.check()
    except ImportError:
        return False
    return True


@pytest.mark.skipif(engine_is_there(), reason="the engine is there")
@pytest.mark.parametrize("asked", ["network.engine=torch", "learner.device=cuda:0"])
def test_a_run_that_asks_for_a_missing_engine_is_refused_before_it_begins(folder, asked):
    done = run("train", "cartpole_dqn", "--set", asked)
    assert done.returncode == 1
    # The line about the preset is printed once, by the build that has the engine.
    [error] = done.stderr.splitlines()
    assert error.startswith("error: "), done.stderr
    assert "set network.engine and learner.device to `cpu`" in error
    assert not (folder / "runs").exists()


def test_a_build_that_lacks_the_engine_that_it_should_have_is_reported_and_not_restarted_forever(folder):
    program = f"""
import sys
from shoal import _command, _libtorch, _native
_libtorch.check = lambda: None
_libtorch.load = lambda: _native
sys.argv = ["shoal", "train", "cartpole_dqn", *{WITH_LIBTORCH}]
_command.main()
"""
    python = [sys.executable, "-c", program]
    done = subprocess.run(python, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "was built without the libtorch engine: install the package anew" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not engine_is_there(), reason="this package, or this environment, is without it")
def test_a_run_learns_with_the_engine_of_pytorch(folder):
    done = run("train", "cartpole_dqn", *WITH_LIBTORCH, "--set", "run.stop_env_steps=3000")
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("preset ") for line in done.stderr.splitlines()) == 1, done.stderr
    assert 'engine = "torch"' in (folder / "runs/latest/config.toml").read_text()
    assert run("evaluate", "runs/latest", "--episodes", 2).returncode == 0
