"""How far a run of another library has come, and what it has used until it reached a score. Standard library only."""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from trainers.drive import processor_seconds  # noqa: E402

NEWEST = 100


class Progress:
    """Begins to count with the first batch that a run has collected, so that neither imports nor the start of its processes count.

    The score is the mean return of the newest 100 training episodes, which every library keeps.
    """

    def __init__(self, goal, limit_s):
        self.goal, self.limit_s, self.started = goal, limit_s, None

    def is_over(self, env_steps, returns):
        """To be asked after every batch: whether the goal was reached with it, or the time is over. `returns`: of the newest episodes."""
        if self.started is None:
            self.started, self.first_steps, self.cpu_before = time.perf_counter(), env_steps, processor_seconds()
        self.env_steps, returns = env_steps, list(returns)[-NEWEST:]
        self.score = statistics.fmean(returns) if returns else None
        self.solved = len(returns) == NEWEST and self.score >= self.goal
        self.wall_s = time.perf_counter() - self.started
        over = self.solved or self.wall_s >= self.limit_s
        if over:
            self.cpu_s = processor_seconds() - self.cpu_before
        return over

    def say(self, version):
        """The line that policy_gradient_runs.py reads."""
        found = {key: getattr(self, key) for key in ("solved", "score", "first_steps", "env_steps", "wall_s", "cpu_s")}
        print(json.dumps({**found, "version": version}), flush=True)
