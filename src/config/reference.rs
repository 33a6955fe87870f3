//! The reference of all keys as Markdown, made from their declarations: the content of `docs/configuration.md`.

use std::fmt::Write;

use super::idle::IDLE;
use super::key::{GROUPS, Key, Table};
use super::key_type::Kind;
use super::rules::RULES;
use super::schema::TABLES;

const INTRODUCTION: &str = "\
# Configuration

A TOML file describes a run; `--set TABLE.KEY=VALUE` changes a key and wins over the file.
A key that is in neither has its default. Some defaults depend on the algorithm: the column *default* says so.
`\"none\"` stands for an absent value,
and `\"auto\"` for a number that is chosen for the machine or the algorithm when the run begins.

What is wrong is refused all at once, each error with its place: unknown keys,
values of another type or outside their limits, and keys that have no effect on the chosen algorithm.
A `--set` of a key that [another key disables](#keys-that-another-key-disables) is refused, too,
which is told once nothing else is wrong.

A complete file follows. Saved as `task.toml`, it is trained by `shoal train task.toml`.
Only `environment.id` has no default:

```toml
[run]
stop_env_steps = 100_000
stop_eval_return = 475.0 # ends the run once fresh episodes confirm it; without this line it takes all its steps

[environment]
id = \"CartPole-v1\"

[algorithm]
name = \"dqn\"
n_step = 3

[replay]
samples_per_insert = 16.0 # an update of 64, DQN's batch, for every four steps; leave this out for other algorithms
```

The files of the presets are in [configs](../configs/README.md).
The page of each algorithm says which keys matter for it, for instance [DQN](dqn.md#settings).
[ARCHITECTURE.md](../ARCHITECTURE.md#words) explains words such as *fragment*, *slot*, *guest* and *segment*.
";

const OF_ONES_OWN: &str = "
## [own]

The keys of an algorithm of your own ([own.md](own.md)), which declares their names, types, limits and defaults.
They are refused on every other algorithm.
";

const CONDITIONS: &str = "
## Conditions between keys

What is only for dqn, ddpg, td3 and sac also holds for an algorithm of your own.

";

const IDLE_KEYS: &str = "
## Keys that another key disables

In a file such a key is ignored. A `--set` of it is refused, with two exceptions:
it repeats the value that the key has, or a `--set` further right disables the key.
(A `--set` of `algorithm.name`, whose defaults may disable it, is no such exception.)

";

/// The reference as Markdown: all keys with default, allowed values, unit and meaning, the conditions between keys,
/// and which keys another key disables.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for table in TABLES {
        write_table(&mut page, table);
    }
    page.push_str(OF_ONES_OWN);
    page.push_str(CONDITIONS);
    for rule in RULES {
        line(&mut page, format_args!("- {}{}", rule.doc, only_for(rule.algorithms)));
    }
    page.push_str(IDLE_KEYS);
    for idle in IDLE {
        let keys: Vec<String> = idle.keys.iter().map(|key| format!("`{key}`")).collect();
        line(&mut page, format_args!("- while {}: {}", idle.state, keys.join(", ")));
    }
    page
}

fn write_table(page: &mut String, table: &Table) {
    line(page, format_args!("\n## [{}]\n\n{}\n", table.name, table.doc.trim()));
    line(page, format_args!("| key | default | allowed | unit | meaning |\n|---|---|---|---|---|"));
    for key in table.keys {
        let default = if key.is_required() { "required".to_owned() } else { defaults_in_words(key) };
        let allowed = Key { unit: "", ..*key }.allowed();
        let only = only_for(key.algorithms);
        line(page, format_args!("| `{}` | {default} | {allowed} | {} | {}{only} |", key.name, key.unit, key.doc.trim()));
    }
    for key in table.keys {
        if let Kind::Choice(choices) = key.kind {
            line(page, format_args!("\nValues of `{}`:\n", key.name));
            for choice in choices {
                line(page, format_args!("- `{:?}`: {}", choice.word, choice.doc.trim()));
            }
        }
    }
}

/// The default of a key, and those of the algorithms that have another.
fn defaults_in_words(key: &Key) -> String {
    let mut words = format!("`{}`", key.default_value());
    for group in GROUPS {
        let default = key.default_for(group[0]);
        if default != key.default_value() {
            words += &format!("; `{default}` for {}", group.join(", "));
        }
    }
    words
}

/// For which algorithms a key or a condition is; nothing if it is for all.
fn only_for(algorithms: &[&str]) -> String {
    if algorithms.is_empty() { String::new() } else { format!(" Only for {}.", algorithms.join(", ")) }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::super::schema::TRANSITION_ALGORITHMS;
    use super::*;

    #[test]
    fn the_page_says_which_conditions_also_hold_for_an_algorithm_of_ones_own() {
        let told = format!("What is only for {} also holds", TRANSITION_ALGORITHMS.join(", ").replace(", sac", " and sac"));
        assert!(reference().contains(&told));
        for rule in RULES.iter().filter(|rule| !rule.algorithms.is_empty()) {
            assert_eq!(rule.concerns("mine"), rule.algorithms == TRANSITION_ALGORITHMS, "{}", rule.doc);
        }
    }

    #[test]
    fn the_configuration_page_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
        if std::env::var_os("SHOAL_REWRITE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(page == reference(), "docs/configuration.md is out of date; run `SHOAL_REWRITE=1 cargo test --lib configuration_page`");
    }
}
