"""Prioritized vector replay for Tianshou 2: Tianshou stores the transitions, Shoal's sum tree draws them.

Tianshou computes n-step returns when it samples: it follows `next` through the columns `rew` and `done`, which must lie
in its own memory, in one ring buffer per environment. So the storage is Tianshou's, and only the sampler is Shoal's.
"""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.data import VectorReplayBuffer, to_numpy
from tianshou.data.batch import IndexType
from tianshou.data.types import PrioBatchProtocol, RolloutBatchProtocol

from ._priorities import Priorities, checked_beta


class ShoalVectorReplayBuffer(VectorReplayBuffer):
    """A replacement for `PrioritizedVectorReplayBuffer`, with the same arguments.

    `alpha` and `beta` are the exponents of priorities and importance weights, each between 0 and 1. Weights are
    `(N P(i)) ** -beta`, divided by the largest of the batch if `weight_norm` is true. `epsilon` is added to each error
    before it is raised to `alpha`. `buffer_num=1` is for one environment. The other arguments are those of Tianshou's
    `ReplayBuffer`. `random_seed` also seeds this sampler.
    """

    def __init__(
        self,
        total_size: int,
        buffer_num: int,
        alpha: float,
        beta: float,
        weight_norm: bool = True,
        *,
        epsilon: float = 1e-6,
        random_seed: int = 42,
        **kwargs: Any,
    ) -> None:
        super().__init__(total_size, buffer_num, random_seed=random_seed, **kwargs)
        self.options.update(alpha=alpha, beta=beta)
        self._beta = checked_beta(beta)
        self._weight_norm = weight_norm
        self.priorities = Priorities(self.maxsize, alpha=alpha, epsilon=epsilon, seed=random_seed)

    def reset(self, keep_statistics: bool = False) -> None:
        """Remove all transitions and their priorities."""
        super().reset(keep_statistics)
        self.priorities.clear()

    def add(
        self, batch: RolloutBatchProtocol, buffer_ids: NDArray[np.int64] | list[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Add one transition of each environment in `buffer_ids`, with the largest priority so far."""
        indices, returns, lengths, starts = super().add(batch, buffer_ids)
        self.priorities.update(indices)
        return indices, returns, lengths, starts

    def sample_indices(self, batch_size: int | None) -> np.ndarray:
        """Draw indices in proportion to their priorities; all of them if `batch_size` is `None` or zero."""
        if batch_size is not None and batch_size > 0 and len(self) > 0:
            return self.priorities.sample(batch_size, self._beta).items
        return super().sample_indices(batch_size)

    def get_weight(self, index: int | np.ndarray) -> np.ndarray:
        """The importance weights `(N P(i)) ** -beta` of the stored transitions at `index`."""
        return (len(self) * self.priorities.probabilities(index)) ** -self._beta

    def update_weight(self, index: np.ndarray, new_weight: np.ndarray | torch.Tensor) -> None:
        """Set priorities to the absolute values of these TD errors. Tianshou calls this after each update."""
        self.priorities.update(index, np.abs(to_numpy(new_weight)).reshape(np.shape(index)))

    def __getitem__(self, index: IndexType) -> PrioBatchProtocol:
        """Transitions, with their importance weights as `weight`."""
        if isinstance(index, slice):
            index = self.sample_indices(0) if index == slice(None) else self._indices[: len(self)][index]
        batch = cast(PrioBatchProtocol, super().__getitem__(index))
        weight = self.get_weight(cast(np.ndarray, index))
        batch.weight = weight / np.max(weight) if self._weight_norm else weight
        return batch

    def set_beta(self, beta: float) -> None:
        """Change the exponent of the importance weights, to anneal it."""
        self._beta = checked_beta(beta)
