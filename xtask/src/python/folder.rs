//! What a complete `.venv` looks like: packages, links for the native MuJoCo environments, settings for cargo.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::virtual_environment::{INSTALLED, interpreter, is_complete};
use crate::workspace::{self, CARGO_SETTINGS};

const CARGO_SETTINGS_TEXT: &str = "\
# Written by `cargo xtask setup`; `.cargo/config.toml` includes this file. The user's own PYO3_PYTHON and MUJOCO_DYNAMIC_LINK_DIR win.
[env]
PYO3_PYTHON = { value = \".venv/bin/python\", relative = true, force = false }
MUJOCO_DYNAMIC_LINK_DIR = { value = \".venv/mujoco\", relative = true, force = false }
# Tells PyO3 that another Python has taken the place of the one that it linked. A cargo that is started by another one, as by
# `cargo xtask`, has inherited the variable from before this file was written anew: therefore `force`.
";

/// The variable that PyO3 watches for this purpose alone.
const SIGNATURE: &str = "PYO3_ENVIRONMENT_SIGNATURE";

/// Where the native MuJoCo environments find their library and their models.
const MUJOCO: &str = "mujoco";
const MUJOCO_LIBRARY: &str = "libmujoco.so.3.17.0";

/// The file with the packages to install.
pub(super) fn requirements_file() -> PathBuf {
    workspace::root().join("xtask/python/requirements.txt")
}

/// The settings with which cargo builds for the Python that `folder` was made from.
fn cargo_settings(folder: &Path) -> String {
    let facts = fs::read_to_string(folder.join("pyvenv.cfg")).unwrap_or_default();
    let origin: Vec<_> = facts.lines().filter(|line| line.starts_with("home = ") || line.starts_with("version = ")).collect();
    // What JSON quotes, TOML reads.
    format!("{CARGO_SETTINGS_TEXT}{SIGNATURE} = {{ value = {}, force = true }}\n", serde_json::Value::from(origin.join(", ")))
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
    if fs::read_to_string(folder.join(CARGO_SETTINGS)).ok() != Some(cargo_settings(folder)) {
        bail!("its settings for cargo are missing, or are those for another Python");
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
    workspace::write(&folder.join(CARGO_SETTINGS), &cargo_settings(folder))?;
    workspace::write(&folder.join(INSTALLED), &fs::read_to_string(requirements_file())?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = || check_against(folder.path(), "numpy\n").map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(refusal().contains("interpreter"));
        let settings = cargo_settings(folder.path());
        for (file, text, next) in [
            ("bin/python", "", "packages"),
            (INSTALLED, "numpy\n", "settings"),
            (CARGO_SETTINGS, settings.as_str(), "libmujoco.so"),
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
        fs::write(folder.path().join("pyvenv.cfg"), "version = 3.13.1\n").unwrap();
        assert!(refusal().contains("for another Python"), "{}", refusal());
    }

    #[test]
    fn cargo_builds_again_for_another_python_also_where_it_has_inherited_another_signature() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[package]\nname = \"linked\"\nedition = \"2024\"\n[workspace]\n");
        write(".cargo/config.toml", "include = [{ path = \"../.venv/cargo-settings.toml\" }]\n");
        let script = r#"
            println!("cargo::rerun-if-env-changed=PYO3_ENVIRONMENT_SIGNATURE");
            println!("cargo::rustc-env=LINKED={}", std::env::var("PYO3_ENVIRONMENT_SIGNATURE").unwrap());"#;
        write("build.rs", &format!("fn main() {{{script}\n}}\n"));
        write("src/main.rs", "fn main() { print!(\"{}\", env!(\"LINKED\")); }\n");
        let linked = |version: &str| {
            write(".venv/pyvenv.cfg", &format!("home = /opt/\"new\"\nversion = {version}\n"));
            write(".venv/cargo-settings.toml", &cargo_settings(&root.path().join(".venv")));
            let mut cargo = workspace::cargo();
            cargo.current_dir(root.path()).args(["run", "--quiet", "--offline", "--target-dir", "target"]);
            let output = cargo.env(SIGNATURE, "another").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        for version in ["3.11.2", "3.13.1"] {
            assert_eq!(linked(version), format!("home = /opt/\"new\", version = {version}"));
        }
    }

    #[test]
    fn the_linked_library_is_of_the_version_that_is_installed() {
        let requirements = fs::read_to_string(requirements_file()).unwrap();
        let version = MUJOCO_LIBRARY.strip_prefix("libmujoco.so.").unwrap();
        assert!(requirements.lines().any(|line| line == format!("mujoco=={version}")), "{requirements}");
    }
}
