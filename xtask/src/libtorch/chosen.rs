//! The libtorch that the user chose with an environment variable, checked before a build of minutes relies on it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{FOLDER, Libtorch, PLACEHOLDER, VERSION, folder};

/// What torch-sys asks Python: where this fails, torch-sys would fail.
const PYTHON_QUESTION: &str = "import torch; from torch.utils import cpp_extension; print(torch.__version__.split('+')[0])";

/// The variables that name the folders which torch-sys takes instead of LIBTORCH for one part of it.
const LIBRARIES: &str = "LIBTORCH_LIB";
const HEADERS: &str = "LIBTORCH_INCLUDE";

/// The user's choice, or `None` if there is none.
pub(super) fn by_user(root: &Path) -> Result<Option<Libtorch>> {
    // Torch-sys looks only whether the variable is there: "0" also means yes.
    if env::var_os("LIBTORCH_USE_PYTORCH").is_some() {
        check_python().context("LIBTORCH_USE_PYTORCH is set")?;
        return Ok(Some(Libtorch::Python));
    }
    let parts = [LIBRARIES, HEADERS].map(|variable| env::var_os(variable).map(PathBuf::from));
    let [libraries, headers] = parts.each_ref().map(Option::as_deref);
    let Some(path) = env::var_os("LIBTORCH").map(PathBuf::from).filter(|path| !is_default(path, root)) else {
        return refuse_parts_alone(libraries, headers).map(|()| None);
    };
    check_folder(&path, libraries, headers).with_context(|| {
        format!(
            "LIBTORCH is set to \"{}\". Point it to libtorch {VERSION}, or run `unset LIBTORCH` and let `cargo xtask setup` fetch it",
            path.display()
        )
    })?;
    Ok(Some(Libtorch::Chosen(path)))
}

/// Fails if the user has named a folder for one part of libtorch and none for the whole: the build would join that part, whatever its
/// version, to a libtorch that the set-up has fetched.
fn refuse_parts_alone(libraries: Option<&Path>, headers: Option<&Path>) -> Result<()> {
    for (variable, folder) in [(LIBRARIES, libraries), (HEADERS, headers)] {
        if let Some(folder) = folder {
            bail!(
                "{variable} is set to \"{}\" and LIBTORCH is not, so the build would use parts of two libtorches. Run `unset {variable}`, \
                 or set LIBTORCH as well, to the folder with its build-version or version.py",
                folder.display()
            );
        }
    }
    Ok(())
}

/// Whether cargo set LIBTORCH for this program, from `.cargo/config.toml`, rather than the user.
fn is_default(path: &Path, root: &Path) -> bool {
    [FOLDER, PLACEHOLDER].iter().map(|name| root.join(name)).any(|default| {
        path == default || matches!((path.canonicalize(), default.canonicalize()), (Ok(path), Ok(default)) if path == default)
    })
}

fn check_folder(path: &Path, libraries: Option<&Path>, headers: Option<&Path>) -> Result<()> {
    if !path.is_absolute() {
        bail!("it must be an absolute path, because build scripts run in folders of their own");
    }
    if !path.is_dir() {
        bail!("there is no such folder");
    }
    folder::check_files(libraries.unwrap_or(path), headers.unwrap_or(path))?;
    if env::var_os("LIBTORCH_BYPASS_VERSION_CHECK").is_none() {
        folder::check_version(path)?;
    }
    Ok(())
}

fn check_python() -> Result<()> {
    let python = if env::var_os("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
    let output = Command::new(python).args(["-c", PYTHON_QUESTION]).output().with_context(|| format!("`{python}` does not start"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let reason = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim().to_owned();
        bail!(
            "`{python}` cannot import torch ({reason}). Install it with `{python} -m pip install torch=={VERSION} setuptools`, or run \
             `unset LIBTORCH_USE_PYTORCH`"
        );
    }
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version != VERSION && env::var_os("LIBTORCH_BYPASS_VERSION_CHECK").is_none() {
        bail!(
            "`{python}` has PyTorch {version}, but version {VERSION} is needed. Install it with \
             `{python} -m pip install torch=={VERSION}`, or run `unset LIBTORCH_USE_PYTORCH`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::plausible;
    use super::*;

    #[test]
    fn the_defaults_of_cargo_are_not_the_choice_of_the_user() {
        let root = tempfile::tempdir().unwrap();
        let placeholder = root.path().join(PLACEHOLDER);
        std::fs::create_dir_all(&placeholder).unwrap();
        assert!(is_default(&placeholder, root.path()));
        assert!(is_default(&root.path().join(".libtorch"), root.path()), "also while the folder is missing");
        assert!(is_default(&root.path().join("xtask/../xtask/libtorch-missing"), root.path()), "also in another spelling");
        assert!(!is_default(Path::new("/somewhere/libtorch"), root.path()));
    }

    #[test]
    fn a_chosen_folder_must_be_absolute_present_and_complete() {
        let refusal = |path: &Path| check_folder(path, None, None).unwrap_err().to_string();
        assert!(refusal(Path::new("")).contains("absolute"));
        assert!(refusal(Path::new("libtorch")).contains("absolute"));
        assert!(refusal(Path::new("/no/such/folder")).contains("no such folder"));
        let folder = plausible("2.12.0");
        assert!(refusal(folder.path()).contains("2.12.0"));
        let folder = plausible("2.13.0");
        check_folder(folder.path(), None, None).unwrap();
        std::fs::remove_file(folder.path().join("lib/libtorch_cpu.so")).unwrap();
        assert!(refusal(folder.path()).contains("libtorch_cpu.so is missing"));
    }

    #[test]
    fn libraries_and_headers_may_lie_elsewhere() {
        let version = tempfile::tempdir().unwrap();
        let libraries = plausible(VERSION);
        let headers = plausible(VERSION);
        std::fs::write(version.path().join("build-version"), VERSION).unwrap();
        std::fs::remove_dir_all(libraries.path().join("include")).unwrap();
        std::fs::remove_dir_all(headers.path().join("lib")).unwrap();
        check_folder(version.path(), Some(libraries.path()), Some(headers.path())).unwrap();
        assert!(check_folder(version.path(), Some(headers.path()), Some(libraries.path())).is_err());
    }

    #[test]
    fn a_folder_for_one_part_is_refused_where_none_is_named_for_the_whole() {
        refuse_parts_alone(None, None).unwrap();
        let folder = Some(Path::new("/opt/torch"));
        for (libraries, headers, variable) in [(folder, None, "LIBTORCH_LIB"), (None, folder, "LIBTORCH_INCLUDE")] {
            let told = refuse_parts_alone(libraries, headers).unwrap_err().to_string();
            assert!(told.starts_with(&format!("{variable} is set to \"/opt/torch\" and LIBTORCH is not")), "{told}");
            assert!(told.contains(&format!("`unset {variable}`")), "{told}");
        }
    }
}
