//! From a file and overrides to a checked configuration, or to everything that is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Value;

use super::automatic::{self, SAMPLES_PER_INSERT};
use super::check::check;
use super::document::{self, Document, Entry};
use super::error::{ConfigError, ConfigErrors, Problem};
use super::idle;
use super::key::{Key, defaults_of};
use super::overrides;
use super::own::OWN;
use super::place::Place;
use super::rules::RULES;
use super::schema::Config;

/// Largest configuration that is read.
pub(crate) const CONFIG_LIMIT_BYTES: u64 = 1 << 20;

/// The key on which some defaults depend.
const ALGORITHM: &str = "algorithm.name";

/// A checked configuration and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The file as it was named.
    pub source: PathBuf,
    /// The keys that differ from their defaults, in the order of the reference.
    pub differences: Vec<Difference>,
    places: Places,
    /// The value of `environment.id` in the file; `None` if the file does not set it.
    environment_in_file: Option<Value>,
}

/// A key that differs from its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path of the key.
    pub key: String,
    /// Its value in TOML.
    pub value: String,
    /// Its default in TOML; `None` for a required key, and for one of `[own]`.
    pub default: Option<String>,
    /// Where the value was set.
    pub place: Place,
}

/// Where keys and tables were written.
#[derive(Debug, Clone)]
struct Places {
    file: String,
    keys: BTreeMap<String, Place>,
    tables: BTreeMap<String, Place>,
}

/// The text of the file at `path`, which may be a pipe.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read_bytes = File::open(path)?.take(CONFIG_LIMIT_BYTES + 1).read_to_string(&mut text)?;
    if read_bytes as u64 > CONFIG_LIMIT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {CONFIG_LIMIT_BYTES} bytes")));
    }
    Ok(text)
}

impl Config {
    /// Reads the file at `path` and applies `overrides`, which win: `learner.batch_size=512`.
    ///
    /// # Errors
    /// Everything that is wrong with either, sorted by place.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        let file = path.display().to_string();
        match read(path) {
            Ok(text) => Self::parse(&text, &file, overrides),
            Err(error) => Err(ConfigError::new(Place::File { file }, "", Problem::Unreadable(error.to_string())).into()),
        }
    }

    /// Reads `text`, the content of a file called `file_name`, and applies `overrides`.
    ///
    /// # Errors
    /// Everything that is wrong with either, sorted by place.
    pub fn parse(text: &str, file_name: &str, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        Self::parse_with(text, file_name, None, overrides)
    }

    /// The defaults for the environment `id`, which a command was given in place of a file, with `overrides`. `name`
    /// takes the place of the file's name.
    ///
    /// # Errors
    /// Everything that is wrong with the id or the overrides.
    pub fn of_argument(id: &str, name: &str, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        Self::parse_with("", name, Some(Entry::unwritten("environment.id", id, Place::Argument { text: id.to_owned() })), overrides)
    }

    fn parse_with(text: &str, file_name: &str, argument: Option<Entry>, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        let mut errors = Vec::new();
        let Document { mut entries, tables, is_broken } = document::read(text, file_name, &mut errors);
        let in_file: BTreeMap<String, Value> = entries.iter().map(|entry| (entry.path.clone(), entry.value.clone())).collect();
        entries.extend(argument);
        entries.extend(overrides::read(overrides, &mut errors));

        let algorithm = algorithm_in(entries.iter()).to_owned();
        entries.retain(|entry| check_unless_own(entry, &algorithm).map_err(|error| errors.push(error)).is_ok());
        let accepted = last_of_each(&entries);
        let refused: BTreeSet<String> = errors.iter().map(|error| error.key.clone()).collect();
        let keys = accepted.iter().map(|(path, entry)| (path.clone(), entry.value_place.clone())).collect();
        let places = Places { file: file_name.to_owned(), keys, tables: tables.into_iter().collect() };

        let config = assemble(&accepted);
        if !is_broken {
            errors.extend(missing_keys(&accepted, &refused, &places));
            errors.extend(contradictions(&config, &refused, &places));
            if !refused.contains(ALGORITHM) {
                errors.extend(without_effect(&config.algorithm.name, &accepted));
            }
        }
        let differences = differences(&config, &places);
        if errors.is_empty() {
            errors.extend(changed_in_vain(&config, &entries, &in_file));
        }
        if !errors.is_empty() {
            return Err(ConfigErrors::sorted(errors));
        }
        let environment_in_file = in_file.get("environment.id").cloned();
        Ok(Loaded { config, source: PathBuf::from(file_name), differences, places, environment_in_file })
    }

    /// Checks a configuration that a program made.
    ///
    /// # Errors
    /// Everything that is wrong with it; places are lines of [`Config::to_toml`].
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        Self::parse(&self.to_toml(), "configuration", &[]).map(drop)
    }
}

/// What is wrong with an entry by itself. The keys of an algorithm that a program adds are checked when it is built.
fn check_unless_own(entry: &Entry, algorithm: &str) -> Result<(), ConfigError> {
    if entry.is_own() { Ok(()) } else { check(entry, algorithm).map(drop) }
}

/// The algorithm that the last of `entries` about it names; empty if there is none.
fn algorithm_in<'a>(entries: impl DoubleEndedIterator<Item = &'a Entry>) -> &'a str {
    entries.rev().find(|entry| entry.path == ALGORITHM).and_then(|entry| entry.value.as_str()).unwrap_or_default()
}

/// The entry of each key that was written last, by its path.
fn last_of_each<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeMap<String, Entry> {
    entries.into_iter().map(|entry| (entry.path.clone(), entry.clone())).collect()
}

/// The defaults of the algorithm with the accepted entries laid over them, and with numbers chosen for the keys that are
/// left to the machine or follow a batch, and for a batch of PPO that has none.
fn assemble(accepted: &BTreeMap<String, Entry>) -> Config {
    let mut root = defaults_of(algorithm_in(accepted.values())).clone();
    let mut left_open = BTreeSet::new();
    for (path, entry) in accepted {
        if Key::find(path).is_some_and(|key| key.is_automatic(&entry.value)) {
            left_open.insert(path.as_str());
            continue;
        }
        let (table, name) = path.split_once('.').expect("entries have the path table.key");
        root[table].as_table_mut().expect("every table is one").insert(name.to_owned(), entry.value.clone());
    }
    let mut config = Config::deserialize(Value::Table(root)).expect("accepted entries have the types of the fields");
    if config.has_critics() && !accepted.contains_key(SAMPLES_PER_INSERT) {
        left_open.insert(SAMPLES_PER_INSERT);
    }
    automatic::choose(&mut config, &left_open);
    if !automatic::BATCH_KEYS.iter().any(|&path| accepted.contains_key(path) && !left_open.contains(path)) {
        automatic::let_ppo_learn_from_new_fragments(&mut config);
    }
    config
}

fn missing_keys(accepted: &BTreeMap<String, Entry>, refused: &BTreeSet<String>, places: &Places) -> Vec<ConfigError> {
    Key::all()
        .filter(|key| !accepted.contains_key(&key.path()) && !refused.contains(&key.path()) && key.is_required())
        .map(|key| ConfigError::new(places.of(&key.path()), key.path(), Problem::Required(key.allowed())))
        .collect()
}

/// Errors about the entries that the chosen algorithm does not know.
fn without_effect(algorithm: &str, accepted: &BTreeMap<String, Entry>) -> Vec<ConfigError> {
    let with_keys = accepted.values().filter_map(|entry| Some((entry, Key::find(&entry.path)?)));
    with_keys
        .filter(|(_, key)| !key.is_known_to(algorithm))
        .map(|(entry, key)| {
            let problem = Problem::WithoutEffect { algorithm: algorithm.to_owned(), known_to: key.algorithms };
            ConfigError::new(entry.key_place.clone(), &entry.path, problem)
        })
        .collect()
}

/// Whether two values mean the same: whole and real numbers are compared by their value.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    let as_number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    one == other || as_number(one).is_some_and(|number| as_number(other) == Some(number))
}

/// Errors about the overrides that change a key which another key leaves without effect, unless a later override does
/// so. `entries` are in the order in which they were written.
fn changed_in_vain(config: &Config, entries: &[Entry], in_file: &BTreeMap<String, Value>) -> Vec<ConfigError> {
    let is_changed = |entry: &&Entry| {
        let default = || Key::find(&entry.path).map(|key| key.default_for(&config.algorithm.name));
        entry.value_place.is_override() && !in_file.get(&entry.path).or_else(default).is_some_and(|old| is_same(&entry.value, old))
    };
    let accepted = last_of_each(entries);
    let idle = accepted.values().filter(is_changed).filter_map(|entry| Some((entry, idle::reason(&entry.path, config)?)));
    // Whether the entry had an effect before later overrides, which switch that effect off on purpose. The algorithm is
    // no such switch, wherever it is named: some parts are off by its defaults.
    let is_expected = |entry: &Entry| {
        let came_before = |other: &&Entry| other.value_place <= entry.value_place || other.path == ALGORITHM;
        let until_then = last_of_each(entries.iter().filter(came_before));
        idle::reason(&entry.path, &assemble(&until_then)).is_none()
    };
    idle.filter(|(entry, _)| !is_expected(entry))
        .map(|(entry, idle)| {
            let problem = Problem::Idle { state: idle.state, remedy: idle.remedy };
            ConfigError::new(entry.value_place.clone(), &entry.path, problem)
        })
        .collect()
}

/// Errors about the rules that do not hold, except for rules about a refused key: its own error may be the cause.
fn contradictions(config: &Config, refused: &BTreeSet<String>, places: &Places) -> Vec<ConfigError> {
    let sound_rules = RULES.iter().filter(|rule| !rule.keys.iter().any(|&key| refused.contains(key)));
    sound_rules
        .filter(|rule| rule.concerns(&config.algorithm.name))
        .filter_map(|rule| {
            let message = (rule.violation)(config)?;
            let written = || rule.keys.iter().filter(|&&key| places.keys.contains_key(key));
            let by_override = written().find(|&&key| places.keys[key].is_override());
            let key = by_override.or_else(|| written().next()).unwrap_or(&rule.keys[0]);
            Some(ConfigError::new(places.of(key), *key, Problem::Contradiction(message)))
        })
        .collect()
}

fn differences(config: &Config, places: &Places) -> Vec<Difference> {
    let values = config.to_table();
    let declared = Key::all().filter_map(|key| {
        let (value, default) = (&values[key.table][key.name], key.default_for(&config.algorithm.name));
        (value != default).then(|| Difference {
            key: key.path(),
            value: value.to_string(),
            default: (!key.is_required()).then(|| default.to_string()),
            place: places.of(&key.path()),
        })
    });
    let own = config.own.lines().map(|(name, value)| {
        let key = format!("{OWN}.{name}");
        Difference { value: value.to_string(), default: None, place: places.of(&key), key }
    });
    declared.chain(own).collect()
}

impl Places {
    /// Where `key` was set, or else where its table begins, or else the file.
    fn of(&self, key: &str) -> Place {
        let table = key.split('.').next().unwrap_or_default();
        let place = self.keys.get(key).or_else(|| self.tables.get(table));
        place.cloned().unwrap_or_else(|| Place::File { file: self.file.clone() })
    }
}

impl Loaded {
    /// What the file says of `key`, if it was meant for another environment: an override names another environment
    /// than the file, and leaves `key` of the file alone.
    pub fn written_for_another_environment(&self, key: &str) -> Option<&Difference> {
        let written_for = self.environment_in_file.as_ref()?.as_str()?;
        let difference = self.differences.iter().find(|difference| difference.key == key)?;
        (written_for != self.config.environment.id && !difference.place.is_override()).then_some(difference)
    }

    /// Refuses a `run.folder` that begins with the `~` by which shells mean a home: a folder of that name would be
    /// made.
    ///
    /// # Errors
    /// `run.folder` begins with `~`.
    pub fn check_folder_has_no_home(&self) -> Result<(), ConfigError> {
        let folder = &self.config.run.folder;
        if !folder.starts_with('~') {
            return Ok(());
        }
        let message = "no shell has expanded this \"~\", and a folder of that name would be made here; write the path of that home, or \
                       ./~ where you mean it";
        Err(self.error_at("run.folder", message.into()))
    }

    /// An error about the value of `key` that another part of Shoal found, such as an environment that no registry
    /// knows.
    pub fn error_at(&self, key: &str, message: String) -> ConfigError {
        let values = self.config.to_table();
        let value = key.split_once('.').and_then(|(table, name)| values.get(table)?.get(name)).map(Value::to_string);
        let place = self.places.keys.get(key).cloned().unwrap_or(Place::Default);
        ConfigError { value, ..ConfigError::new(place, key, Problem::Refused(message)) }
    }

    /// Which of two keys was set last: a file is read from its top, and overrides come after it.
    pub fn set_last<'a>(&self, one: &'a str, other: &'a str) -> &'a str {
        if self.places.keys.get(other) > self.places.keys.get(one) { other } else { one }
    }

    /// Whether `key` has its value from an override.
    pub fn is_typed(&self, key: &str) -> bool {
        self.places.keys.get(key).is_some_and(Place::is_override)
    }

    /// Whether `key` was set anywhere.
    pub fn is_set(&self, key: &str) -> bool {
        self.places.keys.contains_key(key)
    }

    /// The keys that are set and have no effect, each with what to set for it to have one.
    pub(crate) fn idle_keys(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.places.keys.keys().filter_map(|key| Some((key.as_str(), idle::reason(key, &self.config)?.remedy)))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, default, place } = self;
        match default {
            Some(default) => write!(out, "{key} = {value} (default {default}; {place})"),
            None => write!(out, "{key} = {value} ({place})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::{FRAGMENT_ALGORITHMS, TRANSITION_ALGORITHMS};
    use super::*;

    const TEXT: &str = "[environment]\nid = \"CartPole-v1\"\n\n[learner]\nbatch_size = 128\ncount = 1\n";

    fn load(overrides: &[&str]) -> Loaded {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Config::parse(TEXT, "preset.toml", &overrides).unwrap()
    }

    #[test]
    fn a_file_is_read_up_to_a_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TEXT.to_owned() + &"\n".repeat(1 << 20)).unwrap();
        assert!(Config::load(file.path(), &[]).unwrap_err().to_string().contains("more than 1048576 bytes"));
    }

    #[test]
    fn an_override_wins_over_the_file_and_the_last_one_over_the_others() {
        assert_eq!(load(&[]).config.learner.batch_size, 128);
        assert_eq!(load(&["learner.batch_size=256", "learner.batch_size=32"]).config.learner.batch_size, 32);
    }

    #[test]
    fn every_algorithm_trains_with_nothing_but_its_name() {
        for algorithm in TRANSITION_ALGORITHMS.iter().chain(&FRAGMENT_ALGORITHMS) {
            let text = format!("[environment]\nid = \"CartPole-v1\"\n[algorithm]\nname = \"{algorithm}\"\n");
            for set in ["learner.count=1", "learner.count=2"] {
                Config::parse(&text, "preset.toml", &[set.to_owned()]).unwrap_or_else(|errors| panic!("{algorithm}: {errors}"));
            }
        }
    }

    #[test]
    fn only_keys_that_differ_from_their_defaults_are_differences() {
        let lines: Vec<String> = load(&["replay.samples_per_insert=none"]).differences.iter().map(Difference::to_string).collect();
        let expected = [
            "environment.id = \"CartPole-v1\" (preset.toml:2:6)",
            "learner.batch_size = 128 (default 64; preset.toml:5:14)",
            "replay.samples_per_insert = \"none\" (default 32.0; --set replay.samples_per_insert=none)",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_error_of_another_part_points_to_where_the_key_was_set() {
        let loaded = load(&["algorithm.name=dqm"]);
        let refusal = |key: &str| loaded.error_at(key, "no such name".into()).to_string();
        assert_eq!(refusal("environment.id"), "preset.toml:2:6: environment.id = \"CartPole-v1\": no such name");
        assert_eq!(refusal("algorithm.name"), "--set algorithm.name=dqm: algorithm.name = \"dqm\": no such name");
        assert_eq!(refusal("learner.device"), "learner.device = \"cpu\" (the default): no such name");
        assert_eq!(loaded.set_last("environment.id", "algorithm.name"), "algorithm.name");
        assert_eq!(loaded.set_last("learner.batch_size", "learner.device"), "learner.batch_size");
    }

    #[test]
    fn an_argument_in_place_of_a_file_is_named_once() {
        let loaded = Config::of_argument("python:bad:Bad", "Bad", &["algorithm.name=ppo".into()]).unwrap();
        let refusal = |message: &str| loaded.error_at("environment.id", message.into()).to_string();
        assert_eq!(refusal("`python:bad:Bad` is broken"), "`python:bad:Bad` is broken");
        assert_eq!(refusal("its process died"), "python:bad:Bad: its process died");
        assert_eq!(loaded.written_for_another_environment("run.stop_eval_return"), None);
    }

    #[test]
    fn what_a_file_says_of_one_environment_is_told_apart_from_what_was_typed_for_another() {
        let text = "[environment]\nid = \"python:corridor:Corridor\"\nkeyword_arguments = '{\"length\": 10}'\n";
        let left = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
            let loaded = Config::parse(text, "preset.toml", &overrides).unwrap();
            loaded.written_for_another_environment("environment.keyword_arguments").map(Difference::to_string)
        };
        let told = left(&["environment.id=python:task:Task"]).unwrap();
        assert!(told.contains("preset.toml:3:21") && told.contains("length"), "{told}");
        assert_eq!(left(&["environment.id=python:task:Task", "environment.keyword_arguments={}"]), None);
        assert_eq!(left(&["environment.id=python:corridor:Corridor"]), None);
        assert_eq!(left(&[]), None);
    }

    #[test]
    fn ddpg_td3_and_sac_make_an_update_for_each_step_whatever_the_batch_unless_it_is_configured() {
        let chosen = |file: &str, overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|&change| change.to_owned()).collect();
            let text = format!("environment.id = \"Pendulum-v1\"\n{file}\n");
            let config = Config::parse(&text, "task.toml", &overrides).unwrap().config;
            (config.learner.batch_size, config.replay.samples_per_insert, config.replay.prioritized)
        };
        let of_sac = |overrides: &[&str]| chosen("algorithm.name = \"sac\"", overrides);
        assert_eq!(of_sac(&[]), (256, Some(256.0), false));
        assert_eq!(chosen("learner.batch_size = 128", &["algorithm.name=td3"]), (128, Some(128.0), false), "wherever it is named");
        assert_eq!(chosen("", &["learner.batch_size=128", "algorithm.name=ddpg"]), (128, Some(128.0), false));
        assert_eq!(of_sac(&["learner.batch_size=auto", "learner.count=4"]), (512, Some(512.0), false));
        assert_eq!(of_sac(&["learner.batch_size=128", "replay.samples_per_insert=32"]), (128, Some(32.0), false));
        assert_eq!(of_sac(&["replay.samples_per_insert=none", "replay.prioritized=true"]), (256, None, true));
        for other in ["algorithm.name=dqn", "algorithm.name=mine"] {
            assert_eq!(of_sac(&[other]), (64, Some(32.0), true), "{other}");
            assert_eq!(of_sac(&[other, "learner.batch_size=128"]), (128, Some(32.0), true), "{other}");
        }
        let resolved = Config::parse("environment.id = \"Pendulum-v1\"\nalgorithm.name = \"sac\"", "task.toml", &[]).unwrap().config;
        let goes_on = Config::parse(&resolved.to_toml(), "config.toml", &["learner.batch_size=128".into()]).unwrap().config;
        assert_eq!(goes_on.replay.samples_per_insert, Some(256.0), "what a run has begun with stays");
    }

    #[test]
    fn a_batch_of_ppo_has_the_fragments_of_all_environments_unless_it_is_configured() {
        let file = "[environment]\nid = \"CartPole-v1\"\n";
        let batch_size = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|change| (*change).to_owned()).collect();
            let config = Config::of_argument("CartPole-v1", "CartPole", &overrides).unwrap().config;
            assert_eq!(Config::parse(file, "task.toml", &overrides).unwrap().config, config, "however the run is asked for");
            (config.learner.batch_size, config.algorithm.minibatches)
        };
        assert_eq!(batch_size(&["algorithm.name=ppo"]), (256, 16), "parts as large as by the defaults");
        assert_eq!(batch_size(&["algorithm.name=ppo", "actor.environments=16", "fragments.length_steps=64"]), (1_024, 64));
        assert_eq!(batch_size(&["algorithm.name=ppo", "actor.environments=1"]), (64, 4), "no less than the default");
        let of_length = |length: &str, environments: &str| batch_size(&["algorithm.name=ppo", length, environments]);
        assert_eq!(of_length("fragments.length_steps=125", "actor.environments=8"), (1_000, 62), "parts of about 16");
        assert_eq!(of_length("fragments.length_steps=50", "actor.environments=1"), (100, 6), "two rounds, since one has less than 64");
        assert_eq!(batch_size(&["algorithm.name=ppo", "learner.batch_size=128"]), (128, 4), "as it is set");
        assert_eq!(batch_size(&["algorithm.name=ppo", "learner.batch_size=auto"]), (256, 16), "as without the key");
        assert_eq!(batch_size(&["algorithm.name=ppo", "learner.batch_size=auto", "actor.environments=2"]), (64, 4), "as without it");
        assert_eq!(
            batch_size(&["algorithm.name=ppo", "learner.count=2", "actor.environments=3"]),
            (64, 4),
            "96 are no whole fragments for two"
        );
        let automatic = ["algorithm.name=ppo", "learner.count=2", "actor.environments=3", "learner.batch_size=auto"];
        assert_eq!(batch_size(&automatic), (256, 4), "nor is the batch that is chosen then a round, and its parts are the default");
        let sixteen = ["algorithm.name=ppo", "actor.environments=5", "learner.publish_interval_updates=16"];
        assert_eq!(batch_size(&sixteen), (160, 12), "not 10 parts, from whose 40 updates the last 8 would be published late");
        assert_eq!(batch_size(&["algorithm.name=dqn"]).0, 64, "the default, where transitions are drawn again and again");
        let of_file = Config::parse(&format!("{file}[algorithm]\nname = \"ppo\"\nminibatches = 4\n"), "task.toml", &[]).unwrap().config;
        assert_eq!((of_file.learner.batch_size, of_file.algorithm.minibatches), (64, 4), "as the file sets one of the two");
    }

    #[test]
    fn a_batch_of_ppo_has_the_fragments_of_all_environments_however_many_passes_over_it_there_are() {
        for epochs in 1..=20 {
            for (environments, length_steps) in [(1usize, 50), (5, 32), (8, 50), (8, 250)] {
                let overrides = [
                    "algorithm.name=ppo".to_owned(),
                    format!("algorithm.epochs={epochs}"),
                    format!("actor.environments={environments}"),
                    format!("fragments.length_steps={length_steps}"),
                ];
                let Config { learner, algorithm, .. } = Config::of_argument("CartPole-v1", "CartPole", &overrides).unwrap().config;
                assert_eq!(learner.batch_size, 64usize.next_multiple_of(environments * length_steps), "{overrides:?}");
                let steps = learner.batch_size / algorithm.minibatches;
                assert!((12..=16).contains(&steps), "parts of {steps} steps: {overrides:?}");
            }
        }
    }

    #[test]
    fn a_publish_interval_that_no_parts_of_usual_size_allow_is_refused() {
        let overrides = ["algorithm.name=ppo", "learner.publish_interval_updates=1024"];
        let refused = Config::of_argument("CartPole-v1", "CartPole", &overrides.map(str::to_owned)).unwrap_err();
        assert!(refused.to_string().contains("learner.publish_interval_updates of 1024 does not divide"), "{refused}");
    }

    #[test]
    fn an_error_about_other_keys_does_not_keep_the_batch_of_ppo_from_being_chosen() {
        let overrides = ["algorithm.name=ppo", "fragments.length_steps=100", "run.stop_eval_return=475", "evaluator.enabled=false"];
        let errors = Config::of_argument("CartPole-v1", "CartPole", &overrides.map(str::to_owned)).unwrap_err();
        assert_eq!(errors.0.len(), 1, "{errors}");
    }

    #[test]
    fn a_configuration_made_by_a_program_is_checked_too() {
        let mut config = Config::for_environment("CartPole-v1");
        config.validate().unwrap();
        config.replay.fanout = 5;
        config.learner.count = 3;
        assert_eq!(config.validate().unwrap_err().0.len(), 2);
    }

    #[test]
    fn a_contradiction_is_blamed_on_the_override_that_caused_it() {
        let errors = Config::parse(TEXT, "preset.toml", &["replay.min_size=100".into()]).unwrap_err();
        assert!(errors.0.iter().all(|error| error.place.is_override()), "{errors}");
    }
}
