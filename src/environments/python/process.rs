//! What a process needs before it can embed Python: a prepared environment, and a file for the stack of one that hangs.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use crate::environments::{EnvironmentError, EnvironmentRequest};
use crate::machine::{Host, Python, PythonError};

/// Where the interpreter of this process writes its stack when SIGUSR1 arrives.
static STACK_FILE: OnceLock<OwnedFd> = OnceLock::new();

/// Return if this process can step the requested environment; otherwise start this program anew, in the same process and
/// with the same arguments, so that it can.
///
/// To be called at the start of a program, before it has done anything that it should not do twice.
///
/// # Errors
/// There is no Python that fits, or the program does not start again.
pub fn become_ready(request: &EnvironmentRequest) -> Result<(), EnvironmentError> {
    let interpreter = |source| EnvironmentError::interpreter(&request.id, source);
    if !request.needs_python() {
        return Ok(());
    }
    if Host::of_this_process().is_some() {
        return Python::find(&request.python).map(|_| ()).map_err(interpreter);
    }
    let prepared = Python::of_this_process().map_err(interpreter)?;
    if prepared.is_some_and(|python| python.answers(&request.python)) {
        return Ok(());
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_else(|_| name.clone().into());
    let mut command = Command::new(&program);
    command.arg0(name).args(arguments);
    prepare(request, &mut command)?;
    let error = command.exec();
    Err(interpreter(PythonError::Broken { path: program, reason: format!("it does not start again: {error}") }))
}

/// Let `command`, which starts a program that uses this library, step the requested environment without [`become_ready`].
///
/// # Errors
/// There is no Python that fits.
pub fn prepare(request: &EnvironmentRequest, command: &mut Command) -> Result<(), EnvironmentError> {
    let prepared = Python::find(&request.python).and_then(|python| python.prepare(command));
    prepared.map_err(|source| EnvironmentError::interpreter(&request.id, source))
}

/// Let the interpreter of this process write its Python stack to `file` whenever SIGUSR1 arrives: how a process that
/// hangs can be asked where. Heeded if it comes before the first environment is made, and only the first time.
pub fn write_stacks_to(file: OwnedFd) {
    // A second file would be nobody's: the handler is set once.
    let _ = STACK_FILE.set(file);
}

/// The file of [`write_stacks_to`].
#[cfg(feature = "python-environments")]
pub(super) fn stack_file() -> Option<&'static OwnedFd> {
    STACK_FILE.get()
}

/// The interpreter that the requested environment runs in: that of this process, or the one that it would be prepared for.
///
/// # Errors
/// There is no Python that fits.
pub fn interpreter_of(request: &EnvironmentRequest) -> Result<Python, EnvironmentError> {
    let of_this_process = Python::of_this_process().map(|prepared| prepared.filter(|python| python.answers(&request.python)));
    let found = of_this_process.and_then(|prepared| prepared.map_or_else(|| Python::find(&request.python), Ok));
    found.map_err(|source| EnvironmentError::interpreter(&request.id, source))
}
