#!/usr/bin/env python3
"""Steps per processor-second of Gymnasium's MuJoCo tasks beside Shoal's native ones, in turns.

    cargo xtask setup
    cargo bench --no-default-features --features mujoco --bench environment_steps --no-run
    .venv/bin/python benches/peers/gymnasium_mujoco.py

Random actions, resets counted, no environment checker. The clock of Gymnasium is the processor time of the process, which
other users of the machine distort less than wall time. The native figure is criterion's estimate. A ratio is of figures
measured within seconds of each other.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import gymnasium
import mujoco
import numpy

ROOT = Path(__file__).resolve().parents[2]
TASKS = ["Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum", "InvertedPendulum", "Swimmer", "Walker2d"]


def gymnasium_steps_per_second(name, seconds):
    environment = gymnasium.make(name, disable_env_checker=True)
    space = environment.action_space
    actions = numpy.random.default_rng(0).uniform(space.low, space.high, (4096, *space.shape)).astype(numpy.float32)
    environment.reset(seed=0)
    steps, start = 0, time.process_time()
    while time.process_time() < start + seconds:
        first = steps % 4096
        for action in actions[first : first + 256]:
            _, _, terminated, truncated, _ = environment.step(action)
            if terminated or truncated:
                environment.reset()
        steps += 256
    return steps / (time.process_time() - start)


def native_steps_per_second(name):
    """Runs the benchmark `single` and reads the estimate that criterion wrote."""
    benchmark = ["cargo", "bench", "--no-default-features", "--features", "mujoco", "--bench", "environment_steps"]
    command = [*benchmark, "--", "--noplot", f"^single/mujoco:{name}$"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "criterion" / "single" / f"mujoco_{name}" / "new"
    return 1e9 / json.loads((folder / "estimates.json").read_text())["median"]["point_estimate"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time of Gymnasium in a round")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()}, {arguments.rounds} rounds, medians")
    print(f"{'task':<26}{'gymnasium/s':>12}{'native/s':>12}{'ratio':>8}")
    # MuJoCo would warn about one of the models, here and in a file.
    mujoco.set_mju_user_warning(lambda text: None)
    for task in TASKS:
        name = f"{task}-v5"
        rounds = [(gymnasium_steps_per_second(name, arguments.seconds), native_steps_per_second(name)) for _ in range(arguments.rounds)]
        theirs, ours = (statistics.median(column) for column in zip(*rounds))
        ratio = statistics.median(native / peer for peer, native in rounds)
        print(f"{name:<26}{theirs:>12,.0f}{ours:>12,.0f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
