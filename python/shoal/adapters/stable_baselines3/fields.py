"""How an observation of Stable-Baselines3 is stored: as one field, as a stack of frames, or as one field per key."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import get_obs_shape

from shoal import Field, Frames

Array = NDArray[np.generic]
Observation = Array | dict[str, Array]


class ObservationFields:
    """The fields of one observation, and the conversion to them and back.

    With `frame_stack`, the first axis of an image observation is that many frames, oldest first, as `VecFrameStack`
    followed by `VecTransposeImage` gives it: `(4, 84, 84)` is four grey frames, `(12, 84, 84)` four in colour. Each
    distinct frame is then stored once. The shape of an image does not tell whether it is a stack.
    """

    def __init__(self, space: spaces.Space, frame_stack: int | None = None) -> None:
        self._spaces: Mapping[str, spaces.Space] = space.spaces if isinstance(space, spaces.Dict) else {"": space}
        self._is_dict = isinstance(space, spaces.Dict)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._fields: dict[str, Field | Frames] = {}
        for key, part in self._spaces.items():
            shape = get_obs_shape(part)
            if isinstance(shape, dict):
                raise TypeError(
                    f"Observation {key!r} is a dictionary in a dictionary: Stable-Baselines3 takes none either."
                )
            is_image = len(shape) == 3
            stack = frame_stack if is_image else None
            self._fields[key] = _frames(key, shape, part, stack) if stack else Field(shape, part.dtype)
            self._shapes[key] = shape
        if frame_stack and not any(isinstance(field, Frames) for field in self._fields.values()):
            raise ValueError(
                f"frame_stack={frame_stack} needs an image observation with three axes, and {space} has none."
            )

    def named(self, prefix: str) -> dict[str, Field | Frames]:
        """The replay's fields, called `prefix` or `prefix/KEY`."""
        return {_name(prefix, key): field for key, field in self._fields.items()}

    def to_fields(self, prefix: str, observation: Observation) -> dict[str, Array]:
        """A batch of observations as columns of these fields."""
        parts = observation if isinstance(observation, dict) else {"": observation}
        return {_name(prefix, key): self._column(key, np.asarray(parts[key])) for key in self._fields}

    def from_fields(self, prefix: str, columns: Mapping[str, Array]) -> Observation:
        """The batch of observations that these columns hold, in the form that the policy was given."""
        parts = {key: columns[_name(prefix, key)].reshape(-1, *shape) for key, shape in self._shapes.items()}
        return parts if self._is_dict else parts[""]

    def _column(self, key: str, array: Array) -> Array:
        field = self._fields[key]
        shape = (field.stack, *field.shape) if isinstance(field, Frames) else field.shape
        return array.reshape(-1, *shape).astype(field.dtype, copy=False)


def _name(prefix: str, key: str) -> str:
    return f"{prefix}/{key}" if key else prefix


def _frames(key: str, shape: tuple[int, ...], space: spaces.Space, stack: int) -> Frames:
    channels, rest = divmod(shape[0], stack)
    if rest:
        raise ValueError(
            f"Observation {key or 'space'} of shape {shape} is no stack of {stack} frames along its first axis. "
            "Channels come first here: give frame_stack the number that VecFrameStack was given."
        )
    return Frames(shape[1:] if channels == 1 else (channels, *shape[1:]), space.dtype, stack)
