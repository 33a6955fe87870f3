"""A saved policy as a module of PyTorch. docs/weights.md says what the tensors mean."""

import json
import math
import struct

import numpy as np
import torch

from .errors import PolicyError

# Where and as the file has its tensors, whatever device and type a session has made its default.
_AS_SAVED = {"device": "cpu", "dtype": torch.float32}


class TorchPolicy(torch.nn.Module):
    """Maps a batch of observations to the policy's best actions: indices, or vectors within the bounds."""

    def __init__(self, path, low=None, high=None):
        super().__init__()
        description, tensors = _read(path)
        #: Updates of the learners when the weights were saved.
        self.updates = description["updates"]
        # How outputs become actions.
        self.kind = _kind(description)
        network = description["networks"]["policy"]
        self.shape = tuple(network["input"]["shape"])
        self.divisor = 255.0 if network["input"]["element"] == "u8" else 1.0
        self.is_scaled = "observation.mean" in tensors
        if self.is_scaled:
            for name in ("mean", "inverse_deviation"):
                self.register_buffer(name, tensors[f"observation.{name}"].reshape(self.shape))
        self.layers, heads = _layers(network, tensors)
        self.is_dueling = "dueling" in network["head"]
        self.heads = torch.nn.ModuleList(_linear(head, tensors) for head in heads)
        # The outputs of SAC are means, followed by logarithms of standard deviations.
        self.is_halved = description["algorithm"] == "sac"
        if self.kind != "index":
            low, high = (torch.from_numpy(np.asarray(bound, np.float32)) for bound in (low, high))
            self.register_buffer("low", low)
            self.register_buffer("high", high)

    def forward(self, observations):
        """Actions for a batch of observations, of shape (batch, *shape of an observation)."""
        values = observations.to(torch.float32) / self.divisor
        if values.dim() == 1 and math.prod(self.shape) == 1:
            # Observations that are single numbers have only the batch axis.
            values = values.unsqueeze(1)
        if len(self.shape) == 1:
            # A perceptron takes one axis behind the batch axis, and stacked observations have more.
            values = values.flatten(1)
        if self.is_scaled:
            values = ((values - self.mean) * self.inverse_deviation).clamp(-10, 10)
        values = self.layers(values)
        outputs = self.heads[0](values)
        if self.is_dueling:
            advantages = self.heads[1](values)
            outputs = outputs + advantages - advantages.mean(1, keepdim=True)
        if self.kind == "index":
            return outputs.argmax(1)
        if self.is_halved:
            outputs = outputs.chunk(2, 1)[0]
        chosen = outputs.clamp(-1, 1) if self.kind == "clip" else torch.tanh(outputs)
        scaled = 0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * chosen
        # Rounding may lead out of the bounds.
        return torch.minimum(torch.maximum(scaled, self.low), self.high)


def _kind(description):
    """How the outputs of the network become actions. `PolicyError`: neither the file nor its algorithm tells."""
    algorithm, head = description["algorithm"], description["networks"]["policy"]["head"]
    # Files of older versions do not say it.
    actions = description.get("spaces", {}).get("action", {}).get("discrete", {}).get("n")
    if algorithm == "dqn" or head in ({"linear": {"outputs": actions}}, {"dueling": {"outputs": actions}}):
        return "index"
    if algorithm in ("ppo", "appo"):
        # The head that acts comes first.
        return "index" if head["named"][0]["name"] == "policy" else "clip"
    if algorithm in ("ddpg", "td3", "sac"):
        return "tanh"
    raise PolicyError(f"nothing says how the outputs of {algorithm} become actions")


def _read(path):
    """The description in a safetensors file, and its tensors by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    description = json.loads(header.pop("__metadata__")["shoal"])
    return description, {name: _tensor(data, **tensor) for name, tensor in header.items()}


def _tensor(data, dtype, shape, data_offsets):
    begin, end = data_offsets
    assert dtype == "F32", f"weights are 32-bit floats, not {dtype}"
    return torch.from_numpy(np.frombuffer(data[begin:end], "<f4").reshape(shape).copy())


def _layers(network, tensors):
    """The layers before the head, and the names of the heads that act."""
    numbered = 0
    layers = []
    for layer in network["layers"]:
        if isinstance(layer, str):
            layers.append({"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "flatten": torch.nn.Flatten}[layer]())
            continue
        name = f"layers.{numbered}"
        numbered += 1
        if "convolution" in layer:
            outputs, inputs, kernel, _ = tensors[f"policy.{name}.weight"].shape
            stride = layer["convolution"]["stride"]
            convolution = torch.nn.Conv2d(inputs, outputs, kernel, stride=stride, **_AS_SAVED)
            layers.append(_filled(convolution, name, tensors))
        elif "dense" in layer:
            layers.append(_linear(name, tensors))
        else:
            raise PolicyError(f"a module of PyTorch is not made of a network with the layer {layer}")
    if "dueling" in network["head"]:
        return torch.nn.Sequential(*layers), ["value", "advantage"]
    if "named" in network["head"]:
        # The head that acts comes first.
        return torch.nn.Sequential(*layers), [network["head"]["named"][0]["name"]]
    return torch.nn.Sequential(*layers), [f"layers.{numbered}"]


def _linear(name, tensors):
    outputs, inputs = tensors[f"policy.{name}.weight"].shape
    return _filled(torch.nn.Linear(inputs, outputs, **_AS_SAVED), name, tensors)


def _filled(layer, name, tensors):
    layer.load_state_dict({part: tensors[f"policy.{name}.{part}"] for part in ("weight", "bias")})
    return layer.requires_grad_(False)
