#!/usr/bin/env python3
"""Wall time to the same score on Pong from pixels: Shoal's preset beside Stable-Baselines3, each with its own settings.

Shoal takes `configs/pong_ppo.toml` or, with `--algorithm dqn`, `configs/pong_dqn.toml`, which are made for Pong: 42 x 42 pixels.
Stable-Baselines3 takes the settings that rl-baselines3-zoo has for that algorithm on all Atari games: 84 x 84 pixels; PPO
with eight games, DQN with one game, 100,000 random steps and exploration that falls within a million steps. So this compares
what a user of each gets, not two implementations. `--schedule ours` gives the library's DQN our exploration, first steps,
step size, target network and replay. Both play without sticky actions.

Evaluated policies play greedily, so there are only thirty different games, one for each number of frames without an action at
the start. When the mean of routine games reaches the goal, 100 more games with the same weights decide (confirmation.py).

The time of Stable-Baselines3 does not include imports and evaluations, and `training_s` does not include confirmations
either, during which it does not train. Shoal evaluates beside the training; its time includes everything. Stable-Baselines3
uses torch's default number of threads.

Shoal runs first. The library may then train for `--times` Shoal's wall time, or for `--seconds` with `--library-only`.

The first start makes a virtual environment beside this file (git-ignored) and installs requirements.txt into it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402

GAMES = 5
# rl-baselines3-zoo's settings of PPO for Atari games. Step size and clip range fall to 0 over ten million steps.
PPO = {"n_steps": 128, "n_epochs": 4, "batch_size": 256, "vf_coef": 0.5, "ent_coef": 0.01}
DQN = {
    # rl-baselines3-zoo's settings of DQN for Atari games.
    "zoo": {"buffer_size": 100_000, "learning_rate": 1e-4, "learning_starts": 100_000, "target_update_interval": 1_000,
            "exploration_fraction": 0.1},
    # The settings of our preset. The target network is copied every 2,000 steps, which are 500 updates.
    "ours": {"buffer_size": 300_000, "learning_rate": 2.5e-4, "learning_starts": 10_000, "target_update_interval": 2_000,
             "exploration_fraction": 0.005, "n_steps": 5},
}


def library(algorithm, seed, goal, limit_s, every, schedule):
    """Trains until fresh games confirm the goal or the time is over. Prints a line of JSON for each evaluation."""
    import ale_py
    import gymnasium
    import stable_baselines3
    from confirmation import Confirmation
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)

    def games(count, first_seed):
        game = {"frameskip": 1, "repeat_action_probability": 0.0}
        return VecFrameStack(make_atari_env("ALE/Pong-v5", n_envs=count, seed=first_seed, env_kwargs=game), 4)

    class Watched(BaseCallback):
        def __init__(self):
            super().__init__()
            self.routine = games(GAMES, 10_000)
            self.evaluation_s = 0.0
            self.confirmation = None
            self.next = every

        def training_s(self, wall_s):
            return wall_s - (self.confirmation.spent_s if self.confirmation else 0.0)

        def _on_step(self):
            now = time.perf_counter()
            if self.training_s(now - started - self.evaluation_s) > limit_s:
                return False
            if self.num_timesteps < self.next:
                return True
            self.next += every
            mean, _ = evaluate_policy(self.model, self.routine, n_eval_episodes=GAMES, deterministic=True, warn=False)
            self.evaluation_s += time.perf_counter() - now
            if mean >= goal:
                self.confirmation = self.confirmation or Confirmation(games(20, 20_000), goal)
                self.confirmation(self.model)
            confirmed = self.confirmation is not None and self.confirmation.confirmed
            wall_s = time.perf_counter() - started - self.evaluation_s
            answer = {
                "version": stable_baselines3.__version__, "confirmed": confirmed, "wall_s": round(wall_s, 1),
                "training_s": round(self.training_s(wall_s), 1), "env_steps": self.num_timesteps, "updates": self.model._n_updates,
                "mean": float(mean),
            }
            print(json.dumps(answer), flush=True)
            return not confirmed

    if algorithm == "ppo":
        falling = {"learning_rate": lambda left: 2.5e-4 * left, "clip_range": lambda left: 0.1 * left}
        model = stable_baselines3.PPO("CnnPolicy", games(8, seed), seed=seed, device="cpu", **PPO, **falling)
    else:
        model = stable_baselines3.DQN(
            "CnnPolicy", games(1, seed), seed=seed, device="cpu", batch_size=32, train_freq=4, gradient_steps=1, exploration_final_eps=0.01,
            **DQN[schedule],
        )
    started = time.perf_counter()
    model.learn(10_000_000, callback=Watched())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goal", type=float, default=18.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=float, default=2.0, help="time limit of the library as a multiple of Shoal's wall time")
    parser.add_argument("--every", type=int, default=20_000, help="steps between the library's evaluations")
    parser.add_argument("--library-only", action="store_true")
    parser.add_argument("--seconds", type=float, help="time limit of the library, with --library-only")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--algorithm", choices=["ppo", "dqn"], default="ppo")
    parser.add_argument("--schedule", choices=["zoo", "ours"], default="zoo", help="of the library's DQN")
    parser.add_argument("--peer", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        algorithm, seed, goal, limit_s, every, schedule = arguments.peer
        return library(algorithm, int(seed), float(goal), float(limit_s), int(every), schedule)
    if arguments.library_only:
        if arguments.seconds is None:
            parser.error("--library-only needs --seconds")
        limit_s = arguments.seconds
    else:
        preset = runs.ROOT / f"configs/pong_{arguments.algorithm}.toml"
        with runs.Run(arguments.supervisor, preset, [f"run.seed={arguments.seed}", f"run.stop_eval_return={arguments.goal}"]) as run:
            ours = run.outcome(36_000)
        print("Shoal: {wall_s:.0f} s, {env_steps} steps, {updates} updates, confirmed: {confirmed}".format(**ours), flush=True)
        limit_s = arguments.times * ours["wall_s"]
    job = [arguments.algorithm, arguments.seed, arguments.goal, limit_s, arguments.every, arguments.schedule]
    command = [peers.python(), __file__, "--peer", *job]
    subprocess.run([str(word) for word in command], check=True)
    print(f"limit {limit_s:.0f} s; {runs.machine()}")


if __name__ == "__main__":
    main()
