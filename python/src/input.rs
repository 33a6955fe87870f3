//! Reads the arguments of callers: arrays of the right type as they are, anything else converted as NumPy would, or refused.
//!
//! Values that are checked and then used with the interpreter's lock released are copied first, because another thread may
//! change the caller's arrays in between.

use std::cell::Cell;

use bytemuck::{Pod, cast_slice_mut};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};
use shoal::replay::Element;
use shoal::standalone::FieldOptions;

use crate::array::{ReadArray, dtype_name};

/// The values of one field.
pub(crate) enum Input<'py> {
    /// An array, as it was given or converted.
    Array(ReadArray<'py>),
    /// The bytes of one number.
    Number([u8; 8], usize),
    /// Zeros in place of a field that was not given.
    Zeros(Vec<u8>),
}

impl<'py> Input<'py> {
    /// Its values' bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Array(array) => array.bytes(),
            Self::Number(bytes, length) => &bytes[..*length],
            Self::Zeros(bytes) => bytes,
        }
    }

    /// Copy the values, which are of this type, to `values`, and return these.
    pub(crate) fn copy_to<'v, T: Pod>(&self, values: &'v mut Vec<T>) -> &'v [T] {
        let bytes = self.bytes();
        values.resize(bytes.len() / size_of::<T>(), T::zeroed());
        cast_slice_mut(values).copy_from_slice(bytes);
        values
    }

    /// Its shape.
    fn shape(&self) -> &[usize] {
        match self {
            Self::Array(array) => array.shape(),
            Self::Number(..) | Self::Zeros(_) => &[],
        }
    }

    /// The values of the field that `what` names, as `element`.
    pub(crate) fn of(value: &Bound<'py, PyAny>, element: Element, what: &str) -> PyResult<Self> {
        if let Some(array) = ReadArray::of(value, element) {
            return Ok(Self::Array(array));
        }
        if let Some(number) = number(value, element, what)? {
            return Ok(number);
        }
        let array = converted(value, element, what)?;
        let array = ReadArray::of(&array, element);
        array.map(Self::Array).ok_or_else(|| PyTypeError::new_err(format!("{what} cannot be read as an array of {}", dtype_name(element))))
    }
}

/// `value` as an array of `element` in one piece, if NumPy would convert it without a loss.
fn converted<'py>(value: &Bound<'py, PyAny>, element: Element, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let given = numpy.call_method1(intern!(py, "asarray"), (value,))?;
    let from = given.getattr(intern!(py, "dtype"))?;
    let to = dtype_name(element);
    let can_be_cast = |rule| numpy.call_method1(intern!(py, "can_cast"), (&from, to, rule))?.is_truthy();
    let is_empty = given.getattr(intern!(py, "size"))?.extract::<usize>()? == 0;
    let is_whole = element.is_whole() && "iu".contains(&from.getattr(intern!(py, "kind"))?.extract::<String>()?);
    // A list has no dtype: `from` is the one that NumPy chose for its numbers.
    let is_list_of_whole = is_whole && !value.hasattr(intern!(py, "dtype"))?;
    if !(is_empty || is_list_of_whole || can_be_cast("same_kind")?) {
        return Err(PyTypeError::new_err(format!("{what} has dtype {from}, which does not fit {to}; convert it with .astype(\"{to}\")")));
    }
    let array = numpy.call_method1(intern!(py, "require"), (&given, to, ["C", "A"]))?;
    if is_whole && !can_be_cast("safe")? && !numpy.call_method1(intern!(py, "array_equal"), (&given, &array))?.is_truthy()? {
        return Err(PyOverflowError::new_err(format!("{what} has numbers that do not fit {to}")));
    }
    // `numpy.require` may have turned a scalar into an array of one dimension.
    array.call_method1(intern!(py, "reshape"), (given.getattr(intern!(py, "shape"))?,))
}

/// Copies of slots (or streams), generations, errors and targets, in memory that a thread keeps from call to call.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) slots: Vec<i64>,
    pub(crate) generations: Vec<i64>,
    pub(crate) errors: Vec<f32>,
    pub(crate) targets: Vec<f64>,
}

impl Copies {
    /// Let `work` use this thread's memory. A nested call, from a signal handler, finds no memory and allocates its own.
    pub(crate) fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        thread_local!(static COPIES: Cell<Option<Box<Copies>>> = const { Cell::new(None) });
        let mut copies = COPIES.take().unwrap_or_default();
        let result = work(&mut copies);
        COPIES.set(Some(copies));
        result
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole(value: &Bound<'_, PyAny>, what: &str, least: usize, most: usize) -> PyResult<usize> {
    let inside = value.extract::<usize>().ok().filter(|number| (least..=most).contains(number));
    inside.ok_or_else(|| match value.call_method0(intern!(value.py(), "__index__")) {
        Ok(number) => PyValueError::new_err(format!("{what} is {number}; it must be between {least} and {most}")),
        Err(_) => PyTypeError::new_err(format!("{what} is {value}; it must be a whole number")),
    })
}

/// The seed of random draws.
pub(crate) fn seed_of(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(whole(value, "seed", 0, usize::MAX)? as u64)
}

/// An array of one dimension, or a single number.
pub(crate) fn flat<'py>(value: &Bound<'py, PyAny>, element: Element, what: &str) -> PyResult<Input<'py>> {
    let input = match ReadArray::of(value, element) {
        Some(array) => Input::Array(array),
        None if element == Element::I64 && is_mask(value)? => {
            let advice = "numpy.flatnonzero(mask) makes numbers of them";
            return Err(PyTypeError::new_err(format!("{what} are truth values, and not numbers of slots; {advice}")));
        }
        None => Input::of(value, element, what)?,
    };
    match &input {
        Input::Array(array) if array.shape().len() > 1 => {
            Err(PyValueError::new_err(format!("{what} has shape {:?}; expected one dimension", array.shape())))
        }
        _ => Ok(input),
    }
}

/// Whether `value` holds booleans, such as the result of a comparison.
fn is_mask(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    let py = value.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,))?;
    array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.eq("b")
}

/// The bytes of a plain number of Python or NumPy, because making an array of it would take a microsecond. An error for a whole number
/// that does not fit `element`, which NumPy would wrap.
fn number<'py>(value: &Bound<'py, PyAny>, element: Element, what: &str) -> PyResult<Option<Input<'py>>> {
    let plain = |value: &Bound<'py, PyAny>| {
        value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyBool>()
    };
    let scalar;
    let value = if !plain(value) && value.is_instance(generic(value.py())?)? {
        scalar = value.call_method0(intern!(value.py(), "item"))?;
        &scalar
    } else {
        value
    };
    let is_truth = value.is_exact_instance_of::<PyBool>();
    let is_whole = value.is_exact_instance_of::<PyInt>();
    let mut bytes = [0; 8];
    let mut put = |values: &[u8]| {
        bytes[..values.len()].copy_from_slice(values);
        values.len()
    };
    macro_rules! put_whole {
        ($type:ty) => {
            value.extract::<$type>().ok().map(|number| put(&number.to_le_bytes()))
        };
    }
    let length = match element {
        Element::Bool if is_truth => Some(put(&[u8::from(value.extract::<bool>()?)])),
        Element::F32 | Element::F64 if is_whole || is_truth || value.is_exact_instance_of::<PyFloat>() => {
            let number = value.extract::<f64>()?;
            Some(if element == Element::F64 { put(&number.to_le_bytes()) } else { put(&(number as f32).to_le_bytes()) })
        }
        whole if whole.is_whole() && is_whole => {
            let length = match whole {
                Element::I8 => put_whole!(i8),
                Element::U8 => put_whole!(u8),
                Element::I16 => put_whole!(i16),
                Element::U16 => put_whole!(u16),
                Element::I32 => put_whole!(i32),
                Element::U32 => put_whole!(u32),
                Element::U64 => put_whole!(u64),
                _ => put_whole!(i64),
            };
            let beyond = || PyOverflowError::new_err(format!("{what} is {value}, which does not fit {}", dtype_name(element)));
            Some(length.ok_or_else(beyond)?)
        }
        _ => None,
    };
    Ok(length.map(|length| Input::Number(bytes, length)))
}

/// The class of NumPy's scalars.
fn generic(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = GENERIC.get_or_try_init(py, || py.import("numpy").and_then(|numpy| numpy.getattr("generic")).map(Bound::unbind));
    class.map(|class| class.bind(py))
}

/// The values of all fields, whose names and types are `known`, and the number of transitions: `None` for a single transition
/// without a leading dimension. The field `filled`, a `float32`, may be missing, because the replay fills it.
pub(crate) fn columns<'py>(
    fields: &[FieldOptions],
    known: &[(Py<pyo3::types::PyString>, Element)],
    filled: Option<&str>,
    transitions: &Bound<'py, PyAny>,
) -> PyResult<(Vec<Input<'py>>, Option<usize>)> {
    let dictionary = transitions.cast::<PyDict>().ok();
    let mut inputs = Vec::with_capacity(fields.len());
    let (mut rows, mut later): (Option<Option<usize>>, Option<usize>) = (None, None);
    for (field, (name, element)) in fields.iter().zip(known) {
        let value = match dictionary {
            Some(dictionary) => dictionary.get_item(name)?,
            None => transitions.get_item(name).ok(),
        };
        if value.is_none() && filled == Some(&*field.name) {
            later = Some(inputs.len());
            inputs.push(Input::Number([0; 8], 4));
            continue;
        }
        let value =
            value.ok_or_else(|| PyValueError::new_err(format!("field `{}` is missing; a transition has {}", field.name, all(fields))))?;
        let input = Input::of(&value, *element, &field.name)?;
        let found = leading(field, input.shape())?;
        if *rows.get_or_insert(found) != found {
            let say = |rows: Option<usize>| {
                rows.map_or("one transition without a leading dimension".into(), |rows| format!("{rows} transitions"))
            };
            let problem = format!("field `{}` has {}, the fields before it {}", field.name, say(found), say(rows.flatten()));
            return Err(PyValueError::new_err(problem));
        }
        inputs.push(input);
    }
    if transitions.len()? + usize::from(later.is_some()) > fields.len() {
        // A mapping whose length is the number of rows iterates over rows, but its `keys()` are the names.
        let names =
            transitions.getattr_opt(intern!(transitions.py(), "keys"))?.map_or_else(|| Ok(transitions.clone()), |keys| keys.call0())?;
        for name in names.try_iter()? {
            let name = name?.extract::<String>()?;
            if fields.iter().all(|field| field.name != name) {
                return Err(PyValueError::new_err(format!("there is no field `{name}`; a transition has {}", all(fields))));
            }
        }
    }
    if let (Some(position), Some(Some(rows))) = (later, rows) {
        inputs[position] = Input::Zeros(vec![0; rows * 4]);
    }
    Ok((inputs, rows.flatten()))
}

fn all(fields: &[FieldOptions]) -> String {
    fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
}

/// The number of transitions in an array of this shape; `None` for one transition without a leading dimension.
fn leading(field: &FieldOptions, shape: &[usize]) -> PyResult<Option<usize>> {
    let stack = usize::from(field.stack > 0);
    let own = field.shape.len() + stack;
    let is_own = |shape: &[usize]| shape.len() == own && shape[stack..] == field.shape[..] && (stack == 0 || shape[0] == field.stack);
    match shape {
        shape if is_own(shape) => Ok(None),
        [rows, rest @ ..] if is_own(rest) => Ok(Some(*rows)),
        _ => {
            let own = field.full_shape();
            let many = own.iter().map(|axis| format!(", {axis}")).collect::<String>();
            Err(PyValueError::new_err(format!("field `{}` has shape {shape:?}; expected {own:?} or [n{many}]", field.name)))
        }
    }
}
