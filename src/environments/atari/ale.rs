//! ALE in the interpreter of this process. Its own methods are called, without a function of Python between.

use std::sync::OnceLock;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyModule};

use super::CONSOLE;
use super::emulator::{Emulator, Ending, Input};
use super::options::Options;
use super::shades::Shades;
use crate::environments::python::interpreter::{self, error_of};
use crate::environments::{EnvironmentError, EnvironmentRequest, Moment};

/// The functions of `console.py`.
static CONSOLE_MODULE: OnceLock<Py<PyModule>> = OnceLock::new();

/// A console with a game in it.
pub(super) struct Ale {
    load: Py<PyAny>,
    start: Py<PyAny>,
    act: Py<PyAny>,
    game_over: Py<PyAny>,
    game_truncated: Py<PyAny>,
    lives: Py<PyAny>,
    colours_of: Py<PyAny>,
    shades_of: Py<PyAny>,
    nothing: Py<PyAny>,
    fire: Py<PyAny>,
    has_fire: bool,
    actions: Vec<Py<PyAny>>,
    /// A numpy array that ALE draws to, and its memory.
    screen: Py<PyAny>,
    pixels: PyBuffer<u8>,
    screen_size: [usize; 2],
    /// The last screen, as numbers of colours.
    colours: Vec<u8>,
    shades: Shades,
}

impl Ale {
    /// Plug in `game`, in an interpreter that is started if none runs yet.
    pub(super) fn new(request: &EnvironmentRequest, game: &str, options: &Options) -> Result<Self, EnvironmentError> {
        let module = interpreter::module(request, &CONSOLE_MODULE, CONSOLE, "shoal_console")?;
        Python::attach(|py| {
            let arguments = (game, options.repeat_action_probability, options.max_num_frames_per_episode);
            let console = module.bind(py).call_method1("Console", arguments);
            console.and_then(|console| Self::of(&console)).map_err(|error| error_of(py, &error, &request.id, Moment::Construction))
        })
    }

    fn of(console: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ale = console.getattr("ale")?;
        let method = |name: &str| ale.getattr(name).map(Bound::unbind);
        let screen = console.getattr("screen")?;
        let screen_size: [usize; 2] = screen.getattr("shape")?.extract()?;
        Ok(Self {
            load: console.getattr("load")?.unbind(),
            start: method("reset_game")?,
            act: method("act")?,
            game_over: method("game_over")?,
            game_truncated: method("game_truncated")?,
            lives: method("lives")?,
            colours_of: method("getScreen")?,
            shades_of: method("getScreenGrayscale")?,
            nothing: console.getattr("nothing")?.unbind(),
            fire: console.getattr("fire")?.unbind(),
            has_fire: console.getattr("has_fire")?.extract()?,
            actions: console.getattr("actions")?.extract()?,
            pixels: PyBuffer::get(&screen)?,
            screen: screen.unbind(),
            colours: vec![0; screen_size.iter().product()],
            shades: Shades::new(),
            screen_size,
        })
    }
}

impl Emulator for Ale {
    type Fault = PyErr;

    fn screen_size(&self) -> [usize; 2] {
        self.screen_size
    }

    fn actions(&self) -> usize {
        self.actions.len()
    }

    fn has_fire(&self) -> bool {
        self.has_fire
    }

    fn load(&mut self, seed: i32) -> PyResult<()> {
        Python::attach(|py| self.load.call1(py, (seed,)).map(drop))
    }

    fn start(&mut self) -> PyResult<()> {
        Python::attach(|py| self.start.call0(py).map(drop))
    }

    fn frame(&mut self, input: Input) -> PyResult<f64> {
        let action = match input {
            Input::Nothing => &self.nothing,
            Input::Fire => &self.fire,
            Input::Action(index) => &self.actions[index],
        };
        Python::attach(|py| self.act.call1(py, (action,))?.extract(py))
    }

    fn ending(&self) -> PyResult<Ending> {
        Python::attach(|py| {
            // True in both cases, so that one question is enough in every frame but the last.
            if !self.game_over.call0(py)?.extract::<bool>(py)? {
                return Ok(Ending::default());
            }
            let truncated = self.game_truncated.call0(py)?.extract(py)?;
            let alone = [("with_truncation", false)].into_py_dict(py)?;
            let terminated = self.game_over.call(py, (), Some(&alone))?.extract(py)?;
            Ok(Ending { terminated, truncated })
        })
    }

    fn lives(&self) -> PyResult<u32> {
        Python::attach(|py| self.lives.call0(py)?.extract(py))
    }

    fn show(&mut self, screen: &mut [u8]) -> PyResult<()> {
        Python::attach(|py| {
            self.colours_of.call1(py, (&self.screen,))?;
            self.pixels.copy_to_slice(py, &mut self.colours)?;
            if !self.shades.write(&self.colours, self.screen_size[1], screen) {
                self.shades_of.call1(py, (&self.screen,))?;
                self.pixels.copy_to_slice(py, screen)?;
                self.shades.learn(&self.colours, screen);
            }
            Ok(())
        })
    }

    fn error(fault: PyErr, id: &str, during: Moment) -> EnvironmentError {
        Python::attach(|py| error_of(py, &fault, id, during))
    }
}
