//! Downloads the wheels with pip, which knows the user's package index, proxy and certificates.
//!
//! `pip download` installs nothing, so it also works where the distribution guards its Python against pip.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::VERSION;
use super::wheels::Wheel;

/// Tried in this order: the active environment first, which may lack pip, then the distribution's own.
const PYTHONS: [&str; 3] = ["python3", "python", "/usr/bin/python3"];

/// The platform tags that the wheels carry, without the architecture. Pip takes a tag literally: a newer one does not
/// imply the older ones.
const PLATFORMS: [&str; 7] =
    ["manylinux_2_28", "manylinux_2_27", "manylinux_2_25", "manylinux_2_18", "manylinux_2_17", "manylinux2014", "manylinux2010"];

/// The oldest pip that heeds more than one `--platform`.
const OLDEST_PIP: (u32, u32) = (20, 3);

/// The first Python whose pip can download the wheels.
pub(crate) fn python_with_pip() -> Option<&'static str> {
    PYTHONS.into_iter().find(|python| {
        let pip = Command::new(python).args(["-m", "pip", "--version"]).stdin(Stdio::null()).output();
        pip.is_ok_and(|pip| pip.status.success() && version_of_pip(&String::from_utf8_lossy(&pip.stdout)) >= OLDEST_PIP)
    })
}

/// Major and minor version in what pip says of itself, `pip 23.0.1 from ...`; zeros where it says none.
fn version_of_pip(said: &str) -> (u32, u32) {
    let mut numbers = said.split_whitespace().nth(1).unwrap_or_default().split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Where `download` puts a wheel.
pub(super) fn wheel_path(wheel: &Wheel, partial: &Path) -> Result<PathBuf> {
    let folder = downloads(partial);
    let prefix = wheel.file_prefix();
    let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let found = entries.filter_map(Result::ok).find(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    found.map(|entry| entry.path()).with_context(|| format!("pip downloaded no {prefix}*.whl"))
}

fn downloads(partial: &Path) -> PathBuf {
    partial.join("downloads")
}

/// Downloads `wheels` into the folder `partial`, with pip's progress and pip's errors on the terminal.
pub(super) fn download(wheels: &[Wheel], partial: &Path) -> Result<()> {
    let python = python_with_pip().context("no Python with pip 20.3 or later was found")?;
    // Pip keeps a copy while it downloads; /tmp may be small, and lies in memory on many machines.
    let temporary = partial.join("pip");
    fs::create_dir(&temporary).with_context(|| format!("{} cannot be created", temporary.display()))?;
    let requirements = partial.join("requirements.txt");
    fs::write(&requirements, requirements_text(wheels)).with_context(|| format!("{} cannot be written", requirements.display()))?;

    let mut command = Command::new(python);
    command.args(["-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
    // Older versions of pip hold a cached file in memory as a whole, more than once.
    command.arg("--no-cache-dir");
    // The wheel's Python version does not matter for the libraries, but pip must be told one.
    command.args(["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"]);
    command.args(PLATFORMS.map(|platform| format!("--platform={platform}_{}", std::env::consts::ARCH)));
    command.arg("--requirement").arg(&requirements).arg("--dest").arg(downloads(partial));
    // `pip download` installs nothing, so it needs no virtual environment, whatever pip's settings say.
    command.env("PIP_REQUIRE_VIRTUALENV", "0");
    let status = command.env("TMPDIR", &temporary).status().with_context(|| format!("`{python}` does not start"))?;
    if !status.success() {
        bail!(
            "pip could not download libtorch ({status}); its own message is above. Check the network connection, the free disk space and \
             pip's settings (`{python} -m pip config list`), and run the command again. Without a network, unpack libtorch {VERSION} \
             elsewhere and set LIBTORCH to its folder"
        );
    }
    Ok(())
}

/// The wheels as a requirements file, each with its checksum.
fn requirements_text(wheels: &[Wheel]) -> String {
    wheels.iter().fold(String::new(), |mut text, wheel| {
        let _ = writeln!(text, "{}=={} --hash=sha256:{}", wheel.package, wheel.version, wheel.sha256);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Devices, wheels};
    use super::*;

    #[test]
    fn a_pip_says_its_version() {
        assert_eq!(version_of_pip("pip 20.0.2 from /usr/lib/python3/dist-packages/pip (python 3.8)\n"), (20, 0));
        assert_eq!(version_of_pip("pip 26.1 from here (python 3.13)"), (26, 1));
        assert!(version_of_pip("pip 23.0.1 from there") >= OLDEST_PIP && version_of_pip("nothing") < OLDEST_PIP);
    }

    #[test]
    fn every_requirement_is_pinned_and_has_a_checksum() {
        let text = requirements_text(wheels::for_this_machine(Devices::Cpu).unwrap());
        assert_eq!(text.lines().count(), 3);
        for line in text.lines() {
            let (requirement, checksum) = line.split_once(" --hash=sha256:").unwrap();
            assert!(requirement.contains("=="), "{line}");
            assert!(checksum.len() == 64 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
        }
    }
}
