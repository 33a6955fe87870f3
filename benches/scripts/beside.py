#!/usr/bin/env python3
"""The loops of one build beside those of another, at the same time: has a change made them slower?

    git worktree add ../before COMMIT && (cd ../before && cargo build --release)
    python3 benches/scripts/beside.py ../before

A ratio above 1 says that this checkout is faster. Both run at once, each on a core of its own, so that whatever the machine does meanwhile
falls on both; then they change cores, and the two ratios make one. Rates are over the second half of each run, per processor-second of the
processes that the loop is about; the median over the rounds counts. With `--whole` it is environment steps per second of whole runs instead,
which have both cores in turn.
"""

import argparse
import contextlib
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import runs
from throughput import FOREVER, NO_LEARNING

ACTOR = [*NO_LEARNING, "actor.count=1", "machine.affinity=false"]
ACTING = ['replay.samples_per_insert="none"', "actor.count=1", "actor.random_steps=0", "machine.affinity=false"]
MANY = ["actor.environments=64", "actor.flush_transitions=256"]
# The preset, what is changed of it, what is counted, and of which process (0: the learner's first, or the actor).
LOOPS = {
    "CartPole, an actor of 64 environments": ("cartpole_dqn", [*ACTOR, *MANY], "env_steps", -1),
    "CartPole, an actor of one environment": ("cartpole_dqn", [*ACTOR, "actor.environments=1"], "env_steps", -1),
    "CartPole, a learner at batches of 64": ("cartpole_dqn", ["learner.batch_size=64", "network.hidden=[256, 256]"], "updates", 1),
    "CartPole, a learner at batches of 512": ("cartpole_dqn", ["learner.batch_size=512", "replay.min_size=1000"], "updates", 1),
    "HalfCheetah, an actor": ("halfcheetah_sac", [*ACTING, "replay.capacity=4000000", "replay.min_size=4000000"], "env_steps", -1),
    "HalfCheetah, a learner": ("halfcheetah_sac", ["replay.min_size=1000", "actor.random_steps=0"], "updates", 1),
}


# Whole runs: the preset, and what is changed of it.
WHOLE = {
    "CartPole, DQN": ("cartpole_dqn", []),
    "CartPole, DQN, without a ratio": ("cartpole_dqn", ['replay.samples_per_insert="none"']),
    "Pendulum, SAC": ("pendulum_sac", []),
}


@contextlib.contextmanager
def bound_to(core):
    """What is started meanwhile stays on that core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def ratio_on(cores, builds, preset, overrides, counted, process, seconds):
    """Rates of both builds, each on its core."""
    with contextlib.ExitStack() as stack:
        started = []
        for core, (supervisor, root) in zip(cores, builds):
            with bound_to(core):
                started.append(stack.enter_context(runs.Run(supervisor, root / f"configs/{preset}.toml", [*FOREVER, *overrides])))
        time.sleep(seconds / 2)
        with ThreadPoolExecutor() as pool:
            watched = list(pool.map(lambda run: runs.watch(run, seconds / 2), started))
        return [counts(counted) / cpu[process] for counts, cpu in watched]


def rate_of_whole(build, preset, overrides, seconds):
    """Environment steps per second in the second half of a run that has the machine to itself."""
    supervisor, root = build
    with runs.Run(supervisor, root / f"configs/{preset}.toml", [*FOREVER, *overrides]) as run:
        time.sleep(seconds / 2)
        counts, _ = runs.watch(run, seconds / 2)
        return counts("env_steps")


def rounds_of_loop(builds, cores, loop, arguments):
    """The rates of both builds, and a ratio for each round."""
    rates, ratios = [], []
    for _ in range(arguments.rounds):
        pair = [ratio_on(order, builds, *loop, arguments.seconds) for order in (cores, cores[::-1])]
        rates += pair
        ratios.append(math.sqrt(math.prod(now / before for before, now in pair)))
    return rates, ratios


def rounds_of_whole(builds, whole, arguments):
    """The same of whole runs; who begins changes."""
    rates = []
    for number in range(arguments.rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        found = {index: rate_of_whole(builds[index], *whole, arguments.seconds) for index in order}
        rates.append((found[0], found[1]))
    return rates, [now / before for before, now in rates]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout, built")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--whole", action="store_true", help="whole runs instead of single loops")
    parser.add_argument("--supervisors", type=Path, nargs=2, help="programs of the other checkout and of this one, if they lie elsewhere")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    program = "target/release/supervisor"
    programs = arguments.supervisors or [arguments.before / program, runs.ROOT / program]
    builds = list(zip(programs, (arguments.before, runs.ROOT)))
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        parser.error("two cores are needed, one for each build")
    print(runs.machine())
    rows = []
    for name, loop in (WHOLE if arguments.whole else LOOPS).items():
        counted = "env_steps" if arguments.whole else loop[2]
        rates, ratios = rounds_of_whole(builds, loop, arguments) if arguments.whole else rounds_of_loop(builds, cores, loop, arguments)
        before, now = (f"{statistics.median(column):,.0f}" for column in zip(*rates))
        row = {"loop": name, "counted": counted, "ratio": f"{statistics.median(ratios):.3f}", "range": f"{min(ratios):.3f} to {max(ratios):.3f}"}
        rows.append({**row, "before": before, "now": now})
        print(runs.table(rows[-1:]), flush=True)
    print(f"\n{runs.table(rows)}")
    runs.write(arguments.out, {"machine": runs.machine(), "loops": rows})


if __name__ == "__main__":
    main()
