"""A sweep: some settings with several seeds each, and one table of all of them.

Shoal is in no package index: `cargo xtask wheel` builds the file that pip installs, in `target/wheels`.

pip install shoal_rl-*.whl
python sweep.py
tensorboard --logdir runs
"""

import contextlib
import itertools
import statistics
import sys

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


@contextlib.contextmanager
def failures_told(name, seed):
    """A setting that is refused, or with which training fails, does not end the sweep."""
    try:
        yield
    except shoal.RunError as error:
        print(f"{name}, seed {seed}: {error}", file=sys.stderr)


def main():
    runs, returns = {}, {}
    for cell in itertools.product(SETTINGS, SEEDS):
        if len(runs) >= JOBS:
            # If it has failed, that is told below.
            with contextlib.suppress(shoal.RunError):
                list(runs.values())[-JOBS].wait()
        with failures_told(*cell):
            runs[cell] = start(*cell)
    for cell, run in runs.items():
        with failures_told(*cell):
            # Fresh episodes, because the best of many evaluations is partly luck.
            returns[cell] = shoal.evaluate(run.wait(), episodes=50).return_mean
    print(f"{'setting':12} {'mean':>8} {'lowest':>8} {'highest':>8}  each seed")
    for name in SETTINGS:
        known = [returns[name, seed] for seed in SEEDS if (name, seed) in returns]
        figures = [f"{figure(known):.1f}" if known else "-" for figure in (statistics.mean, min, max)]
        of_seeds = [f"{returns[name, seed]:.1f}" if (name, seed) in returns else "failed" for seed in SEEDS]
        print(f"{name:12}", *(f"{figure:>8}" for figure in figures), "", *of_seeds)


if __name__ == "__main__":
    main()
