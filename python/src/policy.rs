//! A saved policy that acts: observations in, actions out.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shoal::catalogue::Catalogue;
use shoal::environments::{ActionSpace, Actions};
use shoal::roles::player::{ActingPolicy, ObservationError, PlayError, SavedPolicy, Which};
use shoal::telemetry::ReturnStatistics;
use shoal::values::{ValueType, Values};

use crate::errors;
use crate::input::seed_of;

/// A saved policy that acts. Calls from several threads take turns.
#[pyclass(frozen)]
pub(crate) struct Policy {
    acting: Mutex<ActingPolicy>,
    saved: SavedPolicy,
}

#[pymethods]
impl Policy {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, last: bool, seed: &Bound<'_, PyAny>) -> PyResult<Self> {
        let seed = seed_of(seed)?;
        let which = if last { Which::Last } else { Which::Best };
        let opened = py.detach(|| {
            let saved = SavedPolicy::open(&path, which)?;
            let acting = ActingPolicy::new(&Catalogue::default(), &saved, seed)?;
            Ok((saved, acting))
        });
        let (saved, acting) = opened.map_err(|error: PlayError| errors::named(py, "PolicyError", error.to_string()))?;
        Ok(Self { acting: Mutex::new(acting), saved })
    }

    /// What the Python class `shoal.Policy` needs to know of the policy, by name.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let acting = self.acting.lock().unwrap_or_else(PoisonError::into_inner);
        let (space, metadata) = (&acting.environment().observation, &self.saved.weights.metadata);
        let facts = PyDict::new(py);
        facts.set_item("path", &self.saved.path)?;
        facts.set_item("environment", &metadata.environment)?;
        facts.set_item("algorithm", &metadata.algorithm)?;
        facts.set_item("updates", metadata.updates)?;
        facts.set_item("environment_steps", metadata.environment_steps)?;
        facts.set_item("observation_shape", &space.shape)?;
        facts.set_item("observation_dtype", if space.element == ValueType::U8 { "uint8" } else { "float32" })?;
        facts.set_item("stack", acting.frames())?;
        match &acting.environment().action {
            ActionSpace::Discrete { n } => facts.set_item("actions", n)?,
            ActionSpace::Box { low, high } => {
                facts.set_item("low", low)?;
                facts.set_item("high", high)?;
            }
        }
        Ok(facts)
    }

    /// Actions for the batch in `observations`, a flat array of float32 or uint8: int64 indices, or a flat array of float32.
    fn choose<'py>(&self, py: Python<'py>, observations: &Bound<'py, PyAny>, explores: bool) -> PyResult<Bound<'py, PyAny>> {
        let (floats, bytes): (PyReadonlyArray1<'_, f32>, PyReadonlyArray1<'_, u8>);
        let values = if let Ok(array) = observations.extract() {
            floats = array;
            Values::F32(floats.as_slice()?)
        } else {
            bytes = observations.extract()?;
            Values::U8(bytes.as_slice()?)
        };
        let mut acting = self.acting.lock().unwrap_or_else(PoisonError::into_inner);
        match acting.choose(values, explores).map_err(|error: ObservationError| PyValueError::new_err(error.to_string()))? {
            Actions::Discrete(indices) => Ok(indices.iter().map(|&index| i64::from(index)).collect::<Vec<_>>().into_pyarray(py).into_any()),
            Actions::Continuous(values) => Ok(values.to_vec().into_pyarray(py).into_any()),
        }
    }
}

/// Statistics of undiscounted returns: mean, lower and upper end of its 95 % confidence interval, sample standard deviation.
#[pyfunction]
pub(crate) fn statistics(returns: Vec<f64>) -> (Option<f64>, Option<f64>, Option<f64>, Option<f64>) {
    let statistics = ReturnStatistics::of(&returns, &[]);
    (statistics.return_mean, statistics.ci95_low, statistics.ci95_high, statistics.return_std)
}
