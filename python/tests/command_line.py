"""The command `shoal` for tests, its processes, and an environment to train in."""

import os
import subprocess
import sys
import time
from pathlib import Path

from pages.blocks import ROOT

WATCHDOG_S = 60
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: Where cargo has built the programs of this checkout, as `cargo xtask test` says it.
PROGRAMS = Path(os.environ.get("SHOAL_TEST_PROGRAMS", TARGET / "debug"))
ENVIRONMENT = """
import os
import random

import gymnasium
import numpy


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        with open(f"drawn-{os.getpid()}", "a") as file:
            file.write(f"{random.random()}\\n")
        self.at = 0
        return numpy.zeros(2, numpy.float32), {}

    def step(self, action):
        self.at += 1
        return numpy.full(2, self.at / 10, numpy.float32), float(action), self.at == 10, False, {}
"""


def command(*arguments):
    return [sys.executable, "-m", "shoal", *map(str, arguments)]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=WATCHDOG_S, check=False)


def wait_for(what, condition):
    deadline = time.monotonic() + WATCHDOG_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


def processes_in(folder):
    """Processes that work in `folder`, this one aside."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and os.readlink(process / "cwd").startswith(str(folder)):
                found.append(int(process.name))
        except OSError:
            continue
    return found
