"""The replay: imported when it is first asked for, because it needs NumPy, and the command `shoal` does not."""

from collections.abc import Mapping

from ._native import Batch, Replay, SumTree, prepare

# Else at first use, and a fork by another thread in the middle of it would leave the child waiting for its end.
prepare()
Mapping.register(Batch)

__all__ = ["Batch", "Replay", "SumTree"]
