//! Parses arguments, and says what was probably meant if they are wrong.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};

use crate::config::{Key, advice_for_option};
use crate::shell::word;

/// What was typed: the name of the program and its arguments.
pub(crate) fn typed() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The arguments in `typed`. If they are wrong, prints what is wrong and ends the process.
pub(crate) fn parse<T: Parser>(typed: &[OsString]) -> T {
    let mut program = T::command();
    let command = typed.iter().skip(1).find_map(|word| program.find_subcommand(word));
    // Without a command, a command that takes changes may have been meant.
    let takes_changes = command.is_none_or(|command| command.get_arguments().any(|argument| argument.get_long() == Some("set")));
    let goes_on = command.is_some_and(|command| ["resume", "adopt"].contains(&command.get_name()));
    if let Some(key) = key_without_value(typed).filter(|_| takes_changes) {
        // `resume` would take the value for its run.
        let message = format!("a key and its value are one word, write: --set {key}=VALUE");
        program.error(ErrorKind::ValueValidation, message).exit();
    }
    T::try_parse_from(typed).unwrap_or_else(|error| if takes_changes { with_hint(error, typed, goes_on) } else { error }.exit())
}

/// The key after a `--set` that is followed by a word of its own for the value, if there is one.
fn key_without_value(typed: &[OsString]) -> Option<String> {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let mut threes = words.windows(3).filter(|three| three[0] == "--set" && !three[2].starts_with("--"));
    threes.find_map(|three| Key::find(&three[1]).map(Key::path))
}

/// Adds a hint to `error` if a key of the configuration was typed as an option or without `--set`; if a run
/// `goes_on`, a key that it may change.
fn with_hint(mut error: Error, typed: &[OsString], goes_on: bool) -> Error {
    if let Some(change) = change_without_set(typed) {
        error.remove(ContextKind::SuggestedArg);
        let hint = format!("to change a key of the configuration, write: --set {change}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg).cloned() else { return error };
    let (name, attached) = option.split_once('=').map_or((option.as_str(), None), |(name, value)| (name, Some(value.to_owned())));
    if error.kind() != ErrorKind::UnknownArgument || !name.starts_with("--") {
        return error;
    }
    let hint = match name {
        "--resume" => Some("to go on with a run, write: resume RUN".to_owned()),
        "--seeds" | "--jobs" => Some("several seeds have a command of their own, write: shoal train CONFIG --seeds SEEDS".to_owned()),
        _ => {
            let value = attached.or_else(|| value_after(name, typed)).map(|value| quoted(&value));
            let advice = advice_for_option(name, value.as_deref(), goes_on);
            advice.map(|change| format!("to change a key of the configuration, write: {change}"))
        }
    };
    if let Some(hint) = hint {
        // Names of options that look alike would only distract.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The `KEY=VALUE` that was typed without `--set`, if there is one.
fn change_without_set(typed: &[OsString]) -> Option<String> {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let change = |text: &str| {
        let (path, value) = text.split_once('=').filter(|(path, _)| Key::find(path).is_some())?;
        Some(format!("{path}={}", quoted(value)))
    };
    words.windows(2).filter(|pair| pair[0] != "--set").find_map(|pair| change(&pair[1]))
}

/// `value` with the quotes that a shell needs.
fn quoted(value: &str) -> String {
    word(Path::new(value))
}

/// The value that was typed with or after the option of this name.
fn value_after(name: &str, typed: &[OsString]) -> Option<String> {
    let typed = typed.iter().map(|argument| argument.to_string_lossy().into_owned());
    let typed = typed.skip_while(|argument| argument.split('=').next() != Some(name)).collect::<Vec<_>>();
    match typed.first()?.split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => typed.get(1).filter(|value| !value.starts_with("--")).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arguments;
    use super::*;

    #[test]
    fn a_key_and_its_value_in_two_words_are_recognised() {
        let found = |words: &[&str]| key_without_value(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found(&["shoal", "resume", "--set", "run.stop_env_steps", "2000000"]).as_deref(), Some("run.stop_env_steps"));
        assert_eq!(found(&["shoal", "train", "cartpole_dqn", "--set", "learner.batch_size", "128"]).as_deref(), Some("learner.batch_size"));
        for other in
            [&["--set", "learner.batch_size=128", "runs/latest"][..], &["--set", "learner.batch_size", "--check"], &["--set", "runs", "1"]]
        {
            assert_eq!(found(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_seed_below_zero_is_refused_as_a_value_of_its_option() {
        for command in ["train", "evaluate"] {
            let parsed = Arguments::try_parse_from(["shoal", command, "cartpole_dqn", "--seed", "-1"]);
            let error = parsed.err().map_or_else(String::new, |error| error.to_string());
            assert!(error.contains("'-1' for '--seed") && !error.contains("use '--"), "{error}");
        }
    }
}
