"""Deep reinforcement learning that uses a whole Linux machine, and prioritized replay that processes share.

Its modules are imported at their first use, so the command `shoal` needs no NumPy.
"""

import importlib as _importlib

from ._native import __version__

_MODULES = {
    "errors": (
        "CorruptError",
        "EmptyError",
        "PolicyError",
        "RateLimitError",
        "ReplayError",
        "RunError",
        "StaleIndexError",
        "StoppedError",
    ),
    "metrics": ("Metrics",),
    "options": ("Field", "Frames", "NStep", "RateLimiter"),
    "policies": ("Evaluation", "Policy", "evaluate", "load"),
    "_replay": ("Batch", "Replay", "SumTree"),
    "runs": ("Run", "start", "train"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Batch",
    "CorruptError",
    "EmptyError",
    "Evaluation",
    "Field",
    "Frames",
    "Metrics",
    "NStep",
    "Policy",
    "PolicyError",
    "RateLimitError",
    "RateLimiter",
    "Replay",
    "ReplayError",
    "Run",
    "RunError",
    "StaleIndexError",
    "StoppedError",
    "SumTree",
    "__version__",
    "evaluate",
    "load",
    "start",
    "train",
]


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
