"""A prioritized sampler for TorchRL's own storages: they store the transitions, Shoal's sum tree draws them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torchrl.data.replay_buffers import PrioritizedSampler, Storage

from .._priorities import Priorities, checked_beta

Index = int | torch.Tensor | tuple[torch.Tensor, ...]


class ShoalSampler(PrioritizedSampler):
    """A replacement for `PrioritizedSampler`, with the same arguments, but `alpha` and `beta` between 0 and 1.

    It is a subclass because `TensorDictReplayBuffer` asks for that class. Weights are divided by the largest of the
    batch; TorchRL divides them by the largest of the whole buffer. `reduction` says how `TensorDictReplayBuffer` makes
    one priority of several ("max", "min", "median" or "mean").
    """

    def __init__(
        self,
        max_capacity: int,
        alpha: float,
        beta: float,
        eps: float = 1e-6,
        reduction: str = "max",
        *,
        seed: int | None = None,
    ) -> None:
        # `super().__init__` is left out: it would make two trees that are never used.
        self._max_capacity = max_capacity
        self._alpha = alpha
        self._beta = checked_beta(beta)
        self._eps = eps
        self.reduction = reduction
        self.priorities = Priorities(max_capacity, alpha=alpha, epsilon=eps, seed=seed)

    @property
    def device(self) -> torch.device:
        """The device that holds the priorities: always the CPU."""
        return torch.device("cpu")

    @property
    def alpha(self) -> float:
        """The exponent of priorities. It cannot be changed, because the values in the tree have been raised to it."""
        return self._alpha

    @property
    def beta(self) -> float:
        """The exponent of the weights."""
        return self._beta

    @beta.setter
    def beta(self, value: float) -> None:
        self._beta = checked_beta(value)

    @property
    def default_priority(self) -> float:
        """The priority of a transition that is added without one: the largest error so far."""
        return self.priorities.max_error

    def sample(self, storage: Storage, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """Draw indices, with their importance weights as `priority_weight`."""
        if len(storage) == 0:
            raise RuntimeError("Cannot sample from an empty storage: extend the replay buffer first.")
        items, weights = self.priorities.sample(batch_size, self._beta)
        index: Any = torch.from_numpy(items)
        if storage.ndim > 1:
            index = tuple(torch.from_numpy(axis) for axis in np.unravel_index(items, storage.shape))
        return index, {"priority_weight": torch.from_numpy(weights)}

    def add(self, index: Index) -> None:
        """Do nothing: the storage reports what was written through `mark_update`."""

    def extend(self, index: Index) -> None:
        """Do nothing: the storage reports what was written through `mark_update`."""

    def update_priority(self, index: Index, priority: float | torch.Tensor, *, storage: Storage | None = None) -> None:
        """Set the priorities of the transitions at `index` to these errors; negative indices are left out."""
        items = flat_index(index, storage)
        errors = flat_errors(priority, items.shape)
        written = items >= 0
        self.priorities.update(items[written], errors[written])

    def _empty(self) -> None:
        self.priorities.clear()

    def state_dict(self) -> dict[str, Any]:
        """The exponents and all priorities: numbers and tensors, which `torch.load` reads with `weights_only=True`."""
        state = self.priorities.__getstate__()
        tensors = {name: torch.from_numpy(state[name]) for name in ("items", "errors")}
        return {"beta": self._beta, **state, **tensors}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. `ValueError`: it comes from a sampler of another capacity."""
        if state_dict["capacity"] != self._max_capacity:
            raise ValueError(
                f"This sampler holds {self._max_capacity} priorities and the state {state_dict['capacity']}: "
                "load it into a sampler of the same max_capacity."
            )
        arrays = {name: torch.as_tensor(state_dict[name]).cpu().numpy() for name in ("items", "errors")}
        beta = checked_beta(state_dict["beta"])
        self.priorities.__setstate__({**state_dict, **arrays})
        self._alpha = self.priorities.alpha
        self._beta = beta
        self._eps = self.priorities.epsilon

    def dumps(self, path: str | Path) -> None:
        """Write the sampler's state into the folder `path`."""
        Path(path).mkdir(parents=True, exist_ok=True)
        # Without a seed that is not there: an array of `None` would be a pickle.
        state = {name: value for name, value in self.state_dict().items() if value is not None}
        np.savez(Path(path) / "sampler.npz", **state)

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote. Nothing in the file is run."""
        with np.load(Path(path) / "sampler.npz", allow_pickle=False) as saved:
            values = {name: saved[name] for name in saved.files}
        state = {name: value if value.ndim else value.item() for name, value in values.items()}
        self.load_state_dict({"seed": None, **state})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self._alpha}, beta={self._beta}, eps={self._eps})"


def flat_index(index: Index, storage: Storage | None) -> NDArray[np.int64]:
    """An index of a storage as flat numbers. For a storage of several dimensions, it has one column per dimension."""
    if isinstance(index, tuple):
        index = torch.stack(index, -1)
    array = torch.as_tensor(index, dtype=torch.long).detach().cpu().numpy()
    if array.ndim < 2:
        return np.atleast_1d(array)
    if storage is None:
        raise ValueError(
            f"An index of shape {array.shape} names cells of a storage with several dimensions: give `storage`."
        )
    return np.ravel_multi_index(tuple(array.reshape(-1, array.shape[-1]).T), storage.shape)


def flat_errors(priority: float | torch.Tensor, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The errors of so many transitions, given as one for all of them or one for each."""
    return np.broadcast_to(torch.as_tensor(priority).detach().cpu().double().numpy().reshape(-1), shape)
