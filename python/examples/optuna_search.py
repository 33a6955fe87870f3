"""A search for hyper-parameters with Optuna: bad trials are pruned while they train, and leave nothing behind.

Shoal is in no package index: `cargo xtask wheel` builds the file that pip installs, in `target/wheels`.

pip install shoal_rl-*.whl optuna
python optuna_search.py
"""

import optuna

import shoal

TRIALS = 12
# Environment steps between two comparisons of trials.
INTERVAL_STEPS = 5_000


def objective(trial):
    run = shoal.start(
        "cartpole_dqn",
        seed=trial.number,
        learner={"learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)},
        network={"hidden": [trial.suggest_categorical("units", [32, 64, 128])] * 2},
        run={"stop_env_steps": 20_000, "stop_eval_return": "none"},
        quiet=True,
    )
    best, next_step = 0.0, INTERVAL_STEPS
    for line in run.metrics(follow=True):
        if "eval_return_mean" in line:
            best = max(best, line["eval_return_mean"])
            # Optuna compares values of the same step alone, and lines of two runs hardly ever have the same.
            while next_step <= line["env_steps"]:
                trial.report(best, step=next_step)
                next_step += INTERVAL_STEPS
            if trial.should_prune():
                run.stop()
                raise optuna.TrialPruned
    run.wait()
    # Fresh episodes, because the best of many evaluations is partly luck.
    return shoal.evaluate(run.load("last"), episodes=50).return_mean


def main():
    sampler = optuna.samplers.TPESampler(seed=1)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    # A setting that is refused, or with which training fails, does not end the search.
    study.optimize(objective, n_trials=TRIALS, catch=(shoal.RunError,))
    print(f"{study.best_value:.1f} with {study.best_params}")


if __name__ == "__main__":
    main()
