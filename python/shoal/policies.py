"""Saved policies: load one, act with it, evaluate it, take it to PyTorch or ONNX."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._command import settle
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

    `weights` is `"best"` (the last ones where a run has no best ones) or `"last"`; `seed` is for actions that are drawn.
    `PolicyError` says what is wrong with a file that is damaged or of something else.
    """
    if weights not in ("best", "last"):
        raise ValueError(f'weights must be "best" or "last", not {weights!r}')
    return Policy(path, weights, seed)


class Policy:
    """A policy that was learned. Call it with an observation, or with rows of them.

    A copy, also one that is sent to another process, is loaded from the same file again, with the same `weights` and
    `seed`: it draws from the beginning. `PolicyError` if the file is gone, or holds newer weights by then.
    """

    def __init__(self, path: str | os.PathLike[str], weights: Literal["best", "last"], seed: int) -> None:
        settle(f"{sys.executable} -m shoal")
        self._source = Path(path).resolve()
        self._weights = weights
        self._seed = seed
        self._native = _native.Policy(self._source, weights == "last", seed)
        facts = self._native.facts
        #: The weights file.
        self.path: Path = Path(facts["path"])
        #: The environment in which and the algorithm by which it was trained.
        self.environment: str = facts["environment"]
        self.algorithm: str = facts["algorithm"]
        #: How far it was trained.
        self.updates: int = facts["updates"]
        self.environment_steps: int = facts["environment_steps"]
        #: What it observes: with `stack` above 1, so many observations of its environment, the oldest first.
        self.observation_shape: tuple[int, ...] = tuple(facts["observation_shape"])
        self.observation_dtype: np.dtype[Any] = np.dtype(facts["observation_dtype"])
        self.stack: int = facts["stack"]
        #: How many actions there are, or `None` where actions are numbers, which lie between `low` and `high`.
        self.actions: int | None = facts.get("actions")
        self.low: NDArray[np.float32] | None = _bound(facts.get("low"))
        self.high: NDArray[np.float32] | None = _bound(facts.get("high"))

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded_again, (self._source, self._weights, self._seed, self.updates)

    def __repr__(self) -> str:
        return f"<shoal.Policy {self.algorithm} on {self.environment}, {self.updates} updates>"

    def __call__(self, observation: ArrayLike, explore: bool = False) -> int | NDArray[Any]:
        """The action for an observation, or the actions for an array of them: indices from 0, or numbers within the bounds.

        A space that begins at another number than 0, or whose numbers have more than one dimension, needs `space.start +
        action` or `action.reshape(space.shape)`.

        Actions are the best that the policy knows; with `explore` they are drawn as its algorithm explored when the
        policy was saved, in the first environment of a run; by the defaults where its file lies outside of its run's folder.
        `ValueError` where the shape is another than `observation_shape`, with or without a dimension before it.
        """
        observation = np.asarray(observation)
        if observation.dtype == object:
            raise ValueError(
                "observations are arrays of numbers; what an environment shows as a dictionary or a tuple is flattened: "
                "gymnasium.wrappers.FlattenObservation(environment)"
            )
        if not np.can_cast(observation.dtype, self.observation_dtype, "same_kind"):
            raise ValueError(f"observations are {self.observation_dtype}, not {observation.dtype}")
        shape = self.observation_shape
        if observation.shape != shape and observation.shape[1:] != shape:
            raise ValueError(
                f"observations are {shape}, with or without a dimension before that, not {observation.shape}"
            )
        rows = np.ascontiguousarray(observation, self.observation_dtype).reshape(-1)
        may_wrap = rows.dtype.kind == "u" and not np.can_cast(observation.dtype, rows.dtype)
        if may_wrap and not np.array_equal(rows, observation.reshape(-1)):
            raise ValueError(f"an observation has numbers that do not fit {self.observation_dtype}")
        if not np.isfinite(rows).all():
            raise ValueError("an observation is not finite")
        chosen = self._native.choose(rows, bool(explore))
        is_one = observation.shape == shape
        if self.low is None:
            return int(chosen[0]) if is_one else chosen
        return chosen if is_one else chosen.reshape(-1, len(self.low))

    def to_torch(self) -> "TorchPolicy":
        """A `torch.nn.Module` that gives the same actions for rows of observations, with the scaling of observations inside."""
        _torch()
        from .torch_policy import TorchPolicy

        module = TorchPolicy(self.path, self.low, self.high)
        # A run replaces the file when it has confirmed better weights.
        if module.updates != self.updates:
            raise _newer(self.path, module.updates)
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
    """The policy of a copy: a run may have replaced its file meanwhile."""
    policy = Policy(source, weights, seed)
    if policy.updates != updates:
        raise _newer(source, policy.updates)
    return policy


def _newer(source, updates):
    return PolicyError(f"{source} holds newer weights than those that were loaded, of {updates} updates: load them again")


def _bound(values):
    return None if values is None else np.array(values, np.float32)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well a policy did: undiscounted returns of whole episodes."""

    returns: list[float]
    return_mean: float
    return_std: float | None
    #: 95 % confidence interval of the mean (Student's t); `None` for one episode.
    ci95: tuple[float, float] | None


def evaluate(
    policy: "Policy | Run | str | os.PathLike[str]" = "runs/latest",
    environment: Any | None = None,
    episodes: int = 100,
    seed: int = 1,
) -> Evaluation:
    """Play whole episodes as the run of the policy evaluated it: with the best actions that it knows, or drawn from it where
    the run has `evaluator.greedy = false`.

    `policy` is a :class:`Policy`, a :class:`~shoal.Run` or the path of either. `environment` is the one that it was
    trained in unless it is said: its id, or an environment of Gymnasium, or a class or function that makes one. That is
    stepped here, with the best actions, and must show what the policy observes.

    An episode that does not end is cut off, and counts as far as it came: in the environment of the run after
    `evaluator.episode_limit_steps`, in one that is stepped here after 100,000 steps, which is the default of that.
    """
    if episodes < 1:
        raise ValueError(f"at least one episode, not {episodes}")
    if not isinstance(policy, Policy):
        policy = load(policy if isinstance(policy, (str, os.PathLike)) else policy.folder)
    # A class has the methods of the environments that it makes, and a function has none of them.
    if isinstance(environment, type) or (callable(environment) and not hasattr(environment, "reset")):
        made = environment()
        try:
            return _summary(_returns_in(policy, made, episodes, seed))
        finally:
            # The episodes count, whatever an environment does when it is closed.
            with contextlib.suppress(Exception):
                made.close()
    if environment is not None and not isinstance(environment, str):
        return _summary(_returns_in(policy, environment, episodes, seed))
    if environment not in (None, policy.environment):
        raise PolicyError(
            f"the policy was trained in {policy.environment}; to play it in {environment}, make that environment and hand it over"
        )
    command = [sys.executable, "-P", "-m", "shoal", "evaluate", str(policy._source), "--json"]
    command += ["--episodes", str(episodes), "--seed", str(seed)]
    # A file has only one policy, so there is nothing to choose.
    if policy._source.is_dir():
        command += ["--weights", policy._weights]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        if result.returncode < 0:
            raise PolicyError(f"the program that played it was killed by {signal.Signals(-result.returncode).name}")
        # The output of an environment comes before the error.
        raise PolicyError(("\n" + result.stderr.strip()).rpartition("\nerror: ")[2])
    outcome = json.loads(result.stdout)
    if outcome["updates"] != policy.updates:
        raise _newer(policy._source, outcome["updates"])
    return _summary(outcome["returns"])


def _returns_in(policy, environment, episodes, seed):
    import gymnasium

    if hasattr(environment, "num_envs"):
        raise ValueError("a single environment is played, not a vector of them")
    shape = environment.observation_space.shape
    if not isinstance(environment.observation_space, gymnasium.spaces.Box):
        # Flat, as the run has seen it.
        environment = gymnasium.wrappers.FlattenObservation(environment)
    elif (*shape[-1:], *shape[:-1]) == policy.observation_shape != shape:
        # Channels first, as convolutions want them.
        space = environment.observation_space
        low, high = (np.moveaxis(bounds, -1, 0) for bounds in (space.low, space.high))
        space = gymnasium.spaces.Box(low, high, dtype=space.dtype)
        environment = gymnasium.wrappers.TransformObservation(environment, lambda seen: np.moveaxis(seen, -1, 0), space)
    returns = []
    for episode in range(episodes):
        observation, _ = environment.reset(seed=seed if episode == 0 else None)
        total = 0.0
        for _ in range(_EPISODE_LIMIT_STEPS):
            observation, reward, terminated, truncated, _ = environment.step(
                _for_space(policy(observation), environment.action_space)
            )
            total += float(reward)
            if terminated or truncated:
                break
        returns.append(total)
    return returns


def _torch():
    """PyTorch, which is imported only by functions that need it."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a policy for PyTorch or ONNX needs PyTorch: pip install torch", name="torch"
        ) from error
    return torch


def _for_space(action, space):
    """An action as the environment's space has it: from its first index on, or in its shape."""
    if isinstance(action, int):
        return int(getattr(space, "start", 0)) + action
    return action.reshape(space.shape).astype(space.dtype)


def _summary(returns):
    mean, low, high, deviation = _native.statistics(returns)
    return Evaluation(returns, mean, deviation, None if low is None else (low, high))
