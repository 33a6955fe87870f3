#!/usr/bin/env python3
"""The loops of one build beside those of another, in turns: has a change made them slower?

    git worktree add ../before COMMIT && (cd ../before && cargo build --release)
    python3 benches/scripts/beside.py ../before

A ratio above 1 says that this checkout is faster. Rates are over the second half of each run, per processor-second of the
processes that the loop is about; the median of the ratios of the rounds counts.
"""

import argparse
import statistics
import time
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


def rate(supervisor, config, overrides, counted, process, seconds):
    with runs.Run(supervisor, config, [*FOREVER, *overrides]) as run:
        time.sleep(seconds / 2)
        counts, cpu = runs.watch(run, seconds / 2)
        return counts(counted) / cpu[process]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout, built")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--supervisors", type=Path, nargs=2, help="programs of the other checkout and of this one, if they lie elsewhere")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    program = "target/release/supervisor"
    programs = arguments.supervisors or [arguments.before / program, runs.ROOT / program]
    builds = list(zip(programs, (arguments.before, runs.ROOT)))
    print(runs.machine())
    rows = []
    for name, (preset, overrides, counted, process) in LOOPS.items():
        rates = {0: [], 1: []}
        for round_number in range(arguments.rounds):
            # Who begins changes, so that what the machine does meanwhile falls on both.
            for which in ((0, 1), (1, 0))[round_number % 2]:
                supervisor, root = builds[which]
                rates[which].append(rate(supervisor, root / f"configs/{preset}.toml", overrides, counted, process, arguments.seconds))
        ratios = sorted(now / before for before, now in zip(rates[0], rates[1]))
        row = {"loop": name, "counted": counted, "ratio": f"{statistics.median(ratios):.3f}", "range": f"{ratios[0]:.3f} to {ratios[-1]:.3f}"}
        rows.append({**row, "before": f"{statistics.median(rates[0]):,.0f}", "now": f"{statistics.median(rates[1]):,.0f}"})
        print(runs.table(rows[-1:]), flush=True)
    print(f"\n{runs.table(rows)}")
    runs.write(arguments.out, {"machine": runs.machine(), "loops": rows})


if __name__ == "__main__":
    main()
