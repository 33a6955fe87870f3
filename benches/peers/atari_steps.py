#!/usr/bin/env python3
"""Steps per processor-second of Pong as a learner sees it: Shoal beside ALE's own vector environment, EnvPool and Gymnasium's wrappers.

    python3 -m venv /tmp/atari && /tmp/atari/bin/pip install gymnasium==1.4.0 numpy==2.4.6 ale-py==0.12.1 opencv-python-headless==5.0.0.93
    /tmp/atari/bin/pip install envpool      # if there is a wheel for this Python; it is left out otherwise
    cargo bench --no-default-features --features python --bench atari_steps --no-run
    /tmp/atari/bin/python benches/peers/atari_steps.py      # SHOAL_ATARI_STEPS may name a program that is already built

All skip four frames, take the brighter of the last two, shrink it to 84 x 84 grey pixels and stack four. All take the same
actions, without sticky actions, and reset when a game ends. They take turns, each in a process of one thread. The clock is
the processor time of the process, which other users of the machine distort less than wall time. The figures are medians of
the rounds, and of the rounds' ratios.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = [0, 2, 3]
SECONDS = 3.0


def timed(step):
    """Steps per second of processor time. `step(action)` takes one step in each environment and returns their number."""
    steps, index, start = 0, 0, time.process_time()
    while time.process_time() < start + SECONDS:
        for _ in range(100):
            steps += step(ACTIONS[index // 8 % 3])
            index += 1
    return steps / (time.process_time() - start)


def gymnasium_wrappers():
    import ale_py
    import cv2
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    cv2.setNumThreads(1)
    gymnasium.register_envs(ale_py)
    environment = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0, disable_env_checker=True)
    environment = FrameStackObservation(AtariPreprocessing(environment), 4)
    environment.reset(seed=0)

    def step(action):
        _, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset()
        return 1

    return timed(step)


def ale_vector(environments):
    import numpy
    from ale_py import AtariVectorEnv

    vector = AtariVectorEnv("pong", environments, num_threads=1)
    vector.reset(seed=0)

    def step(action):
        vector.step(numpy.full(environments, action))
        return environments

    return timed(step)


def envpool_vector(environments):
    import envpool
    import numpy

    vector = envpool.make_gymnasium("Pong-v5", num_envs=environments, num_threads=1, stack_num=4, seed=0)
    vector.reset()

    def step(action):
        vector.step(numpy.full(environments, action))
        return environments

    return timed(step)


def shoal():
    bench = ["cargo", "bench", "--quiet", "--no-default-features", "--features", "python", "--bench", "atari_steps", "--"]
    program = os.environ.get("SHOAL_ATARI_STEPS")
    command = [*([program, "--bench"] if program else bench), "Pong", "84", str(SECONDS)]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(output.stdout.split()[-1])


PEERS = {
    "shoal": shoal,
    "ALE vector, 1 environment": lambda: ale_vector(1),
    "ALE vector, 8 environments": lambda: ale_vector(8),
    "EnvPool, 1 environment": lambda: envpool_vector(1),
    "EnvPool, 8 environments": lambda: envpool_vector(8),
    "Gymnasium's wrappers": gymnasium_wrappers,
}


def in_a_process(name):
    """The figure of a peer, measured in a process of its own, or None if the peer is not installed."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--only", name]
    output = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if "ModuleNotFoundError" in output.stderr:
        return None
    assert output.returncode == 0, output.stderr
    return float(output.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=PEERS, help="print the figure of this one and end")
    arguments = parser.parse_args()
    if arguments.only:
        print(PEERS[arguments.only]())
        return
    print(f"load {os.getloadavg()}, {arguments.rounds} rounds of {SECONDS} processor-seconds each, medians")
    rounds = [{name: in_a_process(name) for name in PEERS} for _ in range(arguments.rounds)]
    for name in PEERS:
        if rounds[0][name] is None:
            print(f"{name:<28} not installed")
            continue
        figures = [figures_of[name] for figures_of in rounds]
        ratio = statistics.median(figures_of["shoal"] / figures_of[name] for figures_of in rounds)
        spread = f"{min(figures):,.0f} to {max(figures):,.0f}"
        print(f"{name:<28}{statistics.median(figures):>8,.0f}   {spread:<18} shoal / this {ratio:.2f}")


if __name__ == "__main__":
    main()
