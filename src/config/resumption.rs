//! Which keys may change when a run goes on from a checkpoint, and which make it another run.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use super::by_algorithm::RowKind;
use super::idle;
use super::load::is_same;
use super::overrides;
use super::schema::Config;

/// The keys that decide what a checkpoint holds, or what it means, beside [`LEARNED`] and [`INITIAL_KEYS`]: a table, or one key.
const FIXED: &[&str] = &[
    "run.name",
    "run.folder",
    "environment.id",
    "environment.keyword_arguments",
    "environment.evaluation_arguments",
    "environment.frame_stack",
    "environment.frames_per_observation",
    "algorithm.name",
    "algorithm.gamma",
    "algorithm.n_step",
    "replay.capacity",
    "replay.prioritized",
    "replay.min_size",
    "replay.samples_per_insert",
    "fragments.length_steps",
    "own",
];

/// The keys that decide what learners keep and publish, or what that means, beside the name of the algorithm.
const LEARNED: &[&str] = &[
    "algorithm.kl_target",
    "algorithm.entropy_temperature",
    "algorithm.free_action_std",
    "algorithm.normalise_observations",
    "algorithm.normalise_rewards",
    "network.convolutions",
    "network.hidden",
    "network.dueling",
    "network.separate_value",
    "auto_encoder",
    "learner.split",
];

/// The keys that decide what learning begins with, and nothing after that.
pub const INITIAL_KEYS: &[&str] = &["algorithm.initial_entropy_temperature", "algorithm.initial_action_std", "network.initialisation"];

/// The keys that decide neither what a synchronous run learns nor what is found of it. Its limits are none of them: where it ends, it is
/// evaluated once more.
const ASIDE: &[&str] = &[
    "run.resume",
    "run.start_from",
    "run.metrics_interval_s",
    "checkpoint.interval_s",
    "checkpoint.replay",
    "checkpoint.keep_last",
    "checkpoint.keep_best",
    "checkpoint.keep_every_steps",
    "machine.affinity",
    "machine.huge_pages",
    "machine.max_restarts",
    "machine.hang_timeout_s",
    "machine.sentinel",
    "visualizer",
];

/// Whether a synchronous run that goes on with `after` does what it did with `before`.
pub fn repeats(before: &Config, after: &Config) -> bool {
    let keys = |config: &Config| keys(config, |table, path| !ASIDE.contains(&table) && !ASIDE.contains(&path));
    before.is_synchronous() && keys(before) == keys(after)
}

/// The paths of the keys in which `after` differs from `before` and a run that goes on must not.
pub fn changes_that_do_not_fit(before: &Config, after: &Config) -> Vec<String> {
    let (before, after) = (keys(before, is_fixed), keys(after, is_fixed));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_kept = |path: &String| before.get(path).zip(after.get(path)).is_some_and(|(old, new)| means_the_same(path, old, new));
    paths.into_iter().filter(|path| !is_kept(path)).cloned().collect()
}

/// Whether the key with this path means the same with both values, however they are written.
fn means_the_same(path: &str, one: &Value, other: &Value) -> bool {
    let json = |value: &Value| serde_json::from_str::<serde_json::Value>(value.as_str()?).ok();
    let is_same_json = || json(one).is_some_and(|arguments| json(other) == Some(arguments));
    let is_json = ["environment.keyword_arguments", "environment.evaluation_arguments"].contains(&path);
    is_same(one, other) || is_json && is_same_json()
}

/// The settings, as `TABLE.KEY=VALUE`, in which a run with `learned` differs from one with `begins` that is to begin
/// with what it has learned, and must not.
pub fn settings_to_begin_with(learned: &Config, begins: &Config) -> Vec<String> {
    // A line that rests in what was learned has decided nothing.
    let rests = |path: &str| idle::reason(path, learned).is_some();
    let is_learned = |table: &str, path: &str| is_among(LEARNED, table, path) && !rests(path);
    let (learned, begins) = (keys(learned, is_learned), keys(begins, is_learned));
    learned.into_iter().filter(|(path, value)| begins.get(path) != Some(value)).map(|(path, value)| format!("{path}={value}")).collect()
}

/// The paths of the keys of `before` that `overrides` change and a run that goes on must not, whatever else is wrong with those.
pub fn overrides_that_do_not_fit(before: &Config, overrides: &[String]) -> Vec<String> {
    let (meant, written) = (keys(before, is_fixed), written_keys(before, is_fixed));
    // The last one of a key wins.
    let wanted: BTreeMap<String, Value> =
        overrides::read(overrides, &mut Vec::new()).into_iter().map(|entry| (entry.path, entry.value)).collect();
    let changes = |(path, value): &(String, Value)| {
        [&meant, &written].iter().all(|before| before.get(path).is_some_and(|old| !means_the_same(path, old, value)))
    };
    wanted.into_iter().filter(changes).map(|(path, _)| path).collect()
}

/// Whether a run that goes on has to keep the key with this path in this table.
pub(super) fn is_fixed(table: &str, path: &str) -> bool {
    [FIXED, LEARNED, INITIAL_KEYS].iter().any(|named| is_among(named, table, path))
}

/// Whether `named` has the key with this path, or its whole table.
fn is_among(named: &[&str], table: &str, path: &str) -> bool {
    named.contains(&table) || named.contains(&path)
}

/// What the keys of `config` whose table and path `wanted` accepts mean, by path.
fn keys(config: &Config, wanted: impl Fn(&str, &str) -> bool) -> BTreeMap<String, Value> {
    let mut config = config.clone();
    if config.row_kind() == RowKind::Fragments {
        // What "none" stands for is what matters.
        config.network.separate_value = Some(config.separates_value());
    }
    written_keys(&config, wanted)
}

/// The values, by path, of the keys of `config` whose table and path `wanted` accepts.
fn written_keys(config: &Config, wanted: impl Fn(&str, &str) -> bool) -> BTreeMap<String, Value> {
    let keys = config.to_table().into_iter().filter_map(|(table, keys)| match keys {
        Value::Table(keys) => Some(keys.into_iter().map(move |(name, value)| (table.clone(), format!("{table}.{name}"), value))),
        _ => None,
    });
    keys.flatten().filter(|(table, path, _)| wanted(table, path)).map(|(_, path, value)| (path, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Key;

    #[test]
    fn what_a_checkpoint_holds_stays_and_the_rest_may_change() {
        let before = Config::for_environment("CartPole-v1");
        let mut after = before.clone();
        after.learner.learning_rate = Some(0.5);
        after.run.stop_env_steps += 1;
        after.actor.count += 1;
        assert_eq!(changes_that_do_not_fit(&before, &after), Vec::<String>::new());
        after.network.hidden = vec![7];
        after.replay.capacity += 1;
        after.auto_encoder.latent += 1;
        after.algorithm.initial_action_std = 0.3;
        let changed = ["algorithm.initial_action_std", "auto_encoder.latent", "network.hidden", "replay.capacity"];
        assert_eq!(changes_that_do_not_fit(&before, &after), changed);
    }

    #[test]
    fn what_is_written_otherwise_and_means_the_same_is_no_change() {
        let config = |arguments: &str, rate: &str| {
            let keys = format!("id = \"python:a:A\"\nkeyword_arguments = '{arguments}'\nevaluation_arguments = '{arguments}'");
            let text = format!("[environment]\n{keys}\n[own]\nrate = {rate}\n");
            Config::parse(&text, "mine.toml", &[]).unwrap().config
        };
        let before = config(r#"{"a": 1, "b": [2]}"#, "1");
        assert_eq!(changes_that_do_not_fit(&before, &config(r#"{"b":[2],"a":1}"#, "1.0")), Vec::<String>::new());
        let differ = ["environment.evaluation_arguments", "environment.keyword_arguments", "own.rate"];
        assert_eq!(changes_that_do_not_fit(&before, &config(r#"{"a": 1, "b": [3]}"#, "1.5")), differ);
        let arguments = ["keyword_arguments", "evaluation_arguments"].map(|key| format!(r#"environment.{key}={{"b":[2],"a":1}}"#));
        let typed = [&arguments[..], &["own.rate=1.0".to_owned()]].concat();
        assert_eq!(overrides_that_do_not_fit(&before, &typed), Vec::<String>::new());
    }

    #[test]
    fn a_new_run_begins_with_what_was_learned_by_the_same_layers_whatever_else_differs() {
        let learned = Config::for_environment("CartPole-v1");
        let mut begins = Config::for_environment("Acrobot-v1");
        (begins.algorithm.gamma, begins.algorithm.n_step, begins.replay.capacity) = (0.5, 3, 7_000);
        begins.auto_encoder.latent += 1;
        assert_eq!(settings_to_begin_with(&learned, &begins), Vec::<String>::new());
        (begins.network.hidden, begins.algorithm.normalise_rewards) = (vec![7], true);
        assert_eq!(settings_to_begin_with(&learned, &begins), ["algorithm.normalise_rewards=false", "network.hidden=[256, 256]"]);
        assert!(LEARNED.iter().all(|key| is_fixed(key, key)), "a run that goes on keeps what it has learned");
    }

    #[test]
    fn of_what_is_typed_only_another_value_of_what_a_checkpoint_holds_is_named() {
        let before = Config::for_environment("CartPole-v1");
        let named =
            |overrides: &[&str]| overrides_that_do_not_fit(&before, &overrides.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["algorithm.name=ppo", "learner.learning_rate=1", "algorithm.gamma=7"]), ["algorithm.gamma", "algorithm.name"]);
        assert!(named(&["algorithm.name=ppo", "algorithm.name=dqn"]).is_empty(), "the last one wins");
        assert!(named(&["replay.samples_per_insert=32", "auto_encoder.lattent=3", "nonsense"]).is_empty());
        let mut of_policy = before.clone();
        of_policy.algorithm.name = "ppo".into();
        let named = |value: &str| overrides_that_do_not_fit(&of_policy, &[format!("network.separate_value={value}")]);
        assert!(named("none").is_empty() && named("true").is_empty(), "\"none\", as it was, means true without convolutions");
        assert_eq!(named("false"), ["network.separate_value"]);
    }

    #[test]
    fn a_synchronous_run_repeats_itself_unless_what_it_learns_or_looks_for_has_changed() {
        let mut before = Config::for_environment("CartPole-v1");
        before.actor.count = 0;
        let with = |change: &dyn Fn(&mut Config)| {
            let mut after = before.clone();
            change(&mut after);
            repeats(&before, &after)
        };
        assert!(with(&|config| (config.run.metrics_interval_s, config.machine.max_restarts) = (0.5, 2)));
        assert!(!with(&|config| config.run.stop_env_steps += 1));
        assert!(!with(&|config| config.machine.torch_threads = 2));
        assert!(!with(&|config| config.learner.learning_rate = Some(0.5)));
        assert!(!with(&|config| config.run.stop_eval_return = Some(7.0)));
        assert!(!with(&|config| config.checkpoint.synchronous_interval_steps = Some(7)));
        assert!(!with(&|config| config.actor.count = 1));
        before.actor.count = 1;
        assert!(!repeats(&before, &before));
    }

    #[test]
    fn every_key_that_is_named_is_one() {
        let is_known = |named: &&str| *named == "own" || Key::find(named).is_some() || Key::all().any(|key| key.table == *named);
        assert_eq!(
            FIXED.iter().chain(LEARNED).chain(INITIAL_KEYS).chain(ASIDE).copied().filter(|named| !is_known(named)).collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
    }
}
