#!/usr/bin/env python3
"""Does adaptation find the fastest setting? Compares a run that adapts to the machine with a grid of fixed settings.

    cargo build --release --no-default-features && python3 benches/scripts/adaptation.py
    python3 benches/scripts/adaptation.py --case HalfCheetah      # needs libmujoco: cargo xtask setup, cargo build --release

An adapting run begins with one actor and searches for `--search-s` seconds. The options of its closing report, and every
setting of the grid, are then run for `--seconds` each, round by round. The figure of a setting is the median of the
transitions trained per second over the second half of each run.

Runs of the same setting differ, so the best setting of the grid was partly lucky. Therefore the setting found and the best
of the grid are run again, in turns, `--again` times each. The result is the median of the ratios of these pairs: 1 means
that the search found a setting as fast as the best of the grid.

    python3 benches/scripts/adaptation.py --scores 3 --case "Pendulum, SAC, steps that sleep for 4 ms"

compares scores instead. Each seed has two runs: one that adapts during the first half of its `--steps`, and one with the
options of its report. The last weights of each play 200 fresh episodes.
"""

import argparse
import statistics
import time

import runs

FOREVER = [*runs.FOREVER, 'checkpoint.interval_s="none"']
# Each case: its preset, overrides, where the search begins, the limits of the search, and the grid of
# (actors, environments per actor).
CASES = {
    "CartPole, steps that sleep for 1 ms": {
        "preset": "cartpole_dqn",
        "overrides": ["environment.step_delay_us=1000", "replay.samples_per_insert=16"],
        "begin": ["actor.count=1", "actor.environments=8"],
        "ranges": ["adaptation.most_actors=16"],
        "grid": [(actors, environments) for actors in (1, 2, 4, 8, 16) for environments in (2, 8, 32)],
    },
    "CartPole": {
        "preset": "cartpole_dqn",
        "overrides": ["replay.samples_per_insert=0.5"],
        "begin": ["actor.count=1", "actor.environments=2"],
        "ranges": ["adaptation.most_actors=4", "adaptation.most_environments=32"],
        "grid": [(actors, environments) for actors in (1, 2, 4) for environments in (2, 8, 32)],
    },
    "HalfCheetah": {
        "preset": "halfcheetah_sac",
        "overrides": ["replay.min_size=1000", "actor.random_steps=1000"],
        "begin": ["actor.count=1", "actor.environments=1"],
        "ranges": ["adaptation.most_actors=4", "adaptation.most_environments=4"],
        "grid": [(actors, environments) for actors in (1, 2, 4) for environments in (1, 2, 4)],
    },
    # A batch has eight fragments, so no setting has more than eight environments in all.
    "CartPole, PPO, steps that sleep for 1 ms": {
        "preset": "cartpole_ppo",
        "overrides": ["environment.step_delay_us=1000"],
        "begin": ["actor.count=1", "actor.environments=1"],
        "ranges": ["adaptation.most_actors=8", "adaptation.most_environments=1"],
        "grid": [(1, 1), (1, 8), (2, 1), (2, 4), (4, 1), (4, 2), (8, 1)],
    },
    # One actor is not enough for the learner here. For machines with many cores.
    "HalfCheetah, every transition drawn once": {
        "preset": "halfcheetah_sac",
        "overrides": ["replay.min_size=1000", "actor.random_steps=1000", "replay.samples_per_insert=1"],
        "begin": ["actor.count=1", "actor.environments=1"],
        "ranges": ["adaptation.most_actors=15", "adaptation.most_environments=16"],
        "grid": [(actors, environments) for actors in (1, 2, 4, 8, 15) for environments in (1, 4, 16)],
    },
    "Pendulum, SAC, steps that sleep for 4 ms": {
        "preset": "pendulum_sac",
        "overrides": [
            "environment.step_delay_us=4000", "learner.batch_size=512", "replay.samples_per_insert=512", "replay.capacity=100000",
        ],
        "begin": ["actor.count=1", "actor.environments=1"],
        "ranges": ["adaptation.most_actors=8"],
        "grid": [(actors, environments) for actors in (1, 2, 4, 8) for environments in (1, 2, 4)],
    },
}


def rate_of(supervisor, case, setting, seconds):
    """Transitions trained per second over the second half of a run with this setting."""
    config = runs.ROOT / f"configs/{case['preset']}.toml"
    with runs.Run(supervisor, config, [*FOREVER, *case["overrides"], *setting]) as run:
        time.sleep(seconds / 2)
        counts, _ = runs.watch(run, seconds / 2)
        return counts("learned")


def search(supervisor, case, search_s):
    """The options that an adapting run ended with, after how many seconds it found them, and how many settings it tried."""
    config = runs.ROOT / f"configs/{case['preset']}.toml"
    adapting = ["adaptation.enabled=true", "adaptation.freeze_after=1", *case["begin"], *case["ranges"]]
    with runs.Run(supervisor, config, [*FOREVER, *case["overrides"], *adapting, f"run.stop_wall_s={search_s}"]) as run:
        run.wait(search_s + 60)
        options, probes = run.fitted(), run.lines("adaptation.jsonl")
    accepted = [probe for probe in probes if probe["verdict"] == "accepted"]
    return options, accepted[-1]["wall_s"] if accepted else 0.0, len(probes)


def rates_beside_a_grid(arguments, case):
    """The setting that an adapting run finds, and its speed beside the settings of the grid."""
    options, found_s, probes = search(arguments.supervisor, case, arguments.search_s)
    grid = {
        f"{actors} x {environments}": [f"actor.count={actors}", f"actor.environments={environments}"]
        for actors, environments in case["grid"]
    }
    grid["found"] = options
    rates = {setting: [] for setting in grid}
    for _ in range(arguments.rounds):
        for setting, overrides in grid.items():
            rates[setting].append(rate_of(arguments.supervisor, case, overrides, arguments.seconds))
    medians = {setting: statistics.median(measured) for setting, measured in rates.items()}
    found = medians.pop("found")
    best = max(medians, key=medians.get)
    for setting, rate in medians.items():
        print(f"    {setting}: {rate:,.0f}/s")
    row = {
        "found": " ".join(options[:3]), "found after s": round(found_s), "tried": probes, "best": best,
        "in the grid": f"{found / medians[best]:.3f}",
    }
    again = [ratio(arguments, case, options, grid[best], turn) for turn in range(arguments.again)]
    median, spread = f"{statistics.median(again):.3f}", f"{min(again):.3f} to {max(again):.3f}"
    return {**row, "ratio": median, "95 %": runs.interval(again), "range": spread}


def ratio(arguments, case, options, best, turn):
    """The rate of the setting found over that of the grid's best. Which of them runs first alternates."""
    order = 1 if turn % 2 == 0 else -1
    rates = [rate_of(arguments.supervisor, case, setting, arguments.seconds) for setting in (options, best)[::order]]
    found, of_best = rates[::order]
    return found / of_best


def scores(supervisor, case, seeds, steps):
    """A row for each seed: the options that an adapting run ended with, and the mean returns of two runs' last weights.

    The first is the adapting run, the second a run with those options.
    """
    config = runs.ROOT / f"configs/{case['preset']}.toml"
    ends = [f"run.stop_env_steps={steps}", 'run.stop_eval_return="none"', "evaluator.enabled=false", *case["overrides"]]

    def score(overrides):
        with runs.Run(supervisor, config, overrides) as run:
            run.wait(3600)
            found = run.evaluate("last", 200, 1)
            mean = f"{found['return_mean']:.1f} ({found['ci95_low']:.1f} to {found['ci95_high']:.1f})"
            return run.fitted(), run.lines("adaptation.jsonl"), mean

    for seed in range(1, seeds + 1):
        common = [*ends, f"run.seed={seed}"]
        adapting = ["adaptation.enabled=true", "adaptation.freeze_after=0.5", *case["begin"], *case["ranges"]]
        options, probes, adapted = score([*common, *adapting])
        _, _, repeated = score([*common, *options])
        searched = f"{len(probes)} until {probes[-1]['wall_s']:.0f} s" if probes else "none"
        yield {"seed": seed, "found": " ".join(options[:3]), "tried": searched, "adapted": adapted, "with its options": repeated}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--search-s", type=float, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", type=int, default=7, help="pairs of runs with the setting found and the best of the grid")
    parser.add_argument("--scores", type=int, default=0, metavar="SEEDS", help="compare scores instead of speed, over this many seeds")
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps of each run whose score is compared")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    print(runs.machine())
    rows = []
    for name in arguments.case or CASES:
        if arguments.scores:
            measured = scores(arguments.supervisor, CASES[name], arguments.scores, arguments.steps)
        else:
            measured = [rates_beside_a_grid(arguments, CASES[name])]
        for row in measured:
            rows.append({"case": name, **row})
            print(runs.table(rows[-1:]), flush=True)
    print(f"\n{runs.table(rows)}")
    runs.write(arguments.out, {"machine": runs.machine(), "cases": rows})


if __name__ == "__main__":
    main()
