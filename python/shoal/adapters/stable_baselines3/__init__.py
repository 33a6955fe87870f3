"""Shoal's replay in Stable-Baselines3, and prioritized replay for its off-policy algorithms."""

from .actor_critic import PrioritizedDDPG, PrioritizedSAC, PrioritizedTD3
from .buffer import Samples, ShoalReplayBuffer
from .dqn import PrioritizedDQN

__all__ = [
    "PrioritizedDDPG",
    "PrioritizedDQN",
    "PrioritizedSAC",
    "PrioritizedTD3",
    "Samples",
    "ShoalReplayBuffer",
]
