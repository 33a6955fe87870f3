//! Reads a configuration: any text is a configuration or a list of errors, and a configuration can be written and read again.

use shoal::config::Config;

/// Read `text` as a configuration.
pub fn read(text: &str) {
    match Config::parse(text, "fuzz.toml", &[]) {
        Ok(loaded) => {
            let written = loaded.config.to_toml();
            assert!(Config::parse(&written, "written.toml", &[]).is_ok(), "{written}");
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}
