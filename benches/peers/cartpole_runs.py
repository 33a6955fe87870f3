#!/usr/bin/env python3
"""Shoal's DQN or PPO beside Stable-Baselines3's on CartPole-v1: wall time to the same confirmed score, on the same machine.

Stable-Baselines3 runs with the tuned settings of rl-baselines3-zoo and is judged as Shoal is: when 20 greedy episodes
average 475, 100 fresh episodes with the same weights must confirm it (confirmation.py), which ends the run. Runs are
interleaved, seed by seed.

The time of Stable-Baselines3 does not include imports and routine evaluations; it is given with and without confirmations.
Shoal's time is from the start of the command to its exit, with start-up, evaluations and confirmations. Stable-Baselines3
gets one torch thread (its networks are small: it is slower with two, see --threads).

The first start makes a virtual environment beside this file (git-ignored) and installs requirements.txt into it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402

GOAL, EPISODES = 475.0, 20
# Three times the zoo's budget.
MOST_STEPS = {"dqn": 150_000, "ppo": 300_000}


def dqn(seed, most_steps):
    import gymnasium
    from stable_baselines3 import DQN

    return DQN(
        "MlpPolicy", gymnasium.make("CartPole-v1"), seed=seed, device="cpu", learning_rate=2.3e-3, batch_size=64, buffer_size=100_000,
        learning_starts=1000, gamma=0.99, target_update_interval=10, train_freq=256, gradient_steps=128,
        exploration_fraction=0.16 * 50_000 / most_steps, exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]},
    )


def ppo(seed, most_steps):
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    # Step size and clip range fall over the zoo's 100,000 steps, and stay small after them.
    left = lambda remaining: max(0.02, 1.0 - (1.0 - remaining) * most_steps / 100_000)  # noqa: E731
    return PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=8, seed=seed), seed=seed, device="cpu", n_steps=32, batch_size=256, gae_lambda=0.8,
        gamma=0.98, n_epochs=20, ent_coef=0.0, learning_rate=lambda remaining: 1e-3 * left(remaining),
        clip_range=lambda remaining: 0.2 * left(remaining),
    )


def peer(algorithm, seed, threads, most_steps):
    """One run of Stable-Baselines3, in the virtual environment."""
    import time

    import torch
    from confirmation import UntilConfirmed

    torch.set_num_threads(threads)

    model = {"dqn": dqn, "ppo": ppo}[algorithm](seed, most_steps)
    # 256 steps are a training phase of both algorithms.
    until_confirmed = UntilConfirmed("CartPole-v1", GOAL, first=1001, every=256, episodes=EPISODES)
    started = time.perf_counter()
    model.learn(most_steps, callback=until_confirmed)
    total = time.perf_counter() - started
    confirmation = until_confirmed.confirmation
    to_confirmed = total - until_confirmed.evaluation_s
    print(json.dumps({
        "total_s": total, "to_confirmed_s": to_confirmed, "training_s": to_confirmed - confirmation.spent_s,
        "env_steps": model.num_timesteps, "updates": model._n_updates,
        "confirmations": confirmation.attempts, "mean": confirmation.mean, "confirmed": confirmation.confirmed,
    }))


def ours(arguments, seed):
    with runs.Run(arguments.supervisor, arguments.config, [f"run.seed={seed}"]) as run:
        return run.outcome(600)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", choices=MOST_STEPS, default="dqn", help="of Stable-Baselines3")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="torch threads of Stable-Baselines3")
    parser.add_argument("--most-steps", type=int, help="default: three times the zoo's budget")
    parser.add_argument("--config", help="default: cartpole_ALGORITHM.toml")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--python", help="a Python that has requirements.txt, instead of the virtual environment")
    parser.add_argument("--out")
    parser.add_argument("--peer", type=int, metavar="SEED", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.most_steps = arguments.most_steps or MOST_STEPS[arguments.algorithm]
    arguments.config = arguments.config or runs.ROOT / f"configs/cartpole_{arguments.algorithm}.toml"
    if arguments.peer is not None:
        return peer(arguments.algorithm, arguments.peer, arguments.threads, arguments.most_steps)
    interpreter = arguments.python or peers.python()
    machine, rows = runs.machine(), []
    for seed in range(1, arguments.seeds + 1):
        other = peers.answer(
            interpreter, __file__, "--peer", seed, "--algorithm", arguments.algorithm, "--threads", arguments.threads,
            "--most-steps", arguments.most_steps,
        )
        own = ours(arguments, seed)
        rows.append({
            "seed": seed,
            "Stable-Baselines3, training only (s)": round(other["training_s"], 1),
            "with confirmations (s)": round(other["to_confirmed_s"], 1), "with evaluations too (s)": round(other["total_s"], 1),
            "its steps": other["env_steps"], "its updates": other["updates"], "it solved": other["confirmed"],
            "Shoal (s)": round(own["wall_s"], 2), "our steps": own["env_steps"], "our updates": own["updates"],
            "we solved": own["confirmed"],
        })
        print(runs.table([rows[-1]]), flush=True)
    ours_s = statistics.median(row["Shoal (s)"] for row in rows)
    columns = ("Stable-Baselines3, training only (s)", "with confirmations (s)")
    ratios = {column: round(statistics.median(row[column] for row in rows) / ours_s, 1) for column in columns}
    print(f"\n{runs.table(rows)}\n\nratios of medians: {ratios}   {machine}")
    runs.write(arguments.out, {"machine": machine, "rows": rows, "ratios_of_medians": ratios})


if __name__ == "__main__":
    main()
