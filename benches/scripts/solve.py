#!/usr/bin/env python3
"""How long a preset takes to its goal, and whether the goal holds: one run per seed, by the command that a user types.

Wall time is from the start of the supervisor to its exit, everything included: processes, evaluations, files.
*Solved*: an evaluation reached `run.stop_eval_return`, and fresh episodes with the same weights confirmed it, which ends the
run (docs/evaluation.md).
*Holds*: the best weights, played after the run by `evaluate --episodes 200 --seed 77`, reach the goal in the mean. These
episodes had no part in choosing the weights, so this is the figure to believe.
A preset without a goal of its own can be given one: `--set run.stop_eval_return=-160`.
"""

import argparse
import statistics

import runs


def one(arguments, seed):
    with runs.Run(arguments.supervisor, arguments.config, [f"run.seed={seed}", *arguments.set]) as run:
        wall_s = run.wait(arguments.limit_s)
        last, goal = run.metrics()[-1], run.summary()["goal"]
        fresh = run.evaluate("best", arguments.episodes, arguments.fresh_seed)
    if goal is None:
        raise SystemExit(f"{arguments.config} has no goal: add --set run.stop_eval_return=...")
    return {
        "seed": seed,
        "solved": goal["confirmed"],
        "holds": fresh["return_mean"] >= goal["wanted"],
        "wall_s": round(wall_s, 2),
        "env_steps": last["env_steps"],
        "updates": last["updates"],
        "fresh_mean": round(fresh["return_mean"], 1),
        "fresh_ci95": f"{fresh['ci95_low']:.1f} to {fresh['ci95_high']:.1f}",
        "unconfirmed": goal["unconfirmed"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--episodes", type=int, default=200, help="fresh episodes of the best weights")
    parser.add_argument("--fresh-seed", type=int, default=77, help="seed of the fresh episodes")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--limit-s", type=float, default=900)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    machine, rows = runs.machine(), []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        rows.append(one(arguments, seed))
        print("\n".join(runs.table(rows).splitlines()[-1 if len(rows) > 1 else 0 :]), flush=True)
    summary = {name: f"{sum(row[name] for row in rows)} of {len(rows)}" for name in ("solved", "holds")}
    for key, decimals in (("wall_s", 2), ("env_steps", 0), ("updates", 0)):
        values = [row[key] for row in rows]
        summary[key] = f"{statistics.median(values):,.{decimals}f} ({min(values):,.{decimals}f} to {max(values):,.{decimals}f})"
    means = [row["fresh_mean"] for row in rows]
    summary["fresh mean"] = f"{statistics.median(means):.1f} ({min(means):.1f} to {max(means):.1f})"
    print("\nmedian (smallest to largest)\n" + runs.table([summary]))
    print(f"\n{machine}")
    runs.write(arguments.out, {"machine": machine, "config": arguments.config, "set": arguments.set, "rows": rows, "summary": summary})


if __name__ == "__main__":
    main()
