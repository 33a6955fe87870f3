//! The sum tree alone, as Python sees it.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shoal::replay::Element;
use shoal::segment::layout::MAX_CAPACITY;
use shoal::standalone::{OwnedSumTree, ReplayError};

use crate::errors::exception;
use crate::input::{Copies, flat, whole};

/// A sum tree of priorities, for programs that store their transitions themselves.
///
/// All sums are exact. A priority is kept to a millionth, and may be up to 524,288. A leaf of priority zero is never found. Several
/// threads may use one tree at the same time.
#[pyclass(module = "shoal", frozen)]
pub(crate) struct SumTree(OwnedSumTree);

fn checked<T>(py: Python<'_>, result: Result<T, ReplayError>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}

#[pymethods]
impl SumTree {
    #[new]
    fn new(py: Python<'_>, capacity: &Bound<'_, PyAny>) -> PyResult<Self> {
        checked(py, OwnedSumTree::new(whole(capacity, "capacity", 1, MAX_CAPACITY)?)).map(Self)
    }

    /// Set the priorities of leaves. If an index occurs twice, its last priority counts.
    fn update(&self, py: Python<'_>, indices: &Bound<'_, PyAny>, priorities: &Bound<'_, PyAny>) -> PyResult<()> {
        let indices = flat(indices, Element::I64, "indices")?;
        let priorities = flat(priorities, Element::F32, "priorities")?;
        Copies::with(|copies| {
            let slots = indices.copy_to(&mut copies.slots);
            let errors = priorities.copy_to(&mut copies.errors);
            if slots.len() != errors.len() {
                return Err(PyValueError::new_err(format!("{} indices and {} priorities", slots.len(), errors.len())));
            }
            checked(py, py.detach(|| self.0.update(slots, errors)))
        })
    }

    /// The leaf on which each target falls: the first whose priority and all before it add up to more.
    ///
    /// Targets lie between 0 and `total`. Ascending targets, as stratified draws give them, are found fastest.
    fn find<'py>(&self, py: Python<'py>, targets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let targets = flat(targets, Element::F64, "targets")?;
        Copies::with(|copies| {
            let targets = targets.copy_to(&mut copies.targets);
            let found = PyArray1::zeros(py, targets.len(), false);
            {
                let mut found = found.try_readwrite()?;
                let leaves = found.as_slice_mut()?;
                checked(py, py.detach(|| self.0.find(targets, leaves)))?;
            }
            Ok(found)
        })
    }

    /// The priorities of the leaves `indices`, or of all leaves.
    #[pyo3(signature = (indices = None))]
    fn priorities<'py>(&self, py: Python<'py>, indices: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let indices = indices.map(|indices| flat(indices, Element::I64, "indices")).transpose()?;
        Copies::with(|copies| {
            let leaves = indices.map(|indices| indices.copy_to(&mut copies.slots));
            checked(py, py.detach(|| self.0.priorities(leaves))).map(|priorities| priorities.into_pyarray(py))
        })
    }

    /// Sum of all priorities, exactly.
    #[getter]
    fn total(&self) -> f64 {
        self.0.total()
    }

    fn __len__(&self) -> usize {
        self.0.capacity()
    }

    fn __repr__(&self) -> String {
        format!("SumTree({} leaves, total {})", self.0.capacity(), self.0.total())
    }
}
