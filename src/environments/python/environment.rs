//! One environment in Python, stepped from Rust through two flat buffers.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::description::Description;
use super::interpreter::{self, error_of};
use crate::environments::progress::Progress;
use crate::environments::{Action, ActionSpace, Environment, EnvironmentError, EnvironmentRequest, EnvironmentSpec, Moment, Picture, Step};
use crate::values::{ValueType, ValuesMut};

/// An environment in the interpreter of this process. A step takes the interpreter's lock once and allocates nothing in Rust.
pub(super) struct PythonEnvironment {
    spec: EnvironmentSpec,
    /// The object of class `Bridge` in `bridge.py`.
    bridge: Py<PyAny>,
    reset: Py<PyAny>,
    step: Py<PyAny>,
    observation: ObservationBuffer,
    action: Option<ActionBuffer>,
    progress: Progress,
}

/// The numpy array that the bridge copies each observation to, of either type.
enum ObservationBuffer {
    F32(PyBuffer<f32>),
    U8(PyBuffer<u8>),
}

/// The numpy array that the bridge takes an action of real numbers from.
struct ActionBuffer {
    values: PyBuffer<f32>,
    clipped: Vec<f32>,
}

impl PythonEnvironment {
    /// Make the environment and read its spaces.
    pub(super) fn new(request: &EnvironmentRequest) -> Result<Self, EnvironmentError> {
        let module = interpreter::bridge(request)?;
        Python::attach(|py| {
            let id = &request.id;
            let failed = |error: PyErr| error_of(py, &error, id, Moment::Construction);
            let folders: Vec<_> = request.search_folders.iter().map(|folder| folder.as_os_str()).collect();
            let bridge =
                module.bind(py).call_method1("Bridge", (id, &request.keyword_arguments, folders, request.drawn)).map_err(failed)?;
            let text: String = bridge.getattr("description").and_then(|text| text.extract()).map_err(failed)?;
            let spec = serde_json::from_str::<Description>(&text)
                .map_err(|error| error.to_string())
                .and_then(|description| description.into_spec(id))
                .map_err(|reason| EnvironmentError::Unusable { id: id.clone(), reason })?;
            Self::with_spec(bridge, spec).map_err(failed)
        })
    }

    fn with_spec(bridge: Bound<'_, PyAny>, spec: EnvironmentSpec) -> PyResult<Self> {
        let (step, action) = match &spec.action {
            ActionSpace::Discrete { .. } => ("step_index", None),
            ActionSpace::Box { low, .. } => {
                let values = PyBuffer::get(&bridge.getattr("action_values")?)?;
                ("step_values", Some(ActionBuffer { values, clipped: vec![0.0; low.len()] }))
            }
        };
        Ok(Self {
            reset: bridge.getattr("reset")?.unbind(),
            step: bridge.getattr(step)?.unbind(),
            observation: ObservationBuffer::get(&bridge.getattr("observation_values")?, spec.observation.element)?,
            bridge: bridge.unbind(),
            action,
            progress: Progress::BeforeFirstReset,
            spec,
        })
    }

    /// Refuse an observation that no network can learn from.
    fn check_observation(&self, observation: &ValuesMut<'_>, during: Moment) -> Result<(), EnvironmentError> {
        let ValuesMut::F32(observation) = observation else { return Ok(()) };
        self.spec.check_observation(observation, during)
    }
}

impl ObservationBuffer {
    fn get(values: &Bound<'_, PyAny>, element: ValueType) -> PyResult<Self> {
        Ok(match element {
            ValueType::F32 => Self::F32(PyBuffer::get(values)?),
            ValueType::U8 => Self::U8(PyBuffer::get(values)?),
        })
    }

    fn copy_to(&self, py: Python<'_>, observation: &mut ValuesMut<'_>) -> PyResult<()> {
        match (self, observation) {
            (Self::F32(buffer), ValuesMut::F32(values)) => buffer.copy_to_slice(py, values),
            (Self::U8(buffer), ValuesMut::U8(values)) => buffer.copy_to_slice(py, values),
            _ => panic!("the observation is to be written in another type than its environment shows"),
        }
    }
}

impl ActionBuffer {
    /// Hand over `values`, brought within the bounds: environments of Gymnasium rely on it.
    fn write(&mut self, py: Python<'_>, values: &[f32], low: &[f32], high: &[f32]) -> PyResult<()> {
        for (clipped, ((value, low), high)) in self.clipped.iter_mut().zip(values.iter().zip(low).zip(high)) {
            *clipped = value.max(*low).min(*high);
        }
        self.values.copy_from_slice(py, &self.clipped)
    }
}

impl Environment for PythonEnvironment {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, mut observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        // Only a reset that succeeds makes the environment usable again.
        self.progress = Progress::BeforeFirstReset;
        // No more than that: what many environments seed with it, NumPy's `random.seed` or an `int` of C, takes no larger ones.
        let seed = seed.map(|seed| seed & u64::from(i32::MAX.unsigned_abs()));
        Python::attach(|py| {
            self.reset.bind(py).call1((seed,))?;
            self.observation.copy_to(py, &mut observation)
        })
        .map_err(|error| Python::attach(|py| error_of(py, &error, &self.spec.id, Moment::Reset)))?;
        self.check_observation(&observation, Moment::Reset)?;
        self.progress = Progress::Running { elapsed_steps: 0 };
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, mut observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let elapsed_steps = self.progress.next_step(&self.spec)?;
        if !self.spec.action.accepts(action) {
            return Err(self.spec.invalid_action(action));
        }
        self.progress = Progress::Ended;
        let during = Moment::Step(elapsed_steps);
        let result = Python::attach(|py| {
            let step = self.step.bind(py);
            let answer = match (action, &mut self.action, &self.spec.action) {
                (Action::Continuous(values), Some(buffer), ActionSpace::Box { low, high }) => {
                    buffer.write(py, values, low, high)?;
                    step.call0()?
                }
                (Action::Discrete(index), _, _) => step.call1((index,))?,
                (Action::Continuous(_), _, _) => unreachable!("the space has refused it"),
            };
            self.observation.copy_to(py, &mut observation)?;
            answer.extract::<(f64, bool, bool)>().map_err(|error| self.unreadable(py, answer, error))
        });
        let (reward, terminated, truncated) = result.map_err(|error| Python::attach(|py| error_of(py, &error, &self.spec.id, during)))?;
        self.check_observation(&observation, during)?;
        self.spec.check_reward(reward, during)?;
        let step = Step { reward, terminated, truncated };
        self.progress = Progress::after_step(elapsed_steps, step.ended());
        Ok(step)
    }

    fn picture(&self) -> Result<Picture, EnvironmentError> {
        if let Progress::BeforeFirstReset = self.progress {
            let draws = Python::attach(|py| self.bridge.bind(py).call_method0("draws")?.extract::<bool>()).unwrap_or(false);
            return Err(if draws { self.spec.needs_reset("before its first reset") } else { self.draws_nothing() });
        }
        let rendered = Python::attach(|py| self.rendered(py).map_err(|error| error_of(py, &error, &self.spec.id, Moment::Picture)));
        rendered?.ok_or_else(|| self.draws_nothing())
    }
}

impl PythonEnvironment {
    /// Why the answer of a step cannot be read: the part with a wrong type if `check_answer` finds one, else `error`.
    #[cold]
    fn unreadable<'py>(&self, py: Python<'py>, answer: Bound<'py, PyAny>, error: PyErr) -> PyErr {
        let arguments = answer.cast_into::<PyTuple>().map_err(PyErr::from);
        let checked = arguments.and_then(|arguments| self.bridge.bind(py).call_method1("check_answer", arguments));
        checked.err().unwrap_or(error)
    }

    fn draws_nothing(&self) -> EnvironmentError {
        EnvironmentError::NoPicture { id: self.spec.id.clone() }
    }

    /// What the environment renders; `None` if it says that it renders nothing.
    fn rendered(&self, py: Python<'_>) -> PyResult<Option<Picture>> {
        let answer = self.bridge.bind(py).call_method0("picture")?;
        if answer.is_none() {
            return Ok(None);
        }
        let (width, height, bytes): (usize, usize, Vec<u8>) = answer.extract()?;
        Ok(Some(Picture { width, height, bytes }))
    }
}

impl Drop for PythonEnvironment {
    /// Gives windows, files and memory back; an exception on the way concerns nobody any more.
    fn drop(&mut self) {
        let _ = Python::attach(|py| self.bridge.bind(py).call_method0("close").map(drop));
    }
}
