#!/usr/bin/env python3
"""Learning curves of presets over seeds: runs them, keeps the evaluations as data, draws them.

    curves.py run configs/pendulum_sac.toml --seeds 5 --out docs/curves/pendulum_sac.json
    curves.py plot docs/curves/pendulum_*.json --out docs/curves/pendulum.svg

A run is the command that a user types. The data of a run are

- every routine evaluation: environment steps, wall seconds, mean return,
- the mean return of the newest 100 training episodes, at about a hundred points,
- what confirmations with fresh episodes said of weights that were the best so far,
- the return of the last weights over 100 episodes with a seed of their own.

The settings of the preset stand beside them, since its file may change.

`--jobs` runs several seeds at a time. Curves over steps stay valid then, wall times do not. Plotting needs matplotlib.
"""

import argparse
import concurrent.futures
import json
import statistics
import tomllib
from pathlib import Path

import runs

CONFIRMED = ("env_steps", "wall_s", "episodes", "return_mean", "ci95_low", "ci95_high")
TRAINING_POINTS = 100


def of_training(metrics):
    """The mean return of the newest training episodes, up to 100, at equally spaced numbers of environment steps."""
    every = metrics[-1]["env_steps"] / TRAINING_POINTS
    found = []
    for line in metrics:
        if line.get("train_return_mean") is not None and line["env_steps"] >= len(found) * every:
            found.append(line)
    return {
        "env_steps_at": [line["env_steps"] for line in found],
        "wall_s_at": [round(line["wall_s"], 2) for line in found],
        "return_mean": [round(line["train_return_mean"], 2) for line in found],
    }


def one(arguments, seed):
    overrides = [f"run.seed={seed}", *arguments.set]
    if arguments.jobs > 1:
        overrides.append("machine.affinity=false")
    with runs.Run(arguments.supervisor, arguments.config, overrides) as run:
        wall_s = run.wait(arguments.limit_s)
        metrics = run.metrics()
        last = metrics[-1]
        lines = run.lines("evaluations.jsonl")
        # The curve has routine evaluations alone: only good weights have confirmations.
        evaluations = [line for line in lines if line["kind"] == "routine"]
        confirmations = [line for line in lines if line["is_best"]]
        played = run.evaluate("last", arguments.episodes, 1)
    return {
        "seed": seed, "wall_s": round(wall_s, 2), "env_steps": last["env_steps"], "updates": last["updates"],
        "last_weights": {"episodes": arguments.episodes, "return_mean": played["return_mean"], "return_std": played["return_std"]},
        "confirmations": [{key: line[key] for key in CONFIRMED} for line in confirmations],
        "env_steps_at": [line["env_steps"] for line in evaluations],
        "wall_s_at": [round(line["wall_s"], 2) for line in evaluations],
        "return_mean": [round(line["return_mean"], 2) for line in evaluations],
        "training": of_training(metrics),
    }


def run(arguments):
    machine = runs.machine()
    config = tomllib.loads(Path(arguments.config).read_text())
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        found = list(pool.map(lambda seed: one(arguments, seed), range(arguments.first_seed, arguments.first_seed + arguments.seeds)))
    changed = dict(override.split("=", 1) for override in arguments.set)
    result = {
        "config": str(arguments.config), "preset": config, "set": arguments.set, "jobs": arguments.jobs,
        "environment": changed.get("environment.id", config["environment"]["id"]),
        "algorithm": changed.get("algorithm.name", config["algorithm"]["name"]), "machine": machine, "runs": found,
    }
    rows = [
        {
            "seed": one["seed"], "steps": one["env_steps"], "updates": one["updates"], "wall (s)": one["wall_s"],
            "best confirmed": round(one["confirmations"][-1]["return_mean"], 1) if one["confirmations"] else "-",
            "last evaluation": one["return_mean"][-1],
            f"last weights, {arguments.episodes} episodes": round(one["last_weights"]["return_mean"], 1),
            **({"last weights hold the goal": one["last_weights"]["return_mean"] >= arguments.goal} if arguments.goal is not None else {}),
        }
        for one in found
    ]
    print(runs.table(rows))
    final = [one["last_weights"]["return_mean"] for one in found]
    print(f"\nlast weights: median {statistics.median(final):.1f} ({min(final):.1f} to {max(final):.1f})   {machine}")
    runs.write(arguments.out, result)


def smoothed(values, over):
    return [statistics.mean(values[max(0, index - over + 1) : index + 1]) for index in range(len(values))]


def plot(arguments):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "shoal"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for colour, path in enumerate(arguments.data):
        data = json.loads(Path(path).read_text())
        for number, one in enumerate(data["runs"]):
            seeds = f"{len(data['runs'])} seed{'s' if len(data['runs']) > 1 else ''}"
            label = f"{data['algorithm']} on {data['environment']}, {seeds}" if number == 0 else None
            steps = [step / 1000 for step in one["env_steps_at"]]
            axes.plot(steps, smoothed(one["return_mean"], arguments.smooth), color=f"C{colour}", alpha=0.7, linewidth=1, label=label)
    for reference in arguments.reference:
        name, value = reference.rsplit("=", 1)
        axes.axhline(float(value), linestyle="--", linewidth=0.8, color="grey")
        axes.annotate(name, (axes.get_xlim()[0], float(value)), fontsize=7, color="grey", va="bottom")
    axes.set_xlabel("environment steps (thousands)")
    axes.set_ylabel("mean return of an evaluation" + (f", mean of {arguments.smooth}" if arguments.smooth > 1 else ""))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(arguments.out, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(dest="task", required=True)
    run_options = tasks.add_parser("run", help="run a preset over seeds")
    run_options.add_argument("config")
    run_options.add_argument("--seeds", type=int, default=5)
    run_options.add_argument("--first-seed", type=int, default=1)
    run_options.add_argument("--jobs", type=int, default=1)
    run_options.add_argument("--episodes", type=int, default=100)
    run_options.add_argument("--goal", type=float, help="say also whether the last weights reach this return")
    run_options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    run_options.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    run_options.add_argument("--limit-s", type=float, default=36_000)
    run_options.add_argument("--out")
    plot_options = tasks.add_parser("plot", help="draw the data of runs")
    plot_options.add_argument("data", nargs="+")
    plot_options.add_argument("--smooth", type=int, default=1, help="evaluations averaged")
    plot_options.add_argument("--reference", action="append", default=[], metavar="NAME=RETURN", help="a horizontal line")
    plot_options.add_argument("--out", required=True)
    arguments = parser.parse_args()
    {"run": run, "plot": plot}[arguments.task](arguments)


if __name__ == "__main__":
    main()
