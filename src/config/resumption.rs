//! Which keys may change when a run goes on from a checkpoint.

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
    "algorithm.normalise_observations",
    "algorithm.normalise_rewards",
    "network.convolutions",
    "network.hidden",
    "network.dueling",
    "network.initialisation",
    "auto_encoder",
    "replay.capacity",
    "replay.prioritized",
    "replay.min_size",
    "replay.samples_per_insert",
    "fragments.length_steps",
    "own",
];

/// The paths of the keys in which `after` differs from `before` and a run that goes on must not.
pub fn changes_that_do_not_fit(before: &Config, after: &Config) -> Vec<String> {
    let [before, after] = [before, after].map(|config| Value::try_from(config).expect("every configuration has a spelling in TOML"));
    let (Value::Table(before), Value::Table(after)) = (before, after) else { return Vec::new() };
    let mut changed = Vec::new();
    for (table, keys) in &after {
        let names = keys.as_table().into_iter().flatten().map(|(name, _)| name);
        let missing = before.get(table).and_then(Value::as_table).into_iter().flatten().map(|(name, _)| name);
        for name in names.chain(missing) {
            let value = |config: &toml::Table| config.get(table).and_then(|keys| keys.get(name)).cloned();
            let path = format!("{table}.{name}");
            let is_fixed = FIXED.contains(&table.as_str()) || FIXED.contains(&path.as_str());
            if is_fixed && value(&before) != value(&after) && !changed.contains(&path) {
                changed.push(path);
            }
        }
    }
    changed
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
