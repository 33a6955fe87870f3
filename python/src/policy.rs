//! A saved policy that acts: observations in, actions out.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shoal::catalogue::Catalogue;
use shoal::environments::{ActionArrays, ActionSpace, Actions};
use shoal::roles::player::{ActingPolicy, ObservedEnvironment, PlayError, SavedPolicy, Which};
use shoal::telemetry::ReturnStatistics;
use shoal::values::{ValueType, Values};

use crate::errors;
use crate::input::seed_of;

/// A saved policy that acts. Calls from several threads act at the same time, each with a network of its own.
#[pyclass(frozen)]
pub(crate) struct Policy {
    saved: SavedPolicy,
    environment: ObservedEnvironment,
    seed: u64,
    /// Those with which no thread acts. The lock is held only by threads that hold the interpreter's lock. A thread that forks in Python
    /// holds the interpreter's lock, so the child finds this lock free; those with which threads of the parent were acting are missing.
    idle: Mutex<Vec<ActingPolicy>>,
    /// How many were made.
    made: AtomicUsize,
}

/// Actions for a batch.
enum Chosen {
    Indices(Vec<i64>),
    Values(Vec<f32>),
}

impl Policy {
    fn idle(&self) -> MutexGuard<'_, Vec<ActingPolicy>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more to act with, which draws other random numbers than those before.
    fn another(&self) -> Result<ActingPolicy, PlayError> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        ActingPolicy::new(&Catalogue::default(), &self.saved, &self.environment.spec, self.seed, number)
    }
}

#[pymethods]
impl Policy {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, last: bool, seed: &Bound<'_, PyAny>) -> PyResult<Self> {
        let seed = seed_of(seed)?;
        let which = if last { Which::Last } else { Which::Best };
        let opened = py.detach(|| {
            let saved = SavedPolicy::open(&path, which, None)?;
            let environment = ObservedEnvironment::of(&Catalogue::default(), &saved)?;
            let first = ActingPolicy::new(&Catalogue::default(), &saved, &environment.spec, seed, 0)?;
            Ok(Self { saved, environment, seed, idle: Mutex::new(vec![first]), made: AtomicUsize::new(1) })
        });
        opened.map_err(|error: PlayError| errors::named(py, "PolicyError", error.to_string()))
    }

    /// What the Python class `shoal.Policy` needs to know of the policy, by name.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (space, metadata) = (&self.environment.spec.observation, &self.saved.weights.metadata);
        let facts = PyDict::new(py);
        facts.set_item("path", &self.saved.path)?;
        facts.set_item("is_checkpoint", self.saved.checkpoint.is_some())?;
        facts.set_item("environment", &metadata.environment)?;
        facts.set_item("algorithm", &metadata.algorithm)?;
        facts.set_item("updates", metadata.updates)?;
        facts.set_item("environment_steps", metadata.environment_steps)?;
        facts.set_item("observation_shape", &space.shape)?;
        facts.set_item("observation_dtype", if space.element == ValueType::U8 { "uint8" } else { "float32" })?;
        facts.set_item("stack", self.environment.frames)?;
        match &self.environment.spec.action {
            ActionSpace::Discrete { n } => facts.set_item("actions", n)?,
            ActionSpace::Box { low, high } => {
                facts.set_item("low", low)?;
                facts.set_item("high", high)?;
            }
        }
        if let Some(ActionArrays { counts, start, shape, dtype }) = &self.environment.spec.action_arrays {
            facts.set_item("action_arrays", (counts, start, shape, dtype))?;
        }
        Ok(facts)
    }

    /// Actions for the batch in `observations`, a flat array of float32 or uint8 that nobody changes meanwhile: int64 indices, or a
    /// flat array of float32.
    fn choose<'py>(&self, py: Python<'py>, observations: &Bound<'py, PyAny>, explores: bool) -> PyResult<Bound<'py, PyAny>> {
        let (floats, bytes): (PyReadonlyArray1<'_, f32>, PyReadonlyArray1<'_, u8>);
        let values = if let Ok(array) = observations.extract() {
            floats = array;
            Values::F32(floats.as_slice()?)
        } else {
            bytes = observations.extract()?;
            Values::U8(bytes.as_slice()?)
        };
        let idle = self.idle().pop();
        let acted = py.detach(|| {
            let mut acting = idle.map_or_else(|| self.another(), Ok)?;
            let chosen = acting.choose(values, explores).map(|actions| match actions {
                Actions::Discrete(indices) => Chosen::Indices(indices.iter().map(|&index| i64::from(index)).collect()),
                Actions::Continuous(values) => Chosen::Values(values.to_vec()),
            });
            Ok((acting, chosen))
        });
        let (acting, chosen) = acted.map_err(|error: PlayError| errors::named(py, "PolicyError", error.to_string()))?;
        self.idle().push(acting);
        match chosen.map_err(|error| PyValueError::new_err(error.to_string()))? {
            Chosen::Indices(indices) => Ok(indices.into_pyarray(py).into_any()),
            Chosen::Values(values) => Ok(values.into_pyarray(py).into_any()),
        }
    }
}

/// Statistics of undiscounted returns: mean, lower and upper end of its 95 % confidence interval, sample standard deviation.
#[pyfunction]
pub(crate) fn statistics(returns: Vec<f64>) -> (Option<f64>, Option<f64>, Option<f64>, Option<f64>) {
    let statistics = ReturnStatistics::of(&returns, &[]);
    (statistics.return_mean, statistics.ci95_low, statistics.ci95_high, statistics.return_std)
}
