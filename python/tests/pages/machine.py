"""Where the commands of a page are run: folders with the presets, a run that has ended, and a run that goes on."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
from importlib.util import find_spec

from command_line import processes_in, wait_for

from pages.blocks import ROOT
from pages.options import SHOAL, WATCHDOG_S

#: Makes any training short; the last of two values of a key counts.
SHORT = {"run.stop_env_steps": "1500", "evaluator.episodes": "2", "evaluator.confirm_episodes": "2"}
#: For longer than all pages take: nobody else would end the run if pytest had to give up, or was killed.
LONG = {"run.stop_wall_s": "7200", "run.stop_env_steps": "1000000000", "run.stop_eval_return": "none", "actor.count": "1"}
#: Steps so seldom that the run that goes on leaves the processor to the commands that look at it.
SLOW = """
import time

import corridor


class Slow(corridor.Corridor):
    def step(self, action):
        time.sleep(0.01)
        return super().step(action)
"""
#: The requirements that errors name after `install it`, each with the module that is missing without it.
REQUIREMENTS = {"ale-py": "ale_py", "gymnasium[box2d]": "Box2D", "gymnasium[mujoco]": "mujoco"}


def settings(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def lacks_something(said):
    """Whether the words `said` refuse a run only for something not installed here, and name the way to install it."""
    if "1 problem in the configuration" not in said:
        return False
    if "which this build was made without: pip install 'gymnasium[mujoco]'" in said:
        return True
    needed = re.search(r"needs a \w+ that is missing .*install it: .*pip install [^\"]*\"([^\"=]+)", said)
    if needed is None:
        return False
    assert find_spec(REQUIREMENTS[needed[1]]) is None, f"it is installed: {said}"
    return True


class Machine:
    """A folder for everything, with a registry of runs of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.until_end = contextlib.ExitStack()
        (folder / "registry/shoal").mkdir(mode=0o700, parents=True)
        (folder / "registry").chmod(0o700)
        (folder / "temporary").mkdir()
        self.environment = {
            **os.environ,
            "TERM": "xterm",
            # Libraries leave files there.
            "TMPDIR": str(folder / "temporary"),
            "XDG_RUNTIME_DIR": str(folder / "registry"),
        }

    def shoal(self, folder, words):
        """Run a command of `shoal` that ends by itself, and return its result."""
        return subprocess.run(
            [*SHOAL, *words],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WATCHDOG_S,
            check=False,
        )

    @contextlib.contextmanager
    def started(self, folder, words, **streams):
        """A running command of `shoal`, which goes on until it is told to end. Leaving the block kills it."""
        command = [*SHOAL, *words]
        with subprocess.Popen(command, cwd=folder, env=self.environment, text=True, **streams) as process:
            try:
                yield process
            finally:
                process.kill()

    def with_presets(self, name):
        folder = self.folder / name
        (folder / "configs").mkdir(parents=True)
        for file in [*ROOT.glob("configs/*.toml"), *ROOT.glob("configs/*.py")]:
            shutil.copy(file, folder / "configs")
        return folder

    @functools.cached_property
    def ended(self):
        """A folder in which a short run has ended."""
        folder = self.with_presets("ended")
        result = self.shoal(folder, ["train", "cartpole_dqn", *settings(SHORT)])
        assert result.returncode == 0, result.stderr
        return folder

    @functools.cached_property
    def live(self):
        """The supervisor of a run that goes on, and its folder."""
        folder = self.with_presets("live")
        (folder / "configs/slow.py").write_text(SLOW)
        words = ["train", "configs/corridor_dqn.toml", *settings({"environment.id": "python:slow:Slow", **LONG})]
        supervisor = self.until_end.enter_context(self.started(folder, words, stderr=subprocess.DEVNULL))
        # The folder of the run is there before the run is announced in the registry.
        record = self.folder / f"registry/shoal/{supervisor.pid}.json"
        wait_for("a run that goes on", lambda: supervisor.poll() is not None or record.exists())
        assert supervisor.poll() is None
        return supervisor, folder

    def place(self):
        """A new folder for one block of a page, with a run that has ended."""
        self.count += 1
        folder = self.folder / str(self.count)
        shutil.copytree(self.ended, folder, symlinks=True)
        return folder

    def end(self):
        """End the run that goes on, and assert that nothing is left."""
        with self.until_end:
            if "live" in vars(self):
                supervisor, _ = self.live
                supervisor.send_signal(signal.SIGINT)
                assert supervisor.wait(WATCHDOG_S) == 128 + signal.SIGINT
        wait_for("everything to be gone", lambda: not processes_in(self.folder))
        assert not list((self.folder / "registry/shoal").glob("*"))
