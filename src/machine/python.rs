//! The Python that environments run in: which one this program was linked with, which interpreter a run takes, and
//! what a process must be given at its start so that the embedded interpreter finds the packages of that interpreter.
//!
//! The standard library is that of the linked libpython, and the packages are those of the chosen interpreter. The
//! standard library of the interpreter would not do, because distributions build different modules into libpython.
//! Variables of the process's environment tell both. A running program must not change them, so it prepares them and
//! starts itself anew.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::{Host, PythonError};

/// Variable that tells a prepared process which Python it runs, as JSON.
pub(super) const PYTHON_VARIABLE: &str = "SHOAL_PYTHON";
/// Variable that tells libpython where its standard library is.
const HOME_VARIABLE: &str = "PYTHONHOME";
/// Variables that a process which steps environments should have before a library of Python looks at them, unless the
/// user set them: an actor is one process of many, so its libraries should neither start threads nor greet the user.
pub const DEFAULT_VARIABLES: [(&str, &str); 5] = [
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("PYGAME_HIDE_SUPPORT_PROMPT", "1"),
    // Processes of a run exit without flushing Python's buffers.
    ("PYTHONUNBUFFERED", "1"),
];
/// The interpreter of the virtual environment that the set-up makes in this checkout.
pub(super) const CHECKOUT_PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/python");

/// A script that prints the fields of [`Python`] as JSON.
const FACTS: &str = "
import json, os, site, sys, sysconfig
# The embedded interpreter has a standard library and the folders of PYTHONPATH by itself.
others = [sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib')]
others += [os.path.abspath(entry) for entry in os.environ.get('PYTHONPATH', '').split(os.pathsep) if entry]
# It would not process the .pth files of this interpreter's own ones, even if PYTHONPATH names them.
own = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
folders = [folder for folder in sys.path if folder in own or folder not in others]
# Python skips what is no text, and JSON cannot hold a name that is no UTF-8.
folders = [folder for folder in folders if isinstance(folder, str) and folder == folder.encode(errors='ignore').decode()]
print(json.dumps({
    'executable': sys.executable,
    'version': '%d.%d.%d' % sys.version_info[:3],
    'abi': '%d.%d%s' % (sys.version_info[0], sys.version_info[1], getattr(sys, 'abiflags', '')),
    'prefix': sys.prefix,
    'utf8_mode': sys.flags.utf8_mode == 1,
    'package_folders': [folder for folder in folders if os.path.isdir(folder) and os.path.basename(folder) != 'lib-dynload'],
}))
";

/// A script that prints the versions of the packages that its arguments name, as JSON.
const VERSIONS: &str = "
import json, sys
from importlib import metadata
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(versions))
";

/// The Python that this program was linked with, or that it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LinkedPython {
    /// Major and minor version with the flags that change the binary interface, such as `3.11` or `3.13t`.
    pub abi: &'static str,
    /// The folder whose `lib` holds the standard library.
    pub home: &'static str,
}

impl LinkedPython {
    /// The linked Python, or the one that this program is part of; `None` if the program has no environments in Python.
    pub fn detect() -> Option<Self> {
        if let Some(Host { abi, home, .. }) = Host::of_this_process() {
            return cfg!(feature = "python-environments").then_some(Self { abi, home });
        }
        Some(Self { abi: option_env!("SHOAL_PYTHON_VERSION")?, home: option_env!("SHOAL_PYTHON_HOME")? })
    }

    fn check_home(self) -> Result<(), PythonError> {
        let digits = self.abi.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        // A free-threaded Python keeps its flag in the name of the folder.
        let folders = [digits, self.abi].map(|version| Path::new(self.home).join(format!("lib/python{version}/os.py")));
        if folders.iter().any(|file| file.is_file()) { Ok(()) } else { Err(PythonError::HomeGone { home: self.home.into() }) }
    }
}

/// An interpreter, and the folders of its packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// The interpreter's file.
    pub executable: PathBuf,
    /// Version, such as `3.11.7`.
    pub version: String,
    /// Major and minor version with the flags that change the binary interface.
    pub abi: String,
    /// The folder of the installation or of the virtual environment.
    pub prefix: PathBuf,
    /// Folders of packages, also those that its start-up files have added, in the order in which they are searched.
    /// Folders whose names are no UTF-8 are left out.
    pub package_folders: Vec<PathBuf>,
    /// Whether it reads and writes UTF-8 whatever the locale is, as Python does where there is none (PEP 540).
    #[serde(default)]
    pub utf8_mode: bool,
    /// The argument of [`find`](Python::find).
    #[serde(default)]
    pub requested: String,
}

impl Python {
    /// The interpreter of a run: `requested` if it is not empty, else that of VIRTUAL_ENV, else that of `.venv` in
    /// the checkout that this program was built in, else `python3` on PATH. If this process is an interpreter's, only
    /// that one.
    ///
    /// # Errors
    /// There is no interpreter, it does not work, or its packages do not fit the libpython that was linked.
    pub fn find(requested: &str) -> Result<Self, PythonError> {
        let linked = LinkedPython::detect().ok_or(PythonError::NotBuilt)?;
        if let Some(host) = Host::of_this_process() {
            return Self::of_host(host, requested);
        }
        linked.check_home()?;
        let python = Self { requested: requested.to_owned(), ..Self::query(&candidate(requested)?)? };
        if python.abi == linked.abi {
            return Ok(python);
        }
        Err(PythonError::OtherVersion { linked: linked.abi.into(), found: python.abi, path: python.executable })
    }

    /// The interpreter of this process. It is asked once, and processes that are forked later know the answer.
    fn of_host(host: &Host, requested: &str) -> Result<Self, PythonError> {
        static FOUND: OnceLock<Python> = OnceLock::new();
        if !requested.is_empty() && !is_the_same(&host.executable, Path::new(requested)) {
            let (host, requested) = (host.executable.clone(), requested.to_owned());
            // A name without a folder is one of a command, wherever that is.
            let is_gone = requested.contains('/') && !Path::new(&requested).exists();
            return Err(if is_gone { PythonError::NotThere { host, requested } } else { PythonError::OtherHost { host, requested } });
        }
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        Self::query(&host.executable).map(|found| FOUND.get_or_init(|| found).clone())
    }

    /// Whether [`find`](Self::find) with `requested` would find this interpreter.
    pub fn answers(&self, requested: &str) -> bool {
        self.requested == requested || self.executable.as_os_str() == requested
    }

    /// The interpreter that this process was prepared for or is part of; `None` if there is neither.
    ///
    /// # Errors
    /// The variable that names the interpreter is damaged.
    pub fn of_this_process() -> Result<Option<Self>, PythonError> {
        if let Some(host) = Host::of_this_process() {
            return Self::of_host(host, "").map(Some);
        }
        let Some(text) = std::env::var_os(PYTHON_VARIABLE) else { return Ok(None) };
        serde_json::from_slice(text.as_encoded_bytes()).map(Some).map_err(|error| PythonError::Variable { reason: error.to_string() })
    }

    /// Gives `command` the variables with which the interpreter inside it has the packages and the encoding of this one.
    ///
    /// # Errors
    /// The program was built without Python.
    pub fn prepare(&self, command: &mut Command) -> Result<(), PythonError> {
        let linked = LinkedPython::detect().ok_or(PythonError::NotBuilt)?;
        let facts = serde_json::to_string(self).map_err(|error| PythonError::Variable { reason: error.to_string() })?;
        command.env(PYTHON_VARIABLE, facts).env(HOME_VARIABLE, linked.home);
        if self.utf8_mode {
            // An embedded interpreter knows no such mode: it encodes as the locale says. An empty LC_ALL says nothing.
            let overrules = std::env::var_os("LC_ALL").is_some_and(|locale| !locale.is_empty());
            command.env(if overrules { "LC_ALL" } else { "LC_CTYPE" }, "C.UTF-8");
        }
        for (name, value) in DEFAULT_VARIABLES {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        Ok(())
    }

    /// A command that starts this interpreter as a program of its own.
    pub fn command(&self) -> Command {
        let mut command = command(&self.executable);
        command.env("PYGAME_HIDE_SUPPORT_PROMPT", "1");
        command
    }

    /// Versions of those of `packages` that are installed.
    ///
    /// # Errors
    /// The interpreter does not work.
    pub fn versions(&self, packages: &[&str]) -> Result<BTreeMap<String, String>, PythonError> {
        ask(&self.executable, VERSIONS, packages)
    }

    fn query(executable: &Path) -> Result<Self, PythonError> {
        ask(executable, FACTS, &[])
    }
}

/// Whether both paths name one interpreter of one virtual environment, such as `bin/python` and `bin/python3`. The
/// interpreters of two environments are different ones, though both may be links to one program.
fn is_the_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| Some((path.parent()?.canonicalize().ok()?, path.canonicalize().ok()?));
    one == other || place(one).is_some_and(|one| place(other) == Some(one))
}

/// The interpreter that `requested` names or, if it is empty, the first one that is there.
fn candidate(requested: &str) -> Result<PathBuf, PythonError> {
    if !requested.is_empty() {
        return Ok(requested.into());
    }
    let active = std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()).map(|folder| Path::new(&folder).join("bin/python"));
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|program| program.is_file())
    };
    let known = active.into_iter().chain([CHECKOUT_PYTHON.into()]).find(|program| program.is_file());
    known.or_else(on_path).ok_or(PythonError::NotFound)
}

/// `executable` as a command, without the variables for the interpreter inside this process.
fn command(executable: &Path) -> Command {
    let mut command = Command::new(executable);
    command.env_remove(HOME_VARIABLE).env_remove(PYTHON_VARIABLE).stdin(Stdio::null());
    command
}

/// What `script` prints, read as JSON.
fn ask<T: for<'de> Deserialize<'de>>(executable: &Path, script: &str, arguments: &[&str]) -> Result<T, PythonError> {
    let broken = |reason: String| PythonError::Broken { path: executable.into(), reason };
    let output = command(executable)
        // Where there is no locale, it would take another one (PEP 538) instead of its UTF-8 mode, and nothing would tell.
        .env("PYTHONCOERCECLOCALE", "0")
        .args([OsStr::new("-c"), OsStr::new(script)])
        .args(arguments)
        .output()
        .map_err(|error| broken(error.to_string()))?;
    // The message of another program would quote the script.
    let failed = |reason: String| not_python(executable).unwrap_or_else(|| broken(reason));
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing").to_owned();
        return Err(failed(format!("{last} ({})", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // A start-up file of the user may have printed lines before.
    let line = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| failed(format!("it answered {line:?} ({error})")))
}

/// The error that `executable` is no Python, if what it says of its version shows that.
fn not_python(executable: &Path) -> Option<PythonError> {
    let output = command(executable).arg("--version").output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let said = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // PyPy and GraalPy are Pythons as well.
    (!said.contains("Py")).then(|| PythonError::NoPython { path: executable.into(), said: said.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_interpreter_that_does_not_work_is_named_with_its_fault() {
        let missing = Python::query(Path::new("/no/such/python")).unwrap_err().to_string();
        assert!(missing.contains("/no/such/python") && missing.contains("environment.python"), "{missing}");
    }

    #[test]
    fn a_program_that_is_no_python_is_told_so_without_the_script_that_it_was_given() {
        for program in ["/bin/ls", "/bin/true"] {
            let other = Python::query(Path::new(program)).unwrap_err().to_string();
            assert!(other.starts_with(&format!("{program} is no Python: ")) && other.contains("environment.python"), "{other}");
            assert!(!other.contains("import"), "{other}");
        }
    }

    #[test]
    fn another_interpreter_than_that_of_the_program_is_told_to_be_used_only_if_it_is_there() {
        let host = Host { executable: "/venv/bin/python".into(), home: "/usr".into(), abi: "3.11".into(), typed: "shoal".into() };
        let refused = |requested: &str| Python::of_host(&host, requested).unwrap_err().to_string();
        assert!(refused("/bin/sh").contains("/bin/sh -m shoal"), "{}", refused("/bin/sh"));
        let gone = refused("/gone/bin/python");
        assert!(gone.contains("which is not there") && gone.contains("set it to \"\"") && !gone.contains("install"), "{gone}");
    }

    #[test]
    fn an_interpreter_is_the_same_by_every_path_and_another_in_every_environment() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name).join("bin"));
        let program = folder.path().join("python");
        std::fs::write(&program, "").unwrap();
        for bin in [&one, &other] {
            std::fs::create_dir_all(bin).unwrap();
            std::os::unix::fs::symlink(&program, bin.join("python")).unwrap();
            std::os::unix::fs::symlink("python", bin.join("python3")).unwrap();
        }
        let python = one.join("python");
        assert!(is_the_same(&python, &one.join("../bin/python")) && is_the_same(&python, &one.join("python3")));
        assert!(!is_the_same(&python, &other.join("python")) && !is_the_same(&python, &one.join("missing")));
    }

    #[test]
    fn a_prepared_command_tells_which_python_it_was_prepared_for() {
        let python = Python {
            executable: "/venv/bin/python".into(),
            version: "3.11.7".into(),
            abi: "3.11".into(),
            prefix: "/venv".into(),
            package_folders: vec!["/venv/lib/python3.11/site-packages".into()],
            utf8_mode: false,
            requested: String::new(),
        };
        let mut command = Command::new("program");
        match python.prepare(&mut command) {
            Err(error) => assert!(matches!(error, PythonError::NotBuilt) && !cfg!(feature = "python-environments"), "{error}"),
            Ok(()) => {
                let value =
                    |name: &str| command.get_envs().find(|(found, _)| *found == name).and_then(|(_, value)| value).unwrap().to_owned();
                assert_eq!(serde_json::from_slice::<Python>(value(PYTHON_VARIABLE).as_encoded_bytes()).unwrap(), python);
                assert_eq!(value(HOME_VARIABLE), LinkedPython::detect().unwrap().home);
            }
        }
    }
}
