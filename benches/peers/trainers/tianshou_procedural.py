"""Tianshou, assembled as in its examples for MuJoCo.

Networks 256-256, batch 256, step size 1e-3 (TD3 3e-4), tuned temperature. The examples begin with 10,000 random steps (TD3
25,000), for runs of millions of steps; here there are 1,000.
"""

import gymnasium
import numpy
import tianshou
import torch
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.modelfree.sac import SAC, AutoAlpha, SACPolicy
from tianshou.algorithm.modelfree.td3 import TD3
from tianshou.algorithm.algorithm_base import policy_within_training_step
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, SubprocVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousActorProbabilistic, ContinuousCritic

HIDDEN, CAPACITY, RANDOM_STEPS = [256, 256], 1_000_000, 1_000


class Trainer:
    def __init__(self, algorithm, environment, setting, seed):
        self.VERSION = tianshou.__version__
        processes, self.batch_size = setting or (1, 256)
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        vector = SubprocVectorEnv if processes > 1 else DummyVectorEnv
        self.environments = vector([lambda: gymnasium.make(environment)] * processes)
        self.environments.seed(seed)
        spaces = gymnasium.make(environment)
        self.actions = spaces.action_space
        observation, action = spaces.observation_space.shape, spaces.action_space.shape

        def critic():
            return ContinuousCritic(preprocess_net=Net(state_shape=observation, action_shape=action, hidden_sizes=HIDDEN, concat=True))

        body = Net(state_shape=observation, hidden_sizes=HIDDEN)
        if algorithm == "sac":
            actor = ContinuousActorProbabilistic(preprocess_net=body, action_shape=action, unbounded=True, conditioned_sigma=True)
            temperature = AutoAlpha(-float(numpy.prod(action)), 0.0, AdamOptimizerFactory(lr=3e-4))
            kind, step_size = SAC, 1e-3
            policy = SACPolicy(actor=actor, action_space=self.actions)
            extra = {"alpha": temperature}
        else:
            actor = ContinuousActorDeterministic(preprocess_net=body, action_shape=action)
            noise = GaussianNoise(sigma=0.1)
            kind, step_size = TD3, 3e-4
            policy = ContinuousDeterministicPolicy(actor=actor, exploration_noise=noise, action_space=self.actions)
            extra = {}
        self.algorithm = kind(
            policy=policy, policy_optim=AdamOptimizerFactory(lr=step_size), critic=critic(), critic2=critic(),
            critic_optim=AdamOptimizerFactory(lr=step_size), tau=0.005, gamma=0.99, **extra,
        )
        self.replay = VectorReplayBuffer(CAPACITY, processes)
        self.collector = Collector(self.algorithm, self.environments, self.replay, exploration_noise=True)
        self.collector.reset()
        self.processes, self.env_steps, self.updates = processes, 0, 0

    def advance(self, env_steps):
        goal = self.env_steps + env_steps
        while self.env_steps < goal:
            random = self.env_steps < RANDOM_STEPS
            with policy_within_training_step(self.algorithm.policy):
                self.collector.collect(n_step=self.processes, random=random)
                self.env_steps += self.processes
                for _ in range(0 if random else self.processes):
                    self.algorithm.update(self.replay, self.batch_size)
                    self.updates += 1

    def predict(self, observations, *_, **__):
        with torch.no_grad():
            actions = self.algorithm.policy(Batch(obs=observations, info={})).act
        return self.algorithm.policy.map_action(actions.numpy()), None

    def close(self):
        self.environments.close()


trainer = Trainer
