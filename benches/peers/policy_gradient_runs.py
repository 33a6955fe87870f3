#!/usr/bin/env python3
"""PPO and APPO on CartPole-v1: Shoal beside Stable-Baselines3, Sample Factory and PufferLib, until 475 in training.

All have two layers of 64 units in one network with two heads (Stable-Baselines3 with its own settings: in two networks).
They learn until their newest 100 training episodes return 475 on average, the score that every library keeps by itself.
There are no evaluations.

Each library runs with its own settings and, for the same amount of learning per step, with Shoal's: one process that steps
eight environments, batches of 256 steps, sixteen updates from each batch. Shoal runs its presets, on its own CartPole and on
Gymnasium's, which the libraries use.

The time of a library begins with its first batch, without imports and the start of processes, Shoal's with the start of the
command. Steps per processor-second count everything that the processes of a run do meanwhile. Runs take turns, seed by seed.
Libraries get one torch thread unless `--threads` says more (Sample Factory sets its own number).

The first start makes a virtual environment beside this file (git-ignored).
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402
from trainers.drive import processor_seconds  # noqa: E402

GOAL = 475.0
LIBRARIES = {"Stable-Baselines3": "with_stable_baselines3", "Sample Factory": "with_sample_factory", "PufferLib": "with_pufferlib"}
OURS = {
    "Shoal, PPO": ("cartpole_ppo", "CartPole-v1"),
    "Shoal, APPO": ("cartpole_appo", "CartPole-v1"),
    "Shoal, PPO, Gymnasium's": ("cartpole_ppo", "gymnasium:CartPole-v1"),
    "Shoal, APPO, Gymnasium's": ("cartpole_appo", "gymnasium:CartPole-v1"),
}


def ours(name, seed, arguments):
    """A run of a preset, watched from outside until its metrics reach the goal or the time is over."""
    preset, environment = OURS[name]
    changes = [*runs.FOREVER, "run.metrics_interval_s=0.05", f"run.seed={seed}", f'environment.id="{environment}"']
    with runs.Run(arguments.supervisor, runs.ROOT / f"configs/{preset}.toml", changes) as run:
        while run.process.poll() is None:
            time.sleep(0.02)
            lines = run.metrics()
            if time.monotonic() - run.started > arguments.limit_s or lines and lines[-1].get("train_return_mean", 0) >= GOAL:
                break
        wall_s, cpu_s = time.monotonic() - run.started, processor_seconds(run.process.pid)
        last = run.metrics()[-1]
    score = last.get("train_return_mean", 0)
    return {"solved": score >= GOAL, "score": score, "first_steps": 0, "env_steps": last["env_steps"], "wall_s": wall_s, "cpu_s": cpu_s}


def theirs(name, settings, seed, arguments, interpreter):
    job = {"environment": "CartPole-v1", "settings": settings, "seed": seed, "goal": GOAL}
    job |= {"limit_s": arguments.limit_s, "threads": arguments.threads}
    command = [str(interpreter), str(HERE / f"policy_gradients/{LIBRARIES[name]}.py"), json.dumps(job)]
    with tempfile.TemporaryDirectory() as folder:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit_s + 120, cwd=folder)
    lines = answer.stdout.splitlines()
    if not lines:
        raise RuntimeError(f"{name} failed:\n{answer.stderr[-2000:]}")
    return json.loads(lines[-1])


def row(name, found):
    """Medians over the seeds. What a run needed to reach the goal is the median of the runs that reached it."""
    solved = [one for one in found if one["solved"]]
    median = lambda values: statistics.median(values) if values else None  # noqa: E731
    text = lambda value, digits=0: "-" if value is None else f"{value:,.{digits}f}"  # noqa: E731
    return {
        "run": name, "solved": f"{len(solved)} of {len(found)}",
        "wall time to 475 (s)": text(median([one["wall_s"] for one in solved]), 2),
        "steps to 475": text(median([one["env_steps"] for one in solved])),
        "processor-seconds to 475": text(median([one["cpu_s"] for one in solved]), 2),
        "steps per processor-second": text(median([(one["env_steps"] - one["first_steps"]) / one["cpu_s"] for one in found])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="torch threads of a library")
    parser.add_argument("--limit-s", type=float, default=90, help="after this time a run has not reached the goal")
    parser.add_argument("--only", nargs="*", choices=[*LIBRARIES, "Shoal"], default=[*LIBRARIES, "Shoal"])
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    interpreter = peers.python(".venv-policy-gradients", "requirements-policy-gradients.txt", ["pufferlib==3.0.0"])
    jobs = {
        f"{name}, {settings} settings": lambda seed, name=name, settings=settings: theirs(name, settings, seed, arguments, interpreter)
        for name, settings in itertools.product(LIBRARIES, ("theirs", "ours")) if name in arguments.only
    }
    if "Shoal" in arguments.only:
        jobs |= {name: lambda seed, name=name: ours(name, seed, arguments) for name in OURS}
    machine, found = runs.machine(), {name: [] for name in jobs}
    for seed in range(1, arguments.seeds + 1):
        for name, job in jobs.items():
            found[name].append(job(seed))
            print(name, seed, found[name][-1], flush=True)
    print(f"\n{runs.table([row(name, rows) for name, rows in found.items()])}\n\n{machine}")
    runs.write(arguments.out, {"machine": machine, "runs": found})


if __name__ == "__main__":
    main()
