"""Prioritized replay that any number of processes share, and that `kill -9` cannot break."""

from collections.abc import Mapping as _Mapping

from ._native import Batch, Replay, SumTree, __version__
from .errors import CorruptError, EmptyError, RateLimitError, ReplayError, StaleIndexError, StoppedError
from .options import Field, Frames, NStep, RateLimiter

_Mapping.register(Batch)

__all__ = [
    "Batch",
    "CorruptError",
    "EmptyError",
    "Field",
    "Frames",
    "NStep",
    "RateLimitError",
    "RateLimiter",
    "Replay",
    "ReplayError",
    "StaleIndexError",
    "StoppedError",
    "SumTree",
    "__version__",
]
