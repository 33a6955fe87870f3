"""APPO of Sample Factory, until a goal.

policy_gradient_runs.py calls `with_sample_factory.py JOB` in the virtual environment.
"""

import contextlib
import importlib.metadata
import json
import sys
import tempfile

import gymnasium
from progress import Progress
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner

# The network of both settings: two layers of 64.
COMMON = {"use_rnn": False, "encoder_mlp_layers": "64 64", "device": "cpu", "with_wandb": False}
SETTINGS = {
    # The library's example for this task (sf_examples/train_gym_env.py).
    "theirs": {
        "num_envs_per_worker": 20, "policy_workers_per_policy": 2, "recurrence": 1, "with_vtrace": False, "batch_size": 512,
        "reward_scale": 0.1,
    },
    # One process steps eight environments, and each batch of 256 steps is used sixteen times. The library's value loss has no
    # factor 1/2, so its coefficient is half of ours.
    "ours": {
        "num_workers": 1, "num_envs_per_worker": 8, "rollout": 32, "batch_size": 256, "num_batches_per_epoch": 1, "num_epochs": 16,
        "recurrence": 1, "gamma": 0.98, "gae_lambda": 0.8, "ppo_clip_ratio": 0.2, "learning_rate": 1e-3, "exploration_loss_coeff": 0.0,
        "value_loss_coeff": 0.25, "ppo_clip_value": 1e9, "max_grad_norm": 0.5, "normalize_input": False, "normalize_returns": False,
        "nonlinearity": "relu", "with_vtrace": False,
    },
}


class UntilOver(AlgoObserver):
    def __init__(self, job):
        self.job, self.progress = job, None

    def on_start(self, runner):
        self.progress = Progress(self.job["goal"], self.job["limit_s"])

    def on_training_step(self, runner, training_iteration_since_resume):
        returns = runner.policy_avg_stats.get("reward", [[]])[0]
        if not runner.stopped and self.progress.is_over(runner.env_steps.get(0, 0), returns):
            # The runner compares its steps with this next, and ends the training.
            runner.cfg.train_for_env_steps = -1


def make_environment(name, cfg=None, env_config=None, render_mode=None):
    return gymnasium.make(name, render_mode=render_mode)


def main():
    job = json.loads(sys.argv[1])
    register_env(job["environment"], make_environment)
    with tempfile.TemporaryDirectory() as folder:
        options = {"algo": "APPO", "env": job["environment"], "train_dir": folder, "seed": job["seed"], "train_for_env_steps": 10**9}
        options |= COMMON | SETTINGS[job["settings"]]
        words = [word for key, value in options.items() for word in [f"--{key}", *str(value).split()]]
        parser, _ = parse_sf_args(argv=words)
        _, runner = make_runner(parse_full_cfg(parser, words))
        until_over = UntilOver(job)
        runner.register_observer(until_over)
        # The log must not mix with the line of results on the standard output.
        with contextlib.redirect_stdout(sys.stderr):
            runner.init()
            runner.run()
    until_over.progress.say(importlib.metadata.version("sample-factory"))


if __name__ == "__main__":
    main()
