//! The interpreter inside this process, started when the first environment is made.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyModule;

use super::fault::Fault;
use super::{BRIDGE, FAULTS, process};
use crate::environments::{EnvironmentError, EnvironmentRequest, Moment};
use crate::machine::Python as Chosen;

/// What Python takes for the file name of [`BRIDGE`] and [`FAULTS`]; such frames are left out of tracebacks.
const BRIDGE_NAME: &str = "<shoal>";
const SETTLE: &str = include_str!("settle.py");

/// The functions of `bridge.py`.
static BRIDGE_MODULE: OnceLock<Py<PyModule>> = OnceLock::new();

/// The module `name` with the functions of `source`, which is run once; it may import `shoal_bridge`. `kept` is where it stays.
pub(in crate::environments) fn module(
    request: &EnvironmentRequest,
    kept: &'static OnceLock<Py<PyModule>>,
    source: &str,
    name: &str,
) -> Result<&'static Py<PyModule>, EnvironmentError> {
    if let Some(module) = kept.get() {
        return Ok(module);
    }
    bridge(request)?;
    let module = Python::attach(|py| match run(py, source, BRIDGE_NAME, name) {
        Ok(module) => Ok(module.unbind()),
        Err(error) => Err(error_of(py, &error, &request.id, Moment::Construction)),
    })?;
    Ok(kept.get_or_init(|| module))
}

/// The functions of `bridge.py`, in an interpreter that is started if this is the first call.
pub(super) fn bridge(request: &EnvironmentRequest) -> Result<&'static Py<PyModule>, EnvironmentError> {
    if let Some(module) = BRIDGE_MODULE.get() {
        return Ok(module);
    }
    let chosen = Chosen::of_this_process().map_err(|source| EnvironmentError::interpreter(&request.id, source))?;
    let chosen = chosen.ok_or_else(|| EnvironmentError::NotPrepared { id: request.id.clone() })?;
    Python::initialize();
    let module = Python::attach(|py| start(py, &chosen).map_err(|error| plain(py, &error, &request.id, Moment::Construction)))?;
    Ok(BRIDGE_MODULE.get_or_init(|| module))
}

/// As [`super::end_helpers`]. An exception on the way concerns nobody any more.
pub(super) fn end_helpers() {
    if let Some(bridge) = BRIDGE_MODULE.get() {
        let _ = Python::attach(|py| bridge.bind(py).call_method0("end_helpers").map(drop));
    }
}

fn start(py: Python<'_>, chosen: &Chosen) -> PyResult<Py<PyModule>> {
    let settle = run(py, SETTLE, "<shoal start>", "shoal_settle")?;
    let stack_descriptor = process::stack_file().map_or(-1, AsRawFd::as_raw_fd);
    // As strings: Python's `sys` holds no path objects.
    let folders: Vec<_> = chosen.package_folders.iter().map(|folder| folder.as_os_str()).collect();
    settle.call_method1("settle", (chosen.executable.as_os_str(), chosen.prefix.as_os_str(), folders, stack_descriptor))?;
    run(py, FAULTS, BRIDGE_NAME, "shoal_faults")?;
    Ok(run(py, BRIDGE, BRIDGE_NAME, "shoal_bridge")?.unbind())
}

fn run<'py>(py: Python<'py>, source: &str, file: &str, name: &str) -> PyResult<Bound<'py, PyModule>> {
    let text = |text: &str| CString::new(text).expect("sources and names hold no zero byte");
    PyModule::from_code(py, &text(source), &text(file), &text(name))
}

/// What an exception of the environment `id` means, as `report` in `faults.py` tells it.
#[cold]
pub(in crate::environments) fn error_of(py: Python<'_>, error: &PyErr, id: &str, during: Moment) -> EnvironmentError {
    let told = BRIDGE_MODULE.get().map(|bridge| {
        // By value, because only that way the exception carries its traceback.
        let exception = error.clone_ref(py).into_value(py);
        let text: String = bridge.bind(py).call_method1("report", (exception,))?.extract()?;
        PyResult::Ok(serde_json::from_str::<Fault>(&text))
    });
    match told {
        Some(Ok(Ok(fault))) => fault.into_error(id, during),
        // An exception whose own text raises one.
        _ => plain(py, error, id, during),
    }
}

/// What can be said without `bridge.py`.
fn plain(py: Python<'_>, error: &PyErr, id: &str, during: Moment) -> EnvironmentError {
    let traceback = error.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
    EnvironmentError::Python { id: id.into(), during, summary: error.to_string().into(), traceback: traceback.into() }
}
