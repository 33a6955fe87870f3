"""SAC, TD3 and DDPG with prioritized replay: importance weights on the critics' loss, TD errors as priorities."""

import numpy as np
import torch
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.common.utils import polyak_update

from .buffer import Samples
from .prioritized import Prioritized


class ActorCritic(Prioritized):
    """The update of the critics, common to all three; `critic_loss_scale` is the factor that Stable-Baselines3 uses."""

    critic: ContinuousCritic
    critic_target: ContinuousCritic
    critic_loss_scale = 1.0

    def update_critic(self, samples: Samples, targets: torch.Tensor) -> float:
        """Take one gradient step of the critics towards `targets`, of shape (batch, 1), and return the loss.

        The mean of the critics' absolute errors becomes the priority of each transition.
        """
        errors = torch.stack(self.critic(samples.observations, samples.actions)) - targets
        loss = self.critic_loss_scale * (samples.weights * errors.square()).mean(dim=1).sum()
        self.critic.optimizer.zero_grad()
        loss.backward()
        self.critic.optimizer.step()
        self.replay_buffer.update_priorities(samples, errors.detach().abs().mean(dim=0))
        return loss.item()

    def value_behind(self, samples: Samples, actions: torch.Tensor) -> torch.Tensor:
        """The smallest value of the target critics for the next observations and these actions, of shape (batch, 1)."""
        return torch.cat(self.critic_target(samples.next_observations, actions), dim=1).amin(dim=1, keepdim=True)


class PrioritizedSAC(ActorCritic, SAC):
    """Stable-Baselines3's SAC with prioritized replay. It takes the arguments of `SAC` and of `Prioritized`."""

    critic_loss_scale = 0.5

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do `gradient_steps` updates with a batch of `batch_size` each."""
        self.policy.set_training_mode(True)
        temperature_optimizer = [self.ent_coef_optimizer] if self.ent_coef_optimizer is not None else []
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer, *temperature_optimizer])
        temperatures, temperature_losses, actor_losses, critic_losses = [], [], [], []
        for step in range(gradient_steps):
            samples = self.sample_prioritized(batch_size)
            if self.use_sde:
                self.actor.reset_noise()
            actions, log_probabilities = self.actor.action_log_prob(samples.observations)
            log_probabilities = log_probabilities[:, None]
            temperature, temperature_loss = self._update_temperature(log_probabilities.detach())
            temperatures.append(temperature.item())
            if temperature_loss is not None:
                temperature_losses.append(temperature_loss)

            with torch.no_grad():
                next_actions, next_log_probabilities = self.actor.action_log_prob(samples.next_observations)
                values = self.value_behind(samples, next_actions) - temperature * next_log_probabilities[:, None]
                targets = self.targets(samples, values)
            critic_losses.append(self.update_critic(samples, targets))

            values = torch.cat(self.critic(samples.observations, actions), dim=1).amin(dim=1, keepdim=True)
            actor_loss = (temperature * log_probabilities - values).mean()
            actor_losses.append(actor_loss.item())
            self.actor.optimizer.zero_grad()
            actor_loss.backward()
            self.actor.optimizer.step()

            if step % self.target_update_interval == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/ent_coef", np.mean(temperatures))
        self.logger.record("train/actor_loss", np.mean(actor_losses))
        self.logger.record("train/critic_loss", np.mean(critic_losses))
        if temperature_losses:
            self.logger.record("train/ent_coef_loss", np.mean(temperature_losses))
        self.record_replay()

    def _update_temperature(self, log_probabilities: torch.Tensor) -> tuple[torch.Tensor, float | None]:
        """The temperature of this step, and the loss of a learned one, which is then updated; `None` if it is fixed."""
        if self.ent_coef_optimizer is None or self.log_ent_coef is None:
            return self.ent_coef_tensor, None
        temperature = self.log_ent_coef.detach().exp()
        loss = -(self.log_ent_coef * (log_probabilities + self.target_entropy)).mean()
        self.ent_coef_optimizer.zero_grad()
        loss.backward()
        self.ent_coef_optimizer.step()
        return temperature, loss.item()


class PrioritizedTD3(ActorCritic, TD3):
    """Stable-Baselines3's TD3 with prioritized replay. It takes the arguments of `TD3` and of `Prioritized`."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do `gradient_steps` updates with a batch of `batch_size` each."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        actor_losses, critic_losses = [], []
        for _ in range(gradient_steps):
            self._n_updates += 1
            samples = self.sample_prioritized(batch_size)
            with torch.no_grad():
                noise = torch.randn_like(samples.actions) * self.target_policy_noise
                noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
                next_actions = (self.actor_target(samples.next_observations) + noise).clamp(-1.0, 1.0)
                targets = self.targets(samples, self.value_behind(samples, next_actions))
            critic_losses.append(self.update_critic(samples, targets))
            if self._n_updates % self.policy_delay == 0:
                actor_losses.append(self._update_actor(samples))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if actor_losses:
            self.logger.record("train/actor_loss", np.mean(actor_losses))
        self.logger.record("train/critic_loss", np.mean(critic_losses))
        self.record_replay()

    def _update_actor(self, samples: Samples) -> float:
        loss = -self.critic.q1_forward(samples.observations, self.actor(samples.observations)).mean()
        self.actor.optimizer.zero_grad()
        loss.backward()
        self.actor.optimizer.step()
        for network, target in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
            polyak_update(network.parameters(), target.parameters(), self.tau)
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)
        polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)
        return loss.item()


class PrioritizedDDPG(PrioritizedTD3, DDPG):
    """Stable-Baselines3's DDPG with prioritized replay. It takes the arguments of `DDPG` and of `Prioritized`."""
