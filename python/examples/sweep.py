"""A sweep: some settings with several seeds each, and one table of all of them.

Shoal is in no package index: `cargo xtask wheel` builds the file that pip installs, in `target/wheels`.

pip install shoal_rl-*.whl
python sweep.py
tensorboard --logdir runs
"""

import itertools
import statistics

import shoal

PRESET = "cartpole_dqn"
# By name: what each setting changes.
SETTINGS = {f"rate-{rate:g}": {"learner": {"learning_rate": rate}} for rate in (1e-3, 1e-4)}
SEEDS = range(1, 4)
STEPS = 20_000
# How many runs train at the same time.
JOBS = 2


def start(name, seed):
    return shoal.start(
        PRESET,
        name=name,
        seed=seed,
        run={"stop_env_steps": STEPS, "stop_eval_return": "none"},
        # Runs that start at the same time do not see which cores the others bind their processes to.
        machine={"affinity": False},
        quiet=True,
        **SETTINGS[name],
    )


def main():
    runs = {}
    for name, seed in itertools.product(SETTINGS, SEEDS):
        if len(runs) >= JOBS:
            list(runs.values())[-JOBS].wait()
        runs[name, seed] = start(name, seed)
    # Fresh episodes, because the best of many evaluations is partly luck.
    returns = {cell: shoal.evaluate(run.wait(), episodes=50).return_mean for cell, run in runs.items()}
    print(f"{'setting':12} {'mean':>8} {'lowest':>8} {'highest':>8}  each seed")
    for name in SETTINGS:
        of_seeds = [returns[name, seed] for seed in SEEDS]
        figures = (statistics.mean(of_seeds), min(of_seeds), max(of_seeds))
        print(f"{name:12}", *(f"{figure:8.1f}" for figure in figures), "", *(f"{each:.1f}" for each in of_seeds))


if __name__ == "__main__":
    main()
