"""The rule by which Shoal decides that a goal is reached, for the libraries beside it. Runs in the virtual environment.

Sooner or later a routine evaluation reaches the goal by luck, so it only proposes. Fresh episodes with the same weights
decide: the goal is confirmed if the lower end of a confidence interval of their mean (Student's t) is at least the goal. The
first attempt uses the 95 % interval and later attempts use wider ones, so that the chances of error of all attempts add up
to 0.05 (docs/evaluation.md).
"""

import time

import gymnasium
import numpy
from scipy.stats import t as students_t
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

# As many as Shoal steps together, so that no library pays for inference on one observation at a time.
ENVIRONMENTS = 20
EPISODES = 100


class Confirmation:
    """Plays `episodes` fresh episodes with the weights of a model, and keeps the time that this takes.

    `environment` is an id or a vector of environments.
    """

    def __init__(self, environment, goal, episodes=EPISODES):
        self.environments = make_vec_env(environment, n_envs=ENVIRONMENTS) if isinstance(environment, str) else environment
        self.goal, self.episodes = goal, episodes
        self.attempts, self.spent_s, self.mean, self.confirmed = 0, 0.0, None, False

    def __call__(self, model):
        """Whether fresh episodes confirm that `model` reaches the goal. No two calls play the same episodes."""
        started = time.perf_counter()
        self.attempts += 1
        self.environments.seed(1_000_000 + self.attempts * ENVIRONMENTS)
        returns, _ = evaluate_policy(
            model, self.environments, n_eval_episodes=self.episodes, deterministic=True, return_episode_rewards=True, warn=False
        )
        self.mean = float(numpy.mean(returns))
        error = 0.05 / (self.attempts * (self.attempts + 1))
        half_width = students_t.ppf(1 - error, len(returns) - 1) * numpy.std(returns, ddof=1) / len(returns) ** 0.5
        self.confirmed = bool(self.mean - half_width >= self.goal)
        self.spent_s += time.perf_counter() - started
        return self.confirmed


class UntilConfirmed(BaseCallback):
    """Ends the training of a model once fresh episodes confirm that it reaches the goal.

    From step `first` on, every `every` steps, it plays `episodes` routine episodes, and confirms weights that reach the goal in
    their mean. The time of routine episodes is kept here, that of confirmations in `confirmation`.
    """

    def __init__(self, environment, goal, first, every, episodes, confirm_episodes=EPISODES):
        super().__init__()
        self.environment = gymnasium.make(environment)
        self.next, self.every, self.episodes = first, every, episodes
        self.evaluation_s = 0.0
        self.confirmation = Confirmation(environment, goal, confirm_episodes)

    def _on_step(self):
        if self.num_timesteps < self.next:
            return True
        self.next += self.every
        started = time.perf_counter()
        mean, _ = evaluate_policy(self.model, self.environment, n_eval_episodes=self.episodes, warn=False)
        self.evaluation_s += time.perf_counter() - started
        return bool(mean < self.confirmation.goal) or not self.confirmation(self.model)
