//! Asks a Python of its own, started for this alone, what an environment is like.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::description::Description;
use super::fault::Fault;
use super::{BRIDGE, FAULTS, process};
use crate::environments::{EnvironmentError, EnvironmentRequest, Examined, Moment};
use crate::machine::PythonError;

const PROBE: &str = include_str!("probe.py");
/// How Python's fault handler begins when time is up.
const TIMEOUT_MARK: &str = "Timeout (";
/// What it writes before the stack of each thread; that of the main thread, which tries the environment, comes last.
const THREAD_MARK: &str = " (most recent call first):\n";
/// Lines of its stack that are not the environment's.
const OWN_FRAMES: [&str; 2] = ["File \"<shoal", "File \"<string>\""];

/// The answer of `probe.py`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer<T> {
    Fault { fault: Fault, during: Tried },
    Examined(T),
}

/// The answer of `examine` in `bridge.py`.
#[derive(Deserialize)]
struct Described {
    description: Description,
    software: Vec<(String, String)>,
    remark: Option<String>,
}

/// The part of an examination that failed.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tried {
    Construction,
    Reset,
    Step,
}

impl Tried {
    fn moment(self) -> Moment {
        match self {
            Self::Construction => Moment::Construction,
            Self::Reset => Moment::Reset,
            Self::Step => Moment::Step(1),
        }
    }
}

/// What the requested environment is like, and whether its first reset and step succeed.
pub(super) fn examine(request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
    let arguments = json!([request.id, request.keyword_arguments, request.search_folders]);
    let Described { description, software, remark } = ask(request, None, &arguments)?;
    let spec = description.into_spec(&request.id).map_err(|reason| EnvironmentError::Unusable { id: request.id.clone(), reason })?;
    Ok(Examined { spec, software, remark })
}

/// What the function `examine` of `source`, or else of `bridge.py`, answers to `arguments`.
///
/// What it writes goes to this process's standard error, where warnings of Gymnasium are read once, and what is taking long.
pub(in crate::environments) fn ask<T: DeserializeOwned>(
    request: &EnvironmentRequest,
    source: Option<&str>,
    arguments: &Value,
) -> Result<T, EnvironmentError> {
    let id = &request.id;
    let python = process::interpreter_of(request)?;
    let broken = |error: std::io::Error| {
        let source = PythonError::Broken { path: python.executable.clone(), reason: error.to_string() };
        EnvironmentError::interpreter(id, source)
    };

    let question = json!({
        "id": id,
        "bridge": BRIDGE,
        "faults": FAULTS,
        "source": source,
        "arguments": arguments,
        "patience_s": request.patience.as_secs_f64(),
    });
    // No pipe: what the environment forks would hold its other end for as long as it lives.
    let mut output = File::from(memfd_create("shoal-probe", MemfdFlags::CLOEXEC).map_err(|error| broken(error.into()))?);
    let written = output.try_clone().map_err(broken)?;
    let mut child = python.command().args(["-c", PROBE]).stdin(Stdio::piped()).stdout(written).spawn().map_err(broken)?;
    if let Some(mut input) = child.stdin.take() {
        // A Python that ends before it reads tells why by its status.
        let _ = input.write_all(question.to_string().as_bytes());
    }
    let status = child.wait().map_err(broken)?;
    let mut text = String::new();
    output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(broken)?;
    match serde_json::from_str(&text) {
        Ok(Answer::Fault { fault, during }) => Err(fault.into_error(id, during.moment())),
        Ok(Answer::Examined(answer)) => Ok(answer),
        Err(error) => match text.find(TIMEOUT_MARK) {
            Some(mark) => {
                let of_the_user = |line: &&str| !OWN_FRAMES.iter().any(|own| line.contains(own));
                let of_the_main_thread = text[mark..].rsplit(THREAD_MARK).next().unwrap_or_default();
                let stack = of_the_main_thread.lines().filter(of_the_user).collect::<Vec<_>>().join("\n");
                Err(EnvironmentError::Hung { id: id.clone(), patience_s: request.patience.as_secs_f64(), stack })
            }
            None if status.success() && !text.is_empty() => {
                Err(EnvironmentError::Unusable { id: id.clone(), reason: format!("what it says of itself cannot be read: {error}") })
            }
            None => Err(EnvironmentError::Died { id: id.clone(), status: status.to_string() }),
        },
    }
}
