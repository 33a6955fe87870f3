//! A batch: a mapping of field names to arrays, with the slots, generations and importance weights of its transitions.

use numpy::{PyArray1, PyArrayMethods, PyReadwriteArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
use shoal::replay::{Element, Schema};
use shoal::standalone::Options;

use crate::array::{FillArray, OwnArray, is_array_of, references};

/// A batch of transitions: a mapping of field name to array, with the slots and weights of the transitions.
///
/// The first axis of every array is `batch_size` long.
#[pyclass(module = "shoal", frozen, mapping)]
pub(crate) struct Batch {
    pub(crate) schema: Schema,
    pub(crate) rows: usize,
    /// Arrays of the fields, and the shapes that they were made with.
    own: Vec<(OwnArray, Vec<usize>)>,
    arrays: Py<PyDict>,
    /// Slot of each transition.
    #[pyo3(get)]
    pub(crate) indices: Py<PyArray1<i64>>,
    /// How often that slot had been written: slot and generation together identify a transition.
    #[pyo3(get)]
    pub(crate) generations: Py<PyArray1<i64>>,
    /// Importance weights `(N P(i)) ^ -beta`, divided by the largest of the batch; ones if sampling is uniform.
    #[pyo3(get)]
    pub(crate) weights: Py<PyArray1<f32>>,
}

/// All arrays of a batch, to be filled.
pub(crate) struct Arrays<'py> {
    pub(crate) columns: Vec<FillArray<'py>>,
    pub(crate) indices: PyReadwriteArray1<'py, i64>,
    pub(crate) generations: PyReadwriteArray1<'py, i64>,
    pub(crate) weights: PyReadwriteArray1<'py, f32>,
}

impl Batch {
    /// Zeros for `rows` transitions.
    pub(crate) fn zeros(py: Python<'_>, schema: &Schema, options: &Options, rows: usize) -> PyResult<Self> {
        let arrays = PyDict::new(py);
        let mut own = Vec::with_capacity(options.fields.len());
        for (field, described) in options.fields.iter().zip(schema.fields()) {
            let shape: Vec<usize> = std::iter::once(rows).chain(field.full_shape()).collect();
            let (array, seen) = OwnArray::zeros(py, described.element, &shape)?;
            arrays.set_item(&field.name, seen)?;
            own.push((array, shape));
        }
        Ok(Self {
            schema: schema.clone(),
            rows,
            own,
            arrays: arrays.unbind(),
            indices: PyArray1::zeros(py, rows, false).unbind(),
            generations: PyArray1::zeros(py, rows, false).unbind(),
            weights: PyArray1::zeros(py, rows, false).unbind(),
        })
    }

    /// Whether the batch may be filled again for another caller: only this package refers to it and its arrays, and the arrays are as
    /// they were made.
    pub(crate) fn is_free(this: &Bound<'_, Self>) -> bool {
        let (py, batch) = (this.py(), this.get());
        references(this) == 1
            && references(batch.indices.bind(py)) == 1
            && references(batch.generations.bind(py)) == 1
            && references(batch.weights.bind(py)) == 1
            && batch.arrays.bind(py).iter().zip(&batch.own).all(|((_, seen), (own, _))| own.is_free(&seen))
            && batch.is_as_made(py)
    }

    /// Whether all arrays of the batch are as they were made: Python code can set the type, shape and strides of an array.
    pub(crate) fn is_as_made(&self, py: Python<'_>) -> bool {
        is_array_of(self.indices.bind(py), Element::I64, &[self.rows])
            && is_array_of(self.generations.bind(py), Element::I64, &[self.rows])
            && is_array_of(self.weights.bind(py), Element::F32, &[self.rows])
            && self
                .arrays
                .bind(py)
                .iter()
                .zip(self.schema.fields())
                .zip(&self.own)
                .all(|(((_, seen), field), (own, shape))| own.is_as_made(&seen, field.element, shape))
    }

    /// Begin to fill the batch. An error if another thread of this process uses one of its arrays, or an array cannot be written.
    pub(crate) fn fill<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        Ok(Arrays {
            columns: self.own.iter().map(|(array, _)| array.fill(py)).collect::<PyResult<_>>()?,
            indices: self.indices.bind(py).try_readwrite()?,
            generations: self.generations.bind(py).try_readwrite()?,
            weights: self.weights.bind(py).try_readwrite()?,
        })
    }
}

#[pymethods]
impl Batch {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.arrays.bind(py).as_any().get_item(name)
    }

    fn __contains__(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.arrays.bind(py).contains(name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.arrays.bind(py).try_iter()
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.arrays.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Batch({} transitions of {})", self.rows, self.arrays.bind(py).keys().repr()?))
    }

    /// Names of the fields.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // The others are lists, so that whoever holds one holds its arrays.
        self.arrays.bind(py).call_method0(intern!(py, "keys"))
    }

    /// Arrays of the fields.
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.arrays.bind(py).values()
    }

    /// Names and arrays of the fields.
    fn items<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.arrays.bind(py).items()
    }

    /// The array of a field, or `default`.
    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.arrays.bind(py).get_item(name)?.or(default))
    }

    /// Refused: the error says what can be sent or copied instead of a batch.
    fn __reduce__(&self) -> PyResult<()> {
        let parts = "dict(batch), with batch.indices, batch.generations and batch.weights";
        Err(PyTypeError::new_err(format!("a batch is neither copied nor sent to other processes; send {parts}")))
    }

    /// Number of transitions.
    #[getter]
    fn batch_size(&self) -> usize {
        self.rows
    }
}
