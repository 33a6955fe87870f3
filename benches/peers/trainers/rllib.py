"""RLlib's SAC with its defaults: networks 256-256, batch 256, prioritized replay, learning from step 1,500 on.

RLlib has no TD3 any more. One environment steps in the process that learns; two step in two runner processes.
"""

import logging

import gymnasium
import numpy
import ray
import torch
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns


class Trainer:
    def __init__(self, algorithm, environment, setting, seed):
        if algorithm != "sac":
            raise NotImplementedError("RLlib has no TD3")
        self.VERSION = ray.__version__
        processes, self.batch_size = setting or (1, 256)
        ray.init(num_cpus=max(2, processes + 1), include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        runners = 0 if processes == 1 else processes
        # The intensity with which RLlib makes one update per step: it counts the process that learns as one that samples.
        per_step = self.batch_size * max(runners, 1) / (runners + 1)
        config = (
            SACConfig()
            .environment(environment)
            .env_runners(num_env_runners=runners)
            .training(train_batch_size_per_learner=self.batch_size, training_intensity=per_step)
            .reporting(min_time_s_per_iteration=0)
            .debugging(seed=seed)
        )
        self.algorithm = config.build_algo()
        self.space = gymnasium.make(environment).action_space
        self.env_steps, self.updates = 0, 0

    def advance(self, env_steps):
        goal = self.env_steps + env_steps
        while self.env_steps < goal:
            result = self.algorithm.train()
            self.env_steps = int(result["num_env_steps_sampled_lifetime"])
            trained = result.get("learners", {}).get("__all_modules__", {}).get("num_env_steps_trained_lifetime", 0)
            self.updates = int(trained) // self.batch_size

    def predict(self, observations, *_, **__):
        module = self.algorithm.get_module(DEFAULT_MODULE_ID)
        with torch.no_grad():
            inputs = module.forward_inference({Columns.OBS: torch.from_numpy(numpy.asarray(observations, numpy.float32))})
            kind = module.get_inference_action_dist_cls()
            actions = kind.from_logits(inputs[Columns.ACTION_DIST_INPUTS]).to_deterministic().sample().numpy()
        # The module's actions are in [-1, 1]. A connector, which is no part of the module, scales them to the environment.
        return self.space.low + (numpy.clip(actions, -1, 1) + 1) * (self.space.high - self.space.low) / 2, None

    def close(self):
        self.algorithm.stop()
        ray.shutdown()


trainer = Trainer
