"""PPO of Stable-Baselines3, until a goal: `with_stable_baselines3.py JOB`, as policy_gradient_runs.py calls it in the virtual environment."""

import json
import sys

import stable_baselines3
import torch
from progress import Progress
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

FOREVER = 100_000_000


def settings(name):
    """`theirs` are those of rl-baselines3-zoo, whose step size and clip fall over 100,000 steps (and stay small after them)."""
    common = {"n_steps": 32, "batch_size": 256, "gamma": 0.98, "gae_lambda": 0.8, "ent_coef": 0.0}
    if name == "theirs":
        left = lambda remaining: max(0.02, 1.0 - (1.0 - remaining) * FOREVER / 100_000)  # noqa: E731
        return {
            **common, "n_epochs": 20, "learning_rate": lambda remaining: 1e-3 * left(remaining),
            "clip_range": lambda remaining: 0.2 * left(remaining), "policy_kwargs": {"net_arch": [64, 64]},
        }
    # One network with two heads, as ours; its loss of the value has no half.
    network = {"net_arch": [], "features_extractor_class": Shared, "activation_fn": torch.nn.ReLU}
    return {**common, "n_epochs": 16, "learning_rate": 1e-3, "clip_range": 0.2, "vf_coef": 0.25, "max_grad_norm": 0.5, "policy_kwargs": network}


class Shared(stable_baselines3.common.torch_layers.BaseFeaturesExtractor):
    """The two layers that policy and value have in common."""

    def __init__(self, observation_space):
        super().__init__(observation_space, 64)
        size = observation_space.shape[0]
        self.layers = torch.nn.Sequential(torch.nn.Linear(size, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU())

    def forward(self, observations):
        return self.layers(observations)


class UntilOver(BaseCallback):
    def __init__(self, progress):
        super().__init__()
        self.progress, self.over = progress, False

    def _on_rollout_end(self):
        self.over = self.progress.is_over(self.num_timesteps, [episode["r"] for episode in self.model.ep_info_buffer])

    def _on_step(self):
        return not self.over


def main():
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    environments = make_vec_env(job["environment"], n_envs=8, seed=job["seed"])
    model = PPO("MlpPolicy", environments, seed=job["seed"], device="cpu", **settings(job["settings"]))
    progress = Progress(job["goal"], job["limit_s"])
    model.learn(FOREVER, callback=UntilOver(progress))
    progress.say(stable_baselines3.__version__)


if __name__ == "__main__":
    main()
