//! Why there is no Python to run environments in, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use super::python::{CHECKOUT_PYTHON, PYTHON_VARIABLE};
use crate::shell::word;

/// Why there is no Python to run environments in.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PythonError {
    /// The feature `python` was off.
    #[error(
        "this program was built without Python, so it has native environments only; build it with the feature `python` of the crate \
         `shoal`:  cargo xtask setup && cargo build --release --features python  (a crate of your own: docs/own.md)"
    )]
    NotBuilt,
    /// There is no interpreter.
    #[error(
        "no Python was found: environment.python is empty, VIRTUAL_ENV names none, {CHECKOUT_PYTHON} is missing and there is no python3 on \
         PATH; run `cargo xtask setup`, or set environment.python to the path of an interpreter"
    )]
    NotFound,
    /// The interpreter does not run.
    #[error("the Python {path} does not work: {reason}; set environment.python to the path of a working interpreter")]
    Broken {
        /// The interpreter.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The program that was named is no Python.
    #[error(
        "{path} is no Python: asked for its version it says {said:?}; set environment.python to the path of a Python, such as \
         .venv/bin/python"
    )]
    NoPython {
        /// The program.
        path: PathBuf,
        /// The first line of its answer.
        said: String,
    },
    /// The interpreter's packages do not fit the linked libpython.
    #[error(
        "this program is linked with Python {linked} and {path} is Python {found}; if another program started the run, use that program; \
         else set environment.python to a Python {linked}, or build Shoal for this one:  PYO3_PYTHON={0} cargo build --release",
        word(path)
    )]
    OtherVersion {
        /// Version that was linked.
        linked: String,
        /// Version that was found.
        found: String,
        /// The interpreter that was found.
        path: PathBuf,
    },
    /// This program is part of one interpreter, and the configuration names another.
    #[error(
        "this program is part of the Python {host}, and environment.python is {requested}; install the same wheel there, and start it with \
         that one:  {0} -m pip install shoal_rl-*.whl && {0} -m shoal ...",
        word(requested.as_ref())
    )]
    OtherHost {
        /// The interpreter of this process.
        host: PathBuf,
        /// The one that was asked for.
        requested: String,
    },
    /// This program is part of one interpreter, and the configuration names one that is not there.
    #[error("environment.python is {requested}, which is not there; set it to \"\" for {host}, the Python that this program is part of")]
    NotThere {
        /// The interpreter of this process.
        host: PathBuf,
        /// The one that was asked for.
        requested: String,
    },
    /// The linked Python was removed after the build.
    #[error(
        "this program is linked with the Python in {home}, which is gone; build Shoal again:  cargo xtask setup && cargo build --release"
    )]
    HomeGone {
        /// Where it was.
        home: PathBuf,
    },
    /// The variable that a parent process set cannot be read.
    #[error("the variable {PYTHON_VARIABLE} is not one that Shoal wrote ({reason}); run:  unset {PYTHON_VARIABLE}")]
    Variable {
        /// What is wrong with it.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_that_errors_tell_can_be_typed_whatever_the_folder_is_called() {
        let path = "/my venv/bin/python";
        let version = PythonError::OtherVersion { linked: "3.11".into(), found: "3.12".into(), path: path.into() }.to_string();
        assert!(version.ends_with("PYO3_PYTHON='/my venv/bin/python' cargo build --release"), "{version}");
        let host = PythonError::OtherHost { host: "/venv/bin/python".into(), requested: path.into() }.to_string();
        assert!(host.ends_with("&& '/my venv/bin/python' -m shoal ..."), "{host}");
    }
}
