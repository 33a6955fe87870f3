"""Saved policies: load one, act with it, evaluate it, take it to PyTorch or ONNX."""

import collections
import contextlib
import dataclasses
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._command import settle
from ._program import answer
from .errors import PolicyError

if TYPE_CHECKING:
    from .runs import Run
    from .torch_policy import TorchPolicy

# The default of a run's `evaluator.episode_limit_steps`.
_EPISODE_LIMIT_STEPS = 100_000


def load(
    path: str | os.PathLike[str] = "runs/latest", weights: Literal["best", "last"] = "best", seed: int = 0
) -> "Policy":
    """The policy in a run's folder or in a weights file.

    The environment is made only if the file does not say what the policy observes and does: it is old, or its
    observations are bytes that are seen as floats. If it is a module or file of Python, the file of weights has to
    lie in its run's folder.

    `weights` is `"best"` or `"last"`; for a run without best weights, both mean the last. The last of a run under way
    are those of its newest checkpoint, once it has best ones. `seed` seeds actions that are drawn at random.
    `PolicyError`: the file is missing, damaged, or not a file of weights, or the run has none yet.
    """
    if weights not in ("best", "last"):
        raise ValueError(f'weights must be "best" or "last", not {weights!r}')
    return Policy(path, weights, seed)


class Policy:
    """A saved policy. Call it with one observation, or with a batch of them. Several threads may do so at once.

    A copy, also one that is pickled for another process, is loaded again from the same file with the same `weights` and
    `seed`, so its random draws begin anew. `PolicyError`: the file is gone, or holds newer weights by then.
    """

    def __init__(self, path: str | os.PathLike[str], weights: Literal["best", "last"], seed: int) -> None:
        settle(f"{shlex.quote(sys.executable)} -m shoal")
        # `runs/latest` will lead elsewhere. A file in the folder of a run belongs to that run, though it may be a link.
        path = Path(path)
        self._source = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
        self._weights = weights
        self._seed = seed
        self._native = _native.Policy(self._source, weights == "last", seed)
        facts = self._native.facts
        #: The weights file, or the folder of the checkpoint.
        self.path: Path = Path(facts["path"])
        self._is_checkpoint: bool = facts["is_checkpoint"]
        #: The id of the environment that it was trained in.
        self.environment: str = facts["environment"]
        #: The name of the algorithm that trained it.
        self.algorithm: str = facts["algorithm"]
        #: How many updates and environment steps it was trained for.
        self.updates: int = facts["updates"]
        self.environment_steps: int = facts["environment_steps"]
        #: One observation. With `stack` above 1 it consists of that many of the environment's, the oldest first.
        self.observation_shape: tuple[int, ...] = tuple(facts["observation_shape"])
        self.observation_dtype: np.dtype[Any] = np.dtype(facts["observation_dtype"])
        self.stack: int = facts["stack"]
        #: The number of discrete actions, or `None` if actions are continuous: they lie between `low` and `high`.
        self.actions: int | None = facts.get("actions")
        self.low: NDArray[np.float32] | None = _bound(facts.get("low"))
        self.high: NDArray[np.float32] | None = _bound(facts.get("high"))
        self._action_arrays = facts.get("action_arrays")

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded_again, (self._source, self._weights, self._seed, self.updates)

    def __repr__(self) -> str:
        return f"<shoal.Policy {self.algorithm} on {self.environment}, {self.updates} updates>"

    def __call__(self, observation: ArrayLike, explore: bool = False) -> int | NDArray[Any]:
        """The action for one observation, or the actions for a batch.

        Discrete actions are indices from 0: an `int`, or an int64 array of shape (batch,). If the environment's space
        begins at another number than 0, add `space.start`. For a `MultiDiscrete` or `MultiBinary` they are what the
        environment takes: arrays of the space's shape and type, or of shape (batch, *shape). Continuous actions are
        float32 vectors between `low` and `high`, of shape (n,) or (batch, n). If their space has more than one dimension, use
        `action.reshape(space.shape)`.

        By default these are the policy's best actions. With `explore` they are drawn as the algorithm explored in the
        first environment of the run when the policy was saved. For a file outside its run's folder, exploration follows
        the default settings of the algorithm.

        `ValueError`: the shape is not `observation_shape`, with or without a batch axis before it, or a value is not
        finite or does not fit `observation_dtype`.
        """
        observation = np.asarray(observation)
        if observation.dtype == object:
            raise ValueError(
                "observations are arrays of numbers: flatten what the environment shows as a dictionary or a tuple, by "
                "gymnasium.spaces.utils.flatten(environment.observation_space, observation)"
            )
        if not np.can_cast(observation.dtype, self.observation_dtype, "same_kind"):
            raise ValueError(f"observations are {self.observation_dtype}, not {observation.dtype}")
        shape = self.observation_shape
        if observation.shape != shape and observation.shape[1:] != shape:
            are_channels_last = len(shape) == 3 and observation.shape[-3:-1] == shape[1:]
            hint = ": put the channels first with numpy.moveaxis(observation, -1, -3)" if are_channels_last else ""
            raise ValueError(
                f"observations are {shape}, with or without a dimension before that, not {observation.shape}{hint}"
            )
        # A copy, because other threads run while the policy computes, and may change the caller's array.
        rows = observation.astype(self.observation_dtype, order="C").reshape(-1)
        may_wrap = rows.dtype.kind == "u" and not np.can_cast(observation.dtype, rows.dtype)
        if may_wrap and not np.array_equal(rows, observation.reshape(-1)):
            raise ValueError(f"an observation has numbers that do not fit {self.observation_dtype}")
        if not np.isfinite(rows).all():
            raise ValueError("an observation is not finite")
        chosen = self._native.choose(rows, bool(explore))
        is_one = observation.shape == shape
        if self.low is not None:
            return chosen if is_one else chosen.reshape(-1, len(self.low))
        if self._action_arrays is not None:
            chosen = _as_arrays(chosen, *self._action_arrays)
            # An array also where the space has no dimension.
            return chosen[0, ...] if is_one else chosen
        return int(chosen[0]) if is_one else chosen

    def to_torch(self) -> "TorchPolicy":
        """A `torch.nn.Module` that maps a batch of observations to the same actions. It scales observations itself.

        Where the policy returns arrays, for a `MultiDiscrete` or `MultiBinary`, the module returns their indices among
        all combinations, in the order of `numpy.unravel_index`.

        `PolicyError`: the file holds newer weights by now, or there is only a checkpoint.
        """
        if self._is_checkpoint:
            raise PolicyError(f"{self.path} is a checkpoint: its run saves a file of its last weights when it ends")
        _torch()
        from .torch_policy import TorchPolicy

        module = TorchPolicy(self.path, self.low, self.high)
        # A run replaces the file when it has confirmed better weights.
        if module.updates != self.updates:
            raise _newer_weights(self.path, module.updates)
        return module

    def to_torchscript(self, path: str | os.PathLike[str]) -> None:
        """Write the module of :meth:`to_torch` as TorchScript."""
        torch = _torch()

        torch.jit.trace(self.to_torch(), self._example()).save(os.fspath(path))

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the module of :meth:`to_torch` as ONNX: input `observations`, output `actions`, any number of rows."""
        torch = _torch()

        torch.onnx.export(
            self.to_torch(),
            (self._example(),),
            os.fspath(path),
            input_names=["observations"],
            output_names=["actions"],
            dynamic_axes={"observations": {0: "rows"}, "actions": {0: "rows"}},
            dynamo=False,
        )

    def _example(self):
        torch = _torch()

        return torch.from_numpy(np.zeros((2, *self.observation_shape), self.observation_dtype))


def _loaded_again(source, weights, seed, updates):
    """The policy of a copy; `PolicyError` if a run has replaced its file meanwhile."""
    policy = Policy(source, weights, seed)
    if policy.updates != updates:
        raise _newer_weights(source, policy.updates)
    return policy


def _newer_weights(source, updates):
    return PolicyError(f"{source} holds newer weights than those that were loaded, of {updates} updates: load them again")


def _as_arrays(indices, counts, start, shape, dtype):
    """The arrays for which `indices` stand, in the order of `numpy.unravel_index`: the last number changes first."""
    counts = np.array(counts, int)
    # After how many indices a number changes. NumPy's own function takes 64 numbers at most.
    steps = np.cumprod(counts[::-1])[::-1] // counts
    return (indices[:, None] // steps % counts + start).reshape(len(indices), *shape).astype(dtype)


def _bound(values):
    return None if values is None else np.array(values, np.float32)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well a policy did: undiscounted returns of whole episodes."""

    #: In the order in which episodes were dealt out to environments, not of their ends. As long as each environment
    #: plays its first, an index means the same first state for every policy, with the same seed.
    returns: list[float]
    return_mean: float
    return_std: float | None
    #: 95 % confidence interval of the mean (Student's t); `None` for one episode.
    ci95: tuple[float, float] | None
    #: How many episodes did not end and were cut off. Their returns until then count.
    cut_off: int


def evaluate(
    policy: "Policy | Run | str | os.PathLike[str]" = "runs/latest",
    environment: Any | None = None,
    episodes: int = 100,
    seed: int = 1,
) -> Evaluation:
    """Play whole episodes with a policy.

    `policy` is a :class:`Policy`, a :class:`~shoal.Run` or the path of either. By default it plays in the environment
    that it was trained in, as its run evaluated it: with its best actions, or with drawn ones if the run has
    `evaluator.greedy = false`. The id of that environment as `environment` means the same, and is
    needed for a module or file of Python that is named by a weights file outside its run's folder.

    `environment` may also be an environment of Gymnasium, or a class or function that makes one. This process steps it,
    with the policy's best actions. Its observations must be those that the policy was trained with: they are flattened
    and stacked, and channels are put first, as the run did it.

    An episode that does not end is cut off, and its return until then counts. In the environment of the run the limit is
    `evaluator.episode_limit_steps`. In one that this process steps it is 100,000 steps, the default of that key.

    `ValueError`: fewer than one episode, or a vector of environments. `PolicyError`: the policy cannot be loaded or
    played, or `environment` is the id of another environment.
    """
    if episodes < 1:
        raise ValueError(f"at least one episode, not {episodes}")
    if isinstance(policy, Policy):
        loaded = policy
    else:
        loaded = load(policy if isinstance(policy, (str, os.PathLike)) else policy.folder)
    # A function that makes environments has no `reset`. A class has one, as its environments do, and is a type.
    if isinstance(environment, type) or (callable(environment) and not hasattr(environment, "reset")):
        made = environment()
        try:
            return _summary(*_played_in(loaded, made, episodes, seed))
        finally:
            # If closing the environment fails, the episodes still count.
            with contextlib.suppress(Exception):
                made.close()
    if environment is not None and not isinstance(environment, str):
        return _summary(*_played_in(loaded, environment, episodes, seed))
    if environment not in (None, loaded.environment):
        raise PolicyError(
            f"the policy was trained in {loaded.environment}; to play it in {environment}, make that environment and hand it over"
        )
    # In one word each: a negative number would be taken for an option.
    options = [f"--episodes={episodes}", f"--seed={seed}"]
    # A file has only one policy, so there is nothing to choose.
    if loaded._source.is_dir():
        options += ["--weights", loaded._weights]
    elif environment is not None:
        options.append(f"--environment={environment}")
    outcome = answer(PolicyError, "evaluate", str(loaded._source), *options)
    # Of a run or a path the caller wants what is there now.
    if loaded is policy and outcome["updates"] != loaded.updates:
        raise _newer_weights(loaded._source, outcome["updates"])
    return _summary(outcome["returns"], outcome["cut_off"])


def _played_in(policy, environment, episodes, seed):
    """The return of each episode, and how many were cut off."""
    import gymnasium

    if hasattr(environment, "num_envs"):
        raise ValueError("a single environment is played, not a vector of them")
    if not isinstance(environment.observation_space, gymnasium.spaces.Box):
        # A run flattens such observations.
        environment = gymnasium.wrappers.FlattenObservation(environment)
    space = environment.observation_space
    frames, are_channels_last = _arrangement(policy, space.shape)

    def shown(observation):
        # A copy: an environment may change its array in the next step, when this frame is still seen.
        taken = np.array(_for_policy(observation, policy, space))
        # Channels first, as convolutions want them.
        return np.moveaxis(taken, -1, 0) if are_channels_last else taken

    returns, cut_off = [], 0
    for episode in range(episodes):
        observation, _ = environment.reset(seed=seed if episode == 0 else None)
        # An episode begins with copies of its first observation.
        seen = collections.deque([shown(observation)] * frames, maxlen=frames)
        total = 0.0
        for _ in range(_EPISODE_LIMIT_STEPS):
            stacked = seen[0] if frames == 1 else np.reshape(seen, policy.observation_shape)
            action = _for_space(policy(stacked), environment.action_space)
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            if terminated or truncated:
                break
            seen.append(shown(observation))
        else:
            cut_off += 1
        returns.append(total)
    return returns, cut_off


def _arrangement(policy, shape):
    """Of how many observations of `shape` a run makes one of the policy's, and whether their channels come last."""
    channels_first = (shape[2], *shape[:2]) if len(shape) == 3 else shape
    # An environment may stack some of the frames itself.
    for frames in (number for number in range(1, policy.stack + 1) if policy.stack % number == 0):
        for one in (shape, channels_first):
            # Images grow along their channels.
            several = (frames * one[0], *one[1:]) if len(one) >= 3 else (frames, *one)
            if (one if frames == 1 else several) == policy.observation_shape:
                return frames, one != shape
    # The policy says why it refuses them.
    return 1, False


def _torch():
    """PyTorch, which is imported only by functions that need it."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a policy for PyTorch or ONNX needs PyTorch: pip install torch", name="torch"
        ) from error
    return torch


def _for_policy(observation, policy, space):
    """An observation as the policy takes it. As in a run, bytes may be shown as whole numbers of any type."""
    if not policy.observation_dtype == space.dtype == np.uint8:
        return observation
    shown = np.asarray(observation)
    with np.errstate(invalid="ignore"):
        as_bytes = shown.astype(np.uint8)
    changed = shown[as_bytes != shown]
    if changed.size > 0:
        raise ValueError(
            f"the observation has the value {changed[0]}, and the observation space whole numbers from 0 to 255 (uint8)"
        )
    return as_bytes


def _for_space(action, space):
    """An action as a run gives it to the environment: in the space, and of the type that its `sample()` returns."""
    if isinstance(action, int):
        return space.dtype.type(space.start + action)
    action = action.reshape(space.shape).astype(space.dtype)
    if hasattr(space, "low"):
        # The policy's bounds are rounded to 32 bits, so an action at one of them may be just outside.
        np.clip(action, space.low, space.high, out=action)
    return action


def _summary(returns, cut_off):
    mean, low, high, deviation = _native.statistics(returns)
    return Evaluation(returns, mean, deviation, None if low is None else (low, high), cut_off)
