"""A whole Shoal replay in a TorchRL replay buffer: storage, sampler and writer, which other processes may share."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict, TensorDictBase
from torchrl.data.replay_buffers import PrioritizedSampler, Storage, TensorDictReplayBuffer, Writer

from shoal import Batch, Field, Replay

from .._priorities import checked_beta
from .sampler import Index, flat_errors, flat_index

SEPARATOR = "/"
"""Stands between the parts of a nested key: `("next", "observation")` is the field `next/observation`."""
NOT_SHARED_YET = (
    "The shared replay of this storage is made when something is first added, so another process would now make one of "
    "its own. Add something before the storage goes to other processes, or give each of them "
    "ShoalStorage.of(shoal.Replay.open(name))."
)
NO_STEPS = (
    "With n_step= a transition gets its slot later than its step is added, but TorchRL asks for the slot of each step: "
    "leave n_step out and put TorchRL's MultiStepTransform into the replay buffer (transform=)."
)


def shoal_replay_buffer(
    storage: "ShoalStorage", *, beta: float | None = None, reduction: str = "max", **options: Any
) -> TensorDictReplayBuffer:
    """A `TensorDictReplayBuffer` over `storage`, with the sampler and the writer that it needs.

    `beta=None` means the replay's own. `options` are TorchRL's: `batch_size`, `priority_key`, `transform` ...
    """
    return _ReplayBuffer(
        storage=storage,
        sampler=ShoalStorageSampler(storage, beta, reduction),
        writer=ShoalWriter(),
        collate_fn=_as_it_is,
        **options,
    )


class _ReplayBuffer(TensorDictReplayBuffer):
    def _initialize_prioritized_sampler(self) -> None:
        """Do nothing: TorchRL would set all priorities, which the replay has already, to the default."""


class ShoalStorage(Storage):
    """A storage of `max_size` transitions in a Shoal replay. Its fields follow from the first tensordict that is added.

    `options` go to `shoal.Replay`: `alpha`, `beta`, `epsilon`, `seed`, `shared=True` ... The replay chooses the slots,
    so the storage needs a `ShoalWriter` and a `ShoalStorageSampler`.

    With `shared=True` the storage may go to other processes, pickled or by a fork, once something has been added.
    """

    def __init__(self, max_size: int, **options: Any) -> None:
        if options.get("n_step") is not None:
            raise ValueError(NO_STEPS)
        super().__init__(max_size)
        self._options = options
        # The process that makes the replay. A child that was forked before would make one that nobody else knows.
        self._maker = os.getpid()
        self._replay: Replay | None = None
        self._drawn: tuple[torch.Tensor, Batch] | None = None

    @classmethod
    def of(cls, replay: Replay) -> "ShoalStorage":
        """A storage over an existing replay, such as `shoal.Replay.open(name)`. `ValueError`: it has `n_step`."""
        storage = cls(replay.capacity)
        storage._replay = _of_transitions(replay)
        return storage

    @property
    def replay(self) -> Replay:
        """The replay. `RuntimeError`: nothing has been added yet."""
        if self._replay is None:
            raise RuntimeError("The storage is empty, and its fields are not known before something is added.")
        return self._replay

    def append(self, data: TensorDictBase) -> torch.Tensor:
        """Add a batch of transitions with the largest priority so far; returns the slots they went to."""
        columns = {
            _field_name(key): value.detach().cpu().numpy()
            for key, value in data.items(include_nested=True, leaves_only=True)
            if key not in ("index", "priority_weight")
        }
        if self._replay is None:
            self._check_maker()
            fields = {name: Field(column.shape[1:], column.dtype) for name, column in columns.items()}
            self._replay = Replay(self.max_size, fields, **self._options)
        return torch.from_numpy(self._replay.add(columns))

    def draw(self, batch_size: int, beta: float | None) -> tuple[torch.Tensor, Batch]:
        """Draw a batch and keep it: the `get` that follows returns these rows, even if they were overwritten."""
        batch = self.replay.sample(batch_size, beta=beta)
        self._drawn = torch.from_numpy(batch.indices), batch
        return self._drawn

    def get(self, index: Any) -> TensorDict:
        """The transitions in the slots `index`."""
        if self._drawn is not None and index is self._drawn[0]:
            return _tensordict(self._drawn[1], index.shape)
        if isinstance(index, slice):
            index = torch.arange(len(self))[index]
        index = torch.as_tensor(index)
        # A boolean mask means the slots where it is true.
        index = index.nonzero().squeeze(-1) if index.dtype == torch.bool else index.long()
        index = torch.where(index < 0, index + len(self), index)
        return _tensordict(self.replay.get(index.reshape(-1).numpy()), index.shape)

    def set(self, cursor: Any, data: Any, *, set_cursor: bool = True) -> None:
        """Not supported: a replay that many processes fill chooses its slots itself."""
        raise NotImplementedError(
            "A ShoalStorage cannot be written at a given index: give the replay buffer writer=ShoalWriter()."
        )

    def _bump_mutation_revision(self) -> None:
        """Not supported: TorchRL calls it after `set_`, `set_at_` and `update_`, which have changed a copy."""
        raise NotImplementedError(
            "Transitions in a ShoalStorage are not changed in place (set_, set_at_, update_), and nothing was changed: "
            "change them before they are added, or in the sampled batch."
        )

    def __len__(self) -> int:
        return 0 if self._replay is None else len(self._replay)

    def contains(self, item: Any) -> Any:
        """Whether these slots hold transitions."""
        return torch.as_tensor(item) < len(self)

    def _empty(self) -> None:
        if self._replay is not None:
            self._replay.clear()

    def state_dict(self) -> dict[str, Any]:
        """Not supported: a replay is saved to a file, with `dumps`."""
        raise NotImplementedError("A replay is saved with dumps(path), not as a state_dict.")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Not supported: a replay is loaded from a file, with `loads`."""
        raise NotImplementedError("A replay is loaded with loads(path), not from a state_dict.")

    def dumps(self, path: str | Path) -> None:
        """Write the replay, with its priorities, into the folder `path`."""
        Path(path).mkdir(parents=True, exist_ok=True)
        self.replay.save(Path(path) / "replay")

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote."""
        self._check_maker()
        is_shared = bool(self._options.get("shared")) if self._replay is None else self._replay.name is not None
        options = {name: self._options[name] for name in ("participants", "seed") if name in self._options}
        self._replay = _of_transitions(Replay.load(Path(path) / "replay", shared=is_shared, **options))
        self.max_size = self._replay.capacity

    def _is_to_be_shared(self) -> bool:
        """Whether the replay will be shared, but has not been made yet."""
        return self._replay is None and bool(self._options.get("shared"))

    def _check_maker(self) -> None:
        """`RuntimeError`: the replay will be shared, and it is not for this process to make it."""
        if self._is_to_be_shared() and os.getpid() != self._maker:
            raise RuntimeError(NOT_SHARED_YET)

    def __getstate__(self) -> dict[str, Any]:
        if self._is_to_be_shared():
            raise RuntimeError(NOT_SHARED_YET)
        # The drawn batch stays in this process: a process that gets the storage keeps the batches that it draws itself.
        return {**super().__getstate__(), "_drawn": None}


class ShoalWriter(Writer):
    """Adds to a `ShoalStorage`, which chooses the slots."""

    def add(self, data: TensorDictBase) -> int:
        """Add one transition; returns its slot."""
        return int(self._storage.append(data.unsqueeze(0))[0])

    def extend(self, data: TensorDictBase) -> torch.Tensor:
        """Add a batch of transitions; returns their slots."""
        return self._storage.append(data)

    @property
    def _write_count(self) -> int:
        """TorchRL's `write_count`: the number of transitions added by all processes that share the replay."""
        replay = self._storage._replay
        return 0 if replay is None else replay.inserted

    def _empty(self, empty_write_count: bool = True) -> None:
        """Do nothing: the cursor is the replay's."""

    def dumps(self, path: str | Path) -> None:
        """Do nothing: the cursor is the replay's."""

    def loads(self, path: str | Path) -> None:
        """Do nothing: the cursor is the replay's."""

    def state_dict(self) -> dict[str, Any]:
        """Empty: the cursor is the replay's."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: the cursor is the replay's."""


class ShoalStorageSampler(PrioritizedSampler):
    """Draws from a `ShoalStorage` in proportion to its priorities; `beta=None` means the replay's own.

    New priorities of transitions that have been overwritten since they were last drawn are dropped.
    """

    def __init__(self, storage: ShoalStorage, beta: float | None = None, reduction: str = "max") -> None:
        # `super().__init__` is left out: it would make two trees that are never used.
        self._storage = storage
        self.beta = beta
        self.reduction = reduction
        # The generation that was last drawn from each slot; 0 for a slot that was never drawn from.
        self._generations = np.zeros(storage.max_size, dtype=np.int64)
        self._added: NDArray[np.int64] | None = None

    @property
    def device(self) -> torch.device:
        """The device that holds the priorities: always the CPU."""
        return torch.device("cpu")

    @property
    def max_size(self) -> int:
        """The largest number of transitions."""
        return self._storage.max_size

    @property
    def alpha(self) -> float:
        """The exponent of priorities: the replay's. It cannot be changed, because its tree has values raised to it."""
        if self._storage._replay is not None:
            return self._storage.replay.alpha
        return self._storage._options.get("alpha", 0.6)

    @property
    def beta(self) -> float:
        """The exponent of the weights: the replay's own unless it was set."""
        if self._beta is not None:
            return self._beta
        if self._storage._replay is not None:
            return self._storage.replay.beta
        given = self._storage._options.get("beta", 0.4)
        return given[0] if isinstance(given, tuple) else given

    @beta.setter
    def beta(self, value: float | None) -> None:
        self._beta = None if value is None else checked_beta(value)

    @property
    def default_priority(self) -> float:
        """The priority of a transition that is added without one: the largest error so far."""
        return self._storage.replay.max_priority if len(self._storage) > 0 else 1.0

    def sample(self, storage: ShoalStorage, batch_size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """Draw indices, with their importance weights as `priority_weight`."""
        index, batch = self._storage.draw(batch_size, self._beta)
        if len(self._generations) < self._storage.max_size:
            self._generations = np.zeros(self._storage.max_size, dtype=np.int64)
        self._generations[batch.indices] = batch.generations
        if self._added is not None and np.array_equal(batch.indices, self._added):
            # From now on these slots mean the transitions that were drawn.
            self._added = None
        return index, {"priority_weight": torch.from_numpy(batch.weights)}

    def update_priority(
        self, index: Index, priority: float | torch.Tensor, *, storage: ShoalStorage | None = None
    ) -> None:
        """Set the priorities of the transitions at `index` to these errors.

        A slot means the transition that was last drawn from it, or the one that it holds now if it was never drawn
        from. If `index` is that of the last `add` or `extend`, the added transitions are meant: in this way TorchRL
        sets priorities that come with transitions. A replay without priorities stays as it is.
        """
        if not self._storage.replay.prioritized:
            return
        slots = flat_index(index, self._storage)
        errors = flat_errors(priority, slots.shape)
        generations = self._generations[slots] if slots.max(initial=-1) < len(self._generations) else np.zeros_like(slots)
        is_added = self._added is not None and np.array_equal(slots, self._added)
        if is_added:
            # Forgotten after one use, because an older batch may have the same slots. A draw of other slots does not
            # make it forgotten, because another thread may draw in between.
            self._added = None
        drawn = (generations > 0) & (not is_added)
        replay = self._storage.replay
        if drawn.any():
            replay.update_priorities(slots[drawn], errors[drawn], generations[drawn], stale="ignore")
        if not drawn.all():
            replay.update_priorities(slots[~drawn], errors[~drawn])

    def mark_update(self, index: Index, *, storage: Storage | None = None) -> None:
        """Do nothing: added transitions have their priorities already."""

    def add(self, index: Index) -> None:
        """Remember which slots were added last. They have their priorities already."""
        self._added = flat_index(index, self._storage)

    def extend(self, index: Index) -> None:
        """Remember which slots were added last. They have their priorities already."""
        self._added = flat_index(index, self._storage)

    def _empty(self) -> None:
        self._generations[:] = 0
        self._added = None

    def __getstate__(self) -> dict[str, Any]:
        # Unlike `PrioritizedSampler`, whose trees cannot be sent to other processes: here the replay holds the
        # priorities.
        return {**self.__dict__, "_rng": None}

    def state_dict(self) -> dict[str, Any]:
        """The exponent of the weights: priorities are saved with the storage."""
        return {"beta": self._beta}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._beta = state_dict["beta"]

    def dumps(self, path: str | Path) -> None:
        """Write the exponent of the weights into the folder `path`: priorities are saved with the storage."""
        Path(path).mkdir(parents=True, exist_ok=True)
        beta = None if self._beta is None else float(self._beta)
        (Path(path) / "sampler.json").write_text(json.dumps({"beta": beta}))

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote, and forget what was drawn: priorities are loaded with the storage."""
        self._empty()
        self._beta = json.loads((Path(path) / "sampler.json").read_text())["beta"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(beta={self._beta}, reduction={self.reduction})"


def _of_transitions(replay: Replay) -> Replay:
    """Return the replay. `ValueError`: it was made with `n_step`."""
    if replay.n_step is not None:
        raise ValueError(NO_STEPS)
    return replay


def _as_it_is(batch: TensorDictBase) -> TensorDictBase:
    """Return the batch, which a storage has put together already. Unlike a lambda, this can be pickled."""
    return batch


def _field_name(key: str | tuple[str, ...]) -> str:
    """The name of the field that holds the values of a key."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if SEPARATOR in part:
            raise ValueError(
                f"The key {part!r} contains {SEPARATOR!r}, which stands between the parts of nested keys, and would "
                f"come back as {tuple(part.split(SEPARATOR))!r}: give it another name, with rename_key_."
            )
    return SEPARATOR.join(parts)


def _tensordict(batch: Batch, shape: torch.Size) -> TensorDict:
    data = TensorDict({}, batch_size=shape)
    for name in batch:
        column = torch.from_numpy(batch[name])
        data.set(tuple(name.split(SEPARATOR)), column.reshape((*shape, *column.shape[1:])))
    return data
