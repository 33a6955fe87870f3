"""The replay. It is imported at its first use, because it needs NumPy and the command `shoal` does not."""

from collections.abc import Mapping

import numpy as np

from . import errors, options  # noqa: F401 (imported here, so that a child of a fork need not import them)
from ._native import Batch, Replay, SumTree

__all__ = ["Batch", "Replay", "SumTree"]


def _use_once():
    """Initialise now what is otherwise initialised at its first use.

    If another thread forked in the middle of that, the child would wait forever for it to end.
    """
    fields = {"value": "float32", "flag": "bool", "image": options.Frames((2, 2), stack=2)}
    replay = Replay(4, fields, seed=1)
    replay.add({"value": [1.0, 2.0], "flag": [True, False], "image": np.zeros((2, 2, 2, 2), np.uint8)}, [1.0, 2.0])
    replay.add({"value": np.float32(1.0), "flag": True, "image": np.zeros((2, 2, 2), np.uint8)})
    batch = replay.sample(2)
    _ = [batch[name] for name in fields], batch.indices, batch.generations, batch.weights
    replay.update_priorities(batch, [1.0, 1.0])
    replay.update_priorities([0], [1.0])
    replay.sample(2, out=batch)
    replay.get([0])
    replay.priorities([0])
    replay.priorities()
    replay.close()
    tree = SumTree(2)
    tree.update([0, 1], [1.0, 2.0])
    tree.find([0.5])
    tree.priorities()


_use_once()
Mapping.register(Batch)
