"""DQN with prioritized replay on CartPole-v1, in one file.

    python cleanrl_dqn.py --total-steps 30000 --seed 1

In the style of CleanRL: everything that matters is in this file, from top to bottom. Needs PyTorch and Gymnasium.
"""

import argparse
import random
import time
from collections import deque
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import shoal


@dataclass
class Arguments:
    """What can be set on the command line."""

    env_id: str = "CartPole-v1"
    """environment, with a vector observation and discrete actions"""
    seed: int = 1
    """seed of everything that is random"""
    total_steps: int = 30_000
    """environment steps"""
    learning_rate: float = 1e-3
    """step size of Adam"""
    gamma: float = 0.99
    """discount per step"""
    n_step: int = 3
    """steps whose rewards are added up before the value of the next observation"""
    capacity: int = 20_000
    """transitions in the replay"""
    alpha: float = 0.6
    """exponent of priorities: 0 is uniform"""
    beta: float = 0.4
    """exponent of importance weights at the start; it grows to 1"""
    batch_size: int = 64
    """transitions per update"""
    learning_starts: int = 1_000
    """environment steps before the first update"""
    train_every: int = 2
    """environment steps per update"""
    target_every: int = 500
    """environment steps between two copies of the network to the target network"""
    epsilon_end: float = 0.05
    """probability of a random action at the end of exploration"""
    exploration_fraction: float = 0.3
    """part of the run over which that probability falls from 1"""


def parse_arguments() -> Arguments:
    """Read the command line: one option per field."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in fields(Arguments):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type, default=field.default)
    return Arguments(**vars(parser.parse_args()))


class QNetwork(nn.Sequential):
    """From an observation to one value per action."""

    def __init__(self, observation_size: int, actions: int) -> None:
        super().__init__(
            nn.Linear(observation_size, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, actions),
        )


def train(args: Arguments) -> list[float]:
    """Train a network; returns the returns of all episodes, in order."""
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id))
    env.action_space.seed(args.seed)
    size, actions = env.observation_space.shape[0], int(env.action_space.n)

    network, target = QNetwork(size, actions), QNetwork(size, actions)
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)

    draws = args.total_steps // args.train_every * args.batch_size
    replay = shoal.Replay(
        args.capacity,
        {
            "observation": shoal.Field((size,)),
            "action": shoal.Field((), "int64"),
            "reward": shoal.Field(),
            "next_observation": shoal.Field((size,)),
            "terminated": shoal.Field((), "bool"),
            "truncated": shoal.Field((), "bool"),
            # The discount of the next value: gamma to the power of the number of steps, or zero after a termination.
            # The replay fills it in.
            "discount": shoal.Field(),
        },
        alpha=args.alpha,
        beta=(args.beta, 1.0, draws),
        n_step=shoal.NStep(args.n_step, args.gamma, discount="discount"),
        seed=args.seed,
    )

    returns: list[float] = []
    recent: deque[float] = deque(maxlen=20)
    started = time.monotonic()
    observation, _ = env.reset(seed=args.seed)
    for step in range(args.total_steps):
        # ACT: at random, with a probability that falls.
        explored = min(1.0, step / (args.exploration_fraction * args.total_steps))
        if random.random() < 1.0 + (args.epsilon_end - 1.0) * explored:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = network(torch.from_numpy(observation)).argmax().item()
        next_observation, reward, terminated, truncated, info = env.step(action)

        # REMEMBER: the replay makes n-step transitions of the steps.
        replay.add(
            {
                "observation": observation,
                "action": action,
                "reward": reward,
                "next_observation": next_observation,
                "terminated": terminated,
                "truncated": truncated,
            }
        )
        observation = next_observation
        if terminated or truncated:
            returns.append(float(info["episode"]["r"]))
            recent.append(returns[-1])
            observation, _ = env.reset()
            if len(returns) % 20 == 0:
                speed = (step + 1) / (time.monotonic() - started)
                print(f"step {step + 1:6d}  mean return {np.mean(recent):5.1f}  beta {replay.beta:.2f}  {speed:.0f} Hz")

        # LEARN, mostly from transitions with large errors.
        if step >= args.learning_starts and step % args.train_every == 0:
            batch = replay.sample(args.batch_size)
            data = {name: torch.from_numpy(batch[name]) for name in batch}
            with torch.no_grad():
                next_values = target(data["next_observation"]).amax(dim=1)
                targets = data["reward"] + data["discount"] * next_values
            values = network(data["observation"]).gather(1, data["action"][:, None]).squeeze(1)
            losses = functional.smooth_l1_loss(values, targets, reduction="none")
            optimizer.zero_grad()
            (torch.from_numpy(batch.weights) * losses).mean().backward()
            optimizer.step()
            replay.update_priorities(batch, (targets - values).abs().detach().numpy())

        if step % args.target_every == 0:
            target.load_state_dict(network.state_dict())
    env.close()
    return returns


if __name__ == "__main__":
    train(parse_arguments())
