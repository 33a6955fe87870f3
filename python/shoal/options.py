"""The options of a replay that are not plain numbers."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True, init=False)
class Field:
    """A field of a transition: its shape without the batch, and its dtype (bool and all NumPy numbers up to 8 bytes).

    A single number is the shape of one axis.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32") -> None:
        object.__setattr__(self, "shape", _axes(shape))
        object.__setattr__(self, "dtype", np.dtype(dtype))


@dataclass(frozen=True, init=False)
class Frames:
    """A stacked image field, of shape `(stack, *shape)` per transition, of which each distinct frame is stored once."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stack: int

    def __init__(self, shape: int | Sequence[int], dtype: DTypeLike = "uint8", stack: int = 4) -> None:
        stack = _whole(stack)
        if not isinstance(stack, int) or stack < 1:
            raise ValueError(f"a stack of {stack!r} frames: their number must be a whole one of at least 1")
        object.__setattr__(self, "shape", _axes(shape))
        object.__setattr__(self, "dtype", np.dtype(dtype))
        object.__setattr__(self, "stack", stack)


def _axes(shape: Any) -> tuple[Any, ...]:
    """The axes of a shape. One that is no whole number stays as it is: the replay refuses it and names the field."""
    shape = _whole(shape)
    return tuple(map(_whole, shape if isinstance(shape, Iterable) else [shape]))


def _whole(value: Any) -> Any:
    # `int` would make 3 of 3.7.
    try:
        return operator.index(value)
    except TypeError:
        return value


@dataclass(frozen=True)
class NStep:
    """Turns the steps that are added into n-step transitions, one stream of steps per environment.

    Rewards are discounted and added up until `n` steps are together, or `terminated` or `truncated` says that the
    episode ended; `next_fields` are taken from the last of the steps. The field that `discount` names, if any, is filled
    with gamma to the number of steps, or 0 after a termination, and need not be handed over.
    """

    n: int
    gamma: float = 0.99
    reward: str = "reward"
    next_fields: Sequence[str] = ("next_observation",)
    terminated: str = "terminated"
    truncated: str | None = "truncated"
    discount: str | None = None


@dataclass(frozen=True)
class RateLimiter:
    """Holds `samples_per_insert` within `error_band` samples (Reverb's words), once `min_size` transitions are there.

    Without an error band, the two sides may drift apart by 64 inserts' worth of samples, and by one sample at least.
    """

    min_size: int = 1
    samples_per_insert: float | None = None
    error_band: float | None = None
