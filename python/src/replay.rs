//! The replay as Python sees it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytemuck::cast_slice_mut;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use shoal::replay::{Element, Rows};
use shoal::segment::layout::MAX_CAPACITY;
use shoal::standalone::{DEFAULT_PARTICIPANTS, MAX_PARTICIPANTS, Options, Patience, ReplayError, ReplayHandle, Stale};

use crate::array::{Filling, is_array_of};
use crate::batch::{Arrays, Batch};
use crate::errors::{exception, named};
use crate::input::{Copies, Input, columns, flat, seed_of, whole};
use crate::options;

/// The largest number of transitions in a batch.
const LARGEST_BATCH: usize = MAX_CAPACITY;

/// How long `close` waits for calls of other threads to end. The wait is bounded, because some calls cannot end: one that a signal
/// handler has interrupted to call `close`, and, in the child of a fork, those of threads that only the parent has.
const CLOSING_PATIENCE: Duration = Duration::from_millis(100);
const CLOSING_PAUSE: Duration = Duration::from_micros(100);

/// A replay of transitions, private to this process or shared by all processes that know its name.
// Its locks are held only by threads that hold the interpreter's lock. A thread that forks in Python holds the interpreter's lock, so the
// child finds them free.
#[pyclass(module = "shoal", frozen)]
pub(crate) struct Replay {
    held: Mutex<Option<Arc<ReplayHandle>>>,
    /// Name and type of each field.
    known: Vec<(Py<PyString>, Element)>,
    /// The two batches made last: the next is drawn while one is in use. Each is filled again once only this package refers to it, so
    /// that the kernel need not hand out new memory page by page.
    spares: Mutex<Spares>,
}

type Spares = [Option<Py<Batch>>; 2];

impl Replay {
    fn of(py: Python<'_>, made: Result<ReplayHandle, ReplayError>) -> PyResult<Self> {
        let held = made.map_err(|error| exception(py, &error))?;
        let fields = held.options().fields.iter();
        let known = fields.filter_map(|field| Some((PyString::intern(py, &field.name).unbind(), field.element()?))).collect::<Vec<_>>();
        if known.len() < held.options().fields.len() {
            return Err(named(py, "ReplayError", "the replay has a field of an unknown type".into()));
        }
        Ok(Self { held: Mutex::new(Some(Arc::new(held))), known, spares: Mutex::default() })
    }

    fn held(&self, py: Python<'_>) -> PyResult<Arc<ReplayHandle>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        held.ok_or_else(|| named(py, "StoppedError", "the replay is closed".into()))
    }
}

/// The indices or generations of a batch. An error while another thread fills the batch.
fn named_by<'py>(batch: &Batch, numbers: &Bound<'py, PyArray1<i64>>, what: &str) -> PyResult<Input<'py>> {
    // The caller may have set another type or shape of the array, which NumPy then converts.
    if is_array_of(numbers, Element::I64, &[batch.rows]) {
        numbers.try_readonly()?;
    }
    flat(numbers, Element::I64, what)
}

/// How many processes the caller wants to share the replay; an error if nobody shares it.
fn participant_count(count: Option<&Bound<'_, PyAny>>, shared: bool) -> PyResult<Option<usize>> {
    if count.is_some() && !shared {
        return Err(PyValueError::new_err("participants is given, and the replay is private; give shared=True too"));
    }
    count.map(|count| whole(count, "participants", 1, MAX_PARTICIPANTS)).transpose()
}

/// Run `work` with the interpreter's lock released, letting Ctrl+C through while it waits.
fn released<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    work: impl FnOnce(Patience<'_>) -> Result<T, ReplayError> + Send,
) -> PyResult<T> {
    if let Some(seconds) = timeout
        && (seconds.is_nan() || seconds < 0.0)
    {
        return Err(PyValueError::new_err(format!("timeout is {seconds}; it must be a number of seconds of at least 0, or None")));
    }
    // What is too long for a duration, such as infinity, has no end.
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let mut signal = None;
    let result = py.detach(|| {
        let mut go_on = || Python::attach(|py| py.check_signals()).map_err(|error| signal = Some(error)).is_ok();
        work(Patience::new(timeout, &mut go_on))
    });
    match signal {
        Some(signal) => Err(signal),
        None => result.map_err(|error| exception(py, &error)),
    }
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (
        capacity, fields, *, prioritized = true, alpha = 0.6, beta = None, epsilon = 1e-6, n_step = None, rate_limiter = None,
        shared = false, participants = None, frame_capacity = None, seed = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        capacity: &Bound<'_, PyAny>,
        fields: &Bound<'_, PyAny>,
        prioritized: bool,
        alpha: f64,
        beta: Option<&Bound<'_, PyAny>>,
        epsilon: f64,
        n_step: Option<&Bound<'_, PyAny>>,
        rate_limiter: Option<&Bound<'_, PyAny>>,
        shared: bool,
        participants: Option<&Bound<'_, PyAny>>,
        frame_capacity: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let capacity = whole(capacity, "capacity", 2, MAX_CAPACITY)?;
        let participants = participant_count(participants, shared)?;
        let frame_capacity = frame_capacity.map(|count| whole(count, "frame_capacity", 1, MAX_CAPACITY)).transpose()?;
        let fields = options::fields(fields)?;
        let (min_size, samples_per_insert, error_band) = options::limiter(rate_limiter)?;
        let steps = n_step.map(options::steps).transpose()?;
        let seed = seed.map(seed_of).transpose()?;
        let options = Options {
            capacity,
            prioritized,
            alpha,
            beta: beta.map_or(Ok(shoal::standalone::Schedule { start: 0.4, end: 0.4, samples: 0 }), options::schedule)?,
            epsilon,
            min_size,
            samples_per_insert,
            error_band,
            participants: if shared { participants.unwrap_or(DEFAULT_PARTICIPANTS) } else { 1 },
            frames: options::frames(&fields, capacity, frame_capacity, steps.as_ref().map_or(1, |steps| steps.n))?,
            fields,
            steps,
        };
        Self::of(py, py.detach(|| ReplayHandle::create(options, shared, seed)))
    }

    /// The shared replay called `name`, made by another process or this one.
    #[staticmethod]
    #[pyo3(signature = (name, *, seed = None))]
    fn open(py: Python<'_>, name: &str, seed: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let seed = seed.map(seed_of).transpose()?;
        Self::of(py, py.detach(|| ReplayHandle::open(name, seed)))
    }

    /// The replay of the run whose supervisor has process id `pid`.
    #[staticmethod]
    #[pyo3(signature = (pid, *, seed = None))]
    fn attach(py: Python<'_>, pid: u32, seed: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let seed = seed.map(seed_of).transpose()?;
        Self::of(py, py.detach(|| ReplayHandle::attach(pid, seed)))
    }

    /// The replay saved at `path`, with its options and priorities.
    #[staticmethod]
    #[pyo3(signature = (path, *, shared = false, participants = None, seed = None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        shared: bool,
        participants: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let participants = participant_count(participants, shared)?;
        let seed = seed.map(seed_of).transpose()?;
        let loaded = py.detach(|| ReplayHandle::load(&path, shared, participants, seed));
        Self::of(py, loaded)
    }

    /// Add one transition (arrays of the fields' own shapes) or n transitions (one more leading axis).
    ///
    /// Returns the slots of the transitions. `RateLimitError`: the rate limiter, or another thread of this process, has held the call
    /// back for `timeout` seconds.
    #[pyo3(signature = (transitions, priorities = None, *, streams = None, timeout = None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        transitions: &Bound<'py, PyAny>,
        priorities: Option<&Bound<'py, PyAny>>,
        streams: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let held = self.held(py)?;
        let filled = held.options().steps.as_ref().and_then(|steps| steps.discount.as_deref());
        let (inputs, rows) = columns(&held.options().fields, &self.known, filled, transitions)?;
        let rows = rows.unwrap_or(1);
        let per_row = |value: Option<&Bound<'py, PyAny>>, element: Element, what: &str| {
            let input = value.map(|value| flat(value, element, what)).transpose()?;
            let count = input.as_ref().map_or(rows, |input| input.bytes().len() / element.size_bytes());
            if count == rows { Ok(input) } else { Err(PyValueError::new_err(format!("{count} {what} for {rows} transitions"))) }
        };
        let errors = per_row(priorities, Element::F32, "priorities")?;
        if errors.is_some() && !held.options().prioritized {
            return Err(exception(py, &held.not_prioritized()));
        }
        if streams.is_some() && held.options().steps.is_none() {
            return Err(PyValueError::new_err("streams are given, and the replay was made without n_step"));
        }
        let streams = per_row(streams, Element::I64, "streams")?;
        let columns: Vec<&[u8]> = inputs.iter().map(Input::bytes).collect();
        Copies::with(|copies| {
            match streams {
                Some(streams) => _ = streams.copy_to(&mut copies.slots),
                None if held.options().steps.is_none() => copies.slots.clear(),
                None => copies.slots = (0..rows as i64).collect(),
            }
            let errors = errors.map(|errors| errors.copy_to(&mut copies.errors));
            let mut slots = Vec::with_capacity(rows);
            released(py, timeout, |patience| held.add(&columns, rows, errors, &copies.slots, patience, &mut slots))?;
            Ok(PyArray1::from_slice(py, &slots))
        })
    }

    /// Draw transitions with replacement: in proportion to their priorities, stratified, or else uniformly.
    ///
    /// What a guest of a run draws takes nothing from the run's learners.
    ///
    /// `EmptyError`: the replay is empty and has no rate limiter that lets the call wait. `RateLimitError`: the rate limiter, or another
    /// thread of this process, has held the call back for `timeout` seconds.
    #[pyo3(signature = (batch_size, *, beta = None, weights = true, out = None, timeout = None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        batch_size: &Bound<'py, PyAny>,
        beta: Option<f32>,
        weights: bool,
        out: Option<Bound<'py, Batch>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, Batch>> {
        let held = self.held(py)?;
        let batch_size = whole(batch_size, "batch_size", 1, LARGEST_BATCH)?;
        if let Some(beta) = beta
            && !(0.0..=1.0).contains(&beta)
        {
            return Err(exception(py, &ReplayError::OutOfRange { what: "beta", value: beta.into(), least: 0.0, most: 1.0 }));
        }
        let (batch, arrays) = self.target(py, &held, batch_size, out)?;
        let beta = if weights { beta } else { Some(0.0) };
        fill(py, arrays, |rows| {
            released(py, timeout, |patience| {
                let largest = held.sample(rows, beta, patience)?;
                rows.weights.iter_mut().for_each(|weight| *weight /= largest);
                Ok(())
            })
        })?;
        Ok(batch)
    }

    /// The transitions that are now in the slots `indices`. Their weights are ones.
    ///
    /// `IndexError`: an index is out of range, or a slot is empty or holds a transition that has lost a frame.
    fn get<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Batch>> {
        let held = self.held(py)?;
        let indices = flat(indices, Element::I64, "indices")?;
        Copies::with(|copies| {
            let slots = indices.copy_to(&mut copies.slots);
            let (batch, arrays) = self.target(py, &held, slots.len(), None)?;
            fill(py, arrays, |rows| released(py, None, |_| held.get(slots, rows)))?;
            Ok(batch)
        })
    }

    /// Set the priorities of transitions; returns how many were stale and therefore ignored.
    ///
    /// `StaleIndexError`: some are stale, unless `stale` is "ignore". `IndexError`: an index is out of range, or an index without a
    /// generation is that of an empty slot.
    #[pyo3(signature = (indices, priorities, generations = None, *, stale = "raise"))]
    fn update_priorities(
        &self,
        py: Python<'_>,
        indices: &Bound<'_, PyAny>,
        priorities: &Bound<'_, PyAny>,
        generations: Option<&Bound<'_, PyAny>>,
        stale: &str,
    ) -> PyResult<u64> {
        let held = self.held(py)?;
        let stale = match stale {
            "raise" => Stale::Refuse,
            "ignore" => Stale::Ignore,
            other => return Err(PyValueError::new_err(format!("stale is `{other}`; it must be \"raise\" or \"ignore\""))),
        };
        Copies::with(|copies| {
            let errors = flat(priorities, Element::F32, "priorities")?.copy_to(&mut copies.errors);
            let (slots, generations) = if let Ok(batch) = indices.cast::<Batch>() {
                if generations.is_some() {
                    return Err(PyTypeError::new_err("a batch names its generations itself"));
                }
                let batch = batch.get();
                let slots = named_by(batch, batch.indices.bind(py), "indices")?.copy_to(&mut copies.slots);
                let generations = named_by(batch, batch.generations.bind(py), "generations")?.copy_to(&mut copies.generations);
                (slots, Some(generations))
            } else {
                let slots = flat(indices, Element::I64, "indices")?.copy_to(&mut copies.slots);
                let generations = generations.map(|generations| flat(generations, Element::I64, "generations")).transpose()?;
                (slots, generations.map(|generations| generations.copy_to(&mut copies.generations)))
            };
            let counts = [Some(("indices", slots.len())), generations.map(|generations| ("generations", generations.len()))];
            for (what, count) in counts.into_iter().flatten() {
                if count != errors.len() {
                    return Err(PyValueError::new_err(format!("{count} {what} and {} priorities", errors.len())));
                }
            }
            released(py, None, |patience| held.update(slots, generations, errors, stale, patience))
        })
    }

    /// What the sum tree holds for the slots `indices`, or for all slots: `(error + epsilon) ** alpha`.
    #[pyo3(signature = (indices = None))]
    fn priorities<'py>(&self, py: Python<'py>, indices: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let held = self.held(py)?;
        let indices = indices.map(|indices| flat(indices, Element::I64, "indices")).transpose()?;
        Copies::with(|copies| {
            let slots = indices.map(|indices| indices.copy_to(&mut copies.slots));
            Ok(released(py, None, |_| held.priorities(slots))?.into_pyarray(py))
        })
    }

    /// Remove all transitions. Batches that were drawn before are stale afterwards.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held(py)?;
        released(py, None, |patience| held.clear(patience))
    }

    /// Forget, for the environments `streams` or for all, the steps that wait for the rest of their transition.
    ///
    /// Call it if environments are reset before their episodes have ended. Without `n_step` no step waits.
    #[pyo3(signature = (streams = None))]
    fn end_streams(&self, py: Python<'_>, streams: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let held = self.held(py)?;
        let streams = streams.map(|streams| flat(streams, Element::I64, "streams")).transpose()?;
        Copies::with(|copies| {
            let streams = streams.map(|streams| streams.copy_to(&mut copies.slots));
            released(py, None, |patience| held.end_streams(streams, patience))
        })
    }

    /// Stop adding, in all processes: calls of `add` that wait, and later ones, raise `StoppedError`.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.held(py)?.stop().map_err(|error| exception(py, &error))
    }

    /// Write the replay to one file, atomically and with a checksum.
    ///
    /// `OSError`: the system does not write it, or another process or thread clears the replay meanwhile.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let held = self.held(py)?;
        released(py, None, |_| held.save(&path))
    }

    /// Leave the replay. Calls of other threads that wait in it raise `StoppedError`, and so does every later call.
    ///
    /// `close` waits for those threads, a tenth of a second at most. The last process to leave a shared replay removes it. A guest of a
    /// run gives its place back.
    fn close(&self, py: Python<'_>) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| {
            let Some(held) = held else { return };
            held.close();
            // The last thread that holds the replay leaves it. If the others are out in time, that is this thread, and the process's place
            // is free when `close` returns.
            let deadline = Instant::now() + CLOSING_PATIENCE;
            while Arc::strong_count(&held) > 1 && Instant::now() < deadline {
                std::thread::sleep(CLOSING_PAUSE);
            }
        });
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_arguments))]
    fn __exit__(&self, py: Python<'_>, _arguments: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.held(py)?.len())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Ok(held) = self.held(py) else { return "Replay(closed)".into() };
        let place = held.name().map_or_else(|| "private".into(), |name| format!("shared as {name}"));
        let kind = if held.options().prioritized { "prioritized" } else { "uniform" };
        format!("Replay({} of {} transitions, {kind}, {place})", held.len(), held.options().capacity)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let held = self.held(py)?;
        let is_own = |name: &&str| name.starts_with(&shoal::segment::replay_name_prefix());
        let name = held.name().filter(is_own).ok_or_else(|| {
            PyTypeError::new_err(if held.name().is_some() {
                "the replay of a run is not sent to other processes; let each of them attach to the run, with Replay.attach(pid)"
            } else {
                "a private replay stays in its process; make it with shared=True to send it to another, or save() and load() it"
            })
        })?;
        Ok((py.get_type::<Self>().getattr("open")?, (name.into(),)))
    }

    /// The name by which other processes `open` it; `None` for a private replay.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.held(py)?.name().map(String::from))
    }

    /// The largest number of transitions.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.held(py)?.options().capacity)
    }

    /// The fields of a transition, by name.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        options::describe(py, self.held(py)?.options())
    }

    /// How added steps become transitions; `None` if transitions themselves are added.
    #[getter]
    fn n_step<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.held(py)?.options().steps.as_ref().map(|steps| options::describe_steps(py, steps)).transpose()
    }

    /// Whether transitions are drawn by priority.
    #[getter]
    fn prioritized(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.held(py)?.options().prioritized)
    }

    /// Exponent of the priorities.
    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.held(py)?.options().alpha)
    }

    /// The current exponent of the importance weights.
    #[getter]
    fn beta(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.held(py)?.beta())
    }

    /// The largest error so far, at least one. A transition that is added without a priority gets it.
    #[getter]
    fn max_priority(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.held(py)?.largest_error())
    }

    /// Sum of all priorities.
    #[getter]
    fn total_priority(&self, py: Python<'_>) -> PyResult<f64> {
        let held = self.held(py)?;
        Ok(py.detach(|| held.total_priority()))
    }

    /// Number of transitions that all processes have added.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.held(py)?.inserted())
    }

    /// Number of transitions that all processes have drawn; those that guests of a run draw do not count.
    #[getter]
    fn sampled(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.held(py)?.sampled())
    }

    /// Number of priorities, given by all processes, that exceeded the largest that the tree can hold and count as that.
    ///
    /// The largest is `(error + epsilon) ** alpha` = 524,288.
    #[getter]
    fn saturated_priorities(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.held(py)?.saturated_priorities())
    }

    /// Size of its memory in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.held(py)?.total_bytes())
    }
}

/// A batch, and its arrays to be filled.
type Target<'py> = (Bound<'py, Batch>, Arrays<'py>);

impl Replay {
    fn target<'py>(&self, py: Python<'py>, held: &ReplayHandle, rows: usize, out: Option<Bound<'py, Batch>>) -> PyResult<Target<'py>> {
        let Some(out) = out else { return self.unused(py, held, rows) };
        let batch = out.get();
        if batch.rows != rows || batch.schema != *held.schema() {
            let problem = format!("out has {} transitions, or other fields; expected a batch of {rows} from this replay", batch.rows);
            return Err(PyValueError::new_err(problem));
        }
        if !batch.is_as_made(py) {
            let problem = "an array of out has another shape, type or strides than it was made with, or cannot be written";
            return Err(PyValueError::new_err(problem));
        }
        let arrays = batch.fill(py)?;
        Ok((out, arrays))
    }

    /// A batch that only this package refers to, with its arrays to be filled: one of the spares, or a new one in place of the older.
    fn unused<'py>(&self, py: Python<'py>, held: &ReplayHandle, rows: usize) -> PyResult<Target<'py>> {
        // The spares are taken out meanwhile: making a batch may run any Python code, and other threads may then come here.
        let mut spares = self.exchange_spares(Spares::default());
        let bound = spares.iter().flatten().map(|spare| spare.bind(py));
        let mut fitting = bound.filter(|spare| spare.get().rows == rows && Batch::is_free(spare));
        let spare = fitting.find_map(|spare| Some((spare.clone(), spare.get().fill(py).ok()?)));
        let unused = spare.map_or_else(
            || {
                let made = Bound::new(py, Batch::zeros(py, held.schema(), held.options(), rows)?)?;
                spares.rotate_right(1);
                spares[0] = Some(made.clone().unbind());
                let arrays = made.get().fill(py)?;
                Ok((made, arrays))
            },
            Ok,
        );
        drop(self.exchange_spares(spares));
        unused
    }

    fn exchange_spares(&self, spares: Spares) -> Spares {
        std::mem::replace(&mut *self.spares.lock().unwrap_or_else(PoisonError::into_inner), spares)
    }
}

/// Let `work` fill these arrays.
fn fill(py: Python<'_>, mut arrays: Arrays<'_>, work: impl FnOnce(&mut Rows<'_, &mut [u8]>) -> PyResult<()>) -> PyResult<()> {
    let _filling = Filling::begin(py);
    let mut columns = arrays.columns.iter_mut().map(|array| array.bytes_mut()).collect::<PyResult<Vec<_>>>()?;
    work(&mut Rows {
        columns: &mut columns,
        slots: cast_slice_mut(arrays.indices.as_slice_mut()?),
        generations: cast_slice_mut(arrays.generations.as_slice_mut()?),
        weights: arrays.weights.as_slice_mut()?,
    })
}
