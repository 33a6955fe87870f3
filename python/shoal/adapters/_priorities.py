"""Prioritized sampling of items that another library stores, with the sum tree of a Shoal replay.

The library numbers its items. The replay stores nothing but these numbers: an item's number is added when the item
first gets a priority, and keeps its slot forever. So an item that was never written cannot be drawn, in whatever order
the library fills its storage.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import Replay


class Draw(NamedTuple):
    """Items drawn in proportion to their priorities, with replacement."""

    items: NDArray[np.int64]
    weights: NDArray[np.float32]
    """Importance weights, divided by the largest of the draw."""


def checked_beta(beta: float) -> float:
    """Return `beta` as a number of Python. `ValueError`: it is not between 0 and 1, so every draw would refuse it."""
    # Rounded as a draw rounds it: the last step of a schedule may come out a little above 1.
    if not 0.0 <= np.float32(float(beta)) <= 1.0:
        raise ValueError(f"beta is {beta}; it must be between 0 and 1")
    return float(beta)


class Priorities:
    """Priorities of the items 0 to `capacity` - 1: `(error + epsilon) ** alpha` for each item with an error."""

    def __init__(self, capacity: int, *, alpha: float, epsilon: float, seed: int | None = None) -> None:
        self.capacity = capacity
        self.alpha = float(alpha)
        self.epsilon = float(epsilon)
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Forget all items, and the largest error."""
        self._replay = Replay(
            self.capacity,
            {"item": np.int64},
            alpha=self.alpha,
            epsilon=self.epsilon,
            seed=self._seed,
        )
        self._slots = np.full(self.capacity, -1, dtype=np.int64)
        self._max_error = 1.0

    def __len__(self) -> int:
        return len(self._replay)

    @property
    def max_error(self) -> float:
        """The largest error so far, at least one: items without an error of their own get it."""
        return self._max_error

    def update(self, items: ArrayLike, errors: ArrayLike | None = None) -> None:
        """Set the errors of `items`: to `max_error` without `errors`. If an item occurs twice, its last error counts.

        `ValueError`: an error is negative or not finite. Nothing is changed then.
        """
        items = np.atleast_1d(np.asarray(items, dtype=np.int64))
        values = self.max_error if errors is None else np.asarray(errors, dtype=np.float64)
        values = np.broadcast_to(values, items.shape)
        if len(items) == 0:
            return
        if not (np.isfinite(values).all() and (values >= 0.0).all()):
            raise ValueError(f"Errors must be finite and not negative: the least here is {values.min()}.")
        # `np.unique` finds the first occurrence of an item: in the reversed array, its last one.
        unique, last = np.unique(items[::-1], return_index=True)
        values = values[::-1][last]
        slots = self._slots[unique]
        known = slots >= 0
        if known.any():
            self._replay.update_priorities(slots[known], values[known])
        if not known.all():
            new = unique[~known]
            self._slots[new] = self._replay.add({"item": new}, values[~known])
        self._max_error = max(self._max_error, float(values.max()))

    def sample(self, count: int, beta: float) -> Draw:
        """Draw `count` items, with weights `(N P(i)) ** -beta` divided by the largest of them."""
        batch = self._replay.sample(count, beta=beta)
        return Draw(batch["item"], batch.weights)

    def probabilities(self, items: ArrayLike) -> NDArray[np.float64]:
        """The probability P(i) of each of `items`; zero for an item without a priority."""
        slots = self._slots[np.asarray(items, dtype=np.int64)]
        if len(self) == 0:
            return np.zeros(slots.shape)
        values = self._replay.priorities(np.maximum(slots, 0).reshape(-1)).reshape(slots.shape)
        return np.where(slots >= 0, values, 0.0) / self._replay.total_priority

    def values(self) -> NDArray[np.float64]:
        """What the tree holds for each item: `(error + epsilon) ** alpha`, or zero for an item without a priority."""
        return self.probabilities(np.arange(self.capacity)) * self._replay.total_priority

    def __getstate__(self) -> dict[str, Any]:
        values = self.values()
        items = np.flatnonzero(values)
        return {
            "capacity": self.capacity,
            "alpha": self.alpha,
            "epsilon": self.epsilon,
            "seed": self._seed,
            "items": items,
            "errors": self._errors(values[items]),
            "max_error": self.max_error,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Priorities.__init__(self, state["capacity"], alpha=state["alpha"], epsilon=state["epsilon"], seed=state["seed"])
        self.update(state["items"], state["errors"])
        self._max_error = state["max_error"]

    def _errors(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The errors from which the tree got these values. If alpha is zero, all errors give the same: it returns ones."""
        if self.alpha == 0:
            return np.ones_like(values)
        return np.maximum(values ** (1.0 / self.alpha) - self.epsilon, 0.0)
