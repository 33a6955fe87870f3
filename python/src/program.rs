//! The program `shoal`, in the interpreter that has loaded this module, and what Python needs to know of it.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use shoal::machine::Host;
use shoal::machine::python::DEFAULT_VARIABLES;
use shoal::rendezvous::{Liveliness, Registry};
use shoal::run_name::{RunName, RunNameError, announced};
use shoal::segment::system;
use shoal::shell::word;
use shoal::telemetry::RunFolder;

use crate::errors;

/// Tell the library which interpreter this process is, and what a user types to start the program `shoal` in it.
#[pyfunction]
pub(crate) fn settle(executable: PathBuf, home: String, abi: String, typed: String) {
    Host { executable, home, abi, typed }.settle();
}

/// Run the program `shoal` and return its exit code. `typed` is its name and its arguments. The caller must be the main thread of an
/// interpreter that has called `settle`, has no other thread, and ends afterwards. `None`: nothing was done, because the run asks for
/// libtorch and this build lacks it.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, typed: Vec<OsString>) -> Option<u8> {
    system::set_fork(fork);
    // Without the interpreter's lock: in a child, an environment's own threads must get it while Rust computes.
    py.detach(|| shoal::program::main_in_interpreter(&typed))
}

/// Name and value of each environment variable that must be set before NumPy is imported, unless it is set already.
#[pyfunction]
pub(crate) fn default_variables() -> [(&'static str, &'static str); 5] {
    DEFAULT_VARIABLES
}

/// The folder of the run that the supervisor `pid` has announced; `None` if there is no such supervisor.
#[pyfunction]
pub(crate) fn run_folder(pid: u32) -> Option<String> {
    let entry = Registry::existing()?.find(pid).ok()?;
    // A supervisor that was killed may have left its record, and its process id may be another process's now.
    (entry.state == Liveliness::Running).then_some(entry.record.run_folder)
}

/// The run in `folder` by its own path: `runs/latest` will lead elsewhere. `RunError`: there is none.
#[pyfunction]
pub(crate) fn found_folder(py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
    RunFolder::open(&folder).map(|found| found.path().to_path_buf()).map_err(|error| errors::named(py, "RunError", error.to_string()))
}

/// Whether the run in `folder` goes on, be it announced here or not; `false`: it has ended. `RunError`: its supervisor was killed, or the
/// folder is not one of a run.
#[pyfunction]
pub(crate) fn goes_on(py: Python<'_>, folder: PathBuf) -> PyResult<bool> {
    let refused = |words: String| errors::named(py, "RunError", words);
    let found = RunFolder::open(&folder).map_err(|error| refused(error.to_string()))?;
    let read = || found.record().map_err(|error| refused(error.to_string()));
    let record = read()?;
    // Of a run of another container the registry alone says whether it lives. But a logout may empty or remove the registry, and a run that
    // was started with another XDG_RUNTIME_DIR is in another one.
    let lives = match Registry::existing().and_then(|registry| announced(&registry, &found, &record)) {
        Some(entry) => entry.state == Liveliness::Running,
        None => record.is_under_way(),
    };
    // Read once more: the run may have noted its end since.
    if lives || record.finished.is_some() || read()?.finished.is_some() {
        return Ok(lives);
    }
    Err(refused(RunNameError::unseen(&folder, &record).to_string()))
}

/// The process id of the supervisor of the run in `folder`, and whether it means the same process here as where the run was started: a run
/// of another container may be announced here too. `RunError`: the run is not under way, or not announced here.
#[pyfunction]
pub(crate) fn supervisor_of(py: Python<'_>, folder: PathBuf) -> PyResult<(u32, bool)> {
    let refused = |words: String| errors::named(py, "RunError", words);
    let registry = Registry::open().map_err(|error| refused(error.to_string()))?;
    let typed = word(&folder);
    let pid = RunName::Folder(folder).supervisor(&registry).map_err(|error| refused(error.to_string()))?;
    let entry = registry.find(pid).map_err(|error| refused(error.to_string()))?;
    // A supervisor that was killed may have left its record, and its process id may be another process's now.
    if entry.state == Liveliness::Dead {
        return Err(refused(format!(
            "the run in {typed} is gone: its supervisor, process {pid}, was killed; `shoal inspect {typed}` says how to go on with it"
        )));
    }
    Ok((pid, entry.record.identity.is_of_these_namespaces()))
}

/// Fork by the interpreter's own function: the interpreter and its modules must know that they are in a child.
fn fork() -> std::io::Result<i32> {
    Python::attach(|py| py.import("os")?.call_method0("fork")?.extract()).map_err(|error: PyErr| {
        let text = error.to_string();
        // The kind tells a limit of processes from other causes.
        std::io::Error::new(std::io::Error::from(error).kind(), text)
    })
}
