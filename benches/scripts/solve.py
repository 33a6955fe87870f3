#!/usr/bin/env python3
"""How long a preset takes to its goal: one run per seed, by the command that a user types.

Wall time is from the start of the supervisor to its exit, everything included: processes, evaluations, files.
A seed counts as solved when the evaluator's mean return reached `run.stop_eval_return`.
"""

import argparse
import statistics

import runs


def one(arguments, seed):
    with runs.Run(arguments.supervisor, arguments.config, [f"run.seed={seed}", *arguments.set]) as run:
        wall_s = run.wait(arguments.limit_s)
        last, evaluations = run.metrics()[-1], run.lines("evaluations.jsonl")
    goal = last["stop_eval_return"]
    final = evaluations[-1]["return_mean"] if evaluations else None
    return {
        "seed": seed,
        "solved": final is not None and goal is not None and final >= goal,
        "wall_s": round(wall_s, 2),
        "env_steps": last["env_steps"],
        "updates": last["updates"],
        "final_return": final and round(final, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--limit-s", type=float, default=900)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    machine = runs.machine()
    rows = [one(arguments, seed) for seed in range(1, arguments.seeds + 1)]
    print(runs.table(rows))
    summary = {"solved": f"{sum(row['solved'] for row in rows)} of {len(rows)}"}
    for key in ("wall_s", "env_steps", "updates", "final_return"):
        values = [row[key] for row in rows if row[key] is not None]
        summary[key] = f"{statistics.median(values):.5g} ({min(values):.5g} to {max(values):.5g})"
    print("\nmedian (smallest to largest)\n" + runs.table([summary]))
    print(f"\n{machine}")
    runs.write(arguments.out, {"machine": machine, "config": arguments.config, "set": arguments.set, "rows": rows})


if __name__ == "__main__":
    main()
