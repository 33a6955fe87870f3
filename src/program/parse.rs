//! Arguments from the command line, with the way to say what was probably meant.

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

/// What `typed` means, or the end of the program with what is wrong with it.
pub(crate) fn parse<T: Parser>(typed: &[OsString]) -> T {
    let program = T::command();
    let command = typed.iter().skip(1).find_map(|word| program.find_subcommand(word));
    // Or may yet be one that has.
    let takes_changes = command.is_none_or(|command| command.get_arguments().any(|argument| argument.get_long() == Some("set")));
    let goes_on = command.is_some_and(|command| ["resume", "adopt"].contains(&command.get_name()));
    T::try_parse_from(typed).unwrap_or_else(|error| if takes_changes { with_hint(error, typed, goes_on) } else { error }.exit())
}

/// The error with a hint, where an option was typed that is a key of the configuration; where a run `goes_on`, one that it may change.
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

/// A change of a key that stands without `--set`.
fn change_without_set(typed: &[OsString]) -> Option<String> {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let change = |text: &str| {
        let (path, value) = text.split_once('=').filter(|(path, _)| Key::find(path).is_some())?;
        Some(format!("{path}={}", quoted(value)))
    };
    words.windows(2).filter(|pair| pair[0] != "--set").find_map(|pair| change(&pair[1]))
}

/// `value` with the quotes that a shell takes again.
fn quoted(value: &str) -> String {
    word(Path::new(value))
}

/// What was typed after the option of this name.
fn value_after(name: &str, typed: &[OsString]) -> Option<String> {
    let typed = typed.iter().map(|argument| argument.to_string_lossy().into_owned());
    let typed = typed.skip_while(|argument| argument.split('=').next() != Some(name)).collect::<Vec<_>>();
    match typed.first()?.split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => typed.get(1).filter(|value| !value.starts_with("--")).cloned(),
    }
}
