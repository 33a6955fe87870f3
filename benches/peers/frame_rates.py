#!/usr/bin/env python3
"""The three rates of SAC and TD3 (environment steps, updates, transitions trained per second), and the wall time to a goal: Shoal
as it is, adapting, split in two and with two learners, beside Stable-Baselines3, sbx, Tianshou and RLlib.

    frame_rates.py rates --environments Pendulum-v1 HalfCheetah-v5
    frame_rates.py goals --environments Pendulum-v1 --seeds 3 --best rates.json

`rates` runs each with its default setting and, except the adapting run, with every combination of environment processes and
batch size. The best setting trains most transitions per second. `goals` runs each with its default setting and, if `--best`
names what `rates --out` wrote, with its best setting; *first / it* is the wall time of the first of a task divided by that of each.

Each makes one update per environment step with networks of 256-256 (the libraries' defaults; TD3 of Stable-Baselines3 has
400-300) and may use every core. All take turns, round by round.

Rates are measured once learning has begun, Shoal's from its metrics, the libraries' from their counters. The rates of the
adapting run are those of another run, with the options of its closing report.

A goal counts when fresh episodes confirm it (confirmation.py). A library's time does not include routine evaluations,
imports and building, but it includes the compilation of sbx's first updates, 3 to 4 s. Shoal's time is from the start of the
command to its exit.

The first start makes a virtual environment beside this file (git-ignored) and installs requirements.txt into it.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402

# Of each environment: the preset, Shoal's id of the environment if the preset has another one, the goal, and the environment
# steps between two evaluations of a library whose batches have 256 transitions. A goal of -160 on Pendulum would be so near to
# the best mean return that it would be luck whether fresh episodes confirm it.
ENVIRONMENTS = {
    "Pendulum-v1": ("pendulum", None, -200, 500),
    "HalfCheetah-v5": ("halfcheetah", None, 1500, 2500),
    "Hopper-v5": ("hopper", None, 1000, 2500),
    "Walker2d-v5": ("hopper", "mujoco:Walker2d-v5", 1000, 2500),
}
SETTINGS = [(processes, batch_size) for processes in (1, 2) for batch_size in (256, 1024, 4096)]
LIBRARIES = ["sb3", "sbx", "tianshou", "rllib"]
# An adapting run may come to this batch, and no run may learn from fewer transitions than a batch has.
LARGEST_ADAPTED_BATCH = 1024
VARIANTS = {
    "Shoal": [],
    "Shoal adapting": [
        "adaptation.enabled=true", "adaptation.hold=updates_per_step", "adaptation.freeze_after=1",
        f"adaptation.largest_batch={LARGEST_ADAPTED_BATCH}",
    ],
    "Shoal split": ["learner.split=actor_critic"],
    "Shoal, two learners": ["learner.count=2"],
}
# Rates are measured while a run learns, so that begins early, and nothing ends the run.
FOR_RATES = [*runs.WATCHED, "actor.random_steps=1000", f"replay.min_size={LARGEST_ADAPTED_BATCH}"]


def overrides_of(environment, setting, seed):
    """The overrides that make a preset of Shoal comparable with the libraries' defaults."""
    _, identifier, *_ = ENVIRONMENTS[environment]
    processes, batch_size = setting or (1, 256)
    # All variants begin to learn alike. The preset of Pendulum has 1,000, those of the other tasks 10,000.
    begins_early = environment == "Pendulum-v1" or batch_size > LARGEST_ADAPTED_BATCH
    return [
        "network.hidden=[256,256]", f"actor.count={processes}", f"learner.batch_size={batch_size}", f"run.seed={seed}",
        f"replay.samples_per_insert={batch_size}",
        *([f"replay.min_size={max(batch_size, LARGEST_ADAPTED_BATCH)}"] if begins_early else []),
        *([f"environment.id={identifier}"] if identifier else []),
    ]


def preset(environment, algorithm):
    return runs.ROOT / f"configs/{ENVIRONMENTS[environment][0]}_{algorithm}.toml"


def our_rates(arguments, algorithm, environment, setting, variant, seed):
    config = preset(environment, algorithm)
    overrides = [*FOR_RATES, *overrides_of(environment, setting, seed), *VARIANTS[variant]]
    if "adapting" in variant:
        overrides = fitted(arguments, config, overrides)
    with runs.Run(arguments.supervisor, config, overrides) as run:
        run.wait_until("updates", 50)
        rate, cores = runs.watch(run, arguments.seconds)
    found = {"env_steps_per_s": rate("env_steps"), "updates_per_s": rate("updates"), "samples_per_s": rate("learned")}
    return {**found, "cores": sum(cores)}


def fitted(arguments, config, overrides):
    """The overrides that an adapting run ends with, for a run without a search, whose rates are never those of a setting on trial."""
    with runs.Run(arguments.supervisor, config, [*overrides, f"run.stop_wall_s={arguments.search_s}"]) as run:
        run.wait(arguments.search_s + 60)
        return [*(override for override in overrides if not override.startswith("adaptation.")), *run.fitted()]


def our_goal(arguments, algorithm, environment, setting, variant, seed):
    goal = ENVIRONMENTS[environment][2]
    end = [f"run.stop_eval_return={goal}", f"run.stop_wall_s={arguments.limit_s}", "run.stop_env_steps=1000000000"]
    overrides = [*overrides_of(environment, setting, seed), *VARIANTS[variant], *end]
    cpu_before = ended_cpu_seconds()
    with runs.Run(arguments.supervisor, preset(environment, algorithm), overrides) as run:
        outcome = run.outcome(arguments.limit_s + 120)
    return {**outcome, "cpu_s": ended_cpu_seconds() - cpu_before}


def ended_cpu_seconds():
    """Processor time of the child processes of this process that have ended, with their own child processes."""
    times = os.times()
    return times.children_user + times.children_system


def theirs(interpreter, **job):
    return peers.answer(interpreter, HERE / "trainers/drive.py", json.dumps(job))


def named(who, setting):
    return who if setting is None else f"{who}: {setting[0]} x {setting[1]}"


def measured(arguments, algorithm, environment, contestants, measure):
    """The measurements of every contestant, by its name. Contestants take turns, round by round."""
    found = {}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for who, setting in contestants:
            one = measure(algorithm, environment, who, setting, seed)
            if "lacks" not in one:
                found.setdefault(named(who, setting), []).append(one)
            print(environment, algorithm, named(who, setting), seed, one, file=sys.stderr, flush=True)
    return found


def rates(arguments, interpreter):
    def measure(algorithm, environment, who, setting, seed):
        if who in VARIANTS:
            return our_rates(arguments, algorithm, environment, setting, who, seed)
        job = {"library": who, "algorithm": algorithm, "environment": environment, "setting": setting, "seed": seed}
        return theirs(interpreter, **job, seconds=arguments.seconds)

    contestants = [(who, None) for who in (*arguments.variants, *arguments.libraries)]
    if not arguments.as_they_come:
        searched = [who for who in (*arguments.variants, *arguments.libraries) if "adapting" not in who]
        contestants += [(who, setting) for setting in SETTINGS for who in searched]
    for environment in arguments.environments:
        for algorithm in arguments.algorithms:
            found = measured(arguments, algorithm, environment, contestants, measure)
            median = {
                name: {key: statistics.median(one[key] for one in all_of) for key in all_of[0] if key != "version"}
                for name, all_of in found.items()
            }
            best = {}
            for name, figures in median.items():
                who = name.partition(":")[0]
                if who not in best or figures["samples_per_s"] > median[best[who]]["samples_per_s"]:
                    best[who] = name
            for name, figures in median.items():
                yield {
                    "environment": environment, "algorithm": algorithm, "who": name,
                    "best of its own": name == best[name.partition(":")[0]],
                    **{key: round(value, 1) for key, value in figures.items()}, "version": found[name][0].get("version", ""),
                }


def goals(arguments, interpreter):
    def measure(algorithm, environment, who, setting, seed):
        if who in VARIANTS:
            return our_goal(arguments, algorithm, environment, setting, who, seed)
        _, _, goal, every = ENVIRONMENTS[environment]
        if setting:
            # The steps of larger batches take longer. A goal is to be noticed about as soon.
            every = max(100, every * 256 // setting[1])
        job = {"library": who, "algorithm": algorithm, "environment": environment, "setting": setting, "seed": seed}
        return theirs(interpreter, **job, goal=goal, every=every, limit_s=arguments.limit_s)

    best = json.loads(Path(arguments.best).read_text())["rows"] if arguments.best else []
    for environment in arguments.environments:
        for algorithm in arguments.algorithms:
            names = [*arguments.variants, *arguments.libraries]
            contestants = [(who, None) for who in names]
            for row in best:
                who, _, setting = row["who"].partition(": ")
                asked = (row["environment"], row["algorithm"]) == (environment, algorithm) and who in names
                if asked and row["best of its own"] and setting:
                    contestants.append((who, tuple(map(int, setting.split(" x ")))))
            found = measured(arguments, algorithm, environment, contestants, measure)
            walls_s = {name: statistics.median(one["wall_s"] for one in all_of) for name, all_of in found.items()}
            first = next(iter(walls_s), None)
            for name, all_of in found.items():
                yield {
                    "environment": environment, "algorithm": algorithm, "who": name,
                    "wall (s)": round(walls_s[name], 1), "first / it": round(walls_s[first] / walls_s[name], 2),
                    "CPU-seconds": round(statistics.median(one["cpu_s"] for one in all_of), 1),
                    "steps": int(statistics.median(one["env_steps"] for one in all_of)),
                    "confirmed": f"{sum(one['confirmed'] for one in all_of)} of {len(all_of)}",
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rates", "goals"])
    parser.add_argument("--environments", nargs="*", choices=list(ENVIRONMENTS), default=list(ENVIRONMENTS))
    parser.add_argument("--algorithms", nargs="*", choices=["sac", "td3"], default=["sac", "td3"])
    parser.add_argument("--variants", nargs="*", choices=list(VARIANTS), default=list(VARIANTS), help="of Shoal")
    parser.add_argument("--libraries", nargs="*", choices=LIBRARIES, default=LIBRARIES)
    parser.add_argument("--seeds", type=int, default=3, help="rounds, each with the next seed")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement of rates")
    parser.add_argument("--as-they-come", action="store_true", help="rates of default settings alone")
    parser.add_argument("--search-s", type=float, default=120, help="how long an adapting run searches before its rates are measured")
    parser.add_argument("--limit-s", type=float, default=1800, help="a goal not confirmed within this time counts as taking this long")
    parser.add_argument("--best", help="what `rates --out` wrote: `goals` also runs the best setting of each")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if not arguments.variants and not arguments.libraries:
        parser.error("name a variant of Shoal or a library")
    rows = []
    for row in {"rates": rates, "goals": goals}[arguments.what](arguments, peers.python()):
        rows.append(row)
        print(runs.table([row]), flush=True)
        runs.write(arguments.out, {"machine": runs.machine(), "rows": rows})
    if rows:
        print(f"\n{runs.table(rows)}\n\n{runs.machine()}")


if __name__ == "__main__":
    main()
