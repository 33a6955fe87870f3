//! What a usable libtorch folder looks like.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::VERSION;
use crate::workspace::{self, CARGO_SETTINGS};

pub(super) const CARGO_SETTINGS_TEXT: &str = "\
# Written by `cargo xtask setup`; `.cargo/config.toml` includes this file. The user's own LIBTORCH wins.
[env]
LIBTORCH = { value = \".libtorch\", relative = true, force = false }
";

/// Checks the folder that the set-up makes.
pub(super) fn check_fetched(folder: &Path) -> Result<()> {
    check_version(folder)?;
    check_files(folder, folder)?;
    if fs::read_to_string(folder.join(CARGO_SETTINGS)).ok().as_deref() != Some(CARGO_SETTINGS_TEXT) {
        bail!("{} is missing or outdated in {}", CARGO_SETTINGS, folder.display());
    }
    Ok(())
}

/// Adds the settings for cargo to `folder` if it lacks nothing else, and then returns a line that says so.
pub(super) fn complete(folder: &Path) -> Result<Option<String>> {
    if check_version(folder).is_err() || check_files(folder, folder).is_err() {
        return Ok(None);
    }
    let settings = folder.join(CARGO_SETTINGS);
    workspace::write(&settings, CARGO_SETTINGS_TEXT)?;
    Ok(Some(format!("Added {} to the libtorch that was there.", settings.display())))
}

/// Whether the libtorch in `folder` computes on GPUs.
pub(super) fn has_cuda(folder: &Path) -> bool {
    folder.join("lib/libtorch_cuda.so").is_file()
}

/// Compares the version in the folder with the only one that the bindings accept.
pub(super) fn check_version(folder: &Path) -> Result<()> {
    let version = version(folder).with_context(|| {
        format!("{} is no libtorch: it has neither a file build-version nor a version.py that names its version", folder.display())
    })?;
    if version != VERSION {
        bail!("{} holds libtorch {version}, but version {VERSION} is needed", folder.display());
    }
    Ok(())
}

/// The version that a folder states, without what follows a plus sign ("2.13.0+cpu" is 2.13.0). A libtorch archive states
/// it in `build-version`, the folder of an installed PyTorch in `version.py`.
fn version(folder: &Path) -> Option<String> {
    let stated = fs::read_to_string(folder.join("build-version")).ok().or_else(|| {
        let module = fs::read_to_string(folder.join("version.py")).ok()?;
        let line = module.lines().find(|line| line.starts_with("__version__"))?;
        line.split(['\'', '"']).nth(1).map(str::to_owned)
    })?;
    Some(stated.trim().split('+').next().unwrap_or_default().to_owned())
}

/// Checks the libraries below `libraries` and the headers below `headers`: what torch-sys links and includes.
pub(super) fn check_files(libraries: &Path, headers: &Path) -> Result<()> {
    let needed = [
        libraries.join("lib/libtorch_cpu.so"),
        libraries.join("lib/libtorch.so"),
        libraries.join("lib/libc10.so"),
        headers.join("include/torch/csrc/api/include/torch/torch.h"),
        headers.join("include/ATen/ATen.h"),
    ];
    for file in needed {
        if !fs::metadata(&file).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            bail!("{} is missing", file.display());
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder that passes every check, for the tests of this module and its neighbours.
    pub(crate) fn plausible(version: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["lib/libtorch_cpu.so", "lib/libtorch.so", "lib/libc10.so"] {
            write(name, "library");
        }
        for name in ["include/torch/csrc/api/include/torch/torch.h", "include/ATen/ATen.h"] {
            write(name, "header");
        }
        write("build-version", version);
        folder
    }

    #[test]
    fn a_folder_lacks_nothing_but_its_cargo_settings_and_gets_them() {
        let folder = plausible("2.13.0\n");
        assert!(check_fetched(folder.path()).unwrap_err().to_string().contains(CARGO_SETTINGS));
        assert!(complete(folder.path()).unwrap().is_some());
        check_fetched(folder.path()).unwrap();
    }

    #[test]
    fn each_missing_or_empty_file_is_named() {
        for name in ["lib/libtorch_cpu.so", "lib/libtorch.so", "lib/libc10.so", "include/ATen/ATen.h"] {
            let folder = plausible("2.13.0");
            fs::write(folder.path().join(name), "").unwrap();
            assert!(check_fetched(folder.path()).unwrap_err().to_string().contains(name), "{name} is empty");
            fs::remove_file(folder.path().join(name)).unwrap();
            assert!(check_fetched(folder.path()).unwrap_err().to_string().contains(name), "{name} is missing");
            assert!(complete(folder.path()).unwrap().is_none(), "a folder without {name} must be fetched again");
        }
    }

    #[test]
    fn the_version_is_read_from_either_file_and_compared() {
        let folder = plausible("2.13.0+cpu\n");
        check_version(folder.path()).unwrap();
        fs::write(folder.path().join("build-version"), "2.12.1").unwrap();
        assert!(check_version(folder.path()).unwrap_err().to_string().contains("holds libtorch 2.12.1, but version 2.13.0 is needed"));
        fs::remove_file(folder.path().join("build-version")).unwrap();
        assert!(check_version(folder.path()).unwrap_err().to_string().contains("is no libtorch"));
        fs::write(folder.path().join("version.py"), "from typing import Optional\n__version__ = '2.13.0+cu130'\ndebug = False\n").unwrap();
        check_version(folder.path()).unwrap();
    }
}
