//! A configuration: any text is a configuration or a list of errors, and what is one can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::config::Config;

fuzz_target!(|text: &str| {
    match Config::parse(text, "fuzz.toml", &[]) {
        Ok(loaded) => {
            let written = loaded.config.to_toml();
            assert!(Config::parse(&written, "written.toml", &[]).is_ok(), "{written}");
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
});
