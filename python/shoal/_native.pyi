"""The native part of the package: the replay, for users, and functions that other modules of the package call."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .options import Field, Frames, NStep, RateLimiter

__version__: str

@final
class Batch(Mapping[str, NDArray[Any]]):
    """A batch of transitions: a mapping of field name to array, with the slots and weights of the transitions.

    The first axis of every array is `batch_size` long.
    """

    @property
    def indices(self) -> NDArray[np.int64]:
        """Slot of each transition."""

    @property
    def generations(self) -> NDArray[np.int64]:
        """How often that slot had been written: slot and generation together identify a transition."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """Importance weights `(N P(i)) ^ -beta`, divided by the largest of the batch; ones if sampling is uniform."""

    @property
    def batch_size(self) -> int:
        """Number of transitions."""

    def __getitem__(self, name: str, /) -> NDArray[Any]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

@final
class Replay:
    """A replay of `capacity` transitions.

    It is private to this process unless `shared` is true. Any process that knows the `name` of a shared replay may
    `open` it, before or after a fork, and all may add, sample and update at the same time. `seed` decides what this
    process draws, but not what the children of a fork draw.

    A pickle of a shared replay is its name, for processes that live at the same time: `save` keeps what is to outlast
    them.
    """

    def __new__(
        cls,
        capacity: int,
        fields: Mapping[str, Field | Frames | tuple[int | Sequence[int], DTypeLike] | DTypeLike],
        *,
        prioritized: bool = True,
        alpha: float = 0.6,
        beta: float | tuple[float, float, int] = 0.4,
        epsilon: float = 1e-6,
        n_step: NStep | None = None,
        rate_limiter: RateLimiter | None = None,
        shared: bool = False,
        participants: int = 16,
        frame_capacity: int | None = None,
        seed: int | None = None,
    ) -> Self:
        """`participants` is for a shared replay: so many processes may add to it, and so many may draw from it. It is
        at most 256, and less than `capacity`.

        `beta` may be `(start, end, samples)`: linear from `start` to `end` over that many sampled transitions.

        A priority given to `add` or `update_priorities` is an error `e >= 0`. The sum tree holds
        `(e + epsilon) ** alpha`.

        `frame_capacity` is the number of frames that all fields of `Frames` share. The default is enough for 64
        environments. More environments need 16 frames for each frame that they show within an n-step transition;
        with fewer, frames are stored twice.
        """

    @staticmethod
    def open(name: str, *, seed: int | None = None) -> Replay:
        """The shared replay called `name`, made by another process or this one."""

    @staticmethod
    def attach(pid: int, *, seed: int | None = None) -> Replay:
        """The replay of the run whose supervisor has process id `pid`.

        This process becomes a guest of the run. `close` gives its place back. The end of the run does not end it.
        """

    @staticmethod
    def load(
        path: str | PathLike[str], *, shared: bool = False, participants: int | None = None, seed: int | None = None
    ) -> Replay:
        """The replay saved at `path`, or that of a run's checkpoint, with its options and priorities.

        The file `replay.shoal` of a checkpoint is read with the other files of its folder. From that replay draws wait
        for no inserts, and `beta` stays as it was.

        If `shared`, it has room for `participants` processes: by default as many as when it was saved, or 16 if it was
        private then, but fewer if it has too few slots.
        """

    @property
    def name(self) -> str | None:
        """The name by which other processes `open` it; `None` for a private replay."""

    @property
    def capacity(self) -> int: ...
    @property
    def fields(self) -> dict[str, Field | Frames]: ...
    @property
    def n_step(self) -> NStep | None:
        """How added steps become transitions; `None` if transitions themselves are added."""

    @property
    def prioritized(self) -> bool: ...
    @property
    def alpha(self) -> float: ...
    @property
    def beta(self) -> float:
        """The current exponent of the importance weights."""

    @property
    def max_priority(self) -> float:
        """The largest error so far, at least one. A transition that is added without a priority gets it."""

    @property
    def total_priority(self) -> float: ...
    @property
    def inserted(self) -> int:
        """Number of transitions that all processes have added."""

    @property
    def sampled(self) -> int:
        """Number of transitions that all processes have drawn; those that guests of a run draw do not count."""

    @property
    def saturated_priorities(self) -> int:
        """Number of priorities, given by all processes, that exceeded the largest that the tree can hold.

        They count as that: `(error + epsilon) ** alpha` = 524,288.
        """

    @property
    def nbytes(self) -> int:
        """Size of its memory in bytes."""

    def __len__(self) -> int: ...
    def add(
        self,
        transitions: Mapping[str, ArrayLike],
        priorities: ArrayLike | None = None,
        *,
        streams: ArrayLike | None = None,
        timeout: float | None = None,
    ) -> NDArray[np.int64]:
        """Add one transition (arrays of the fields' own shapes) or n transitions (one more leading axis).

        Returns the slots of the transitions. Everything is checked before anything is written.

        With `n_step`, row i is a step of the environment `streams[i]`, by default of environment i. The slots returned
        are those of the transitions that these steps completed. A call that raises has taken none of its steps: add
        them again, or call `end_streams` for their environments before you add later steps.

        With a rate limiter, the call waits up to `timeout` seconds and then raises `RateLimitError`. Without a timeout
        it waits until it may add, or until `stop`, `close` or the end of all processes that draw releases it with a
        `StoppedError`.

        `ValueError`: a field is missing, unknown or of another shape; a priority is negative or not finite; priorities
        are given although sampling is uniform, or for steps with `n_step`; a guest of a run adds NaN or an infinity.
        `TypeError`: values have a dtype that does not fit. `OverflowError`: a whole number does not fit.
        """

    def sample(
        self,
        batch_size: int,
        *,
        beta: float | None = None,
        weights: bool = True,
        out: Batch | None = None,
        timeout: float | None = None,
    ) -> Batch:
        """Draw transitions with replacement: in proportion to their priorities, stratified, or else uniformly.

        `beta` replaces the replay's own exponent. With `weights=False` all weights are one. `out` is a batch of the
        same size from an earlier call, whose arrays are filled again.

        An empty replay raises `EmptyError`, unless it has a rate limiter: the call then waits for transitions. If the
        rate limiter, or another thread of this process, holds the call back for `timeout` seconds, it raises
        `RateLimitError`. Without a timeout it waits until it may draw, or until `stop`, `close` or the end of the run
        releases it with a `StoppedError`. After `stop` it may draw if there are the rate limiter's `min_size`
        transitions.

        What a guest of a run draws takes nothing from the run's learners: it does not count, and only the minimum
        holds it back.
        """

    def get(self, indices: ArrayLike) -> Batch:
        """The transitions that are now in the slots `indices`. Their weights are ones.

        `IndexError`: an index is out of range, or a slot is empty or holds a transition that has lost a frame.
        """

    def update_priorities(
        self,
        indices: ArrayLike | Batch,
        priorities: ArrayLike,
        generations: ArrayLike | None = None,
        *,
        stale: Literal["raise", "ignore"] = "raise",
    ) -> int:
        """Set the priorities of transitions; returns how many were stale and therefore ignored.

        A batch, or indices with `generations`, identifies transitions exactly: one that was overwritten since is stale.
        Indices alone mean the transitions that are in those slots now.

        Everything is checked before anything is changed. `StaleIndexError`: some are stale, unless `stale` is "ignore".
        `IndexError`: an index is out of range, or an index without a generation is that of an empty slot.
        `ValueError`: a priority is negative or not finite, there are not as many priorities as transitions, or sampling
        is uniform.
        """

    def priorities(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """What the sum tree holds for the slots `indices`, or for all slots: `(error + epsilon) ** alpha`."""

    def clear(self) -> None:
        """Remove all transitions. Batches that were drawn before are stale afterwards.

        Waits while another process repairs or clears the replay; Ctrl+C ends the wait.
        """

    def end_streams(self, streams: ArrayLike | None = None) -> None:
        """Forget, for the environments `streams` or for all, the steps that wait for the rest of their transition.

        Call it if environments are reset before their episodes have ended. Without `n_step` no step waits.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Write the replay to one file, atomically and with a checksum.

        `OSError`: the system does not write it, or another process or thread clears the replay meanwhile.
        """

    def stop(self) -> None:
        """Stop adding, in all processes: calls of `add` that wait, and later ones, raise `StoppedError`.

        The transitions in the replay can still be drawn, whatever the rate limiter's ratio, read and saved.
        """

    def close(self) -> None:
        """Leave the replay. Calls of other threads that wait in it raise `StoppedError`, and so does every later call.

        `close` waits for those threads, a tenth of a second at most. The last process to leave a shared replay removes
        it. A guest of a run gives its place back.
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

@final
class SumTree:
    """A sum tree of priorities, for programs that store their transitions themselves.

    All sums are exact. A priority is kept to a millionth, and may be up to 524,288. A leaf of priority zero is never
    found. Several threads may use one tree at the same time.
    """

    def __new__(cls, capacity: int) -> Self: ...
    def update(self, indices: ArrayLike, priorities: ArrayLike) -> None:
        """Set the priorities of leaves. If an index occurs twice, its last priority counts.

        Everything is checked before anything is changed. `IndexError`: an index is out of range. `ValueError`: a
        priority is negative, not finite or above 524,288, or there are not as many priorities as indices.
        """

    def find(self, targets: ArrayLike) -> NDArray[np.int64]:
        """The leaf on which each target falls: the first whose priority and all before it add up to more.

        Targets lie between 0 and `total`. Ascending targets, as stratified draws give them, are found fastest.
        `ValueError`: a target is out of range. `EmptyError`: all priorities are zero.
        """

    def priorities(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """The priorities of the leaves `indices`, or of all leaves."""

    @property
    def total(self) -> float:
        """Sum of all priorities."""

    def __len__(self) -> int:
        """Number of leaves."""

def settle(executable: str, home: str, abi: str, typed: str) -> None: ...
def run_program(typed: list[str]) -> int | None: ...
def default_variables() -> list[tuple[str, str]]: ...
def run_folder(pid: int) -> str | None: ...
def found_folder(folder: str | PathLike[str]) -> Path: ...
def goes_on(folder: str | PathLike[str]) -> bool: ...
def supervisor_of(folder: str | PathLike[str]) -> tuple[int, bool]: ...
def statistics(returns: list[float]) -> tuple[float | None, float | None, float | None, float | None]: ...

@final
class Policy:
    @property
    def facts(self) -> dict[str, Any]: ...
    def __new__(cls, path: PathLike[str], last: bool, seed: int) -> Self: ...
    def choose(self, observations: NDArray[Any], explores: bool) -> NDArray[Any]: ...
