//! The presets: configurations that come with the program, found by their name or by their environment.
//!
//! The files are compiled in, so that an installed program has them as well. What the presets reached is read from
//! the tables of `configs/README.md`, which say how it was measured.

use std::fmt;

use serde::Serialize;

use crate::config::{Config, ConfigErrors, Loaded};
use crate::telemetry::Table;

/// The page with the tables of what the presets reached.
const MEASUREMENTS: &str = include_str!("../configs/README.md");

/// A configuration that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name of its file, without the ending.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../configs/", $name, ".toml")) }),+]
    };
}

/// All presets. If an environment has several, the first is taken unless another is named.
///
/// `corridor_dqn` is not among them: its environment is a file beside it.
pub const PRESETS: &[Preset] = presets![
    "cartpole_dqn",
    "acrobot_dqn",
    "mountaincar_dqn",
    "cartpole_appo",
    "cartpole_ppo",
    "catch_dqn",
    "catch_appo",
    "rally_dqn",
    "rally_appo",
    "pong_ppo",
    "pong_appo",
    "pong_dqn",
    "pendulum_sac",
    "pendulum_td3",
    "pendulum_ddpg",
    "pendulum_appo",
    "pendulum_ppo",
    "lunarlander_ppo",
    "lunarlander_dqn",
    "lunarlandercontinuous_sac",
    "lunarlandercontinuous_td3",
    "halfcheetah_sac",
    "halfcheetah_td3",
    "halfcheetah_ddpg",
    "halfcheetah_ppo",
    "hopper_td3",
    "hopper_sac",
    "hopper_ddpg",
    "walker2d_sac",
];

impl Preset {
    /// The presets that `asked` means: the preset with that name, or all presets of the environment with that id, in
    /// letters of any size; the id may lack its prefix.
    pub fn find(asked: &str) -> Vec<&'static Preset> {
        let plain = |id: &str| id.rsplit(':').next().unwrap_or(id).to_lowercase();
        let named: Vec<_> = PRESETS.iter().filter(|preset| preset.name == asked).collect();
        if !named.is_empty() {
            return named;
        }
        let means = |id: &str| if asked.contains(':') { id == asked } else { plain(id) == plain(asked) };
        PRESETS.iter().filter(|preset| means(&preset.config().environment.id)).collect()
    }

    /// The path of its file in a checkout, which errors name.
    pub fn file(&self) -> String {
        format!("configs/{}.toml", self.name)
    }

    /// Whether the current folder has a file at that path, and its content is another.
    pub fn differs_from_file(&self) -> bool {
        std::fs::read_to_string(self.file()).is_ok_and(|text| text != self.text)
    }

    /// The algorithm that it is for.
    pub fn algorithm(&self) -> String {
        self.config().algorithm.name
    }

    /// The id of the environment that it is for.
    pub fn environment(&self) -> String {
        self.config().environment.id
    }

    /// The configuration of the preset with `overrides`.
    ///
    /// # Errors
    /// What is wrong with the overrides.
    pub fn load(&self, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        Config::parse(self.text, &self.file(), overrides)
    }

    fn config(&self) -> Config {
        self.load(&[]).expect("a test loads every preset").config
    }

    /// The cell in the preset's row of `configs/README.md`, of the column whose name contains one of `columns`.
    fn measured(&self, columns: &[&str]) -> Option<String> {
        let cells = |line: &str| -> Vec<String> { line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect() };
        let own = format!("`{}.toml`", self.name);
        let mut header = Vec::new();
        for line in MEASUREMENTS.lines().map(cells) {
            if line[0] == "preset" {
                header = line;
            } else if line[0] == own {
                let column = header.iter().position(|name| columns.iter().any(|wanted| name.contains(wanted)))?;
                return line.get(column).cloned();
            }
        }
        None
    }
}

/// What one preset is for and what it reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Name of the preset.
    pub name: &'static str,
    /// Id of its environment.
    pub environment: String,
    /// Its algorithm.
    pub algorithm: String,
    /// Mean return at which a run stops.
    pub goal: Option<f64>,
    /// Return that was measured, as `configs/README.md` has it.
    pub score: Option<String>,
    /// Seconds that a run took, as `configs/README.md` has them.
    pub wall_time_s: Option<String>,
}

/// All presets, for people or as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The presets.
    pub presets: Vec<Entry>,
}

impl Listing {
    /// All presets.
    pub fn of_all() -> Self {
        let entry = |preset: &Preset| {
            let config = preset.config();
            Entry {
                name: preset.name,
                environment: config.environment.id,
                algorithm: config.algorithm.name,
                goal: config.run.stop_eval_return,
                score: preset.measured(&["last weights", "mean return"]),
                wall_time_s: preset.measured(&["wall time"]),
            }
        };
        Self { presets: PRESETS.iter().map(entry).collect() }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["preset", "environment", "algorithm", "goal", "score", "wall time (s)"], &[0, 1, 2, 4, 5], 0);
        for entry in &self.presets {
            let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let goal = entry.goal.map_or_else(|| "-".to_owned(), |goal| goal.to_string());
            let cells = [entry.name.to_owned(), entry.environment.clone(), entry.algorithm.clone(), goal];
            table.row(cells.into_iter().chain([or_dash(&entry.score), or_dash(&entry.wall_time_s)]).collect());
        }
        write!(formatter, "{table}")?;
        formatter.write_str(
            "goal: the return that ends a run once fresh episodes prove it. score: the return over fresh episodes of the best weights of a \
             run,\nor of its last ones, and the range of several runs, as configs/README.md says of each. `shoal train NAME` trains one.",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_that_needs_no_other_is_a_preset() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: BTreeSet<String> = files.filter_map(|file| file.strip_suffix(".toml").map(str::to_owned)).collect();
        let known: BTreeSet<String> = PRESETS.iter().map(|preset| preset.name.to_owned()).chain(["corridor_dqn".to_owned()]).collect();
        assert_eq!(names, known);
    }

    #[test]
    fn every_preset_was_measured() {
        for entry in Listing::of_all().presets {
            assert!(entry.score.is_some_and(|score| score.contains(|letter: char| letter.is_ascii_digit())), "{} has no score", entry.name);
        }
        let times: Vec<_> = Listing::of_all().presets.into_iter().filter(|entry| entry.wall_time_s.is_some()).collect();
        assert!(times.iter().any(|entry| entry.name == "cartpole_dqn"));
    }

    #[test]
    fn a_preset_is_found_by_its_name_and_by_its_environment() {
        let names = |asked: &str| Preset::find(asked).iter().map(|preset| preset.name).collect::<Vec<_>>();
        assert_eq!(names("cartpole_dqn"), ["cartpole_dqn"]);
        assert_eq!(names("cartpole-v1"), ["cartpole_dqn", "cartpole_appo", "cartpole_ppo"]);
        assert_eq!(names("LunarLander-v3"), ["lunarlander_ppo", "lunarlander_dqn"]);
        assert_eq!(names("mujoco:Hopper-v5"), ["hopper_td3", "hopper_sac", "hopper_ddpg"]);
        assert!(names("gymnasium:Hopper-v5").is_empty() && names("Zaxxon").is_empty() && names("configs/cartpole_dqn.toml").is_empty());
    }
}
