//! The Pythons of this machine, and which of them programs can embed.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::FOLDER;
use crate::distribution::{Tool, install_command};
use crate::workspace;

/// The variable that names the Python which every build links.
const VARIABLE: &str = "PYO3_PYTHON";
/// The Pythons to try, in this order, if the user has named none and the one of `.venv` does not serve: the active environment's, the
/// distribution's, then by version, newest first among those that Gymnasium supports.
const NAMES: [&str; 6] = ["python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11", "python3.10"];
/// The oldest that Gymnasium supports.
const OLDEST: (u64, u64) = (3, 10);
/// The newest for which there are wheels of all packages of `requirements.txt`: Box2D has none for the next version, and none for a
/// free-threaded Python.
const NEWEST: (u64, u64) = (3, 13);

/// The oldest pip that installs into another environment than its own (`--python`).
const OLDEST_PIP: (u64, u64) = (22, 3);

/// Python code that prints what [`judge`] wants to know of an interpreter, as JSON.
const QUESTION: &str = "
import importlib.util, json, os, re, sys, sysconfig
def pip_version():
    try:
        import importlib.metadata
        return [int(number) for number in re.findall(r'[0-9]+', importlib.metadata.version('pip'))[:2]]
    except Exception:
        return None
value = sysconfig.get_config_var
folder, name = value('LIBDIR') or '', value('LDLIBRARY') or ''
print(json.dumps({
    'executable': sys.executable,
    'version': sys.version_info[:2],
    'flags': getattr(sys, 'abiflags', ''),
    'implementation': sys.implementation.name,
    'shared': bool(value('Py_ENABLE_SHARED')),
    'is_of_conda': os.path.isdir(os.path.join(getattr(sys, 'base_prefix', sys.prefix), 'conda-meta')),
    'library': os.path.join(folder, name),
    'library_is_there': os.path.isfile(os.path.join(folder, name)),
    'has_ensurepip': importlib.util.find_spec('ensurepip') is not None,
    'pip_version': pip_version(),
}))
";

/// Why there is no Python to embed, and what would help.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(super) reason: String,
    remedy: String,
}

impl Obstacle {
    /// Something is missing that the distribution's packages bring.
    pub(crate) fn missing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: install_command(Tool::PythonToEmbed) }
    }

    /// The Python is conda's, as that of many who may not install packages of the distribution: uv installs one for them.
    fn conda(reason: String) -> Self {
        let (major, minor) = NEWEST;
        Self { reason, remedy: format!("{}   or   uv python install {major}.{minor}", install_command(Tool::PythonToEmbed)) }
    }

    /// The Python is of a version that does not serve, and most distributions have packages for one version only.
    fn version(reason: String) -> Self {
        let (major, minor) = NEWEST;
        let remedy = format!(
            "install such a version with its development files (on Fedora python{major}.{minor}-devel; elsewhere for example  uv python \
             install {major}.{minor})"
        );
        Self { reason, remedy }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, remedy } = self;
        write!(
            formatter,
            "{reason}. To have one that serves:  {remedy}  and then  cargo xtask setup, or name another one:  \
             {VARIABLE}=/path/to/python3.12 cargo xtask setup"
        )
    }
}

/// The Python that the user has named, or why it cannot be embedded; `None` if the user has named none.
pub(super) fn named() -> Option<Result<PathBuf, Obstacle>> {
    let name = std::env::var_os(VARIABLE).map(PathBuf::from)?;
    // Cargo also sets the variable, to the Python of `.venv`.
    (!is_in(&name, &workspace::root().join(FOLDER))).then(|| judge_named(&name, ask(&name).as_ref()))
}

/// The Python that is to be embedded, or why there is none.
pub(super) fn best() -> Result<PathBuf, Obstacle> {
    // If cargo has set the variable, its Python comes first, so that `.venv` keeps the Python that it was made from.
    let names = std::env::var_os(VARIABLE).into_iter().chain(NAMES.map(OsString::from));
    best_of(named(), names.filter_map(|name| ask(&name)))
}

/// Whether packages that fit one of these Pythons fit the other.
pub(super) fn are_alike(one: &Path, other: &Path) -> bool {
    matches!((ask(one), ask(other)), (Some(one), Some(other)) if have_one_version(&one, &other))
}

/// Whether `program` lies in the virtual environment `folder`, even if the file itself is gone.
fn is_in(program: &Path, folder: &Path) -> bool {
    let around = program.parent().and_then(Path::parent).map(Path::canonicalize);
    matches!((around, folder.canonicalize()), (Some(Ok(around)), Ok(folder)) if around == folder)
}

/// The one that the user has named, since builds link it whatever else there is. Without one, the first of `others` that can be
/// embedded, or why the first one that runs cannot.
fn best_of(named: Option<Result<PathBuf, Obstacle>>, others: impl IntoIterator<Item = Value>) -> Result<PathBuf, Obstacle> {
    if let Some(verdict) = named {
        return verdict;
    }
    let mut first_obstacle = None;
    for facts in others {
        match judge(&facts) {
            Ok(executable) => return Ok(executable),
            Err(obstacle) => drop(first_obstacle.get_or_insert(obstacle)),
        }
    }
    Err(first_obstacle.unwrap_or_else(|| Obstacle::missing("no Python was found")))
}

fn ask(program: impl AsRef<OsStr>) -> Option<Value> {
    let output = Command::new(program).args(["-c", QUESTION]).env_remove("PYTHONHOME").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

fn have_one_version(one: &Value, other: &Value) -> bool {
    ["version", "flags"].into_iter().all(|key| one[key] == other[key])
}

fn judge_named(name: &Path, facts: Option<&Value>) -> Result<PathBuf, Obstacle> {
    let verdict = facts.map_or_else(|| Err(Obstacle::missing("it does not run, or is no Python, or too old")), judge);
    verdict.map_err(|Obstacle { reason, remedy }| Obstacle {
        reason: format!("{VARIABLE} is set to \"{}\": {reason}; `unset {VARIABLE}` leaves the choice to the set-up", name.display()),
        remedy,
    })
}

fn judge(facts: &Value) -> Result<PathBuf, Obstacle> {
    let text = |key: &str| facts[key].as_str().unwrap_or_default();
    let flag = |key: &str| facts[key].as_bool().unwrap_or(false);
    let executable = text("executable");
    let version = (facts["version"][0].as_u64().unwrap_or(0), facts["version"][1].as_u64().unwrap_or(0));
    if text("implementation") != "cpython" || version < OLDEST || version > NEWEST || text("flags").contains('t') {
        return Err(Obstacle::version(format!(
            "{executable} is {} {}.{}{}, CPython {}.{} to {}.{} is needed",
            text("implementation"),
            version.0,
            version.1,
            text("flags"),
            OLDEST.0,
            OLDEST.1,
            NEWEST.0,
            NEWEST.1
        )));
    }
    if !flag("shared") && flag("is_of_conda") {
        return Err(Obstacle::conda(format!(
            "{executable} is conda's and was built without a shared library; programs that link the one beside it would load conda's \
             other libraries with it, such as its C++ library, which may be too old for them"
        )));
    }
    if !flag("shared") {
        return Err(Obstacle::missing(format!("{executable} was built without a shared library")));
    }
    if !flag("library_is_there") {
        return Err(Obstacle::missing(format!("{executable} lacks its library {}", text("library"))));
    }
    let pip_version = (facts["pip_version"][0].as_u64().unwrap_or(0), facts["pip_version"][1].as_u64().unwrap_or(0));
    if !flag("has_ensurepip") && pip_version < OLDEST_PIP {
        let (major, minor) = OLDEST_PIP;
        return Err(Obstacle::missing(format!("{executable} has neither ensurepip nor a pip of version {major}.{minor} or later")));
    }
    Ok(executable.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sound() -> Value {
        json!({
            "executable": "/usr/bin/python3", "version": [3, 11], "flags": "", "implementation": "cpython", "shared": true,
            "is_of_conda": false, "library": "/usr/lib/libpython3.11.so", "library_is_there": true, "has_ensurepip": true,
            "pip_version": null,
        })
    }

    /// `facts` with another value for `key`.
    fn with(mut facts: Value, key: &str, value: Value) -> Value {
        facts[key] = value;
        facts
    }

    #[test]
    fn each_thing_that_a_python_lacks_is_named() {
        let sound = sound();
        assert_eq!(judge(&sound).unwrap(), PathBuf::from("/usr/bin/python3"));
        let with_pip = |version: Value| {
            let mut facts = sound.clone();
            (facts["has_ensurepip"], facts["pip_version"]) = (json!(false), version);
            judge(&facts)
        };
        assert!(with_pip(json!([23, 0])).is_ok());
        assert!(
            with_pip(json!([22, 0])).unwrap_err().reason.contains("pip of version 22.3"),
            "that of Ubuntu 22.04 cannot install from outside"
        );
        for (key, value, expected) in [
            ("version", json!([3, 9]), "CPython 3.10 to 3.13 is needed"),
            ("version", json!([3, 14]), "CPython 3.10 to 3.13 is needed"),
            ("flags", json!("t"), "is cpython 3.11t, CPython 3.10 to 3.13 is needed"),
            ("implementation", json!("pypy"), "is pypy"),
            ("shared", json!(false), "without a shared library"),
            ("library_is_there", json!(false), "lacks its library /usr/lib/libpython3.11.so"),
            ("has_ensurepip", json!(false), "neither ensurepip nor a pip"),
        ] {
            let Obstacle { reason, .. } = judge(&with(sound.clone(), key, value)).unwrap_err();
            assert!(reason.contains(expected) && reason.contains("/usr/bin/python3"), "{reason}");
        }
    }

    #[test]
    fn who_has_a_python_of_a_version_that_does_not_serve_is_not_told_to_install_it_again() {
        let packages = install_command(Tool::PythonToEmbed);
        for version in [json!([3, 14]), json!([3, 9])] {
            let told = judge(&with(sound(), "version", version)).unwrap_err().to_string();
            assert!(told.contains("python3.13-devel") && !told.contains(&packages), "{told}");
        }
        let told = judge(&with(sound(), "library_is_there", json!(false))).unwrap_err().to_string();
        assert!(told.contains(&packages), "{told}");
    }

    #[test]
    fn a_python_of_conda_is_refused_for_what_its_libraries_would_do_to_programs() {
        let conda = with(with(sound(), "shared", json!(false)), "is_of_conda", json!(true));
        let told = judge(&conda).unwrap_err().to_string();
        assert!(told.contains("is conda's") && told.contains("its C++ library"), "{told}");
        assert!(told.contains("uv python install 3.13") && told.contains(&install_command(Tool::PythonToEmbed)), "{told}");
        assert_eq!(best_of(None, [conda, sound()]).unwrap(), PathBuf::from("/usr/bin/python3"), "another one serves");
    }

    #[test]
    fn a_python_that_the_user_has_named_is_taken_or_refused_whatever_else_serves() {
        let other = with(sound(), "executable", json!("/opt/python3.12"));
        let best = |facts: Option<Value>| best_of(Some(judge_named(Path::new("python3.12"), facts.as_ref())), [sound()]);
        assert_eq!(best(Some(other.clone())).unwrap(), PathBuf::from("/opt/python3.12"));
        let refused = best(Some(with(other.clone(), "shared", json!(false)))).unwrap_err().reason;
        let expected = "PYO3_PYTHON is set to \"python3.12\": /opt/python3.12 was built without a shared library; `unset PYO3_PYTHON`";
        assert!(refused.starts_with(expected), "{refused}");
        assert!(best(None).unwrap_err().reason.contains("it does not run"));
        assert_eq!(best_of(None, [with(other, "shared", json!(false)), sound()]).unwrap(), PathBuf::from("/usr/bin/python3"));
    }

    #[test]
    fn what_cargo_sets_is_not_named_by_the_user() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".venv");
        for made in [&folder, &root.path().join(".cargo")] {
            std::fs::create_dir(made).unwrap();
        }
        assert!(is_in(&folder.join("bin/python"), &folder), "also where that Python is gone");
        assert!(is_in(&root.path().join(".cargo/../.venv/bin/python"), &folder), "also in another spelling");
        for named in ["", "python3.12", "/usr/bin/python3", "/other/.venv/bin/python"] {
            assert!(!is_in(Path::new(named), &folder), "{named}");
        }
        assert!(!is_in(Path::new("/usr/bin/python3"), &root.path().join("none")));
    }

    #[test]
    fn pythons_of_one_minor_version_are_alike_unless_one_is_free_threaded() {
        assert!(have_one_version(&sound(), &with(sound(), "executable", json!("/opt/python3.11"))));
        for (key, value) in [("version", json!([3, 12])), ("flags", json!("t"))] {
            assert!(!have_one_version(&sound(), &with(sound(), key, value)), "{key}");
        }
        assert!(!are_alike(Path::new("/no/such/python"), Path::new("/no/such/python")));
    }

    #[test]
    fn a_program_that_is_no_python_is_passed_over() {
        assert!(ask("/bin/true").is_none());
        assert!(ask("/no/such/python").is_none());
    }
}
