//! The Pythons of this machine, and which of them programs can embed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Tried in this order, after the one that PYO3_PYTHON names: the active environment's first, then the distribution's, then
/// by version, newest first among those for which Gymnasium is made.
const NAMES: [&str; 6] = ["python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11", "python3.10"];
/// The oldest that Gymnasium supports.
const OLDEST: (u64, u64) = (3, 10);
/// The newest for which all packages of `requirements.txt` come built: there is no Box2D for the next.
const NEWEST: (u64, u64) = (3, 13);

/// The oldest that installs into another environment than its own (`--python`).
const OLDEST_PIP: (u64, u64) = (22, 3);

/// Prints what decides, as JSON.
const QUESTION: &str = "
import importlib.metadata, importlib.util, json, os, re, sys, sysconfig
def pip_version():
    try:
        return [int(number) for number in re.findall(r'[0-9]+', importlib.metadata.version('pip'))[:2]]
    except Exception:
        return None
value = sysconfig.get_config_var
folder, name = value('LIBDIR') or '', value('LDLIBRARY') or ''
print(json.dumps({
    'executable': sys.executable,
    'version': sys.version_info[:2],
    'implementation': sys.implementation.name,
    'shared': bool(value('Py_ENABLE_SHARED')),
    'library': os.path.join(folder, name),
    'library_is_there': os.path.isfile(os.path.join(folder, name)),
    'has_ensurepip': importlib.util.find_spec('ensurepip') is not None,
    'pip_version': pip_version(),
}))
";

/// The first Python that can be embedded, or why the first one that runs cannot.
pub(super) fn best() -> Result<PathBuf, String> {
    // Where the user has not set it, cargo has set it to that of `.venv`, which stays what it is made of.
    let names = std::env::var("PYO3_PYTHON").into_iter().chain(NAMES.map(str::to_owned));
    let mut first_reason = None;
    for facts in names.filter_map(|name| ask(&name)) {
        match judge(&facts) {
            Ok(executable) => return Ok(executable),
            Err(reason) => drop(first_reason.get_or_insert(reason)),
        }
    }
    Err(first_reason.unwrap_or_else(|| "no Python was found".into()))
}

fn ask(program: &str) -> Option<Value> {
    let output = Command::new(program).args(["-c", QUESTION]).env_remove("PYTHONHOME").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

fn judge(facts: &Value) -> Result<PathBuf, String> {
    let text = |key: &str| facts[key].as_str().unwrap_or_default();
    let flag = |key: &str| facts[key].as_bool().unwrap_or(false);
    let executable = text("executable");
    let version = (facts["version"][0].as_u64().unwrap_or(0), facts["version"][1].as_u64().unwrap_or(0));
    if text("implementation") != "cpython" || version < OLDEST || version > NEWEST {
        return Err(format!(
            "{executable} is {} {}.{}, CPython {}.{} to {}.{} is needed",
            text("implementation"),
            version.0,
            version.1,
            OLDEST.0,
            OLDEST.1,
            NEWEST.0,
            NEWEST.1
        ));
    }
    if !flag("shared") {
        return Err(format!("{executable} was built without a shared library"));
    }
    if !flag("library_is_there") {
        return Err(format!("{executable} lacks its library {}", text("library")));
    }
    let pip_version = (facts["pip_version"][0].as_u64().unwrap_or(0), facts["pip_version"][1].as_u64().unwrap_or(0));
    if !flag("has_ensurepip") && pip_version < OLDEST_PIP {
        let (major, minor) = OLDEST_PIP;
        return Err(format!("{executable} has neither ensurepip nor a pip of version {major}.{minor} or later"));
    }
    Ok(executable.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_thing_that_a_python_lacks_is_named() {
        let sound = json!({
            "executable": "/usr/bin/python3", "version": [3, 11], "implementation": "cpython", "shared": true,
            "library": "/usr/lib/libpython3.11.so", "library_is_there": true, "has_ensurepip": true, "pip_version": null,
        });
        assert_eq!(judge(&sound).unwrap(), PathBuf::from("/usr/bin/python3"));
        let with_pip = |version: Value| {
            let mut facts = sound.clone();
            (facts["has_ensurepip"], facts["pip_version"]) = (json!(false), version);
            judge(&facts)
        };
        assert!(with_pip(json!([23, 0])).is_ok());
        assert!(with_pip(json!([22, 0])).unwrap_err().contains("pip of version 22.3"), "that of Ubuntu 22.04 cannot install from outside");
        for (key, value, expected) in [
            ("version", json!([3, 9]), "CPython 3.10 to 3.13 is needed"),
            ("version", json!([3, 14]), "CPython 3.10 to 3.13 is needed"),
            ("implementation", json!("pypy"), "is pypy"),
            ("shared", json!(false), "without a shared library"),
            ("library_is_there", json!(false), "lacks its library /usr/lib/libpython3.11.so"),
            ("has_ensurepip", json!(false), "neither ensurepip nor a pip"),
        ] {
            let mut facts = sound.clone();
            facts[key] = value;
            let reason = judge(&facts).unwrap_err();
            assert!(reason.contains(expected) && reason.contains("/usr/bin/python3"), "{reason}");
        }
    }

    #[test]
    fn a_program_that_is_no_python_is_passed_over() {
        assert!(ask("/bin/true").is_none());
        assert!(ask("/no/such/python").is_none());
    }
}
