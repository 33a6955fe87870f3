//! What must be on the machine before a build or a download can succeed.
//!
//! Each check names what it found, or what is missing together with the command that installs it, so that nobody has to
//! read a compiler's error message to learn it.

mod space; // room on disks and in shared memory

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::distribution::{Tool, install_command};
use crate::libtorch::{Devices, Profile};
use crate::python::{self, Environments};
use crate::{libtorch, report::say};

pub(crate) use space::shared_memory;

/// The outcome of one check.
pub(crate) struct Check {
    subject: &'static str,
    /// What was found, or what to do.
    outcome: Result<String, String>,
}

impl Check {
    /// The outcome of a look for `subject`.
    pub(crate) fn new(subject: &'static str, outcome: Result<String, String>) -> Self {
        Self { subject, outcome }
    }
}

/// Fails if something is missing; the error names every missing thing at once.
pub(crate) fn require(checks: impl IntoIterator<Item = Check>) -> Result<()> {
    let mut missing = String::new();
    for check in checks {
        if let Err(advice) = check.outcome {
            let _ = write!(missing, "\n  {}: {advice}", check.subject);
        }
    }
    if missing.is_empty() { Ok(()) } else { bail!("this machine is not ready:{missing}") }
}

/// Prints every check; fails when one of them did.
pub(crate) fn doctor() -> Result<()> {
    let found = libtorch::find();
    let mut checks = vec![cpp_compiler(), space::to_build(&[Profile::Release, Profile::Dev], matches!(found, Ok(None))), shared_memory()];
    match found {
        Ok(Some(found)) => checks.push(Check::new("libtorch", Ok(found.to_string()))),
        Ok(None) => {
            checks.push(Check::new("libtorch", Ok("not fetched yet; `cargo xtask setup` fetches it".to_owned())));
            checks.extend(for_download(Devices::Cpu));
        }
        Err(error) => checks.push(Check::new("libtorch", Err(format!("{error:#}")))),
    }
    checks.push(python_for_environments());
    for check in &checks {
        match &check.outcome {
            Ok(found) => say(format!("ok       {}: {found}", check.subject)),
            Err(advice) => say(format!("MISSING  {}: {advice}", check.subject)),
        }
    }
    let missing = checks.iter().filter(|check| check.outcome.is_err()).count();
    if missing == 0 { Ok(()) } else { bail!("{missing} of {} checks failed", checks.len()) }
}

/// The checks before libtorch is fetched, if it is still to be (`fetches_libtorch`), and these `profiles` are built.
pub(crate) fn for_build(profiles: &[Profile], fetches_libtorch: bool) -> Vec<Check> {
    let mut checks = vec![cpp_compiler(), space::to_build(profiles, fetches_libtorch)];
    checks.extend(fetches_libtorch.then(python_with_pip));
    checks.extend(profiles.contains(&Profile::Dev).then(shared_memory));
    checks
}

/// The checks before a libtorch for `devices` is fetched.
pub(crate) fn for_download(devices: Devices) -> [Check; 2] {
    [python_with_pip(), space::to_fetch(devices)]
}

/// The command, without arguments, of the C++ compiler that compiles torch-sys: `$CXX`, or else `c++`.
pub(crate) fn cpp_command() -> Command {
    command_of(&cpp_name())
}

/// The command for `compiler`, read as the build reads it: a program, or a program and its first arguments, such as `ccache g++`.
fn command_of(compiler: &str) -> Command {
    let mut words = if Path::new(compiler).exists() { vec![compiler] } else { compiler.split_whitespace().collect() }.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn cpp_name() -> String {
    std::env::var("CXX").ok().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "c++".to_owned())
}

/// A C++ compiler that finds its standard library.
pub(crate) fn cpp_compiler() -> Check {
    let compiler = cpp_name();
    let outcome = if compiles_cpp(&compiler) {
        Ok(format!("{compiler} compiles C++17"))
    } else {
        Err(format!("`{compiler}` compiles no C++17. Install g++:  {}", install_command(Tool::CppCompiler)))
    };
    Check::new("C++ compiler", outcome)
}

fn compiles_cpp(compiler: &str) -> bool {
    let child = command_of(compiler)
        .args(["-std=c++17", "-fsyntax-only", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    // A compiler that exits before it reads closes the pipe; its exit status tells the rest.
    let _ = child.stdin.take().map(|mut input| input.write_all(b"#include <optional>\nstd::optional<int> nothing;\n"));
    child.wait().is_ok_and(|status| status.success())
}

/// The Python for environments. Its absence is no failure, since native environments need none. A virtual environment in its place that the
/// set-up did not make is one.
fn python_for_environments() -> Check {
    let outcome = python::find().map_err(|error| format!("{error:#}")).map(|found| match found {
        Some(found @ Environments::InPython(_)) => found.to_string(),
        Some(Environments::NativeAlone(obstacle)) => format!("none, so environments in Python are left out: {obstacle}"),
        None => "not set up yet; `cargo xtask setup` does it".to_owned(),
    });
    Check::new("Python for environments", outcome)
}

/// Python with pip: pip knows the user's package index, proxy and certificates, so nothing of that is repeated here.
fn python_with_pip() -> Check {
    let outcome = match libtorch::python_with_pip() {
        Some(python) => Ok(format!("{python} has pip")),
        None => Err(format!("no Python with pip 20.3 or later was found. Install it:  {}", install_command(Tool::PythonWithPip))),
    };
    Check::new("Python with pip", outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_thing_is_named_at_once() {
        let check = |subject, outcome: Result<&str, &str>| Check::new(subject, outcome.map(str::to_owned).map_err(str::to_owned));
        let error =
            require([check("one", Err("install one")), check("two", Ok("there")), check("three", Err("install three"))]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("one: install one") && text.contains("three: install three") && !text.contains("two"), "{text}");
    }

    #[test]
    fn pip_is_asked_for_beside_the_compiler_where_libtorch_is_still_to_be_fetched() {
        let subjects = |fetches_libtorch| for_build(&[], fetches_libtorch).iter().map(|check| check.subject).collect::<Vec<_>>();
        let [there, missing] = [false, true].map(subjects);
        assert!(there.contains(&"C++ compiler") && !there.contains(&"Python with pip"), "{there:?}");
        assert!(missing.contains(&"C++ compiler") && missing.contains(&"Python with pip"), "{missing:?}");
    }

    #[test]
    fn a_program_that_is_no_compiler_is_refused() {
        for compiler in ["false", "no-such-compiler", "env no-such-compiler", ""] {
            assert!(!compiles_cpp(compiler), "{compiler}");
        }
        assert_eq!(compiles_cpp("env c++"), compiles_cpp("c++"), "a program may start the compiler");
    }
}
