//! The program `shoal`, in the interpreter that has loaded this module, and what Python needs to know of it.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use shoal::machine::Host;
use shoal::machine::python::DEFAULT_VARIABLES;
use shoal::rendezvous::{Liveliness, Registry};
use shoal::segment::system;

/// Say which interpreter this process is, and what people type for the program `shoal` in it.
#[pyfunction]
pub(crate) fn settle(executable: PathBuf, home: String, abi: String, typed: String) {
    Host { executable, home, abi, typed }.settle();
}

/// Be the program `shoal` and return its exit code: `typed` is its name and its arguments. To be called by the main thread of an
/// interpreter that has settled and has no other thread, and then ends. `None` if nothing was done because libtorch is asked for and not in
/// this build.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, typed: Vec<OsString>) -> Option<u8> {
    system::set_fork(fork);
    // Without the interpreter's lock: in a child, an environment's own threads must get it while Rust computes.
    py.detach(|| shoal::program::main_in_interpreter(&typed))
}

/// Variables that must be set before NumPy is imported, unless they are: name and value.
#[pyfunction]
pub(crate) fn default_variables() -> [(&'static str, &'static str); 5] {
    DEFAULT_VARIABLES
}

/// The folder of the run that the supervisor `pid` has announced.
#[pyfunction]
pub(crate) fn run_folder(pid: u32) -> Option<String> {
    let entry = Registry::existing()?.find(pid).ok()?;
    // One that was killed may have left a record, and its process id to another.
    (entry.state == Liveliness::Running).then_some(entry.record.run_folder)
}

/// The interpreter's own fork: it and its modules have to know that they are in a child.
fn fork() -> std::io::Result<i32> {
    Python::attach(|py| py.import("os")?.call_method0("fork")?.extract()).map_err(|error: PyErr| std::io::Error::other(error.to_string()))
}
