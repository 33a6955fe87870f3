"""PPO of PufferLib, until a goal.

policy_gradient_runs.py calls `with_pufferlib.py JOB` in the virtual environment.

PufferLib's own CartPole, in C, is not CartPole-v1: it ends episodes after 200 steps and does not report that a time limit
truncated them. So it plays Gymnasium's CartPole here.
"""

import contextlib
import functools
import importlib.metadata
import json
import sys
import tempfile
from collections import deque

import gymnasium
import torch
from progress import NEWEST, Progress

JOB = json.loads(sys.argv[1]) if len(sys.argv) > 1 else None
# The library reads the command line while it is imported, and must not find the job there.
del sys.argv[1:]
import pufferlib  # noqa: E402
import pufferlib.emulation  # noqa: E402
import pufferlib.vector  # noqa: E402
from pufferlib import pufferl  # noqa: E402

SETTINGS = {
    # The library's defaults, with the 64 environments and 500,000 steps of its settings for classic control. Its default minibatch
    # is larger than the batch of so many environments, so the minibatch is the batch.
    "theirs": {"environments": 64, "workers": 2, "train": {"minibatch_size": 64 * 64, "total_timesteps": 500_000}},
    # One process steps eight environments, and each batch of 256 steps is used sixteen times.
    "ours": {
        "environments": 8, "workers": 1,
        "train": {
            "bptt_horizon": 32, "minibatch_size": 256, "update_epochs": 16, "optimizer": "adam", "learning_rate": 1e-3, "anneal_lr": False,
            "adam_beta1": 0.9, "adam_eps": 1e-8, "gamma": 0.98, "gae_lambda": 0.8, "clip_coef": 0.2, "vf_coef": 0.5, "vf_clip_coef": 1e9,
            "max_grad_norm": 0.5, "ent_coef": 0.0, "prio_alpha": 0.0,
        },
    },
}


def environment(name, buf=None, seed=0):
    return pufferlib.emulation.GymnasiumPufferEnv(pufferlib.EpisodeStats(gymnasium.make(name)), buf=buf)


class Policy(torch.nn.Module):
    """Two layers of 64, and two heads."""

    def __init__(self, observations, actions):
        super().__init__()
        linear = lambda inputs, outputs, gain: pufferlib.pytorch.layer_init(torch.nn.Linear(inputs, outputs), std=gain)  # noqa: E731
        gain = 2**0.5
        self.layers = torch.nn.Sequential(linear(observations, 64, gain), torch.nn.ReLU(), linear(64, 64, gain), torch.nn.ReLU())
        self.logits, self.value = linear(64, actions, 0.01), linear(64, 1, 1.0)

    def forward(self, observations, state=None):
        hidden = self.layers(observations.float())
        return self.logits(hidden), self.value(hidden)

    forward_eval = forward


def main():
    setting = SETTINGS[JOB["settings"]]
    torch.set_num_threads(JOB["threads"])
    torch.manual_seed(JOB["seed"])
    config = pufferl.load_config("default")["train"]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        config |= {"device": "cpu", "seed": JOB["seed"], "data_dir": folder, "use_rnn": False, "env": "cartpole"}
        config |= setting["train"]
        backend = {"backend": pufferlib.vector.Multiprocessing, "num_workers": setting["workers"]} if setting["workers"] > 1 else {
            "backend": pufferlib.vector.Serial
        }
        environments = pufferlib.vector.make(
            functools.partial(environment, JOB["environment"]), num_envs=setting["environments"], seed=JOB["seed"], **backend
        )
        policy = Policy(environments.single_observation_space.shape[0], environments.single_action_space.n)
        trainer = pufferl.PuffeRL(config, environments, policy)
        trainer.print_dashboard = lambda *_, **__: None
        progress, newest = Progress(JOB["goal"], JOB["limit_s"]), deque(maxlen=NEWEST)
        while True:
            newest.extend(trainer.evaluate()["episode_return"])
            trainer.stats.clear()
            if progress.is_over(trainer.global_step, newest):
                break
            trainer.train()
        trainer.close()
    progress.say(importlib.metadata.version("pufferlib"))


if __name__ == "__main__":
    main()
