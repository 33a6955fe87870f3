"""The progress of another library's run: its score, and the steps and time that it took. Standard library only."""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from trainers.drive import processor_seconds  # noqa: E402

NEWEST = 100


class Progress:
    """Counts from the first batch that a run has collected, so that neither imports nor the start of its processes count.

    The score is the mean return of the newest 100 training episodes, which every library keeps.
    """

    def __init__(self, goal, limit_s):
        self.goal, self.limit_s, self.started = goal, limit_s, None

    def is_over(self, env_steps, returns):
        """Whether the goal is reached or the time is over. Called after every batch, with the returns of the newest episodes."""
        if self.started is None:
            self.started = time.perf_counter()
            self.first_steps = env_steps
            self.cpu_before = processor_seconds()
        self.env_steps = env_steps
        returns = list(returns)[-NEWEST:]
        self.score = statistics.fmean(returns) if returns else None
        self.solved = len(returns) == NEWEST and self.score >= self.goal
        self.wall_s = time.perf_counter() - self.started
        over = self.solved or self.wall_s >= self.limit_s
        if over:
            self.cpu_s = processor_seconds() - self.cpu_before
        return over

    def say(self, version):
        """Prints the line that policy_gradient_runs.py reads."""
        found = {key: getattr(self, key) for key in ("solved", "score", "first_steps", "env_steps", "wall_s", "cpu_s")}
        print(json.dumps({**found, "version": version}), flush=True)
