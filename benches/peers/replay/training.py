#!/usr/bin/env python3
"""Whole sequential training loops at equal settings, with the library's own buffer and with Shoal's in its place.

Stable-Baselines3's DQN takes its uniform buffer, Shoal's as a uniform one (`ShoalReplayBuffer`), and Shoal's prioritized
(`PrioritizedDQN`, more work per update than uniform). Tianshou's DQN takes its prioritized buffer and Shoal's. Every run is
a process of its own; variants take turns in random order, seed by seed. The clocks run around the loop alone: imports,
environments and the evaluation after it do not count.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import report

WATCHDOG_S = 900
# Settings of rl-baselines3-zoo; the number of steps is a fraction of theirs.
STABLE_BASELINES3 = {
    "CartPole-v1": {
        "steps": 10_000, "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
        "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128, "exploration_fraction": 0.16, "exploration_final_eps": 0.04,
    },
    "LunarLander-v3": {
        "steps": 5_000, "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 1000,
        "target_update_interval": 250, "train_freq": 4, "gradient_steps": 4, "exploration_fraction": 0.12, "exploration_final_eps": 0.1,
    },
}
TIANSHOU_ENVIRONMENTS, TIANSHOU_STEPS = 10, 5_000
VARIANTS = {
    **{f"Stable-Baselines3 DQN {name}": ["its uniform buffer", "Shoal, uniform", "Shoal, prioritized"] for name in STABLE_BASELINES3},
    "Tianshou DQN CartPole-v1": ["its prioritized buffer", "Shoal, prioritized"],
}


def timed(loop):
    wall_before, processor_before = time.perf_counter(), time.process_time()
    loop()
    return {"wall_s": time.perf_counter() - wall_before, "processor_s": time.process_time() - processor_before}


def stable_baselines3(environment, variant, seed):
    import gymnasium
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    settings = dict(STABLE_BASELINES3[environment])
    steps = settings.pop("steps")
    algorithm = DQN
    if variant != "its uniform buffer":
        from shoal.adapters.stable_baselines3 import PrioritizedDQN, ShoalReplayBuffer

        if variant == "Shoal, prioritized":
            algorithm = PrioritizedDQN
        else:
            settings |= {"replay_buffer_class": ShoalReplayBuffer, "replay_buffer_kwargs": {"prioritized": False}}
    model = algorithm(
        "MlpPolicy", gymnasium.make(environment), seed=seed, device="cpu", gamma=0.99, policy_kwargs={"net_arch": [256, 256]}, **settings,
    )
    figures = timed(lambda: model.learn(steps))
    mean, _ = evaluate_policy(model, gymnasium.make(environment), n_eval_episodes=20, warn=False)
    return figures | {"updates": model._n_updates, "env_steps": model.num_timesteps, "return_mean": float(mean)}


def tianshou(environment, variant, seed):
    import gymnasium
    import numpy
    import torch
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, PrioritizedVectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.utils.net.common import Net

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    environments = DummyVectorEnv([lambda: gymnasium.make(environment) for _ in range(TIANSHOU_ENVIRONMENTS)])
    environments.seed(seed)
    spaces = gymnasium.make(environment)
    network = Net(state_shape=spaces.observation_space.shape, action_shape=spaces.action_space.n, hidden_sizes=[128, 128, 128])
    policy = DiscreteQLearningPolicy(
        model=network, action_space=spaces.action_space, observation_space=spaces.observation_space, eps_training=0.1, eps_inference=0.0,
    )
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.9, n_step_return_horizon=3, target_update_freq=320)
    buffer_class = PrioritizedVectorReplayBuffer
    if variant == "Shoal, prioritized":
        from shoal.adapters.tianshou import ShoalVectorReplayBuffer as buffer_class
    buffer = buffer_class(20_000, TIANSHOU_ENVIRONMENTS, alpha=0.6, beta=0.4)
    collector = Collector(algorithm, environments, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=1000)
    updates = 0

    def loop():
        """What Tianshou's trainer does, without its progress bars, logs and tests: ten steps, two updates."""
        nonlocal updates
        from tianshou.utils.torch_utils import policy_within_training_step, torch_train_mode

        with policy_within_training_step(policy):
            for _ in range(TIANSHOU_STEPS // TIANSHOU_ENVIRONMENTS):
                collector.collect(n_step=TIANSHOU_ENVIRONMENTS)
                with torch_train_mode(policy):
                    for _ in range(2):
                        algorithm.update(buffer=buffer, sample_size=64)
                        updates += 1

    figures = timed(loop)
    test = Collector(algorithm, DummyVectorEnv([lambda: gymnasium.make(environment)]))
    test.reset()
    return figures | {"updates": updates, "env_steps": TIANSHOU_STEPS, "return_mean": float(test.collect(n_episode=20).returns.mean())}


def child(case, variant, seed):
    library, environment = case.split(" DQN ")
    run = stable_baselines3 if library.startswith("Stable") else tianshou
    print(json.dumps(run(environment, variant, int(seed))))


def one(case, variant, seed):
    command = [sys.executable, str(Path(__file__).resolve()), "--child", case, variant, str(seed)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S)
    if answer.returncode:
        raise RuntimeError(f"{case}, {variant}, seed {seed} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(VARIANTS), metavar="CASE", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder for the table and the JSON file")
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    result = report.start(["shoal", "stable_baselines3", "tianshou"])
    records, runs_of = [], {}
    for seed in range(1, arguments.seeds + 1):
        turns = [(case, variant) for case in arguments.cases for variant in VARIANTS[case]]
        for case, variant in random.Random(seed).sample(turns, len(turns)):
            runs_of.setdefault((case, variant), []).append(one(case, variant, seed))
            print(f"{case}, {variant}, seed {seed}: {runs_of[case, variant][-1]}", flush=True)
    for case in arguments.cases:
        own = VARIANTS[case][0]
        for variant in VARIANTS[case]:
            runs = runs_of[case, variant]

            def median(key, runs=runs):
                return statistics.median(run[key] for run in runs)

            def ratio(key, case=case, runs=runs, own=own):
                """The median of the seeds' ratios: the runs of a seed follow each other, so disturbances affect both."""
                return statistics.median(before[key] / now[key] for before, now in zip(runs_of[case, own], runs))

            records.append({
                "loop": case, "buffer": variant, "processor (s)": round(median("processor_s"), 1), "wall (s)": round(median("wall_s"), 1),
                "updates": int(median("updates")), "return after it": round(median("return_mean"), 1),
                "times as fast (processor)": round(ratio("processor_s"), 2), "times as fast (wall)": round(ratio("wall_s"), 2),
            })
    result |= {"records": records, "runs": [{"loop": case, "buffer": variant, "runs": some} for (case, variant), some in runs_of.items()]}
    report.finish(arguments, "training", result, f"Medians of {arguments.seeds} seeds.\n\n{report.runs.table(records)}")


if __name__ == "__main__":
    main()
