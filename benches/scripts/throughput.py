#!/usr/bin/env python3
"""What the loops do per second: actors, slow environments, learners, start-up, memory.

- actors: 1, 2, 4 (`--actors`) free-running actors of 64 environments with a 64x64 network, one inference per step, every transition
  inserted, with DQN at the priority that the actor computed. The replay's minimum is never reached, so that no learner competes.
- slow: an environment that takes 1 ms more per step, one environment per actor, 1 to 64 actors.
- atari: 1 and 2 free-running actors of 8 games of Pong each, at 42 x 42 with the network of its preset and at 84 x 84 with that of the DQN
  paper, one inference per step, and the memory of an actor.
- learner: updates per processor-second of the learner process, batch 64, at two network sizes, actors throttled to it.
- start: from the start of the command to the first line of metrics with an environment step (the supervisor writes five
  lines a second at most, so the figure is an upper bound).
- memory: proportional and resident set size of every process after three seconds.

Rates are over the second half of each run; processor time is the kernel's, per process.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path

import runs

PONG = runs.ROOT / "configs/pong_dqn.toml"
NO_LEARNING = [
    'replay.samples_per_insert="none"',
    "actor.random_steps=0",
    "replay.capacity=16000000",
    "replay.min_size=16000000",
]


def no_learning(config):
    """Changes with which the run of the file `config` only acts. Only DQN's actors know the errors of what they insert."""
    algorithm = tomllib.loads(Path(config).read_text()).get("algorithm", {}).get("name", "dqn")
    return [*NO_LEARNING, *(["replay.initial_priority=td_error"] if algorithm == "dqn" else [])]


def watch(arguments, overrides, seconds):
    """Starts a run and watches the second half of `seconds`; returns what runs.watch returns."""
    with runs.Run(arguments.supervisor, arguments.config, [*runs.WATCHED, *overrides]) as run:
        time.sleep(seconds / 2)
        return runs.watch(run, seconds / 2)


def actors(arguments):
    rows = []
    for count in arguments.actors:
        # The learner has nothing to do here, so no core is kept free for it.
        overrides = [
            *no_learning(arguments.config), f"actor.count={count}", "actor.environments=64", "actor.flush_transitions=256",
            "machine.affinity=false",
        ]
        rate, cpu = watch(arguments, overrides, arguments.seconds)
        steps = rate("env_steps")
        used = sum(cpu[-count:])
        rows.append({"actors": count, "steps/s": f"{steps:,.0f}", "per processor-second": f"{steps / used:,.0f}"})
    return rows


def atari(arguments):
    rows = []
    for pixels, network in ((42, []), (84, ["network.convolutions=[[32, 8, 4], [64, 4, 2], [64, 3, 1]]", "network.hidden=[512]"])):
        game = f'environment.keyword_arguments={json.dumps(json.dumps({"screen_size": pixels, "repeat_action_probability": 0}))}'
        for count in (1, 2):
            overrides = [
                *runs.WATCHED, 'replay.samples_per_insert="none"', game, *network, f"actor.count={count}", "actor.random_steps=0",
                "machine.affinity=false", "replay.capacity=300000", "replay.min_size=300000",
            ]
            with runs.Run(arguments.supervisor, PONG, overrides) as run:
                # The interpreter and the emulators take a second to start.
                time.sleep(3 + arguments.seconds / 2)
                rate, cpu = runs.watch(run, arguments.seconds / 2)
                memory_mib = runs.memory_kib(run.processes()[-1])["pss"] / 1024
            steps = rate("env_steps")
            rows.append({
                "pixels": pixels, "actors": count, "steps/s": f"{steps:,.0f}",
                "per processor-second": f"{steps / sum(cpu[-count:]):,.0f}", "PSS of an actor (MiB)": f"{memory_mib:.0f}",
            })
    return rows


def slow(arguments):
    rows, first = [], None
    for count in (1, 2, 4, 8, 16, 32, 64):
        overrides = [*no_learning(arguments.config), f"actor.count={count}", "actor.environments=1", "environment.step_delay_us=1000"]
        rate, cpu = watch(arguments, overrides, arguments.seconds)
        steps = rate("env_steps")
        first = first or steps
        share = f"{steps / (count * first):.2f}"
        rows.append({"actors": count, "steps/s": f"{steps:,.0f}", "of proportional": share, "cores used": f"{sum(cpu):.2f}"})
    return rows


def learner(arguments):
    rows = []
    for hidden in ("[64, 64]", "[256, 256]"):
        for double in ("true", "false"):
            overrides = [f"network.hidden={hidden}", f"algorithm.double={double}", "learner.batch_size=64"]
            rate, cpu = watch(arguments, overrides, arguments.seconds)
            row = {"hidden": hidden, "double": double, "updates/s": f"{rate('updates'):,.0f}"}
            rows.append({**row, "per processor-second": f"{rate('updates') / cpu[1]:,.0f}"})
    return rows


def start(arguments):
    rows = []
    for attempt in range(1, 6):
        overrides = [*runs.WATCHED, "run.metrics_interval_s=0.01"]
        with runs.Run(arguments.supervisor, arguments.config, overrides) as run:
            while not any(line["env_steps"] > 0 for line in run.metrics()):
                time.sleep(0.005)
            rows.append({"attempt": attempt, "ms to the first step": round(1000 * (time.monotonic() - run.started))})
    return rows


def memory(arguments):
    with runs.Run(arguments.supervisor, arguments.config, [*runs.WATCHED, "evaluator.enabled=true", "actor.count=2"]) as run:
        time.sleep(3)
        pids = run.processes()
        names = ["sentinel", "learner 0", "actor 0", "actor 1", "evaluator 0"]
        everyone = [("supervisor", run.process.pid), *zip(names, pids)]
        sizes = [{f"{key} (MiB)": round(size / 1024, 1) for key, size in runs.memory_kib(pid).items()} for _, pid in everyone]
        return [{"process": name, **size} for (name, _), size in zip(everyone, sizes)]


PARTS = {"actors": actors, "atari": atari, "slow": slow, "learner": learner, "start": start, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--config", default=runs.ROOT / "configs/cartpole_dqn.toml")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4], help="how many actors, for the part of that name")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    result = {"machine": runs.machine()}
    print(result["machine"])
    for part in arguments.parts or PARTS:
        result[part] = PARTS[part](arguments)
        print(f"\n{part}\n{runs.table(result[part])}", flush=True)
    runs.write(arguments.out, result)


if __name__ == "__main__":
    main()
