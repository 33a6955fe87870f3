"""A Stable-Baselines3 replay buffer whose transitions lie in a Shoal replay."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from shoal import Batch, Field, NStep, Replay

from .fields import Array, Observation, ObservationFields

Tensors = torch.Tensor | dict[str, torch.Tensor]


class Samples(NamedTuple):
    """A batch in the form of Stable-Baselines3, with what prioritized replay needs in addition."""

    observations: Tensors
    actions: torch.Tensor
    next_observations: Tensors
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor | None
    weights: torch.Tensor
    """Importance weights, of shape (batch, 1)."""
    batch: Batch
    """The batch of the replay, which `update_priorities` needs to identify the transitions."""


class ShoalReplayBuffer(ReplayBuffer):
    """A replay buffer for DQN, SAC, TD3 and DDPG: give it as their `replay_buffer_class`.

    Stable-Baselines3's own algorithms never report priorities, so with them sampling stays uniform. `PrioritizedDQN`,
    `PrioritizedSAC`, `PrioritizedTD3` and `PrioritizedDDPG` report them. Dictionary observations need no other class.

    `prioritized`, `alpha`, `beta` and `epsilon` are those of `shoal.Replay`. `n_steps` makes n-step transitions, whose
    rewards are discounted with `gamma`. The prioritized algorithms pass their own gamma; Stable-Baselines3 passes it
    only to its own buffers, so give it with its algorithms. `frame_stack` says that images are stacks of so many
    frames. Without a `seed`, one is drawn from NumPy's global generator, which the algorithm's `seed` has seeded.
    Further options, such as `shared=True`, go to `shoal.Replay`. The attribute `replay` is that replay.
    """

    replay: Replay

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        prioritized: bool = True,
        alpha: float = 0.6,
        beta: float | tuple[float, float, int] = 0.4,
        epsilon: float = 1e-6,
        n_steps: int = 1,
        gamma: float | None = None,
        frame_stack: int | None = None,
        seed: int | None = None,
        **replay_options: Any,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage=True takes a next observation from the row that follows, which loses the last "
                "one of each episode. Leave it out; replay_buffer_kwargs=dict(frame_stack=4) stores each frame once."
            )
        if n_steps > 1 and gamma is None:
            raise ValueError(
                f"n_steps={n_steps} adds up discounted rewards, and gamma is missing: give the algorithm's own, as in "
                f"replay_buffer_kwargs=dict(n_steps={n_steps}, gamma=0.99)."
            )
        if n_steps > 1 and "discounts" not in ReplayBufferSamples._fields:
            raise ValueError(
                f"n_steps={n_steps} needs Stable-Baselines3 2.7 or later, whose algorithms read the discounts of a "
                f"batch, and {stable_baselines3.__version__} is installed: upgrade it, or leave n_steps out."
            )
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps = n_steps
        self._fields = ObservationFields(observation_space, frame_stack)
        next_observations = self._fields.named("next_observation")
        fields = {
            **self._fields.named("observation"),
            "action": Field((self.action_dim,), self._maybe_cast_dtype(action_space.dtype)),
            "reward": Field((), np.float32),
            **next_observations,
            "terminated": Field((), np.bool_),
            "truncated": Field((), np.bool_),
        }
        n_step = None
        if n_steps > 1:
            fields["discount"] = Field((), np.float32)
            n_step = NStep(n_steps, gamma, next_fields=tuple(next_observations), discount="discount")
        self.replay = Replay(
            self.buffer_size * n_envs,
            fields,
            prioritized=prioritized,
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
            n_step=n_step,
            seed=_drawn_seed() if seed is None else seed,
            **replay_options,
        )

    def size(self) -> int:
        """Transitions stored per environment, as Stable-Baselines3 counts them."""
        return len(self.replay) // self.n_envs

    def reset(self) -> None:
        """Remove all transitions."""
        self.replay.clear()
        self._count()

    def add(
        self,
        obs: Observation,
        next_obs: Observation,
        action: Array,
        reward: Array,
        done: Array,
        infos: list[dict[str, Any]],
    ) -> None:
        """Add one step of every environment."""
        ended = np.asarray(done, dtype=np.bool_)
        timeout = np.zeros_like(ended)
        if self.handle_timeout_termination:
            timeout = ended & np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        actions = np.asarray(action).reshape(self.n_envs, self.action_dim)
        self.replay.add(
            {
                **self._fields.to_fields("observation", obs),
                "action": actions.astype(self._maybe_cast_dtype(self.action_space.dtype), copy=False),
                "reward": np.asarray(reward, dtype=np.float32),
                **self._fields.to_fields("next_observation", next_obs),
                "terminated": ended & ~timeout,
                "truncated": timeout,
            }
        )
        self._count()

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None, beta: float | None = None
    ) -> Samples:
        """Draw transitions. `env` normalizes observations and rewards; `beta` replaces the replay's own."""
        return self._samples(self.replay.sample(batch_size, beta=beta), env)

    def update_priorities(self, samples: Samples, td_errors: torch.Tensor) -> None:
        """Set the priorities of `samples` to the absolute values of these TD errors, one per transition.

        Transitions that other processes have overwritten since they were drawn are left out. A replay without
        priorities stays as it is.
        """
        if not self.replay.prioritized:
            return
        errors = td_errors.detach().abs().flatten().cpu().numpy()
        self.replay.update_priorities(samples.batch, errors, stale="ignore")

    def _get_samples(self, batch_inds: Array, env: VecNormalize | None = None) -> Samples:  # type: ignore[override]
        return self._samples(self.replay.get(batch_inds), env)

    def _samples(self, batch: Batch, env: VecNormalize | None) -> Samples:
        return Samples(
            observations=self._observations("observation", batch, env),
            actions=self._tensor(batch["action"]),
            next_observations=self._observations("next_observation", batch, env),
            dones=self._tensor(batch["terminated"].astype(np.float32)[:, None]),
            rewards=self._tensor(self._normalize_reward(batch["reward"][:, None], env)),
            discounts=self._tensor(batch["discount"][:, None]) if self.n_steps > 1 else None,
            weights=self._tensor(batch.weights[:, None]),
            batch=batch,
        )

    def _observations(self, prefix: str, batch: Batch, env: VecNormalize | None) -> Tensors:
        observations = self._normalize_obs(cast(Any, self._fields.from_fields(prefix, batch)), env)
        if isinstance(observations, dict):
            return {key: self._tensor(part) for key, part in observations.items()}
        return self._tensor(observations)

    def _tensor(self, array: Array) -> torch.Tensor:
        # Every batch has arrays of its own, so that nothing has to be copied.
        return self.to_torch(array, copy=False)

    def _count(self) -> None:
        """Update `full` and `pos`, which tell Stable-Baselines3 how far the buffer is filled."""
        self.full = len(self.replay) == self.replay.capacity
        self.pos = self.replay.inserted // self.n_envs % self.buffer_size if self.full else self.size()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "replay"
            self.replay.save(path)
            state["replay"] = path.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "replay"
            path.write_bytes(state["replay"])
            self.__dict__.update(state, replay=Replay.load(path, seed=_drawn_seed()))


def _drawn_seed() -> int:
    """A seed from NumPy's global generator, which Stable-Baselines3's own buffers use and an algorithm's `seed` seeds."""
    return int(np.random.randint(2**31))
