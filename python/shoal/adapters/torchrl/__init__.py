"""Shoal in TorchRL's replay buffers: a sampler for TorchRL's storages, or a whole replay, which can be shared."""

from .sampler import ShoalSampler
from .storage import ShoalStorage, ShoalStorageSampler, ShoalWriter, shoal_replay_buffer

__all__ = ["ShoalSampler", "ShoalStorage", "ShoalStorageSampler", "ShoalWriter", "shoal_replay_buffer"]
