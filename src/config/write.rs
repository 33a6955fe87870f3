//! The resolved configuration as TOML, which a run keeps in its folder and which starts the same run again.

use super::key::Table;
use super::own::OWN;
use super::schema::{Config, TABLES};

impl Config {
    /// The tables and keys as TOML spells them.
    pub(super) fn to_table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("every value of a configuration has a spelling in TOML")
    }

    /// Every key that the algorithm knows, with its value, ready to be loaded again. What is absent is spelled
    /// `"none"`.
    pub fn to_toml(&self) -> String {
        let values = self.to_table();
        let table_text = |table: &Table| {
            let known = table.keys.iter().filter(|key| key.is_known_to(&self.algorithm.name));
            let lines = known.map(|key| format!("{} = {}\n", key.name, values[key.table][key.name]));
            format!("[{}]\n{}", table.name, lines.collect::<String>())
        };
        let own: String = self.own.lines().map(|(name, value)| format!("{name} = {value}\n")).collect();
        let own = (!own.is_empty()).then(|| format!("[{OWN}]\n{own}"));
        TABLES.iter().map(table_text).chain(own).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use proptest::prelude::*;
    use serde::Deserialize;
    use toml::Value;

    use super::super::by_algorithm::RowKind;
    use super::super::key::Key;
    use super::super::key_type::{Kind, NONE};
    use super::super::limits::Limits;
    use super::super::schema::{AfterSupervisor, Exploration, InitialPriority, KeepReplay, OnFull, Split};
    use super::*;

    /// Any value that `key` allows by itself.
    fn allowed_value(key: &'static Key) -> BoxedStrategy<Value> {
        let value = match (key.kind, key.limits) {
            (Kind::Boolean, _) => any::<bool>().prop_map(Value::Boolean).boxed(),
            (Kind::Choice(choices), _) => prop::sample::select(choices).prop_map(|choice| Value::from(choice.word)).boxed(),
            (_, Limits::Whole { least, most }) => whole_number(least, most).prop_map(Value::Integer).boxed(),
            (_, Limits::OneOf(numbers)) => prop::sample::select(numbers).prop_map(|number| Value::Integer(number as i64)).boxed(),
            (_, Limits::Real { low, high }) => real_number(low, high).prop_map(Value::Float).boxed(),
            (_, Limits::Text { accepts, .. }) => text(accepts).prop_map(Value::String).boxed(),
            (_, Limits::List { least, most, .. }) => {
                prop::collection::vec(whole_number(least, most).prop_map(Value::Integer), 1..5).prop_map(Value::Array).boxed()
            }
            (_, Limits::Triples { least, most, .. }) => {
                let triple = prop::collection::vec(whole_number(least, most).prop_map(Value::Integer), 3).prop_map(Value::Array);
                prop::collection::vec(triple, 0..4).prop_map(Value::Array).boxed()
            }
            (kind, limits) => unreachable!("{kind:?} does not go with {limits:?}"),
        };
        if key.optional { prop_oneof![Just(Value::from(NONE)), value].boxed() } else { value }
    }

    fn whole_number(least: u64, most: u64) -> impl Strategy<Value = i64> {
        let (least, most) = (least as i64, most as i64);
        prop_oneof![least..=most, least..=most.min(least.saturating_add(1_000)), Just(least), Just(most)]
    }

    fn real_number(low: Bound<f64>, high: Bound<f64>) -> impl Strategy<Value = f64> {
        let end = |bound: Bound<f64>, otherwise: f64| match bound {
            Bound::Included(end) | Bound::Excluded(end) => end,
            Bound::Unbounded => otherwise,
        };
        let (least, most) = (end(low, -1e12), end(high, 1e12));
        (0.0f64..1.0).prop_map(move |share| {
            let number = least + share * share * (most - least);
            if number == least && !matches!(low, Bound::Included(_)) { least + 0.5 * (most - least).min(1.0) } else { number }
        })
    }

    fn text(accepts: fn(&str) -> bool) -> BoxedStrategy<String> {
        if accepts("anything") {
            prop_oneof!["[a-zA-Z0-9/_.-]{1,20}", any::<String>().prop_filter("not empty", |text| !text.is_empty())].boxed()
        } else {
            prop_oneof![Just("cpu".to_owned()), (0u8..16).prop_map(|index| format!("cuda:{index}"))].boxed()
        }
    }

    /// Any configuration that keeps every limit and every condition between keys.
    fn valid_configuration() -> impl Strategy<Value = Config> {
        let keys: Vec<&'static Key> = Key::all().filter(|key| key.path() != "algorithm.name").collect();
        let values: Vec<BoxedStrategy<Value>> = keys.iter().copied().map(allowed_value).collect();
        let algorithms = prop::sample::select(vec!["dqn", "ddpg", "td3", "sac", "appo", "ppo", "one of one's own"]);
        (algorithms, values).prop_map(move |(algorithm, values)| {
            let mut root = toml::Table::from_iter([(
                "algorithm".to_owned(),
                Value::Table(toml::Table::from_iter([("name".to_owned(), Value::from(algorithm))])),
            )]);
            for (key, value) in keys.iter().zip(values).filter(|(key, _)| key.is_known_to(algorithm)) {
                let table = root.entry(key.table).or_insert_with(|| Value::Table(toml::Table::new()));
                table.as_table_mut().unwrap().insert(key.name.to_owned(), value);
            }
            keep_conditions(Config::deserialize(Value::Table(root)).unwrap())
        })
    }

    /// The configuration nearest to `config` that keeps the conditions between keys.
    fn keep_conditions(mut config: Config) -> Config {
        if config.actor.count == 0 {
            config.learner.count = 1;
        }
        if config.actor.count == 0 || config.checkpoint.interval_s.is_none() {
            config.machine.sentinel = AfterSupervisor::WrittenToDisk;
        }
        if config.checkpoint.replay == KeepReplay::Never {
            config.checkpoint.synchronous_interval_steps = None;
        }
        if config.actor.count == 0 || config.learner.count > 1 {
            config.learner.split = Split::None;
        }
        config.actor.count = config.actor.count.min(64);
        config.actor.environments = config.actor.environments.min(64);
        config.actor.flush_transitions = config.actor.flush_transitions.min(4_096);
        config.algorithm.n_step = config.algorithm.n_step.min(8);
        config.evaluator.enabled |= config.run.stop_eval_return.is_some();
        if config.learner.uses_gpu() {
            config.network.engine = super::super::schema::Engine::Torch;
        }
        // The ranges of the adaptation would leave few configurations to draw.
        config.adaptation.enabled = false;
        config.learner.batch_size = config.learner.batch_size.div_ceil(config.learner.count).min(512) * config.learner.count;
        if config.row_kind() == RowKind::Fragments {
            config.fragments.length_steps = config.fragments.length_steps.min(64);
            let step = config.fragments.length_steps * config.learner.count;
            config.learner.batch_size = config.learner.batch_size.min(512).next_multiple_of(step);
            config.learner.publish_interval_updates = config.learner.publish_interval_updates.min(1_000_000_000);
            if config.algorithm.target_interval_updates == Some(1) {
                config.algorithm.kl_target = None;
            }
            if config.learns_from_old_policies() {
                let least_lag = config.learner.publish_interval_updates - 1;
                config.fragments.max_policy_lag_updates = config.fragments.max_policy_lag_updates.max(least_lag);
            } else {
                config.algorithm.minibatches = config.algorithm.minibatches.min(config.learner.batch_size / config.learner.count);
                config.learner.publish_interval_updates = 1;
            }
            if config.replayed_fragments() == 0 || config.fragments.on_full == OnFull::DropOldest {
                (config.fragments.replay_share, config.fragments.retained) = (0.0, None);
            }
            config.fragments.capacity = config.fragments.capacity.map(|capacity| capacity.max(config.least_fragments()));
            return config;
        }
        config.algorithm.normalise_rewards &= config.replay.initial_priority == InitialPriority::Max;
        config.replay.min_size = config.replay.min_size.max(config.learner.batch_size);
        config.replay.capacity = config.replay.capacity.max(config.replay.min_size).max(config.most_transitions_in_flight());
        config.replay.beta_end = config.replay.beta_end.max(config.replay.beta_start);
        if let (Some(band), Some(least)) = (config.replay.error_band, config.least_error_band()) {
            config.replay.error_band = Some(band.max(least));
        }
        if config.algorithm.exploration == Exploration::ApeX {
            config.algorithm.epsilon_end = config.algorithm.epsilon_end.max(1e-3);
        }
        config
    }

    proptest! {
        #[test]
        fn a_resolved_configuration_loads_as_itself(config in valid_configuration()) {
            let text = config.to_toml();
            let loaded = Config::parse(&text, "resolved.toml", &[]).map_err(|errors| TestCaseError::fail(format!("{errors}\n{text}")))?;
            prop_assert_eq!(loaded.config, config);
        }
    }

    #[test]
    fn a_configuration_travels_between_processes() {
        let mut config = Config::for_environment("CartPole-v1");
        config.replay.samples_per_insert = None;
        config.run.stop_wall_s = Some(2.5);
        let (sender, receiver) = ipc_channel::ipc::channel().unwrap();
        sender.send(config.clone()).unwrap();
        assert_eq!(receiver.recv().unwrap(), config);
    }
}
