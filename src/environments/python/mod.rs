//! Environments in Python: Gymnasium's own by their id (`gymnasium:HalfCheetah-v5`), those that another module registers by
//! module and id (`gymnasium:my_tasks:MyTask-v0`), and a user's own by module or file and class (`python:my_task:MyTask`,
//! `python:tasks/my_task.py:MyTask`).
//!
//! Each process that steps them embeds an interpreter of its own, so that no global interpreter lock is shared and a crash
//! takes down one process. What is known of an environment before that comes from a Python started for the question
//! (`probe`), because a process that has started an interpreter should not fork any more. A program that is going to step
//! them calls [`become_ready`] first.

mod description;
#[cfg(feature = "python-environments")]
mod environment;
mod fault;
#[cfg(feature = "python-environments")]
pub(super) mod interpreter;
pub(super) mod probe;
mod process;

pub use process::{become_ready, interpreter_of, prepare, write_stacks_to};

use super::origin::Origin;
use super::request::{EnvironmentRequest, Examined};
use super::{Environment, EnvironmentError};

/// The functions that run inside of Python.
const BRIDGE: &str = include_str!("bridge.py");
/// What they tell of exceptions, as the module `shoal_faults`, which they import.
const FAULTS: &str = include_str!("faults.py");

/// Kill the processes that environments of this process have started by Python's `multiprocessing` and left. To be called
/// once all of its environments are dropped and before it leaves without Python's own end.
pub fn end_helpers() {
    #[cfg(feature = "python-environments")]
    interpreter::end_helpers();
}

/// Environments that Python steps.
pub(super) struct InPython;

impl Origin for InPython {
    #[cfg(feature = "python-environments")]
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        check(request)?;
        Ok(Box::new(environment::PythonEnvironment::new(request)?))
    }

    #[cfg(not(feature = "python-environments"))]
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        Err(EnvironmentError::interpreter(&request.id, crate::machine::PythonError::NotBuilt))
    }

    fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
        check(request)?;
        probe::examine(request)
    }

    fn needs_python(&self) -> bool {
        true
    }
}

/// Refuse a malformed id or malformed arguments, which Python would refuse in worse words.
fn check(request: &EnvironmentRequest) -> Result<(), EnvironmentError> {
    request.arguments()?;
    let lacks_a_part = |(module, name): (&str, &str)| module.is_empty() || name.is_empty();
    let reason = match request.id.split_once(':') {
        Some(("gymnasium", rest)) if rest.is_empty() || rest.rsplit_once(':').is_some_and(lacks_a_part) => {
            "write the id of an environment after the colon, such as gymnasium:CartPole-v1, or the module that registers it and its \
             id, such as gymnasium:my_tasks:MyTask-v0"
        }
        Some(("python", rest)) if rest.rsplit_once(':').is_none_or(lacks_a_part) => {
            "write a module or file and a class after the colon, such as python:my_task:MyTask or python:tasks/my_task.py:MyTask"
        }
        _ => return Ok(()),
    };
    Err(EnvironmentError::Unusable { id: request.id.clone(), reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_names_nothing_is_told_how_to_be_written() {
        for id in ["gymnasium:", "gymnasium::", "gymnasium:my_tasks:", "python:", "python:my_task", "python::MyTask", "python:my_task:"] {
            let refusal = EnvironmentRequest::new(id).examine().unwrap_err().to_string();
            assert!(refusal.contains("such as"), "{refusal}");
        }
    }
}
