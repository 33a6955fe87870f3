"""Stable-Baselines3, and sbx, which has the same interface.

Their defaults: networks 256-256 (TD3 of Stable-Baselines3 400-300), batch 256, learning from step 100 on. TD3 gets the noise
of 0.1 that its users give it; without noise it does not explore.
"""

import gymnasium
import numpy
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import SubprocVecEnv


def trainer(algorithm, environment, setting, seed):
    import stable_baselines3

    return Trainer(stable_baselines3, algorithm, environment, setting, seed, {"device": "cpu"})


def sbx_trainer(algorithm, environment, setting, seed):
    import sbx

    return Trainer(sbx, algorithm, environment, setting, seed, {})


class Trainer:
    def __init__(self, library, algorithm, environment, setting, seed, extra):
        self.VERSION = library.__version__
        processes = setting[0] if setting else 1
        if setting:
            extra = {**extra, "batch_size": setting[1]}
        if algorithm == "td3":
            size = gymnasium.make(environment).action_space.shape[0]
            extra = {**extra, "action_noise": NormalActionNoise(numpy.zeros(size), 0.1 * numpy.ones(size))}
        # A single environment steps in the learner's process; two or more have a process each.
        self.environments = make_vec_env(environment, n_envs=processes, seed=seed, vec_env_cls=SubprocVecEnv if processes > 1 else None)
        self.model = getattr(library, algorithm.upper())(
            "MlpPolicy", self.environments, seed=seed, train_freq=1, gradient_steps=-1 if processes > 1 else 1, **extra
        )
        self.batch_size, self.predict = self.model.batch_size, self.model.predict

    def advance(self, env_steps):
        self.model.learn(env_steps, reset_num_timesteps=False)

    @property
    def env_steps(self):
        return self.model.num_timesteps

    @property
    def updates(self):
        return self.model._n_updates

    def close(self):
        self.environments.close()
