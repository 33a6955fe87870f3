"""PPO of Stable-Baselines3, until a goal.

policy_gradient_runs.py calls `with_stable_baselines3.py JOB` in the virtual environment.
"""

import json
import sys

import stable_baselines3
import torch
from progress import Progress  # Adds the folder of cartpole_runs to the path.
import cartpole_runs
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

FOREVER = 100_000_000


class Shared(stable_baselines3.common.torch_layers.BaseFeaturesExtractor):
    """The two layers that policy and value share."""

    def __init__(self, observation_space):
        super().__init__(observation_space, 64)
        size = observation_space.shape[0]
        self.layers = torch.nn.Sequential(torch.nn.Linear(size, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU())

    def forward(self, observations):
        return self.layers(observations)


def ours(seed):
    """One network with two heads, as Shoal's. The library's value loss has no factor 1/2, so `vf_coef` is half of ours."""
    return PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=8, seed=seed), seed=seed, device="cpu", n_steps=32, batch_size=256, gae_lambda=0.8,
        gamma=0.98, n_epochs=16, ent_coef=0.0, learning_rate=1e-3, clip_range=0.2, vf_coef=0.25, max_grad_norm=0.5,
        policy_kwargs={"net_arch": [], "features_extractor_class": Shared, "activation_fn": torch.nn.ReLU},
    )


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
    # The settings `theirs` are those of rl-baselines3-zoo.
    model = ours(job["seed"]) if job["settings"] == "ours" else cartpole_runs.ppo(job["seed"], FOREVER)
    progress = Progress(job["goal"], job["limit_s"])
    model.learn(FOREVER, callback=UntilOver(progress))
    progress.say(stable_baselines3.__version__)


if __name__ == "__main__":
    main()
