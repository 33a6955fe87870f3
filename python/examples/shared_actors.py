"""Two actor processes feed one learner through a shared replay, and one actor is killed on the way.

    python shared_actors.py --updates 10000

The actors open the replay by its name and add to it; the learner samples and writes priorities back. The rate limiter
keeps actors and learner in step. Halfway an actor is killed with SIGKILL: the others go on, and a new actor takes its
place. Parameters travel through PyTorch's shared memory. Needs PyTorch and Gymnasium.
"""

import argparse
import os
import signal
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
import torch.multiprocessing
from torch import nn
from torch.nn import functional

import shoal

ENV_ID, OBSERVATION, ACTIONS = "CartPole-v1", 4, 2
GAMMA, N_STEP = 0.99, 3
EPSILONS = (0.05, 0.3)
"""The probability with which each actor acts at random."""


@dataclass
class Arguments:
    """What can be set on the command line."""

    seed: int = 1
    """seed of everything that is random"""
    updates: int = 10_000
    """updates of the learner"""
    batch_size: int = 64
    """transitions per update"""
    samples_per_insert: float = 32.0
    """how often a transition is drawn on average"""
    capacity: int = 20_000
    """transitions in the replay"""
    publish_every: int = 20
    """updates between two copies of the network to the actors"""
    target_every: int = 250
    """updates between two copies of the network to the target network"""


def make_network() -> nn.Sequential:
    """From an observation to one value per action."""
    return nn.Sequential(
        nn.Linear(OBSERVATION, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, ACTIONS)
    )


def make_replay(args: Arguments) -> shoal.Replay:
    """The replay that all processes share, of 3-step transitions."""
    return shoal.Replay(
        args.capacity,
        {
            "observation": shoal.Field((OBSERVATION,)),
            "action": shoal.Field((), "int64"),
            "reward": shoal.Field(),
            "next_observation": shoal.Field((OBSERVATION,)),
            "terminated": shoal.Field((), "bool"),
            "truncated": shoal.Field((), "bool"),
            # The discount of the next value, which the replay fills in.
            "discount": shoal.Field(),
        },
        beta=(0.4, 1.0, args.updates * args.batch_size),
        n_step=shoal.NStep(N_STEP, GAMMA, discount="discount"),
        rate_limiter=shoal.RateLimiter(1_000, args.samples_per_insert, 10 * args.batch_size),
        shared=True,
        seed=args.seed,
    )


def act(name: str, network: nn.Module, epsilon: float, seed: int) -> None:
    """An actor: plays with the newest parameters and adds its steps, until it is killed."""
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    env = gym.make(ENV_ID)
    replay = shoal.Replay.open(name)
    observation, _ = env.reset(seed=seed)
    while True:
        if random.random() < epsilon:
            action = int(random.integers(ACTIONS))
        else:
            with torch.no_grad():
                action = network(torch.from_numpy(observation)).argmax().item()
        next_observation, reward, terminated, truncated, _ = env.step(action)
        # Waits if the learner has fallen behind.
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
            observation, _ = env.reset()


def evaluate(network: nn.Module, episodes: int, seed: int) -> float:
    """The mean return of greedy episodes."""
    env = gym.make(ENV_ID)
    total = 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        done = False
        while not done:
            with torch.no_grad():
                action = network(torch.from_numpy(observation)).argmax().item()
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            done = terminated or truncated
    return total / episodes


def learn(args: Arguments) -> float:
    """Train with two actors; returns the mean return of 20 greedy episodes at the end."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    replay = make_replay(args)
    network, target, published = make_network(), make_network(), make_network()
    for copy in (target, published):
        copy.load_state_dict(network.state_dict())
    published.share_memory()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    processes = torch.multiprocessing.get_context("spawn")

    def start_actor(place: int, seed: int) -> torch.multiprocessing.Process:
        arguments = (replay.name, published, EPSILONS[place], seed)
        actor = processes.Process(target=act, args=arguments, daemon=True)
        actor.start()
        return actor

    actors = [start_actor(place, 1000 * args.seed + place) for place in range(len(EPSILONS))]
    try:
        for update in range(1, args.updates + 1):
            # Waits until there is enough to learn from. If that takes two minutes, the actors are gone.
            batch = replay.sample(args.batch_size, timeout=120.0)
            data = {name: torch.from_numpy(batch[name]) for name in batch}
            with torch.no_grad():
                # Double DQN: the network chooses the action, and the target network values it.
                choice = network(data["next_observation"]).argmax(dim=1, keepdim=True)
                next_values = target(data["next_observation"]).gather(1, choice).squeeze(1)
                targets = data["reward"] + data["discount"] * next_values
            values = network(data["observation"]).gather(1, data["action"][:, None]).squeeze(1)
            losses = functional.smooth_l1_loss(values, targets, reduction="none")
            optimizer.zero_grad()
            (torch.from_numpy(batch.weights) * losses).mean().backward()
            optimizer.step()
            # Transitions that an actor has overwritten meanwhile are left out.
            replay.update_priorities(batch, (targets - values).abs().detach().numpy(), stale="ignore")

            if update % args.publish_every == 0:
                published.load_state_dict(network.state_dict())
            if update % args.target_every == 0:
                target.load_state_dict(network.state_dict())
            if update == args.updates // 2:
                os.kill(actors[0].pid, signal.SIGKILL)
                actors[0].join()
                print(f"update {update:6d}  killed actor {actors[0].pid}: {len(replay)} transitions are still there")
                actors[0] = start_actor(0, 1000 * args.seed + 500)
            if update % 1000 == 0:
                ratio = replay.sampled / replay.inserted
                greedy = evaluate(network, 5, seed=20_000)
                print(
                    f"update {update:6d}  inserted {replay.inserted:6d}  "
                    f"samples per insert {ratio:5.1f}  greedy return {greedy:5.1f}"
                )
    finally:
        for actor in actors:
            actor.kill()
            actor.join()
        replay.close()
    result = evaluate(network, 20, seed=10_000)
    print(f"greedy return {result:.1f}")
    return result


def parse_arguments() -> Arguments:
    """Read the command line: one option per field."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in fields(Arguments):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type, default=field.default)
    return Arguments(**vars(parser.parse_args()))


if __name__ == "__main__":
    learn(parse_arguments())
