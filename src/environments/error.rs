//! Why an environment could not be made, reset or stepped.

use std::fmt;

use thiserror::Error;

use crate::machine::PythonError;

/// A moment in the life of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// While it was made.
    Construction,
    /// In `reset`.
    Reset,
    /// In the step of this number, counted from 1 in each episode.
    Step(u32),
    /// While it was drawn.
    Picture,
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Construction => formatter.write_str("its construction"),
            Self::Reset => formatter.write_str("reset"),
            Self::Step(number) => write!(formatter, "step {number} of an episode"),
            Self::Picture => formatter.write_str("render"),
        }
    }
}

/// Why an environment could not be made, reset or stepped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// No such name in the registry.
    #[error("unknown environment `{id}`{suggestion}; known are {known}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// What to write instead, where that is known; follows the id directly.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// Observations that do not consist of the frames that were promised.
    #[error("`{id}` shows observations of shape {shape:?}, which do not consist of {frames} frames along their first dimension")]
    FramesDoNotDivide {
        /// Environment.
        id: String,
        /// Frames promised.
        frames: usize,
        /// Shape of an observation.
        shape: Vec<usize>,
    },
    /// An action that is not in the action space.
    #[error("`{id}` refused action {action}: it takes {expected}")]
    InvalidAction {
        /// Environment.
        id: String,
        /// The action, printed.
        action: String,
        /// The action space, printed.
        expected: String,
    },
    /// A batch of actions that does not fit the number of environments.
    #[error("{environments} environments `{id}` were given {given} action values: give {expected}, one action after another")]
    ActionCount {
        /// Environment.
        id: String,
        /// How many environments are stepped together.
        environments: usize,
        /// Values in the batch.
        given: usize,
        /// Values that were expected.
        expected: usize,
    },
    /// A step before the first reset or after the end of an episode.
    #[error("`{id}` was stepped or drawn {when}: call reset first")]
    NeedsReset {
        /// Environment.
        id: String,
        /// When, such as `before its first reset`.
        when: &'static str,
    },
    /// An environment of a feature that was left out of this build.
    #[error("`{id}` needs the feature `{feature}`, which this build was made without: {remedy}")]
    NotBuilt {
        /// Environment.
        id: String,
        /// The Cargo feature.
        feature: &'static str,
        /// What to do about it.
        remedy: String,
    },
    /// The description of a simulated body cannot be used.
    #[error("`{id}` cannot load its model {path}: {reason}. Fetch the models with `cargo xtask setup`, or name their folder in {variable}")]
    Model {
        /// Environment.
        id: &'static str,
        /// File of the model.
        path: String,
        /// Why it is of no use.
        reason: String,
        /// The environment variable that names another folder.
        variable: &'static str,
    },
    /// A shared library of another version than the one this program was built for.
    #[error("`{id}` needs {library} {expected} and {found} was loaded: run `cargo xtask setup` and build again")]
    LibraryVersion {
        /// Environment.
        id: &'static str,
        /// The library.
        library: &'static str,
        /// Its version that is needed.
        expected: &'static str,
        /// Its version that is there.
        found: String,
    },
    /// An environment that nobody has drawn.
    #[error(
        "`{id}` cannot be drawn. Pictures come from native environments, from games of the Atari 2600, from what implements \
         Environment::picture, and from environments in Python with \"rgb_array\" among their render_modes, whose constructor \
         takes render_mode and keeps it (a function that makes them takes it and hands it on), and whose render() returns bytes \
         (uint8) of height x width x 3"
    )]
    NoPicture {
        /// Environment.
        id: String,
    },
    /// Nothing to step together.
    #[error("a vector of environments needs at least one environment, 0 were given")]
    EmptyVector,
    /// Environments of different kinds cannot share one matrix of observations.
    #[error(
        "`{id}` cannot be stepped together with others: environment {index} has {found}, and environment 0 has {first}; give all of them \
         the same observations and actions"
    )]
    MixedVector {
        /// Position of the first that differs.
        index: usize,
        /// The environment that is there.
        id: String,
        /// What is observed and done in it.
        found: Box<str>,
        /// What is observed and done in environment 0.
        first: Box<str>,
    },
    /// Keyword arguments that are no JSON object.
    #[error("the keyword arguments {text:?} are no JSON object ({reason}); write them like {{\"gravity\": 9.8}}")]
    KeywordArguments {
        /// What was given.
        text: String,
        /// What the parser says.
        reason: String,
    },
    /// Keyword arguments for an environment that has none.
    #[error("`{id}` takes no keyword arguments, and was given {given}; leave them out")]
    TakesNoArguments {
        /// Environment.
        id: String,
        /// What was given.
        given: String,
    },
    /// A keyword argument that the environment does not have.
    #[error("`{id}` takes no argument `{key}`{suggestion}; it takes {known}")]
    UnknownArgument {
        /// Environment.
        id: String,
        /// The name that was given.
        key: Box<str>,
        /// What to write instead, where that is known; follows the name directly.
        suggestion: Box<str>,
        /// All names.
        known: Box<str>,
    },
    /// A keyword argument that the environment has, of a value that it cannot take.
    #[error("`{id}` cannot take {key} = {value}: give {expected}")]
    InvalidArgument {
        /// Environment.
        id: String,
        /// The argument.
        key: &'static str,
        /// What was given.
        value: Box<str>,
        /// What it takes.
        expected: Box<str>,
    },
    /// There is no Python for it.
    #[error("`{id}` is stepped by Python: {source}")]
    Interpreter {
        /// Environment.
        id: String,
        /// Why there is none.
        source: Box<PythonError>,
    },
    /// The process was not started in a way that lets it embed Python.
    #[error("`{id}` needs a process that was prepared for Python: call environments::python::become_ready at the start of the program")]
    NotPrepared {
        /// Environment.
        id: String,
    },
    /// An environment that does not exist, or that no policy here could act in.
    #[error("`{id}` cannot be used: {reason}")]
    Unusable {
        /// Environment.
        id: String,
        /// Why, and what to do instead where that is known.
        reason: String,
    },
    /// A Python package is missing.
    #[error("`{id}` needs a package that is missing ({summary}); install it:  {command}")]
    MissingPackage {
        /// Environment.
        id: String,
        /// What Python said.
        summary: String,
        /// The command that installs it.
        command: String,
    },
    /// A module is missing, and nobody here knows of which package, or whether it is the user's own.
    #[error(
        "`{id}` needs a module that is missing ({summary}); if it is yours, name its folder in environment.python_path, else install it:  \
         {command}{}{traceback}", if traceback.is_empty() { "" } else { "\n" }
    )]
    MissingModule {
        /// Environment.
        id: String,
        /// What Python said.
        summary: Box<str>,
        /// The command that installs a package of the module's name.
        command: Box<str>,
        /// The end of the traceback, the import last; empty where no call is the environment's own.
        traceback: Box<str>,
    },
    /// Python raised an exception.
    #[error("`{id}` raised an exception in {during}: {summary}{}{traceback}", if traceback.is_empty() { "" } else { "\n" })]
    Python {
        /// Environment.
        id: String,
        /// What was going on.
        during: Moment,
        /// The line that names the exception.
        summary: Box<str>,
        /// The end of the traceback, innermost call last; empty where no call is the environment's own.
        traceback: Box<str>,
    },
    /// The environment could not be described in time.
    #[error(
        "`{id}` was not made, reset and stepped once within {patience_s} s; raise machine.hang_timeout_s above that if it needs \
         longer. It was here, innermost call first:\n{stack}"
    )]
    Hung {
        /// Environment.
        id: String,
        /// How long it was given.
        patience_s: f64,
        /// Where it was, innermost call first.
        stack: String,
    },
    /// The process that tried the environment ended without an answer.
    #[error("`{id}` ended its process while it was made, reset and stepped once ({status}); what it wrote is above")]
    Died {
        /// Environment.
        id: String,
        /// How the process ended.
        status: String,
    },
    /// A number that no network can learn from, or a score that no evaluation can be made of.
    #[error("`{id}` gave {what} = {value:?} in {during}: every observation and reward must be finite, as 32-bit floats, and every score")]
    NotFinite {
        /// Environment.
        id: String,
        /// `observation[2]`, `reward` or `score`.
        what: String,
        /// The number.
        value: f64,
        /// What was going on.
        during: Moment,
    },
    /// An environment that a program adds under one id, and that says another of itself.
    #[error("the environment that was added as `{id}` calls itself `{other}`: let its spec have the id `{id}`")]
    Misnamed {
        /// Under which it was added.
        id: String,
        /// What its spec says.
        other: String,
    },
    /// The environment is not what it was when the run was planned.
    #[error("`{id}` has changed since the run was planned: it now has {found}, and the run was made for {planned}; start a new run")]
    Changed {
        /// Environment.
        id: String,
        /// What it has now.
        found: String,
        /// What it had.
        planned: String,
    },
}

impl EnvironmentError {
    /// Whether nobody knows the environment by that id.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// There is no Python for the environment `id`.
    pub(super) fn interpreter(id: &str, source: PythonError) -> Self {
        Self::Interpreter { id: id.into(), source: source.into() }
    }
}
