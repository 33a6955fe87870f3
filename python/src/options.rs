//! Converts the options of a replay from Python and back.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use shoal::replay::frames_for;
use shoal::segment::layout::MAX_CAPACITY;
use shoal::standalone::{FieldOptions, MOST_N_STEPS, Options, Schedule, StepOptions};

use crate::array::{dtype_name, element_named};
use crate::input::whole;

/// The default error band, in inserts: it is as many samples as so many inserts call for.
const DEFAULT_BAND_INSERTS: f64 = 64.0;
/// Number of environments for which the default frame capacity is enough.
const ENVIRONMENTS: usize = 64;

/// The fields in `fields`: objects with a shape and a dtype, pairs of these, or dtypes.
pub(crate) fn fields(fields: &Bound<'_, PyAny>) -> PyResult<Vec<FieldOptions>> {
    let fields = fields
        .cast::<PyMapping>()
        .map_err(|_| PyTypeError::new_err("fields must be a mapping of names to shoal.Field or (shape, dtype)"))?;
    fields
        .items()?
        .iter()
        .map(|item| item.extract::<(String, Bound<'_, PyAny>)>())
        .map(|item| item.and_then(|(name, value)| field(name, &value)))
        .collect()
}

fn field(name: String, value: &Bound<'_, PyAny>) -> PyResult<FieldOptions> {
    let py = value.py();
    let plain = || py.import("shoal.options")?.getattr("Field");
    let object =
        if value.hasattr(intern!(py, "shape"))? && value.hasattr(intern!(py, "dtype"))? && !value.is_instance_of::<pyo3::types::PyType>() {
            value.clone()
        } else if let Ok(pair) = value.cast::<PyTuple>() {
            plain()?.call1(pair)?
        } else {
            plain()?.call1(((), value))?
        };
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let dtype = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (dtype,))?;
    let known = element_named(&dtype.getattr(intern!(py, "name"))?.extract::<String>()?);
    let native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
    let element = known.filter(|_| native).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "field `{name}` has dtype {dtype}; it must be bool, or an integer or float of at most 8 bytes in this machine's byte order"
        ))
    })?;
    let stack = object.getattr_opt(intern!(py, "stack"))?.map_or(Ok(0), |stack| stack.extract())?;
    let shape = object.getattr(intern!(py, "shape"))?;
    let invalid = || PyValueError::new_err(format!("field `{name}` has shape {shape}; its axes must be whole numbers of at least 1"));
    let axes = shape.extract::<Vec<usize>>().map_err(|_| invalid())?;
    Ok(FieldOptions { name, element: element.name().into(), shape: axes, stack })
}

/// Fields as Python sees them.
pub(crate) fn describe<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let module = py.import("shoal.options")?;
    let described = PyDict::new(py);
    for field in &options.fields {
        let shape = PyTuple::new(py, &field.shape)?;
        let dtype = field.element().map_or("float32", dtype_name);
        let object = match field.stack {
            0 => module.getattr("Field")?.call1((shape, dtype))?,
            stack => module.getattr("Frames")?.call1((shape, dtype, stack))?,
        };
        described.set_item(&field.name, object)?;
    }
    Ok(described)
}

/// A constant, or (start, end, samples).
pub(crate) fn schedule(beta: &Bound<'_, PyAny>) -> PyResult<Schedule> {
    if let Ok(value) = beta.extract::<f64>() {
        return Ok(Schedule { start: value, end: value, samples: 0 });
    }
    let invalid =
        || PyTypeError::new_err(format!("beta is {beta}; it must be a number, or (start, end, samples) with a whole number of samples"));
    let (start, end, samples) = beta.extract::<(f64, f64, u64)>().map_err(|_| invalid())?;
    Ok(Schedule { start, end, samples })
}

/// The options in a `shoal.NStep`.
pub(crate) fn steps(value: &Bound<'_, PyAny>) -> PyResult<StepOptions> {
    let attribute = |name: &str| value.getattr(name).map_err(|_| PyTypeError::new_err("n_step must be a shoal.NStep"));
    Ok(StepOptions {
        n: whole(&attribute("n")?, "n_step.n", 1, MOST_N_STEPS)?,
        gamma: attribute("gamma")?.extract()?,
        reward: attribute("reward")?.extract()?,
        next_fields: attribute("next_fields")?.extract()?,
        terminated: attribute("terminated")?.extract()?,
        truncated: attribute("truncated")?.extract()?,
        discount: attribute("discount")?.extract()?,
    })
}

/// `steps` as Python sees them.
pub(crate) fn describe_steps<'py>(py: Python<'py>, steps: &StepOptions) -> PyResult<Bound<'py, PyAny>> {
    // The shortest decimal number with this value: 0.99, and not the digits of its float32.
    let gamma = steps.gamma.to_string().parse::<f64>()?;
    let next_fields = PyTuple::new(py, &steps.next_fields)?;
    let described = (steps.n, gamma, &steps.reward, next_fields, &steps.terminated, &steps.truncated, &steps.discount);
    py.import("shoal.options")?.getattr("NStep")?.call1(described)
}

/// The minimum size, samples per insert and error band of a `shoal.RateLimiter`.
pub(crate) fn limiter(value: Option<&Bound<'_, PyAny>>) -> PyResult<(u64, Option<f64>, f64)> {
    let Some(value) = value else { return Ok((1, None, f64::INFINITY)) };
    let attribute = |name: &str| value.getattr(name).map_err(|_| PyTypeError::new_err("rate_limiter must be a shoal.RateLimiter"));
    let ratio = attribute("samples_per_insert")?.extract::<Option<f64>>()?;
    let band = attribute("error_band")?.extract::<Option<f64>>()?;
    let band = band.or(ratio.map(|ratio| (ratio * DEFAULT_BAND_INSERTS).max(1.0))).unwrap_or(f64::INFINITY);
    Ok((whole(&attribute("min_size")?, "rate_limiter.min_size", 0, MAX_CAPACITY)? as u64, ratio, band))
}

/// Number of frames of a replay of `capacity` transitions: `given`, or enough for [`ENVIRONMENTS`] environments.
pub(crate) fn frames(fields: &[FieldOptions], capacity: usize, given: Option<usize>, n_step: usize) -> PyResult<usize> {
    let named: usize = fields.iter().map(|field| field.stack).sum();
    match given {
        _ if named == 0 && given.is_some() => Err(PyValueError::new_err("frame_capacity is given, and no field is shoal.Frames")),
        Some(frames) => Ok(frames),
        None if named == 0 => Ok(0),
        None => Ok(frames_for(capacity, ENVIRONMENTS, named, n_step)),
    }
}
