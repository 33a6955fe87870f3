//! Table `[learner]`.

use super::CRITIC_ALGORITHMS;
use crate::config::define::{choice, table};
use crate::config::limits::{Limits, at_least, below, between, positive, positive_up_to, whole};
use crate::segment::layout::HALVES;
use crate::segment::membership::MOST_LEARNERS;

/// The largest batch of all learners together.
pub(super) const LARGEST_BATCH: u64 = 65_536;

table! {
    /// The processes that compute gradients.
    [learner] LearnerConfig {
        /// Learner processes; each draws its share of the batch.
        count: usize = 1, whole(1, MOST_LEARNERS as u64), "processes";
        /// Transitions per update, over all learners; for PPO and APPO, environment steps in fragments. `"auto"` takes
        /// 64 for DQN and 256 for the others, or 128 for each of several learners if that is more (docs/adaptation.md).
        /// PPO's batch is a rollout, of which an update takes one of `algorithm.minibatches` parts; if neither key has
        /// a number, both follow the environments (docs/ppo.md).
        batch_size: usize = 64, whole(1, LARGEST_BATCH), "transitions";
        /// Adam's step size at the beginning. `"none"` takes 3e-4 for DQN and 1e-3 for the others.
        learning_rate: Option<f64> = None, positive_up_to(1.0), "";
        /// Adam's step size at `run.stop_env_steps`, approached linearly. `"none"` keeps it constant.
        learning_rate_end: Option<f64> = None, between(0.0, 1.0), "";
        /// Adam's decay of the first moment.
        adam_beta1: f64 = 0.9, below(0.0, 1.0), "";
        /// Adam's decay of the second moment.
        adam_beta2: f64 = 0.999, below(0.0, 1.0), "";
        /// Offset of Adam's denominator.
        adam_epsilon: f64 = 1e-8, between(1e-16, 1.0), "";
        /// Largest Euclidean norm of the gradient. `"none"` does not clip.
        max_gradient_norm: Option<f64> = Some(10.0), positive(), "";
        /// Updates between two publications of the parameters.
        publish_interval_updates: u64 = 4, at_least(1), "updates";
        /// Get the next batch ready in a thread of its own while the current one trains. This is worth a core if
        /// getting a batch ready takes long beside an update. Priorities are then one update older when a batch is
        /// drawn, and fragments are taken a batch earlier.
        prefetch: bool = false, Limits::Any, "", only ["dqn", "ddpg", "td3", "sac", "appo"];
        /// Whether two learners divide the algorithm between them, each with networks of its own to train
        /// (docs/two-devices.md).
        split: Split = Split::None, Limits::Any, "", only CRITIC_ALGORITHMS;
        /// Updates after which a half of the algorithm hands its parameters to the other half.
        swap_interval_updates: u64 = 8, whole(1, 1_000_000), "updates", only CRITIC_ALGORITHMS;
        /// Where the gradients are computed: one device for all learners, or one for each, separated by commas.
        /// With a `split`, the device of the critics comes first. CUDA numbers the fastest GPU first, or numbers
        /// GPUs as `doctor` lists them if `CUDA_DEVICE_ORDER=PCI_BUS_ID` is set.
        device: String = "cpu".into(),
            Limits::Text {
                form: "\"cpu\" or \"cuda:N\" with the number of a GPU, or several, as \"cuda:0,cuda:1\"",
                accepts: are_devices
            }, "";
    }
}

choice! {
    /// How learners divide an algorithm.
    Split {
        /// Learners do not divide it: each computes a part of every gradient.
        None = "none",
        /// Two learners: one trains the critics, one the policy.
        ActorCritic = "actor_critic",
    }
}

impl LearnerConfig {
    /// The number of learner processes.
    pub fn processes(&self) -> usize {
        match self.split {
            Split::None => self.count,
            Split::ActorCritic => HALVES,
        }
    }

    /// The devices that are named: one for all learners, or one for each.
    pub fn devices(&self) -> Vec<&str> {
        self.device.split(',').map(str::trim).collect()
    }

    /// Whether any learner computes on a GPU.
    pub fn uses_gpu(&self) -> bool {
        self.devices().iter().any(|&device| device != "cpu")
    }

    /// Whether every learner computes on a GPU.
    pub fn uses_gpus_alone(&self) -> bool {
        self.devices().iter().all(|&device| device != "cpu")
    }

    /// The device of the learner with this number.
    pub fn device_of(&self, learner: usize) -> &str {
        let devices = self.devices();
        devices.get(learner).copied().unwrap_or(devices[0])
    }
}

/// Whether `text` names one device or several.
fn are_devices(text: &str) -> bool {
    text.split(',').map(str::trim).all(is_device)
}

/// Whether `text` names a device: `cpu`, or `cuda:` and a number without leading zeros.
fn is_device(text: &str) -> bool {
    text == "cpu" || text.strip_prefix("cuda:").is_some_and(|index| index.parse::<u8>().is_ok_and(|number| number.to_string() == index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_the_cpu_or_one_numbered_gpu() {
        assert!(["cpu", "cuda:0", "cuda:15"].into_iter().all(is_device));
        assert!(!["", "cuda", "cuda:", "cuda:01", "cuda:-1", "cuda:+1", "gpu:0", "CPU"].into_iter().any(is_device));
    }

    #[test]
    fn several_devices_are_one_for_each_learner_and_one_is_for_all() {
        assert!(["cpu", "cuda:0,cuda:1", "cpu, cuda:3"].into_iter().all(are_devices));
        assert!(!["cpu,", ",", "cuda:0 cuda:1", "cpu,gpu:0"].into_iter().any(are_devices));
        let mut learner = LearnerConfig { device: "cpu, cuda:3".into(), ..LearnerConfig::default() };
        assert_eq!([0, 1].map(|number| learner.device_of(number)), ["cpu", "cuda:3"]);
        assert!(learner.uses_gpu() && !learner.uses_gpus_alone() && !LearnerConfig::default().uses_gpu());
        learner.device = "cuda:1".into();
        assert_eq!([0, 5].map(|number| learner.device_of(number)), ["cuda:1"; 2]);
        assert!(learner.uses_gpu() && learner.uses_gpus_alone());
        assert_eq!(LearnerConfig { split: Split::ActorCritic, ..learner }.processes(), 2);
    }
}
