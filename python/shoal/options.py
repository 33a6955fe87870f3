"""The options of a replay that are not plain numbers."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True, init=False)
class Field:
    """A field of a transition: its shape without the batch axis, and its dtype.

    A single number as `shape` means one axis of that length. `dtype` is bool, or an integer or float of NumPy of at
    most 8 bytes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: int | Sequence[int] = (), dtype: DTypeLike = "float32") -> None:
        object.__setattr__(self, "shape", _axes(shape))
        object.__setattr__(self, "dtype", np.dtype(dtype))


@dataclass(frozen=True, init=False)
class Frames:
    """A field of stacked images, of shape `(stack, *shape)` in a transition. Each distinct frame is stored once."""

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
    # `int` would turn 3.7 into 3.
    try:
        return operator.index(value)
    except TypeError:
        return value


@dataclass(frozen=True)
class NStep:
    """Has a replay turn added steps into n-step transitions, with one stream of steps per environment.

    A transition adds up the discounted rewards of `n` steps, or of fewer if the field `terminated` or `truncated` says
    that the episode ended. `next_fields` come from its last step. `discount` may name a field that the replay fills in:
    gamma to the power of the number of steps, or 0 after a termination.
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
    """Holds back samples and inserts to keep `samples_per_insert`, once `min_size` transitions are there.

    The number of samples may deviate by `error_band` from `samples_per_insert` times the inserts. By default the band
    is 64 times `samples_per_insert`, and at least one sample. In Reverb `min_size` is `min_size_to_sample`,
    and `error_band` is `error_buffer`.
    """

    min_size: int = 1
    samples_per_insert: float | None = None
    error_band: float | None = None
