//! What a complete `.venv` looks like: packages, links for the native MuJoCo environments, settings for cargo.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::virtual_environment::{INSTALLED, interpreter, is_complete};
use crate::workspace;

/// The file that makes cargo use the folder: `.cargo/config.toml` includes it when it is there.
const CARGO_SETTINGS: &str = "cargo-settings.toml";

const CARGO_SETTINGS_TEXT: &str = "\
# Written by `cargo xtask setup`; `.cargo/config.toml` includes this file. The user's own variables win.
[env]
PYO3_PYTHON = { value = \".venv/bin/python\", relative = true, force = false }
MUJOCO_DYNAMIC_LINK_DIR = { value = \".venv/mujoco\", relative = true, force = false }
";

/// Where the native MuJoCo environments find their library and their models.
const MUJOCO: &str = "mujoco";
const MUJOCO_LIBRARY: &str = "libmujoco.so.3.17.0";

/// The file with the packages to install.
pub(super) fn requirements_file() -> PathBuf {
    workspace::root().join("xtask/python/requirements.txt")
}

/// Checks, without starting anything, that nothing is missing.
pub(super) fn check(folder: &Path) -> Result<()> {
    check_against(folder, &fs::read_to_string(requirements_file())?)
}

fn check_against(folder: &Path, requirements: &str) -> Result<()> {
    if !folder.exists() {
        bail!("it is missing");
    }
    // `is_file` follows the link that a virtual environment has for its interpreter.
    if !interpreter(folder).is_file() {
        bail!("its interpreter is gone");
    }
    // An upgrade of the system may have put another Python there, which looks for its packages elsewhere.
    if let Some(name) = interpreter(folder).canonicalize()?.file_name().and_then(|name| name.to_str())
        && name.starts_with("python3.")
        && !folder.join("lib").join(name).is_dir()
    {
        bail!("its interpreter is now another Python, {name}");
    }
    if !is_complete(folder, requirements) {
        bail!("its packages are not the needed ones");
    }
    if fs::read_to_string(folder.join(CARGO_SETTINGS)).ok().as_deref() != Some(CARGO_SETTINGS_TEXT) {
        bail!("its settings for cargo are missing");
    }
    let links = ["libmujoco.so", MUJOCO_LIBRARY, "assets"].map(|name| folder.join(MUJOCO).join(name));
    if let Some(broken) = links.iter().find(|link| !link.exists()) {
        bail!("{} is missing", broken.display());
    }
    Ok(())
}

/// Adds what pip does not install, and last the file that says that everything is there.
pub(super) fn complete(folder: &Path) -> Result<()> {
    link_mujoco(folder)?;
    write(&folder.join(CARGO_SETTINGS), CARGO_SETTINGS_TEXT)?;
    write(&folder.join(INSTALLED), &fs::read_to_string(requirements_file())?)?;
    check(folder).context("the packages do not hold what they should")
}

fn link_mujoco(folder: &Path) -> Result<()> {
    let packages = packages(folder)?;
    let links = folder.join(MUJOCO);
    fs::create_dir_all(&links).with_context(|| format!("{} cannot be made", links.display()))?;
    // Relative, so that a checkout can be moved as far as Python allows it.
    let up = Path::new("..").join(packages.strip_prefix(folder.canonicalize()?).unwrap_or(&packages));
    let library = up.join("mujoco").join(MUJOCO_LIBRARY);
    for (name, target) in
        [("libmujoco.so", library.clone()), (MUJOCO_LIBRARY, library), ("assets", up.join("gymnasium/envs/mujoco/assets"))]
    {
        let link = links.join(name);
        let _ = fs::remove_file(&link);
        symlink(&target, &link).with_context(|| format!("{} cannot be linked", link.display()))?;
    }
    Ok(())
}

/// The folder with the installed packages.
fn packages(folder: &Path) -> Result<PathBuf> {
    let output = Command::new(interpreter(folder))
        .args(["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"])
        .output()
        .context("the new interpreter does not start")?;
    let path = String::from_utf8(output.stdout).context("the folder of the packages has a name that is no UTF-8")?;
    Path::new(path.trim()).canonicalize().context("there is no folder of packages")
}

/// Writes the file by a rename, so that a cargo that reads it at this moment sees all of it.
fn write(path: &Path, text: &str) -> Result<()> {
    let draft = path.with_extension(std::process::id().to_string());
    fs::write(&draft, text).and_then(|()| fs::rename(&draft, path)).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = || check_against(folder.path(), "numpy\n").map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(refusal().contains("interpreter"));
        for (file, text, next) in [
            ("bin/python", "", "packages"),
            (INSTALLED, "numpy\n", "settings"),
            (CARGO_SETTINGS, CARGO_SETTINGS_TEXT, "libmujoco.so"),
            ("mujoco/libmujoco.so", "", MUJOCO_LIBRARY),
            ("mujoco/libmujoco.so.3.17.0", "", "assets"),
            ("mujoco/assets", "", ""),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert!(refusal().contains(next), "after {file}: {}", refusal());
        }
        assert_eq!(refusal(), "");
        assert!(check_against(folder.path(), "numpy==2\n").is_err(), "other requirements need another set-up");
    }

    #[test]
    fn the_linked_library_is_of_the_version_that_is_installed() {
        let requirements = fs::read_to_string(requirements_file()).unwrap();
        let version = MUJOCO_LIBRARY.strip_prefix("libmujoco.so.").unwrap();
        assert!(requirements.lines().any(|line| line == format!("mujoco=={version}")), "{requirements}");
    }
}
