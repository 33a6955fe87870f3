"""What the prioritized algorithms have in common: the buffer, and a beta that grows as training goes on."""

from typing import Any, cast

import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from .._priorities import checked_beta
from .buffer import Samples, ShoalReplayBuffer


class Prioritized(OffPolicyAlgorithm):
    """A mixin for off-policy algorithms, which comes before the algorithm among the base classes.

    `replay_buffer_class` is `ShoalReplayBuffer` or a subclass of it. `replay_buffer_kwargs=dict(alpha=..., beta=...)`
    sets the exponents. `n_steps`, there or else as the algorithm's argument, makes n-step transitions with the
    algorithm's gamma. Over `total_timesteps`, beta grows linearly to `final_beta`, which is at most 1; with `None` it
    is the replay's own.
    """

    replay_buffer: ShoalReplayBuffer

    def __init__(
        self,
        policy: Any,
        env: Any,
        *args: Any,
        replay_buffer_class: type[ShoalReplayBuffer] | None = None,
        final_beta: float | None = 1.0,
        **kwargs: Any,
    ) -> None:
        buffer_class = replay_buffer_class or ShoalReplayBuffer
        if not issubclass(buffer_class, ShoalReplayBuffer):
            raise TypeError(f"{type(self).__name__} needs a ShoalReplayBuffer, and {buffer_class.__name__} is none.")
        self.final_beta = None if final_beta is None else checked_beta(final_beta)
        super().__init__(policy, env, *args, replay_buffer_class=buffer_class, **kwargs)

    def _setup_model(self) -> None:
        # Stable-Baselines3 before 2.7 has no such argument.
        given, n_steps = self.replay_buffer_kwargs, getattr(self, "n_steps", 1)
        # Changed for this call alone: the arguments are saved with the model, which may be loaded with another gamma.
        if (count := given.get("n_steps", n_steps)) > 1:
            self.replay_buffer_kwargs = {"n_steps": count, "gamma": self.gamma, **given}
        # The library warns that it leaves more than one to the arguments of the buffer, where they are now.
        self.n_steps = 1
        try:
            super()._setup_model()
        finally:
            self.replay_buffer_kwargs, self.n_steps = given, n_steps

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, Any]:
        if reset_num_timesteps or self._last_obs is None:
            # The environments are about to be reset: the steps before are no part of the episodes that begin.
            self.replay_buffer.replay.end_streams()
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    @property
    def beta(self) -> float:
        """The current exponent of the importance weights."""
        first = self.replay_buffer.replay.beta
        if self.final_beta is None:
            return first
        # The last rollout may go a few steps beyond `total_timesteps`.
        progress = min(1.0 - self._current_progress_remaining, 1.0)
        return first + (self.final_beta - first) * progress

    def sample_prioritized(self, batch_size: int) -> Samples:
        """Draw a batch with importance weights for the current beta."""
        return self.replay_buffer.sample(batch_size, env=self._vec_normalize_env, beta=self.beta)

    def discounts(self, samples: Samples) -> torch.Tensor | float:
        """The discount of each next value: gamma, or those of n-step transitions, of shape (batch, 1)."""
        return self.gamma if samples.discounts is None else samples.discounts

    def targets(self, samples: Samples, values: torch.Tensor) -> torch.Tensor:
        """Rewards plus the discounted `values` of the next observations, which a termination sets to zero."""
        return samples.rewards + (1.0 - samples.dones) * self.discounts(samples) * values

    def record_replay(self) -> None:
        """Log beta and the largest priority."""
        self.logger.record("replay/beta", self.beta)
        self.logger.record("replay/max_priority", cast(float, self.replay_buffer.replay.max_priority))
