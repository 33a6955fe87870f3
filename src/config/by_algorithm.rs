//! What follows from the name of the algorithm, each as a method of its own. Which keys and rules concern an
//! algorithm is declared with the keys and the rules.

use super::schema::{AlgorithmConfig, CRITIC_ALGORITHMS, Config, Exploration, FRAGMENT_ALGORITHMS, Loss};

/// What an algorithm learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Transitions, drawn again and again.
    Transitions,
    /// Fragments of trajectories, each taken once.
    Fragments,
}

/// How target networks follow the learned ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetNetworks {
    /// Weight of the learned networks in each change: 1 copies them.
    pub tau: f64,
    /// Updates between two changes.
    pub interval_updates: u64,
}

impl Config {
    /// The defaults for the algorithm with this name; `environment.id` has none. DDPG, TD3 and SAC have those with which
    /// they are usually run and compared: one update for each environment step, of transitions that are drawn uniformly.
    /// PPO and APPO clip gradients as is usual for them.
    pub fn for_algorithm(name: &str) -> Self {
        let algorithm = AlgorithmConfig { name: name.to_owned(), ..AlgorithmConfig::default() };
        let mut config = Self { algorithm, ..Self::default() };
        if config.has_critics() {
            (config.learner.batch_size, config.replay.samples_per_insert) = (256, Some(256.0));
            (config.learner.max_gradient_norm, config.learner.publish_interval_updates) = (None, 1);
            (config.actor.environments, config.actor.flush_transitions) = (1, 1);
            config.replay.prioritized = false;
        }
        if config.row_kind() == RowKind::Fragments {
            config.learner.max_gradient_norm = Some(0.5);
        }
        config
    }

    /// Whether the algorithm has critics: DDPG, TD3 and SAC.
    pub(crate) fn has_critics(&self) -> bool {
        CRITIC_ALGORITHMS.contains(&self.algorithm.name.as_str())
    }

    /// The samples per insert where nobody sets them: with DDPG, TD3 and SAC those of an update for each environment step,
    /// however many transitions it draws.
    pub(crate) fn usual_samples_per_insert(&self) -> f64 {
        if self.has_critics() { self.learner.batch_size as f64 } else { 32.0 }
    }

    /// What the algorithm learns from. An algorithm that a program adds counts as learning from transitions.
    pub fn row_kind(&self) -> RowKind {
        if FRAGMENT_ALGORITHMS.contains(&self.algorithm.name.as_str()) { RowKind::Fragments } else { RowKind::Transitions }
    }

    /// Whether each batch is divided into `algorithm.minibatches`, with an update for each.
    pub fn learns_in_parts(&self) -> bool {
        self.algorithm.name == "ppo"
    }

    /// Whether the algorithm learns from fragments of older policies, as old as `fragments.max_policy_lag_updates`
    /// allows.
    pub fn learns_from_old_policies(&self) -> bool {
        self.algorithm.name == "appo"
    }

    /// Whether PPO and APPO learn the value with a network of its own. Convolutions are shared: two networks would
    /// compute them twice. Elsewhere the value's gradient, whose size is that of returns, would drown the policy's in
    /// the shared layers (docs/ppo.md has what was measured).
    pub fn separates_value(&self) -> bool {
        self.network.separate_value.unwrap_or(self.network.convolutions.is_empty())
    }

    /// Adam's step size at the beginning. With 1e-3, at which the others learn, DQN forgets again and again what it
    /// has learned (docs/dqn.md has what was measured).
    pub fn learning_rate(&self) -> f64 {
        self.learner.learning_rate.unwrap_or(if self.learns_values_alone() { 3e-4 } else { 1e-3 })
    }

    /// Whether the algorithm learns values of actions, and no policy beside them.
    pub(super) fn learns_values_alone(&self) -> bool {
        self.algorithm.name == "dqn"
    }

    /// Whether all environments explore at one rate, which falls with the steps of the run.
    pub fn anneals_epsilon(&self) -> bool {
        self.algorithm.name == "dqn" && self.algorithm.exploration == Exploration::Global
    }

    /// The key that says how often each fragment is learned from, with its value; `None` if the algorithm has no
    /// fragments.
    pub fn uses_of_fragments(&self) -> Option<(&'static str, usize)> {
        match self.algorithm.name.as_str() {
            "ppo" => Some(("algorithm.epochs", self.algorithm.epochs)),
            "appo" => Some(("fragments.uses", self.fragments.uses)),
            _ => None,
        }
    }
}

impl AlgorithmConfig {
    /// How the target networks of the algorithm with this name follow the learned ones: as configured, or as is usual
    /// for that algorithm.
    pub fn target_networks(&self, algorithm: &str) -> TargetNetworks {
        let usual_tau = if matches!(algorithm, "dqn" | "appo") { 1.0 } else { 0.005 };
        let tau = self.target_tau.unwrap_or(usual_tau);
        let usual_interval = match algorithm {
            // Averaged networks, unlike copied ones, follow after each update.
            "dqn" if tau == 1.0 => 100,
            "td3" => self.policy_delay_updates,
            "appo" => 16,
            _ => 1,
        };
        TargetNetworks { tau, interval_updates: self.target_interval_updates.unwrap_or(usual_interval) }
    }

    /// The loss on the temporal-difference error of the algorithm with this name.
    pub fn loss(&self, algorithm: &str) -> Loss {
        self.loss.unwrap_or(if algorithm == "dqn" { Loss::Huber } else { Loss::Mse })
    }

    /// How far the algorithm with this name, PPO or APPO, follows the probability of an action.
    pub fn clip_ratio(&self, algorithm: &str) -> f64 {
        self.clip_ratio.unwrap_or(if algorithm == "ppo" { 0.2 } else { 0.3 })
    }

    /// The weight of longer returns for the algorithm with this name, PPO or APPO.
    pub fn trace_decay(&self, algorithm: &str) -> f64 {
        self.trace_decay.unwrap_or(if algorithm == "ppo" { 0.95 } else { 1.0 })
    }

    /// The weight of the value's loss for the algorithm with this name, PPO or APPO.
    pub fn value_coefficient(&self, algorithm: &str) -> f64 {
        self.value_coefficient.unwrap_or(if algorithm == "ppo" { 0.5 } else { 1.0 })
    }

    /// Whether the algorithm with this name, PPO or APPO, scales advantages to mean 0 and variance 1.
    pub fn normalises_advantages(&self, algorithm: &str) -> bool {
        self.normalise_advantages.unwrap_or(algorithm == "ppo")
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;

    #[test]
    fn target_networks_follow_as_is_usual_for_the_algorithm_unless_it_is_configured() {
        let change = |tau, interval_updates, policy_delay_updates| AlgorithmConfig {
            target_tau: tau,
            target_interval_updates: interval_updates,
            policy_delay_updates,
            ..AlgorithmConfig::default()
        };
        let usual = change(None, None, 2);
        for (algorithm, settings, tau, interval_updates) in [
            ("dqn", &usual, 1.0, 100),
            ("dqn", &change(Some(0.5), None, 2), 0.5, 1),
            ("dqn", &change(None, Some(7), 2), 1.0, 7),
            ("ddpg", &usual, 0.005, 1),
            ("sac", &usual, 0.005, 1),
            ("td3", &usual, 0.005, 2),
            ("td3", &change(None, None, 3), 0.005, 3),
            ("appo", &usual, 1.0, 16),
        ] {
            assert_eq!(settings.target_networks(algorithm), TargetNetworks { tau, interval_updates }, "{algorithm}");
        }
    }

    #[test]
    fn what_none_stands_for_is_what_its_key_says_and_what_is_configured_wins() {
        let usual = AlgorithmConfig::default();
        let by_algorithm = |number: fn(&AlgorithmConfig, &str) -> f64| {
            format!("`\"none\"` takes {} for APPO and {} for PPO.", number(&usual, "appo"), number(&usual, "ppo"))
        };
        assert_eq!([usual.normalises_advantages("ppo"), usual.normalises_advantages("appo")], [true, false]);
        assert_eq!([usual.loss("dqn"), usual.loss("sac"), usual.loss("mine")], [Loss::Huber, Loss::Mse, Loss::Mse]);
        for (key, said) in [
            ("algorithm.clip_ratio", by_algorithm(AlgorithmConfig::clip_ratio)),
            ("algorithm.trace_decay", by_algorithm(AlgorithmConfig::trace_decay)),
            ("algorithm.value_coefficient", by_algorithm(AlgorithmConfig::value_coefficient)),
            ("algorithm.normalise_advantages", "`\"none\"` does so for PPO and not for APPO.".into()),
            ("algorithm.loss", "`\"none\"` takes `huber` for DQN and `mse` for the others.".into()),
        ] {
            let doc = Key::find(key).unwrap().doc;
            assert!(doc.contains(&said), "{key}: {doc}");
        }
        let set = AlgorithmConfig {
            loss: Some(Loss::Mse),
            clip_ratio: Some(0.1),
            trace_decay: Some(0.2),
            value_coefficient: Some(0.3),
            normalise_advantages: Some(false),
            ..usual
        };
        assert_eq!([set.clip_ratio("ppo"), set.trace_decay("ppo"), set.value_coefficient("ppo")], [0.1, 0.2, 0.3]);
        assert!(set.loss("dqn") == Loss::Mse && !set.normalises_advantages("ppo"));
    }

    #[test]
    fn the_defaults_of_ddpg_td3_and_sac_are_what_their_presets_for_hopper_have() {
        let settings = |config: &Config| {
            let Config { actor, learner, replay, .. } = config;
            let of_updates = (learner.batch_size, learner.max_gradient_norm, learner.publish_interval_updates);
            (of_updates, replay.prioritized, replay.samples_per_insert, actor.environments, actor.flush_transitions)
        };
        for (name, preset) in [
            ("ddpg", include_str!("../../configs/hopper_ddpg.toml")),
            ("td3", include_str!("../../configs/hopper_td3.toml")),
            ("sac", include_str!("../../configs/hopper_sac.toml")),
        ] {
            let of_preset = Config::parse(preset, "preset.toml", &[]).unwrap().config;
            let named = format!("environment.id = \"{}\"\nalgorithm.name = \"{name}\"\n", of_preset.environment.id);
            let loaded = Config::parse(&named, "task.toml", &[]).unwrap().config;
            assert_eq!(settings(&loaded), settings(&of_preset), "{name}");
            assert_eq!(loaded, Config { environment: of_preset.environment, ..Config::for_algorithm(name) });
        }
    }

    #[test]
    fn ppo_and_appo_clip_gradients_by_default_as_their_presets_for_cartpole_do() {
        let clipped_to = |text: &str| Config::parse(text, "task.toml", &[]).unwrap().config.learner.max_gradient_norm;
        for (name, preset) in
            [("appo", include_str!("../../configs/cartpole_appo.toml")), ("ppo", include_str!("../../configs/cartpole_ppo.toml"))]
        {
            let by_default = clipped_to(&format!("environment.id = \"CartPole-v1\"\nalgorithm.name = \"{name}\"\n"));
            assert_eq!([by_default, Config::for_algorithm(name).learner.max_gradient_norm], [clipped_to(preset); 2], "{name}");
        }
    }

    #[test]
    fn the_step_size_is_smaller_for_dqn_unless_it_is_configured() {
        let step_size = |algorithm: &str, configured| {
            let mut config = Config::for_environment("CartPole-v1");
            (config.algorithm.name, config.learner.learning_rate) = (algorithm.into(), configured);
            config.learning_rate()
        };
        assert_eq!(["dqn", "ddpg", "ppo", "mine"].map(|algorithm| step_size(algorithm, None)), [3e-4, 1e-3, 1e-3, 1e-3]);
        assert_eq!(["dqn", "ppo"].map(|algorithm| step_size(algorithm, Some(0.5))), [0.5, 0.5]);
    }

    #[test]
    fn the_value_has_a_network_of_its_own_unless_there_are_convolutions_or_another_wish() {
        let separates = |convolutions: &[[usize; 3]], wish| {
            let mut config = Config::for_environment("CartPole-v1");
            (config.network.convolutions, config.network.separate_value) = (convolutions.to_vec(), wish);
            config.separates_value()
        };
        assert!(separates(&[], None) && !separates(&[[4, 3, 1]], None));
        assert!(!separates(&[], Some(false)) && separates(&[[4, 3, 1]], Some(true)));
    }
}
