#!/usr/bin/env python3
"""Has a change made the loops slower? Measures this build and another one at the same time.

    git worktree add ../before COMMIT && (cd ../before && cargo build --release)
    python3 benches/scripts/beside.py ../before

A ratio above 1 means that this checkout is faster; the median over the rounds counts. In a round both builds run at once,
each on a core of its own, so that disturbances of the machine affect both. Then they swap cores, and the geometric mean of
the two ratios is the round's. A rate is measured over the second half of a run, per processor-second of the process that
the loop is about.

With `--whole` the rate is environment steps per second of whole runs. Both runs are under way and take turns of a second, in
which one has the machine to itself and the other is stopped.
"""

import argparse
import contextlib
import math
import os
import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import runs
from throughput import NO_LEARNING

ACTOR = [*NO_LEARNING, "actor.count=1", "machine.affinity=false"]
ACTING = ['replay.samples_per_insert="none"', "actor.count=1", "actor.random_steps=0", "machine.affinity=false"]
MANY = ["actor.environments=64", "actor.flush_transitions=256"]
# Each loop: its preset, overrides, the counter, and the index of its process among `Run.processes` (1: the learner, -1: the actor).
LOOPS = {
    "CartPole, an actor of 64 environments": ("cartpole_dqn", [*ACTOR, *MANY], "env_steps", -1),
    "CartPole, an actor of one environment": ("cartpole_dqn", [*ACTOR, "actor.environments=1"], "env_steps", -1),
    "CartPole, a learner at batches of 64": ("cartpole_dqn", ["learner.batch_size=64", "network.hidden=[256, 256]"], "updates", 1),
    "CartPole, a learner at batches of 512": ("cartpole_dqn", ["learner.batch_size=512", "replay.min_size=1000"], "updates", 1),
    "HalfCheetah, an actor": ("halfcheetah_sac", [*ACTING, "replay.capacity=4000000", "replay.min_size=4000000"], "env_steps", -1),
    "HalfCheetah, a learner": ("halfcheetah_sac", ["replay.min_size=1000", "actor.random_steps=0"], "updates", 1),
    "CartPole, a learner of PPO": ("cartpole_ppo", [], "updates", 1),
    "CartPole, a learner of APPO": ("cartpole_appo", [], "updates", 1),
    "HalfCheetah, a learner of PPO, 16 steps an update": ("halfcheetah_ppo", ["algorithm.minibatches=32"], "updates", 1),
}

# How long a whole run has the machine to itself at a time.
TURN_S = 1
# How long a whole run learns before it is measured.
WARM_UP_S = 3
# Two lines of metrics that are further apart than this have a stop between them.
LATE_S = 0.4

# Whole runs: the preset and its overrides.
WHOLE = {
    "CartPole, DQN": ("cartpole_dqn", []),
    "CartPole, DQN, without a ratio": ("cartpole_dqn", ['replay.samples_per_insert="none"']),
    "Pendulum, SAC": ("pendulum_sac", []),
}


@contextlib.contextmanager
def bound_to(core):
    """Processes that are started inside this context stay on that core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def rates_on(cores, builds, preset, overrides, counted, process, seconds):
    """Rates of both builds, each on its core."""
    with contextlib.ExitStack() as stack:
        started = []
        for core, (supervisor, root) in zip(cores, builds):
            with bound_to(core):
                started.append(stack.enter_context(runs.Run(supervisor, root / f"configs/{preset}.toml", [*runs.WATCHED, *overrides])))
        time.sleep(seconds / 2)
        with ThreadPoolExecutor() as pool:
            watched = list(pool.map(lambda run: runs.watch(run, seconds / 2), started))
        return [counts(counted) / cpu[process] for counts, cpu in watched]


def sleep_alone(run, others, seconds):
    """Stops the other runs and sleeps, so that this run has the machine to itself."""
    for other in others:
        signal_all(other, signal.SIGSTOP)
    signal_all(run, signal.SIGCONT)
    time.sleep(seconds)


def signal_all(run, number):
    """Signals the supervisor first, so that it never sees a process of its run stopped. A run that has ended gets no signal."""
    if run.process.poll() is not None:
        return
    for pid in [run.process.pid, *run.processes()]:
        os.kill(pid, number)


def unbroken_rate(lines, key):
    """A counter's rate without the time in which the run was stopped."""
    intervals = [(later["wall_s"] - line["wall_s"], later[key] - line[key]) for line, later in zip(lines, lines[1:])]
    unbroken = [(wall_s, count) for wall_s, count in intervals if wall_s < LATE_S]
    return sum(count for _, count in unbroken) / sum(wall_s for wall_s, _ in unbroken)


def rates_in_turns(builds, preset, overrides, seconds):
    """Environment steps per second of a whole run of each build. The runs take turns in having the machine to themselves."""
    with contextlib.ExitStack() as stack:
        started, skipped = [], []
        for supervisor, root in builds:
            run = stack.enter_context(runs.Run(supervisor, root / f"configs/{preset}.toml", [*runs.WATCHED, *overrides]))
            # On exit this happens before the run is told to end, which a stopped process could not do.
            stack.callback(signal_all, run, signal.SIGCONT)
            sleep_alone(run, started, WARM_UP_S)
            skipped.append(len(run.metrics()))
            started.append(run)
        for _ in range(round(seconds / TURN_S)):
            for run, other in (started, started[::-1]):
                sleep_alone(run, [other], TURN_S)
        return [unbroken_rate(run.metrics()[first:], "env_steps") for run, first in zip(started, skipped)]


def rounds_of_loop(builds, cores, loop, arguments):
    """The rates of both builds, and a ratio for each round."""
    rates, ratios = [], []
    for _ in range(arguments.rounds):
        pair = [rates_on(order, builds, *loop, arguments.seconds) for order in (cores, cores[::-1])]
        rates += pair
        ratios.append(math.sqrt(math.prod(now / before for before, now in pair)))
    return rates, ratios


def rounds_of_whole(builds, whole, arguments):
    """Rates of whole runs of both builds, and a ratio for each round. Which build begins alternates."""
    rates = []
    for number in range(arguments.rounds):
        order = 1 if number % 2 == 0 else -1
        rates.append(rates_in_turns(builds[::order], *whole, arguments.seconds)[::order])
    return rates, [now / before for before, now in rates]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout, built")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--only", default="", help="measure only loops, or whole runs, with this in their names")
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
    rows, found = [], {}
    for name, loop in (WHOLE if arguments.whole else LOOPS).items():
        if arguments.only not in name:
            continue
        counted = "env_steps" if arguments.whole else loop[2]
        rates, ratios = rounds_of_whole(builds, loop, arguments) if arguments.whole else rounds_of_loop(builds, cores, loop, arguments)
        found[name] = ratios
        before, now = (f"{statistics.median(column):,.0f}" for column in zip(*rates))
        row = {"loop": name, "counted": counted, "ratio": f"{statistics.median(ratios):.3f}", "95 %": runs.interval(ratios)}
        rows.append({**row, "range": f"{min(ratios):.3f} to {max(ratios):.3f}", "before": before, "now": now})
        print(runs.table(rows[-1:]), flush=True)
    print(f"\n{runs.table(rows)}")
    runs.write(arguments.out, {"machine": runs.machine(), "loops": rows, "ratios": found})


if __name__ == "__main__":
    main()
