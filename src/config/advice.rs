//! What to write instead of a key that is not known.

use super::key::Key;
use super::own::OWN;
use super::resumption::is_fixed;
use super::schema::TABLES;
use crate::suggestion::nearest;

/// Names that other libraries have for keys, each with the paths of the keys here: several paths if the key depends
/// on the algorithm.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("total_timesteps", &["run.stop_env_steps"]),
    ("n_timesteps", &["run.stop_env_steps"]),
    ("timesteps", &["run.stop_env_steps"]),
    ("steps", &["run.stop_env_steps"]),
    ("algo", &["algorithm.name"]),
    ("algorithm", &["algorithm.name"]),
    ("lr", &["learner.learning_rate"]),
    ("buffer_size", &["replay.capacity"]),
    ("learning_starts", &["replay.min_size"]),
    ("tau", &["algorithm.target_tau"]),
    ("target_update_interval", &["algorithm.target_interval_updates"]),
    ("exploration_fraction", &["algorithm.epsilon_anneal_steps"]),
    ("exploration_final_eps", &["algorithm.epsilon_end"]),
    ("max_grad_norm", &["learner.max_gradient_norm"]),
    ("n_envs", &["actor.environments"]),
    ("num_envs", &["actor.environments"]),
    ("actors", &["actor.count"]),
    ("num_steps", &["fragments.length_steps"]),
    ("n_epochs", &["algorithm.epochs"]),
    ("update_epochs", &["algorithm.epochs"]),
    ("num_minibatches", &["algorithm.minibatches"]),
    ("gae_lambda", &["algorithm.trace_decay"]),
    ("clip_range", &["algorithm.clip_ratio"]),
    ("clip_coef", &["algorithm.clip_ratio"]),
    ("ent_coef", &["algorithm.entropy_temperature", "algorithm.entropy_start"]),
    ("vf_coef", &["algorithm.value_coefficient"]),
    ("net_arch", &["network.hidden"]),
    ("n_steps", &["algorithm.n_step", "fragments.length_steps"]),
    ("train_freq", &["replay.samples_per_insert"]),
    ("gradient_steps", &["replay.samples_per_insert"]),
    ("action_noise", &["algorithm.exploration_noise_std"]),
];

/// Names in [`ELSEWHERE`] whose values cannot be taken over as they are: they have another unit here, or belong to
/// more than one key.
const OTHER_VALUES: &[&str] = &["target_update_interval", "exploration_fraction", "ent_coef", "vf_coef", "train_freq", "gradient_steps"];

/// Names that other libraries have for what no key changes here, each with what is there instead.
const FIXED_HERE: &[(&str, &str)] = &[("activation_fn", "here hidden layers have ReLU throughout, which no key changes; leave it out")];

/// What to write instead of the unknown table `[typed]`.
pub(crate) fn for_table(typed: &str) -> String {
    let names = || TABLES.iter().map(|table| table.name).chain([OWN]);
    match nearest(typed, names()) {
        Some(name) => format!("did you mean [{name}]?"),
        None => format!("the tables are {}", list(names().map(|name| format!("[{name}]")))),
    }
}

/// What to write instead of the unknown key `typed` in the known table `table`.
pub(crate) fn for_key(table: &str, typed: &str) -> String {
    let own_keys = || Key::all().filter(|key| key.table == table);
    if let Some(other) = belonging(typed).or_else(|| elsewhere(typed)) {
        return other;
    }
    if let Some(name) = nearest(typed, own_keys().map(|key| key.name)) {
        return format!("did you mean `{name}`?");
    }
    if let Some(name) = nearest(typed, Key::all().map(|key| key.name)) {
        let key = Key::all().find(|key| key.name == name).expect("the name was taken from a key");
        return format!("did you mean `{name}` of [{}]?", key.table);
    }
    format!("the keys of [{table}] are {}", list(own_keys().map(|key| format!("`{}`", key.name))))
}

/// What to write instead of `typed` outside all tables.
pub(crate) fn for_bare_key(typed: &str) -> String {
    let near = || nearest(typed, Key::all().map(|key| key.name)).and_then(belonging);
    belonging(typed).or_else(|| elsewhere(typed)).or_else(near).unwrap_or_else(|| for_table(typed))
}

/// The `--set` to write instead of `option`, an unknown option of the command line such as `--learning_rate`, with
/// its `value`; `None` if no key has nearly that name. If a run `goes_on`, only keys that may change then are
/// advised.
pub fn for_option(option: &str, value: Option<&str>, goes_on: bool) -> Option<String> {
    let typed = option.trim_start_matches('-').replace('-', "_");
    let name = typed.rsplit('.').next().unwrap_or(&typed);
    let translated =
        || ELSEWHERE.iter().filter(|(other, _)| *other == name).flat_map(|(_, paths)| *paths).filter_map(|path| Key::find(path));
    let near = nearest(name, Key::all().map(|key| key.name));
    let mut keys: Vec<_> = Key::find(&typed).into_iter().collect();
    if keys.is_empty() {
        keys.extend(Key::all().filter(|key| key.name == name));
    }
    if keys.is_empty() {
        keys.extend(translated());
    }
    if keys.is_empty() {
        keys.extend(Key::all().filter(|key| near == Some(key.name)));
    }
    keys.retain(|key| !goes_on || !is_fixed(key.table, &key.path()));
    let is_converted = OTHER_VALUES.contains(&name);
    let value = value.filter(|_| !is_converted).unwrap_or("VALUE");
    let page = if is_converted { " (docs/coming-from-sb3.md has the conversion)" } else { "" };
    let spelled = |key: &&Key| format!("--set {}={value}", key.path());
    (!keys.is_empty()).then(|| keys.iter().map(spelled).collect::<Vec<_>>().join(" or ") + page)
}

/// Advice that names the keys here for a key that other libraries call `name`, or what is there instead of one.
fn elsewhere(name: &str) -> Option<String> {
    if let Some((_, instead)) = FIXED_HERE.iter().find(|&&(other, _)| other == name) {
        return Some((*instead).to_owned());
    }
    let (_, paths) = ELSEWHERE.iter().find(|&&(other, _)| other == name)?;
    let spelled: Vec<_> = match paths {
        [path] => vec![format!("`{path}`")],
        several => several.iter().copied().map(of_algorithms).collect(),
    };
    Some(format!("here it is {}", spelled.join(" or ")))
}

/// The path of a key with the algorithms that know it.
fn of_algorithms(path: &str) -> String {
    let algorithms = Key::find(path).map_or(&[][..], |key| key.algorithms);
    format!("`{path}` ({})", algorithms.join(", "))
}

/// Advice that names the tables with a key of exactly this name.
fn belonging(name: &str) -> Option<String> {
    let tables: Vec<String> = Key::all().filter(|key| key.name == name).map(|key| format!("[{}]", key.table)).collect();
    (!tables.is_empty()).then(|| format!("`{name}` belongs to {}", tables.join(" and ")))
}

fn list(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_table_is_sent_there() {
        assert_eq!(for_key("actor", "batch_size"), "`batch_size` belongs to [learner]");
        assert_eq!(for_bare_key("batch_sise"), "`batch_size` belongs to [learner]");
        assert_eq!(for_bare_key("count"), "`count` belongs to [actor] and [learner]");
        assert_eq!(for_bare_key("lerner"), "did you mean [learner]?");
    }

    #[test]
    fn a_name_of_another_library_is_translated() {
        assert_eq!(for_key("algorithm", "gae_lambda"), "here it is `algorithm.trace_decay`");
        assert_eq!(for_bare_key("num_steps"), "here it is `fragments.length_steps`");
        assert_eq!(for_key("run", "n_timesteps"), "here it is `run.stop_env_steps`");
        let fixed = for_key("network", "activation_fn");
        assert!(fixed.contains("ReLU throughout") && fixed == for_bare_key("activation_fn"), "{fixed}");
        assert_eq!(
            for_key("algorithm", "ent_coef"),
            "here it is `algorithm.entropy_temperature` (sac) or `algorithm.entropy_start` (appo, ppo)"
        );
        assert!(ELSEWHERE.iter().flat_map(|(_, paths)| *paths).all(|path| Key::find(path).is_some()));
        let differ = |paths: &[&str]| paths.len() == 1 || paths.iter().all(|path| !Key::find(path).unwrap().algorithms.is_empty());
        assert!(ELSEWHERE.iter().all(|(_, paths)| differ(paths)), "of several each is of some algorithms");
        assert!(ELSEWHERE.iter().all(|(other, _)| belonging(other).is_none()), "a key of that name is meant first");
    }

    #[test]
    fn an_option_that_is_a_key_is_told_how_to_be_set() {
        let told = |option: &str, value| for_option(option, value, false).unwrap_or_default();
        assert_eq!(told("--learning_rate", Some("1e-3")), "--set learner.learning_rate=1e-3");
        assert_eq!(told("--learning-rate", None), "--set learner.learning_rate=VALUE");
        assert_eq!(told("--learner.batch_size", Some("64")), "--set learner.batch_size=64");
        assert_eq!(told("--batchsize", Some("64")), "--set learner.batch_size=64");
        assert_eq!(told("--total-timesteps", Some("9")), "--set run.stop_env_steps=9");
        assert_eq!(told("--steps", Some("9")), "--set run.stop_env_steps=9");
        assert_eq!(told("--actors", Some("4")), "--set actor.count=4");
        assert_eq!(told("--algo", Some("ppo")), "--set algorithm.name=ppo");
        assert_eq!(told("--count", Some("2")), "--set actor.count=2 or --set learner.count=2");
        assert_eq!(told("--learner.count", Some("2")), "--set learner.count=2");
        assert_eq!(for_option("--colour", None, false), None);
        assert_eq!(for_option("--name", Some("x"), true), None, "a run that goes on keeps its name and its algorithm");
        assert_eq!(for_option("--capacity", None, true).as_deref(), Some("--set fragments.capacity=VALUE"));
        let freq = told("--train_freq", Some("4"));
        assert_eq!(freq, "--set replay.samples_per_insert=VALUE (docs/coming-from-sb3.md has the conversion)");
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/coming-from-sb3.md")).unwrap();
        for &name in OTHER_VALUES {
            let told = told(name, Some("0.1"));
            assert!(told.contains("=VALUE") && !told.contains("0.1"), "{told}");
            assert!(page.contains(&format!("`{name}`")), "the page says nothing of {name}");
        }
    }
}
