//! Environments in Python for tests.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use shoal::environments::{EnvironmentRequest, python};
use shoal::machine::Python;

/// Keeps renderers from leaving files in the user's folders.
pub const NO_CACHE: (&str, &str) = ("MESA_SHADER_CACHE_DISABLE", "true");

/// The folder of the environments that tests bring along.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/python")
}

/// A request for an environment in that folder.
pub fn request(id: &str, keyword_arguments: &str) -> EnvironmentRequest {
    EnvironmentRequest { keyword_arguments: keyword_arguments.into(), search_folders: vec![folder()], ..EnvironmentRequest::new(id) }
}

/// Run `body` in a process that may embed Python: the test `name` once more, alone, in a process prepared for it.
pub fn in_prepared_process(name: &str, body: impl FnOnce()) {
    if Python::of_this_process().expect("the variable is ours").is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().expect("a test knows its program"));
    command.args(["--exact", name, "--nocapture"]);
    // Whatever draws does so as where there is no display, and nobody has chosen a renderer.
    for variable in ["DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"] {
        command.env_remove(variable);
    }
    command.envs([NO_CACHE]);
    python::prepare(&EnvironmentRequest::new("gymnasium:CartPole-v1"), &mut command).unwrap_or_else(|error| {
        panic!("{error}\nThese tests need what `cargo xtask setup` installs, or the feature `python` switched off.")
    });
    let output = command.output().expect("a test can be started again");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "in the prepared process ({}):\n{text}", output.status);
}
