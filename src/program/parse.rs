//! Arguments from the command line, with the way to say what was probably meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};

use crate::config::suggestion_for_option;

/// What was typed: the name of the program and its arguments.
pub(crate) fn typed() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// What `typed` means, or the end of the program with what is wrong with it.
pub(crate) fn parse<T: Parser>(typed: &[OsString]) -> T {
    T::try_parse_from(typed).unwrap_or_else(|error| with_hint(error, typed).exit())
}

/// The error with a hint, where an option was typed that is a key of the configuration.
fn with_hint(mut error: Error, typed: &[OsString]) -> Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg).cloned() else { return error };
    let (name, attached) = option.split_once('=').map_or((option.as_str(), None), |(name, value)| (name, Some(value.to_owned())));
    if error.kind() != ErrorKind::UnknownArgument || !name.starts_with("--") {
        return error;
    }
    let hint = if name == "--resume" {
        Some("to go on with a run, write: resume RUN".to_owned())
    } else {
        let value = attached.or_else(|| value_after(name, typed));
        suggestion_for_option(name, value.as_deref()).map(|change| format!("to change a key of the configuration, write: {change}"))
    };
    if let Some(hint) = hint {
        // Names of options that look alike would only distract.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
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
