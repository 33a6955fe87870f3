"""A search for hyper-parameters with Ray Tune: trials that fall behind are killed, and their runs end with them.

Shoal is in no package index: `cargo xtask wheel` builds the file that pip installs, in `target/wheels`.

pip install shoal_rl-*.whl "ray[tune]"
python ray_tune_search.py
"""

import os

from ray import tune
from ray.tune.schedulers import ASHAScheduler

import shoal

TRIALS = 8


def trial(config):
    run = shoal.start(
        "cartpole_dqn",
        learner={"learning_rate": config["learning_rate"]},
        network={"hidden": [config["units"]] * 2},
        run={"stop_env_steps": 20_000, "stop_eval_return": "none", "folder": config["folder"]},
        # Several trials share this machine, so the kernel places their processes.
        machine={"affinity": False},
        quiet=True,
    )
    for line in run.metrics(follow=True):
        if "eval_return_mean" in line:
            tune.report({"return": line["eval_return_mean"], "env_steps": line["env_steps"]})
    run.wait()
    # Fresh episodes, because the best of many evaluations is partly luck.
    tune.report({"return": shoal.evaluate(run.load("last"), episodes=50).return_mean, "env_steps": 20_000})


def main():
    tuner = tune.Tuner(
        trial,
        param_space={
            "learning_rate": tune.loguniform(1e-5, 1e-2),
            "units": tune.choice([32, 64, 128]),
            "folder": os.path.abspath("runs"),
        },
        tune_config=tune.TuneConfig(
            num_samples=TRIALS,
            scheduler=ASHAScheduler(
                time_attr="env_steps", metric="return", mode="max", max_t=20_000, grace_period=5_000
            ),
            max_concurrent_trials=2,
        ),
    )
    best = tuner.fit().get_best_result("return", "max")
    print(f"{best.metrics['return']:.1f} with {best.config}")


if __name__ == "__main__":
    main()
