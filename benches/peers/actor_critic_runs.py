#!/usr/bin/env python3
"""Wall time to the same score: Shoal's presets of SAC and TD3 beside Stable-Baselines3 and sbx, on the same machine.

All three use the settings of the preset: networks, batch, updates per environment step, step sizes, discount, random steps,
replay. The score is the mean return of greedy episodes. It counts when fresh episodes with the same weights confirm it
(confirmation.py; as many as the preset asks for). Each library may use every core of the machine, as it does by default.
Runs take turns.

The libraries are evaluated every EVERY environment steps. Their time does not include these evaluations, imports and (sbx)
the compilation of the first update. It includes confirmations, except in the columns *training only*, from which the
libraries' rates come. Shoal's time is from the start of the command to its exit.

The first start makes a virtual environment beside this file (git-ignored) and installs requirements.txt into it.
"""

import argparse
import json
import statistics
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402


def peer(library, preset, seed, goal, every):
    """One run of a library with the settings of a preset, in the virtual environment."""
    import gymnasium
    import numpy
    from stable_baselines3.common.noise import NormalActionNoise
    from confirmation import EPISODES, UntilConfirmed

    config = tomllib.loads(Path(preset).read_text())
    environment = config["environment"]["id"].partition(":")[2] or config["environment"]["id"]
    algorithm, learner, replay, evaluator = config["algorithm"], config["learner"], config["replay"], config["evaluator"]
    updates_per_step = replay["samples_per_insert"] / learner["batch_size"]
    assert updates_per_step == int(updates_per_step), "a library makes whole updates per step"
    extra = {}
    if library == "sb3":
        import stable_baselines3 as algorithms

        extra["device"] = "cpu"
    else:
        import sbx as algorithms
    if "exploration_noise_std" in algorithm:
        size = gymnasium.make(environment).action_space.shape[0]
        extra["action_noise"] = NormalActionNoise(numpy.zeros(size), algorithm["exploration_noise_std"] * numpy.ones(size))

    model = getattr(algorithms, algorithm["name"].upper())(
        "MlpPolicy", environment, seed=seed, batch_size=learner["batch_size"], buffer_size=replay["capacity"],
        learning_rate=learner["learning_rate"], gamma=algorithm["gamma"], tau=0.005, learning_starts=replay["min_size"], train_freq=1,
        gradient_steps=int(updates_per_step), policy_kwargs={"net_arch": config["network"]["hidden"]}, **extra,
    )
    if library == "sbx":
        compile_updates(model, learner["batch_size"], int(updates_per_step))
    until_confirmed = UntilConfirmed(
        environment, goal, first=replay["min_size"] + every, every=every, episodes=evaluator["episodes"],
        confirm_episodes=evaluator.get("confirm_episodes", EPISODES),
    )
    started = time.perf_counter()
    model.learn(config["run"]["stop_env_steps"], callback=until_confirmed)
    total_s = time.perf_counter() - started
    wall_s = total_s - until_confirmed.evaluation_s
    confirmation = until_confirmed.confirmation
    print(json.dumps({
        "version": algorithms.__version__, "wall_s": wall_s, "training_s": wall_s - confirmation.spent_s, "env_steps": model.num_timesteps,
        "updates": model._n_updates, "confirmations": confirmation.attempts, "mean": confirmation.mean, "confirmed": confirmation.confirmed,
    }))


def compile_updates(model, batch_size, updates):
    """Lets sbx compile the updates of this model (the compilation of another model does not serve it), and undoes what that changed."""
    import numpy
    from stable_baselines3.common.logger import configure

    before = [(part, dict(vars(part))) for part in (model, model.policy)]
    random_state = numpy.random.get_state()
    model.set_logger(configure(None, []))
    observation, action = (numpy.zeros((1, *space.shape), numpy.float32) for space in (model.observation_space, model.action_space))
    for _ in range(batch_size):
        model.replay_buffer.add(observation, observation, action, [0.0], [False], [{}])
    for deterministic in (False, True):
        model.predict(observation, deterministic=deterministic)
    # TD3 has two kinds of update: with its policy and without.
    for _ in range(2):
        model.train(updates, batch_size)
    for part, attributes in before:
        vars(part).update(attributes)
    numpy.random.set_state(random_state)
    model.replay_buffer.reset()


def ours(arguments, preset, seed, goal):
    overrides = [f"run.seed={seed}", f"run.stop_eval_return={goal}", *arguments.set]
    with runs.Run(arguments.supervisor, preset, overrides) as run:
        return run.outcome(36_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--preset", action="append", nargs=3, metavar=("FILE", "GOAL", "EVERY"), help="default: Pendulum-v1 and HalfCheetah-v5"
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--libraries", nargs="*", default=["sb3", "sbx"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for Shoal")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    parser.add_argument("--peer", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        library, preset, seed, goal, every = arguments.peer
        return peer(library, preset, int(seed), float(goal), int(every))
    configs = runs.ROOT / "configs"
    presets = arguments.preset or [
        [configs / f"{file}_{algorithm}.toml", goal, every]
        for file, goal, every in (("pendulum", -200, 500), ("halfcheetah", 1500, 2500))
        for algorithm in ("sac", "td3")
    ]
    interpreter = peers.python()
    rows, versions = [], {}
    for preset, goal, every in presets:
        found = {who: [] for who in ("Shoal", *arguments.libraries)}
        for seed in range(1, arguments.seeds + 1):
            found["Shoal"].append(ours(arguments, preset, seed, float(goal)))
            print(Path(preset).stem, seed, "Shoal", found["Shoal"][-1], file=sys.stderr, flush=True)
            for library in arguments.libraries:
                found[library].append(peers.answer(interpreter, __file__, "--peer", library, preset, seed, goal, every))
                versions[library] = found[library][-1]["version"]
                print(Path(preset).stem, seed, library, found[library][-1], file=sys.stderr, flush=True)
        row = {"preset": Path(preset).stem, "goal": goal}
        median = {who: statistics.median(one["wall_s"] for one in all_of) for who, all_of in found.items()}
        for who, all_of in found.items():
            confirmed = sum(one["confirmed"] for one in all_of)
            steps, updates = (statistics.median(one[key] for one in all_of) for key in ("env_steps", "updates"))
            # Shoal has no separate training time: its rates count everything.
            training_s = statistics.median(one.get("training_s", one["wall_s"]) for one in all_of)
            row[f"{who} (s)"] = round(median[who], 1)
            if who != "Shoal":
                row[f"{who} training only (s)"] = round(training_s, 1)
            row |= {
                f"{who} steps": int(steps), f"{who} steps/s": round(steps / training_s, 1),
                f"{who} updates/s": round(updates / training_s, 1), f"{who} confirmed": f"{confirmed} of {len(all_of)}",
            }
        row |= {f"{library} / Shoal": round(median[library] / median["Shoal"], 2) for library in arguments.libraries}
        rows.append(row)
        print(runs.table([rows[-1]]), flush=True)
    print(f"\n{runs.table(rows)}\n\n{versions} {runs.machine()}")
    runs.write(arguments.out, {"machine": runs.machine(), "versions": versions, "rows": rows})


if __name__ == "__main__":
    main()
