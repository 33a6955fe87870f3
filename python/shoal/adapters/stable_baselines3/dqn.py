"""DQN with prioritized replay (Schaul et al. 2016), which Stable-Baselines3 lacks."""

import numpy as np
import torch
from stable_baselines3 import DQN
from torch.nn import functional

from .prioritized import Prioritized


class PrioritizedDQN(Prioritized, DQN):
    """Stable-Baselines3's DQN with prioritized replay: importance weights in its loss, TD errors as priorities.

    It takes the arguments of `DQN` and of `Prioritized`.
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do `gradient_steps` updates with a batch of `batch_size` each."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            samples = self.sample_prioritized(batch_size)
            with torch.no_grad():
                next_values = self.q_net_target(samples.next_observations).max(dim=1, keepdim=True).values
                targets = self.targets(samples, next_values)
            values = self.q_net(samples.observations).gather(1, samples.actions.long())
            loss = (samples.weights * functional.smooth_l1_loss(values, targets, reduction="none")).mean()
            losses.append(loss.item())

            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            self.replay_buffer.update_priorities(samples, targets - values)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))
        self.record_replay()
