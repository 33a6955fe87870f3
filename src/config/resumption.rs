//! Which keys may change when a run goes on from a checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use super::schema::Config;

/// The keys that decide what a checkpoint holds, or what it means: a table, or one key.
const FIXED: &[&str] = &[
    "run.name",
    "run.folder",
    "environment.id",
    "environment.keyword_arguments",
    "environment.frame_stack",
    "environment.frames_per_observation",
    "algorithm.name",
    "algorithm.gamma",
    "algorithm.n_step",
    "algorithm.kl_target",
    "algorithm.entropy_temperature",
    "algorithm.free_action_std",
    "algorithm.normalise_observations",
    "algorithm.normalise_rewards",
    "network.convolutions",
    "network.hidden",
    "network.dueling",
    "network.separate_value",
    "network.initialisation",
    "auto_encoder",
    "learner.split",
    "replay.capacity",
    "replay.prioritized",
    "replay.min_size",
    "replay.samples_per_insert",
    "fragments.length_steps",
    "own",
];

/// The paths of the keys in which `after` differs from `before` and a run that goes on must not.
pub fn changes_that_do_not_fit(before: &Config, after: &Config) -> Vec<String> {
    let (before, after) = (fixed_keys(before), fixed_keys(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

fn fixed_keys(config: &Config) -> BTreeMap<String, Value> {
    let tables = toml::Table::try_from(config).expect("every configuration has a spelling in TOML");
    let is_fixed = |table: &str, path: &str| FIXED.contains(&table) || FIXED.contains(&path);
    let keys = tables.into_iter().filter_map(|(table, keys)| match keys {
        Value::Table(keys) => Some(keys.into_iter().map(move |(name, value)| (table.clone(), format!("{table}.{name}"), value))),
        _ => None,
    });
    keys.flatten().filter(|(table, path, _)| is_fixed(table, path)).map(|(_, path, value)| (path, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Key;

    #[test]
    fn what_a_checkpoint_holds_stays_and_the_rest_may_change() {
        let before = Config::for_environment("CartPole-v1");
        let mut after = before.clone();
        after.learner.learning_rate *= 2.0;
        after.run.stop_env_steps += 1;
        after.actor.count += 1;
        assert_eq!(changes_that_do_not_fit(&before, &after), Vec::<String>::new());
        after.network.hidden = vec![7];
        after.replay.capacity += 1;
        after.auto_encoder.latent += 1;
        assert_eq!(changes_that_do_not_fit(&before, &after), ["auto_encoder.latent", "network.hidden", "replay.capacity"]);
    }

    #[test]
    fn every_key_that_stays_is_one() {
        let is_known = |fixed: &&str| *fixed == "own" || Key::find(fixed).is_some() || Key::all().any(|key| key.table == *fixed);
        assert_eq!(FIXED.iter().copied().filter(|fixed| !is_known(fixed)).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
