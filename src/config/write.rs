//! The resolved configuration as TOML, which a run keeps in its folder and which starts the same run again.

use super::schema::Config;

impl Config {
    /// Every key with its value, ready to be loaded again: `parse(to_toml(c)) == c`. What is absent is spelled `"none"`.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every value of a configuration has a spelling in TOML")
    }
}
