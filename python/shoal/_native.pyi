"""The native part of the package: the replay, which is for users, and functions that other modules of it call."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .options import Field, Frames, NStep, RateLimiter

__version__: str

@final
class Batch(Mapping[str, NDArray[Any]]):
    """A batch of transitions: a mapping of field name to array, and the names of its transitions."""

    indices: NDArray[np.int64]
    """Slot of each transition."""
    generations: NDArray[np.int64]
    """How often that slot had been written: with the index, the transition's name."""
    weights: NDArray[np.float32]
    """Importance weights `(N P(i)) ^ -beta`, divided by the largest of the batch; ones where sampling is uniform."""
    batch_size: int
    """Number of transitions."""
    def __getitem__(self, name: str, /) -> NDArray[Any]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

@final
class Replay:
    """A replay of `capacity` transitions.

    Private to this process unless `shared` is true; then any process that knows its `name` may `open` it, before or
    after a fork, and all may add, sample and update at once. `seed` decides what this process draws, not what the children of a
    fork draw.
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
        """`beta` may be `(start, end, samples)`: linear in the number of transitions sampled so far.

        A priority given to `add` or `update_priorities` is an error `e >= 0`; `(e + epsilon) ** alpha` enters the tree.

        `frame_capacity` is the number of frames that fields of `Frames` share. Without it there are enough for 64
        environments; more of them want 16 frames for each frame that they show within an n-step transition, or frames
        are stored twice.
        """

    @staticmethod
    def open(name: str, *, seed: int | None = None) -> Replay:
        """The shared replay called `name`, made by another process or this one."""

    @staticmethod
    def attach(pid: int, *, seed: int | None = None) -> Replay:
        """The replay of the run whose supervisor has process id `pid`.

        This process becomes a guest of the run: `close` gives its place back, and the end of the run leaves it alive.
        """

    @staticmethod
    def load(
        path: str | PathLike[str], *, shared: bool = False, participants: int | None = None, seed: int | None = None
    ) -> Replay:
        """The replay saved at `path`, with its options and priorities.

        `shared` by as many `participants` as when it was saved, or 16 where it had one
        then, as far as it has slots for them.
        """

    name: str | None
    """What other processes open; `None` for a private replay."""
    capacity: int
    fields: dict[str, Field | Frames]
    n_step: NStep | None
    """How steps become transitions; `None` when what is added are transitions."""
    prioritized: bool
    alpha: float
    beta: float
    """The exponent of the importance weights now."""
    max_priority: float
    """The largest error so far (at least one): the priority of what is added without one."""
    total_priority: float
    inserted: int
    """Transitions ever added, by all processes."""
    sampled: int
    """Transitions ever drawn, by all processes."""
    saturated_priorities: int
    """Priorities ever given, by all processes, that were larger than the largest that the tree keeps (524,288), and count as that."""
    nbytes: int
    """Memory taken."""

    def __len__(self) -> int: ...
    def add(
        self,
        transitions: Mapping[str, ArrayLike],
        priorities: ArrayLike | None = None,
        *,
        streams: ArrayLike | None = None,
        timeout: float | None = None,
    ) -> NDArray[np.int64]:
        """Add one transition (arrays of the fields' own shapes) or n (one more leading dimension).

        Returns the slots they went to. All checks come before anything is written. With `n_step`, rows are steps of the environments
        `streams` (by default row i is of environment i), and what is returned are the slots of the transitions that became complete.
        With a rate limiter, waits up to `timeout` seconds and then raises `RateLimitError`. Without a timeout it waits until
        `stop`, `close` or the end of all who draw releases it with a `StoppedError`.

        `ValueError`: a field is missing, unknown or of another shape; a priority is no finite number of at least 0, or
        given where sampling is uniform or for steps with `n_step`; a guest of a run adds NaN or an infinity.
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
        """Draw transitions with replacement, in proportion to their priorities, stratified, or uniformly.

        `out` is a batch that an earlier call returned, of the same size: its arrays are filled again.

        While nothing has been added it raises `EmptyError`, unless a rate limiter has it wait for that. `timeout` counts
        the seconds from the call on in which the rate limiter, or another thread of this process, may hold it back; then
        it raises `RateLimitError`. Without a timeout it waits until `stop`, `close` or the end of the run releases it
        with a `StoppedError`.
        """

    def get(self, indices: ArrayLike) -> Batch:
        """The transitions in the slots `indices`, as they are now (weights are ones).

        An index beyond the capacity is an `IndexError`, and so is a slot with no transition in it, or with one that has
        lost a frame.
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

        A batch, or `generations`, names transitions exactly: one that was overwritten since is stale. Indices alone mean
        whatever is in those slots now.

        Everything is checked before anything is changed. `StaleIndexError`: some are stale, unless `stale` is "ignore".
        `IndexError`: an index is beyond the capacity, or names a slot alone that has no transition in it.
        `ValueError`: a priority is no finite number of at least 0, there are not as many as transitions, or sampling is
        uniform.
        """

    def priorities(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """What the tree holds for these slots, or for all: `(error + epsilon) ** alpha`."""

    def clear(self) -> None:
        """Remove all transitions. Names of those before are stale afterwards.

        Waits while another process repairs or clears the replay; Ctrl+C ends the wait.
        """

    def end_streams(self, streams: ArrayLike | None = None) -> None:
        """Forget the steps of the environments `streams`, or of all, that wait for more to become an n-step transition.

        For environments that are reset before their episodes have ended. Without `n_step` nothing waits.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file: atomically, with a checksum."""

    def stop(self) -> None:
        """Stop adding, in all processes: calls of `add` that wait, and later ones, raise `StoppedError`.

        What is there can still be drawn, read and saved.
        """

    def close(self) -> None:
        """Leave the replay; threads of this process that wait in it get `StoppedError`, and so does every later call.

        They are waited for, a tenth of a second at most. The last process to leave a shared one removes it; a guest of a
        run gives its place back.
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

@final
class SumTree:
    """Priorities, from which leaves are found in proportion, for programs that keep their transitions themselves.

    All sums are exact. A priority is kept to a millionth (a zero makes a leaf one that is never found) and may be up to
    524,288. Several threads may use one tree at once.
    """

    def __new__(cls, capacity: int) -> Self: ...
    def update(self, indices: ArrayLike, priorities: ArrayLike) -> None:
        """Set the priorities of leaves. If one is named twice, the last counts. Everything is checked first."""

    def find(self, targets: ArrayLike) -> NDArray[np.int64]:
        """The leaf on which each target, from 0 to `total`, falls: the first whose sum with all before it is greater.

        Targets in ascending order, as stratified draws give them, are found fastest.
        """

    def priorities(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """The priorities of these leaves, or of all."""

    @property
    def total(self) -> float:
        """Sum of all priorities."""

    def __len__(self) -> int:
        """Number of leaves."""

def settle(executable: str, home: str, abi: str, typed: str) -> None: ...
def run_program(typed: list[str]) -> int | None: ...
def default_variables() -> list[tuple[str, str]]: ...
def run_folder(pid: int) -> str | None: ...
def statistics(returns: list[float]) -> tuple[float | None, float | None, float | None, float | None]: ...

@final
class Policy:
    facts: dict[str, Any]
    def __new__(cls, path: PathLike[str], last: bool, seed: int) -> Self: ...
    def choose(self, observations: NDArray[Any], explores: bool) -> NDArray[Any]: ...
